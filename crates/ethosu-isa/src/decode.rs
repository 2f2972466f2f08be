//! From bytes to commands.

use core::fmt;
use core::iter::FusedIterator;

use crate::command::{Command, PAYLOAD_FOLLOWS, Refusal};
use crate::operand::Fault;
use crate::product::Product;

/// The one or two words of a command as they stand in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Words {
    /// The command word: code in bits 15..0, parameter in bits 31..16.
    pub control: u32,
    /// The payload word of a command that has one.
    pub payload: Option<u32>,
}

impl Words {
    /// Bytes in the stream: 4 or 8.
    pub const fn bytes(self) -> usize {
        if self.payload.is_some() { 8 } else { 4 }
    }

    /// The words in stream order.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        [Some(self.control), self.payload].into_iter().flatten()
    }
}

/// A command, and where and how it stands in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Bytes from the start of the stream.
    pub offset: usize,
    /// The words it was read from.
    pub words: Words,
    /// What they say.
    pub command: Command,
}

/// Reads a bare command stream, such as [`Payload::stream`](crate::Payload::stream) or the commands of an NPU1 file.
///
/// Reserved bits that are set, and codes without a meaning, are errors: nothing that Vela 5.2.0 writes has them, and what
/// the hardware would do with them isn't known.
///
/// Reading goes on after a `Stop`, to the end of the bytes. After an error the iterator ends, because a command's
/// length follows from its first word.
///
/// ```
/// use ethosu_isa::{Command, Decoder, Product};
/// let stream = [0x00, 0x01, 0x04, 0x00, 0x00, 0x00, 0xFF, 0xFF];
/// let mut decoder = Decoder::new(&stream, Product::U55);
/// assert_eq!(decoder.next().unwrap()?.command, Command::IfmPadTop(4));
/// assert_eq!(decoder.next().unwrap()?.command, Command::Stop { mask: 0xFFFF });
/// assert!(decoder.next().is_none());
/// # Ok::<(), ethosu_isa::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    stream: &'a [u8],
    offset: usize,
    product: Product,
}

impl<'a> Decoder<'a> {
    /// Starts at the beginning of `stream`, whose words are little-endian.
    pub const fn new(stream: &'a [u8], product: Product) -> Decoder<'a> {
        Decoder { stream, offset: 0, product }
    }

    /// Bytes read so far: the offset of the next instruction.
    pub const fn offset(&self) -> usize {
        self.offset
    }

    fn word(&self, offset: usize) -> Option<u32> {
        let bytes = self.stream.get(offset..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    fn read(&self) -> Result<Instruction, DecodeError> {
        let offset = self.offset;
        let odd = DecodeError::Length { bytes: self.stream.len() };
        if offset == 0 && !self.stream.len().is_multiple_of(4) {
            return Err(odd);
        }
        let control = self.word(offset).ok_or(odd)?;
        let payload = if control & PAYLOAD_FOLLOWS != 0 {
            Some(self.word(offset + 4).ok_or(DecodeError::Truncated { offset, word: control })?)
        } else {
            None
        };
        let words = Words { control, payload };
        let command = words.decode(self.product).map_err(|error| error.at(offset))?;
        Ok(Instruction { offset, words, command })
    }
}

impl Words {
    /// Reads one command.
    ///
    /// # Errors
    /// As [`Decoder`], with offset 0.
    pub fn decode(self, product: Product) -> Result<Command, DecodeError> {
        let Words { control, payload } = self;
        let offset = 0;
        if (control & PAYLOAD_FOLLOWS != 0) != payload.is_some() {
            return Err(DecodeError::Truncated { offset, word: control });
        }
        let bits = u64::from(payload.unwrap_or(0)) << 16 | u64::from(control >> 16);
        Command::read(control & 0xFFFF, bits, product).map_err(|refusal| match refusal {
            Refusal::Unknown => DecodeError::Unknown { offset, word: control },
            Refusal::NotOnProduct(command) => DecodeError::NotOnProduct { offset, command, product },
            Refusal::Operand(command, Fault::Reserved(bits)) => {
                DecodeError::Reserved { offset, command, bits }
            }
            Refusal::Operand(command, Fault::Field { field, value }) => {
                DecodeError::Field { offset, command, field, value }
            }
        })
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Instruction, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.stream.len() {
            return None;
        }
        let result = self.read();
        self.offset = match &result {
            Ok(instruction) => self.offset + instruction.words.bytes(),
            Err(_) => self.stream.len(),
        };
        Some(result)
    }
}

impl FusedIterator for Decoder<'_> {}

/// Why bytes are not a command stream of the product.
///
/// Offsets count bytes from the start of the stream, as in a disassembly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// The stream is no whole number of words.
    Length {
        /// Its length.
        bytes: usize,
    },
    /// The stream ends before a command's payload word.
    Truncated {
        /// Where the command begins.
        offset: usize,
        /// Its first word.
        word: u32,
    },
    /// No product has a command with this code.
    Unknown {
        /// Where it stands.
        offset: usize,
        /// The word; its code is in bits 15..0.
        word: u32,
    },
    /// A command that only other products have.
    NotOnProduct {
        /// Where it stands.
        offset: usize,
        /// Its name.
        command: &'static str,
        /// The product the stream was read for.
        product: Product,
    },
    /// Bits are set that have no meaning.
    Reserved {
        /// Where the command begins.
        offset: usize,
        /// Its name.
        command: &'static str,
        /// The bits: 15..0 of the parameter, and the payload above it in 47..16.
        bits: u64,
    },
    /// A field has a value without a meaning.
    Field {
        /// Where the command begins.
        offset: usize,
        /// Its name.
        command: &'static str,
        /// The field.
        field: &'static str,
        /// What was found there.
        value: u64,
    },
}

impl DecodeError {
    /// Where the fault lies in the stream, in bytes.
    pub const fn offset(&self) -> usize {
        match *self {
            DecodeError::Length { bytes } => bytes & !3,
            DecodeError::Truncated { offset, .. }
            | DecodeError::Unknown { offset, .. }
            | DecodeError::NotOnProduct { offset, .. }
            | DecodeError::Reserved { offset, .. }
            | DecodeError::Field { offset, .. } => offset,
        }
    }

    fn at(mut self, place: usize) -> DecodeError {
        match &mut self {
            DecodeError::Length { .. } => {}
            DecodeError::Truncated { offset, .. }
            | DecodeError::Unknown { offset, .. }
            | DecodeError::NotOnProduct { offset, .. }
            | DecodeError::Reserved { offset, .. }
            | DecodeError::Field { offset, .. } => *offset = place,
        }
        self
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            DecodeError::Length { bytes } => {
                write!(f, "command stream of {bytes} bytes ({bytes:#x}) is no whole number of 4-byte words")
            }
            DecodeError::Truncated { offset, word } => {
                write!(f, "{offset:#08x}: the stream ends before the payload of command word {word:#010x}")
            }
            DecodeError::Unknown { offset, word } => {
                write!(f, "{offset:#08x}: unknown command word {word:#010x}")
            }
            DecodeError::NotOnProduct { offset, command, product } => {
                write!(f, "{offset:#08x}: {command} doesn't exist on {product}")
            }
            DecodeError::Reserved { offset, command, bits } => {
                write!(f, "{offset:#08x}: {command} sets reserved bits {bits:#x}")
            }
            DecodeError::Field { offset, command, field, value } => {
                write!(f, "{offset:#08x}: {command} field {field} can't be {value:#x}")
            }
        }
    }
}

impl core::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    fn first(words: &[u32], product: Product) -> Result<Command, DecodeError> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Decoder::new(&bytes, product).next().unwrap().map(|instruction| instruction.command)
    }

    #[test]
    fn faults_name_command_offset_and_field() {
        let text = |words: &[u32], product| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut decoder = Decoder::new(&bytes, product);
            let error = decoder.find_map(Result::err).unwrap();
            assert!(decoder.next().is_none(), "goes on after {error}");
            error.to_string()
        };
        let pad = 0x0004_0100;
        for (words, product, expected) in [
            (&[pad, 0x0000_0004][..], Product::U55, "0x000004: unknown command word 0x00000004"),
            (&[pad, 0x0000_0403], Product::U55, "0x000004: unknown command word 0x00000403"),
            (&[pad, 0x0000_8100], Product::U55, "0x000004: unknown command word 0x00008100"),
            (&[pad, 0x0000_0123], Product::U55, "0x000004: NPU_SET_PARALLEL_MODE doesn't exist on ethos-u55"),
            (&[pad, 0x0000_010D], Product::U85, "0x000004: NPU_SET_IFM_IB_END doesn't exist on ethos-u85"),
            (&[pad, 0x0080_0100], Product::U55, "0x000004: NPU_SET_IFM_PAD_TOP sets reserved bits 0x80"),
            (&[pad, 0x0001_0002], Product::U55, "0x000004: NPU_OP_CONV sets reserved bits 0x1"),
            (&[pad, 0x0003_0005], Product::U55, "0x000004: NPU_OP_POOL field mode can't be 0x3"),
            (
                &[pad, 0xC001_0105],
                Product::U55,
                "0x000004: NPU_SET_IFM_PRECISION field rounding can't be 0x3",
            ),
            (
                &[pad, 0xC001_0114],
                Product::U65,
                "0x000004: NPU_SET_OFM_PRECISION field rounding can't be 0x3",
            ),
            (
                &[pad, 0x0200_0130],
                Product::U55,
                "0x000004: NPU_SET_DMA0_SRC_REGION field stride_mode can't be 0x1",
            ),
            (&[pad, 0x0001_4000, 0], Product::U55, "0x000004: NPU_SET_IFM_BASE0 sets reserved bits 0x1"),
            (
                &[pad, 0x0001_4024, 1 << 31],
                Product::U85,
                "0x000004: NPU_SET_OFM_SCALE sets reserved bits 0x800000000000",
            ),
            (&[pad, 0x0009_0108], Product::U85, "0x000004: NPU_SET_IFM_BROADCAST field scalar can't be 0x9"),
            (
                &[pad, 0x0000_4000],
                Product::U55,
                "0x000004: the stream ends before the payload of command word 0x00004000",
            ),
        ] {
            assert_eq!(text(words, product), expected);
        }
        let odd = Decoder::new(&[0; 7], Product::U55).next().unwrap().unwrap_err();
        assert_eq!(odd, DecodeError::Length { bytes: 7 });
        assert_eq!(odd.offset(), 4);
        assert!(Decoder::new(&[], Product::U55).next().is_none());
    }

    #[test]
    fn strides_are_signed() {
        for (words, product, stride) in [
            ([0x0000_4015, 320], Product::U55, 320),
            ([0x0000_4015, 0xFFFF_FFF4], Product::U55, -12),
            ([0x00FF_4015, 0xFFFF_FFF4], Product::U55, -12),
            ([0x00FF_4015, 0xFFFF_FFF4], Product::U65, -12),
            ([0x0000_4015, 0xFFFF_FFF4], Product::U65, 0xFFFF_FFF4),
            ([0x0080_4015, 0], Product::U85, -1 << 39),
        ] {
            assert_eq!(first(&words, product), Ok(Command::OfmStrideY(stride)), "{words:x?} on {product}");
        }
        for words in [[0x00FF_4015, 12], [0x0001_4015, 12], [0x0100_4015, 12]] {
            assert!(matches!(first(&words, Product::U55), Err(DecodeError::Reserved { .. })), "{words:x?}");
        }
    }

    /// Bytes that often are commands: the code comes from a list, the operand from anywhere.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let codes: Vec<u32> = crate::command::ROWS.iter().map(|(code, ..)| *code).collect();
        let word = prop_oneof![
            any::<u32>(),
            (prop::sample::select(codes), any::<u16>(), 0..16_u32)
                .prop_map(|(code, operand, shift)| code | u32::from(operand >> shift) << 16),
        ];
        (prop::collection::vec(word, 0..64), prop::collection::vec(any::<u8>(), 0..4))
            .prop_map(|(words, tail)| words.into_iter().flat_map(u32::to_le_bytes).chain(tail).collect())
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in streams(), product in prop::sample::select(&Product::ALL[..])) {
            let mut expected = 0;
            for result in Decoder::new(&bytes, product) {
                match result {
                    Ok(instruction) => {
                        prop_assert_eq!(instruction.offset, expected);
                        expected += instruction.words.bytes();
                        prop_assert!(expected <= bytes.len());
                        prop_assert!(instruction.to_string().contains(instruction.command.name()));
                        let again = instruction.command.encode(product).unwrap();
                        prop_assert_eq!(again.decode(product), Ok(instruction.command));
                    }
                    Err(error) => {
                        prop_assert!(error.offset() <= bytes.len());
                        expected = bytes.len();
                    }
                }
            }
            prop_assert_eq!(expected, bytes.len());
        }
    }
}
