//! The weight bitstream of Ethos-U ("mlw"): Golomb-Rice coded weights, interleaved with runs of zeros.
//!
//! A stream is a chain of slices. Each has a header with its own divisors and, where it brings one, a palette; then come
//! chunks of up to twelve symbols. A chunk holds the unary parts of its symbols and the remainders of the *previous* chunk's.
//! Layout: the decoder in Vela 5.2.0's mlw_codec and its description in the Ethos-U weight codec.

use std::fmt;

/// A weight bitstream that the decoder can't follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WeightFault {
    /// The stream ends before the operation has all its weights.
    Short {
        /// Weights decoded.
        found: usize,
        /// Weights the operation needs.
        needed: usize,
    },
    /// The first slice, or the first one after an end marker, brings no palette definition.
    NoPalette {
        /// Bit position of the slice.
        bit: usize,
    },
    /// The divisor of zero runs is 4 or 5, which nothing defines.
    ZeroDivisor {
        /// Bit position of the slice.
        bit: usize,
        /// The three bits found.
        found: u32,
    },
    /// The divisor of weights is 6, which nothing defines.
    WeightDivisor {
        /// Bit position of the slice.
        bit: usize,
        /// The three bits found.
        found: u32,
    },
    /// A symbol stands for a weight of more than nine bits.
    WeightRange {
        /// Which symbol of its slice.
        symbol: usize,
        /// The sign-and-magnitude code it stands for.
        code: u32,
    },
    /// An element that only pads the order isn't zero.
    Padding {
        /// Position in the stream's order.
        element: usize,
        /// The weight found.
        found: i16,
    },
}

impl fmt::Display for WeightFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { found, needed } => {
                write!(f, "the weight stream ends after {found} of {needed} weights")
            }
            Self::NoPalette { bit } => {
                write!(f, "the weight slice at bit {bit:#x} needs a palette and brings none")
            }
            Self::ZeroDivisor { bit, found } => {
                write!(
                    f,
                    "the weight slice at bit {bit:#x} has a zero-run divisor of {found}; 0 to 3, 6 or 7 are defined"
                )
            }
            Self::WeightDivisor { bit, found } => {
                write!(
                    f,
                    "the weight slice at bit {bit:#x} has a weight divisor of {found}; 0 to 5 or 7 are defined"
                )
            }
            Self::WeightRange { symbol, code } => {
                write!(f, "weight symbol {symbol} of a slice stands for code {code:#x}, beyond nine bits")
            }
            Self::Padding { element, found } => {
                write!(f, "weight element {element} only pads the order but is {found}, not 0")
            }
        }
    }
}

impl std::error::Error for WeightFault {}

/// Bits, least significant first; beyond the end zeros.
struct Bits<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Bits<'_> {
    /// Bits that [`peek`](Self::peek) gives at least.
    const PEEKED: u32 = 57;

    /// What comes next.
    fn peek(&self) -> u64 {
        let byte = self.position >> 3;
        let word = match self.bytes.get(byte..byte + 8) {
            Some(eight) => u64::from_le_bytes(eight.try_into().expect("eight bytes")),
            None => self.last_word(byte),
        };
        word >> (self.position & 7)
    }

    #[cold]
    fn last_word(&self, byte: usize) -> u64 {
        let mut eight = [0; 8];
        let rest = self.bytes.get(byte..).unwrap_or_default();
        eight[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(eight)
    }

    /// The next `count` bits (at most 32).
    fn take(&mut self, count: u32) -> u32 {
        let value = self.peek() & ((1u64 << count) - 1);
        self.position += count as usize;
        value as u32
    }

    fn align(&mut self) {
        self.position = self.position.next_multiple_of(8);
    }

    fn at_end(&self) -> bool {
        self.position >= self.bytes.len() * 8
    }

    /// Whether bits beyond the end have been taken.
    fn overrun(&self) -> bool {
        self.position > self.bytes.len() * 8
    }
}

/// What stays from slice to slice.
struct Palette {
    /// Entries that were listed; symbols from there on are codes.
    entries: usize,
    direct_offset: u32,
    bits: u32,
    /// The weight of each symbol that stands for one.
    weights: Vec<i16>,
}

/// Codes of nine bits: the magnitude and, lowest, the sign.
const CODES: u32 = 1 << 9;

impl Palette {
    fn read(bits: &mut Bits<'_>) -> Self {
        let direct_offset = bits.take(5);
        let size = bits.take(5);
        let width = bits.take(3) + 2;
        let entries = if size > 0 { size + 1 } else { 0 };
        let listed: Vec<u32> = (0..entries).map(|_| bits.take(width)).collect();
        let weight = |code: u32| {
            let magnitude = (code >> 1) as i16;
            if code & 1 == 1 { -magnitude } else { magnitude }
        };
        let weights = listed.into_iter().chain(direct_offset..CODES).map(weight).collect();
        Self { entries: entries as usize, direct_offset, bits: width, weights }
    }

    fn out_of_range(&self, symbol: usize, value: u32) -> WeightFault {
        let code = value.wrapping_sub(self.entries as u32).wrapping_add(self.direct_offset);
        WeightFault::WeightRange { symbol, code }
    }
}

/// A weight stream's elements beyond which it can't possibly go: a bit of a zero run's unary part stands for at most
/// eight zeros. Callers use it to refuse an operation before they allocate for it.
pub(crate) fn most_elements(bytes: usize) -> usize {
    bytes.saturating_mul(8 * 8).saturating_add(1 << 16)
}

/// Decodes the first `needed` weights of a stream, each already less the weight zero point (nine bits).
///
/// What follows them is ignored: streams are padded to 16 bytes.
///
/// # Errors
/// [`WeightFault`] where the stream is malformed or too short.
pub fn decode(bytes: &[u8], needed: usize) -> Result<Vec<i16>, WeightFault> {
    if needed > most_elements(bytes.len()) {
        return Err(WeightFault::Short { found: 0, needed });
    }
    let mut bits = Bits { bytes, position: 0 };
    let mut weights = vec![0; needed];
    // Weights that are settled; what follows is zero, so that a run of zeros is a step.
    let mut done = 0;
    let mut palette: Option<Palette> = None;
    let mut slice = Slice::default();
    while done < needed {
        let start = bits.position;
        let zero_divisor = bits.take(3);
        if zero_divisor == 7 {
            // End marker. What follows starts afresh on a byte boundary; the fill bytes (0xFF) read as end markers too.
            bits.align();
            palette = None;
            if bits.at_end() {
                return Err(WeightFault::Short { found: done, needed });
            }
            continue;
        }
        if zero_divisor == 4 || zero_divisor == 5 {
            return Err(WeightFault::ZeroDivisor { bit: start, found: zero_divisor });
        }
        let with_runs = zero_divisor != 6;
        let count = bits.take(15) as usize + 1;
        let divisor = bits.take(3);
        let truncated = bits.take(1) == 1;
        let new_palette = bits.take(1) == 1;
        if divisor == 6 {
            return Err(WeightFault::WeightDivisor { bit: start, found: divisor });
        }
        if new_palette {
            palette = Some(Palette::read(&mut bits));
        }
        if bits.overrun() {
            return Err(WeightFault::Short { found: done, needed });
        }
        let palette = palette.as_ref().ok_or(WeightFault::NoPalette { bit: start })?;
        let uncompressed = divisor == 7;
        slice.header = SliceHeader {
            count,
            runs: if with_runs { Some((zero_divisor, count + usize::from(new_palette))) } else { None },
            divisor: match (uncompressed, palette.entries) {
                (false, _) => divisor,
                (true, 0) => palette.bits,
                (true, entries) => usize::BITS - (entries - 1).leading_zeros(),
            },
            uncompressed,
            truncated,
        };
        slice.read(&mut bits);
        if bits.overrun() {
            return Err(WeightFault::Short { found: done, needed });
        }
        let mut runs = slice.runs.iter();
        let mut run = || runs.next().map_or(0, |&run| run as usize);
        if new_palette {
            done = done.saturating_add(run()).min(needed);
        }
        for (symbol, &value) in slice.weights.iter().enumerate() {
            if done == needed {
                break;
            }
            let weight = palette.weights.get(value as usize);
            weights[done] = *weight.ok_or_else(|| palette.out_of_range(symbol, value))?;
            done = (done + 1).saturating_add(run()).min(needed);
        }
    }
    Ok(weights)
}

#[derive(Default)]
struct SliceHeader {
    /// Weight symbols.
    count: usize,
    /// Rice divisor and number of zero runs.
    runs: Option<(u32, usize)>,
    divisor: u32,
    uncompressed: bool,
    truncated: bool,
}

/// One slice's symbols, before the palette; kept between slices for its allocations.
#[derive(Default)]
struct Slice {
    header: SliceHeader,
    weights: Vec<u32>,
    runs: Vec<u32>,
}

/// Unary parts of one chunk whose remainders come with the next.
///
/// What each bit means can't be foreseen, so they are taken apart without a branch.
struct Quotients {
    values: [u32; 12],
    len: usize,
}

impl Quotients {
    const NONE: Self = Self { values: [0; 12], len: 0 };

    /// So many symbols that are nothing but remainders.
    fn zeros(len: usize) -> Self {
        Self { values: [0; 12], len }
    }

    /// The zero runs' form: as many ones as the quotient, then a zero. `carry` keeps what goes on in the next chunk.
    fn runs(ones: u32, bits: u32, carry: &mut u32) -> Self {
        let mut quotients = Self::NONE;
        for index in 0..bits {
            let one = ones >> index & 1;
            *carry += one;
            quotients.values[quotients.len] = *carry;
            quotients.len += (1 - one) as usize;
            *carry *= one;
        }
        quotients
    }

    /// The weights' form: 0 is nothing more, 10 is one more, 11 is two more and goes on (unless `truncated`). `first` has the first
    /// bits of twelve of these, `second` the second bits of those that have one.
    fn weights(first: u32, mut second: u32, truncated: bool, carry: &mut u32) -> Self {
        let mut quotients = Self::NONE;
        for index in 0..12 {
            let one = first >> index & 1;
            let two = one & second;
            second >>= one;
            *carry += one + two;
            quotients.values[quotients.len] = *carry;
            let goes_on = two & u32::from(!truncated);
            quotients.len += (1 - goes_on) as usize;
            *carry *= goes_on;
        }
        quotients
    }

    /// Reads the remainders and appends the symbols, as far as `limit` asks for them.
    fn finish(&self, bits: &mut Bits<'_>, divisor: u32, symbols: &mut Vec<u32>, limit: usize) {
        let count = self.len.min(limit - symbols.len());
        // A divisor of more than nine bits doesn't exist, so at least six remainders come with one look.
        let together = if divisor > 4 { 6 } else { 12 };
        debug_assert!(together * divisor <= Bits::PEEKED);
        let mask = (1u64 << divisor) - 1;
        for quotients in self.values[..count].chunks(together as usize) {
            let mut word = bits.peek();
            symbols.extend(quotients.iter().map(|&quotient| {
                let remainder = (word & mask) as u32;
                word >>= divisor;
                // A quotient grows by at most two a bit read, so it stays far below 2^32 for any stream that fits memory; a
                // wrapped one would only be a wrong weight of a stream that is wrong already.
                (quotient << divisor).wrapping_add(remainder)
            }));
            bits.position += quotients.len() * divisor as usize;
        }
    }
}

/// How far the weights may be ahead of the zero runs before a chunk brings runs only.
const BALANCE: usize = 8;

impl Slice {
    fn read(&mut self, bits: &mut Bits<'_>) {
        let SliceHeader { count, runs, divisor, uncompressed, truncated } = self.header;
        let (run_divisor, run_count) = runs.unwrap_or((0, 0));
        let run_bits = if run_divisor < 3 { 12 } else { 8 };
        self.weights.clear();
        self.runs.clear();
        let (mut weights_begun, mut runs_begun) = (0, 0);
        let (mut weight_carry, mut run_carry) = (0, 0);
        let (mut weight_quotients, mut run_quotients) = (Quotients::NONE, Quotients::NONE);
        while !bits.overrun() {
            let take_weights =
                weights_begun < count && (runs.is_none() || weights_begun < runs_begun + BALANCE);
            let take_runs = runs.is_some() && runs_begun < run_count && weights_begun >= runs_begun;
            let first = if take_weights && !uncompressed { bits.take(12) } else { 0 };
            let mut next_runs = Quotients::NONE;
            if take_runs {
                next_runs = Quotients::runs(bits.take(run_bits), run_bits, &mut run_carry);
                runs_begun += next_runs.len;
            }
            let mut next_weights = Quotients::NONE;
            if take_weights {
                next_weights = if uncompressed {
                    Quotients::zeros(if divisor > 5 { 8 } else { 12 })
                } else {
                    let second = bits.take(first.count_ones());
                    Quotients::weights(first, second, truncated, &mut weight_carry)
                };
                weights_begun += next_weights.len;
            }
            weight_quotients.finish(bits, divisor, &mut self.weights, count);
            run_quotients.finish(bits, run_divisor, &mut self.runs, run_count);
            (weight_quotients, run_quotients) = (next_weights, next_runs);
            if !take_weights && !take_runs {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes bits, least significant first.
    #[derive(Default)]
    struct Writer {
        bits: Vec<bool>,
    }

    impl Writer {
        fn put(&mut self, value: u32, count: u32) -> &mut Self {
            self.bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
            self
        }

        fn bytes(&self) -> Vec<u8> {
            self.bits
                .chunks(8)
                .map(|byte| byte.iter().enumerate().map(|(i, &bit)| u8::from(bit) << i).sum())
                .collect()
        }
    }

    /// An uncompressed slice without zero runs: nine bits a weight, in chunks of eight.
    fn uncompressed(weights: &[i16]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.put(6, 3).put(weights.len() as u32 - 1, 15).put(7, 3).put(0, 1).put(1, 1);
        writer.put(0, 5).put(0, 5).put(7, 3);
        for &weight in weights {
            writer.put(u32::from(weight.unsigned_abs()) << 1 | u32::from(weight < 0), 9);
        }
        writer.put(7, 3);
        let mut bytes = writer.bytes();
        bytes.resize(bytes.len().next_multiple_of(16), 0xFF);
        bytes
    }

    #[test]
    fn an_uncompressed_slice() {
        let weights: Vec<i16> = (-255..=255).collect();
        assert_eq!(decode(&uncompressed(&weights), weights.len()), Ok(weights));
    }

    #[test]
    fn a_stream_that_ends_early_says_how_far_it_got() {
        let bytes = uncompressed(&[1, 2, 3]);
        assert_eq!(decode(&bytes, 4), Err(WeightFault::Short { found: 3, needed: 4 }));
        assert_eq!(decode(&[], 1), Err(WeightFault::Short { found: 0, needed: 1 }));
        assert_eq!(decode(&bytes[..6], 3), Err(WeightFault::Short { found: 0, needed: 3 }));
    }

    #[test]
    fn a_claim_beyond_what_the_bytes_can_hold_is_refused_before_any_allocation() {
        assert_eq!(decode(&[0xFF; 16], usize::MAX), Err(WeightFault::Short { found: 0, needed: usize::MAX }));
    }

    #[test]
    fn undefined_headers_are_refused() {
        let slice = |zero, weight, new_palette| {
            let mut writer = Writer::default();
            writer.put(zero, 3).put(0, 15).put(weight, 3).put(0, 1).put(new_palette, 1).put(0, 32).put(0, 9);
            decode(&writer.bytes(), 1).unwrap_err()
        };
        assert_eq!(slice(4, 0, 1), WeightFault::ZeroDivisor { bit: 0, found: 4 });
        assert_eq!(slice(6, 6, 1), WeightFault::WeightDivisor { bit: 0, found: 6 });
        assert_eq!(slice(6, 0, 0), WeightFault::NoPalette { bit: 0 });
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_weights_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400), needed in 0usize..5000) {
            if let Ok(weights) = decode(&bytes, needed) {
                prop_assert_eq!(weights.len(), needed);
                prop_assert!(weights.iter().all(|weight| weight.abs() < 256));
            }
        }
    }
}
