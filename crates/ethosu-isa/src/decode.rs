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
