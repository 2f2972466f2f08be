//! The U85's fast weight format: palette indices of two or four bits, or raw bytes.
//!
//! Layout: Vela 5.2.0, regor/architecture/ethosu85/ethos_u85_weight_encoder.cpp.

use super::WeightFault;

/// Bytes of the header.
const HEADER: usize = 32;
/// Bits of a palette entry, and where the first one begins.
const ENTRY_BITS: usize = 9;
const ENTRIES_AT: usize = 112;

/// Decodes the first `needed` weights.
///
/// # Errors
/// [`WeightFault::Short`] if there are fewer.
pub(crate) fn decode(bytes: &[u8], needed: usize) -> Result<Vec<i16>, WeightFault> {
    let short = |found| WeightFault::Short { found, needed };
    let (header, data) = bytes.split_at_checked(HEADER).ok_or(short(0))?;
    let (raw, small) = (header[0] & 1 != 0, header[0] & 2 != 0);
    let per_byte = if raw {
        1
    } else if small {
        4
    } else {
        2
    };
    if data.len().saturating_mul(per_byte) < needed {
        return Err(short(data.len() * per_byte));
    }
    if raw {
        let adjust = i16::from(header[13] as i8);
        return Ok(data[..needed].iter().map(|&byte| i16::from(byte as i8) - adjust).collect());
    }
    let entry = |index: usize| {
        let bit = ENTRIES_AT + index * ENTRY_BITS;
        let pair = u16::from_le_bytes([header[bit / 8], header[bit / 8 + 1]]);
        let code = pair >> (bit % 8) & 0x1FF;
        let magnitude = (code >> 1) as i16;
        if code & 1 == 1 { -magnitude } else { magnitude }
    };
    let palette: [i16; 16] = std::array::from_fn(entry);
    let bits = 8 / per_byte;
    Ok((0..needed)
        .map(|element| {
            let shift = element % per_byte * bits;
            palette[usize::from(data[element / per_byte] >> shift) & ((1 << bits) - 1)]
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(first: u8) -> Vec<u8> {
        let mut bits = vec![false; HEADER * 8];
        bits[0] = first & 1 != 0;
        bits[1] = first & 2 != 0;
        // Entry n stands for n, odd ones negative.
        for entry in 0..16 {
            let code = entry << 1 | entry & 1;
            for bit in 0..ENTRY_BITS {
                bits[ENTRIES_AT + entry * ENTRY_BITS + bit] = code >> bit & 1 == 1;
            }
        }
        bits.chunks(8).map(|byte| byte.iter().enumerate().map(|(i, &bit)| u8::from(bit) << i).sum()).collect()
    }

    #[test]
    fn palettes_and_raw_bytes() {
        let with = |first, data: &[u8]| [&header(first)[..], data].concat();
        assert_eq!(decode(&with(0, &[0x21, 0xF3]), 4), Ok(vec![-1, 2, -3, -15]));
        assert_eq!(decode(&with(2, &[0b11_10_01_00]), 4), Ok(vec![0, -1, 2, -3]));
        let mut raw = with(1, &[0x80, 5]);
        raw[13] = (-108i8) as u8;
        assert_eq!(decode(&raw, 2), Ok(vec![-20, 113]));
        assert_eq!(decode(&raw, 3), Err(WeightFault::Short { found: 2, needed: 3 }));
        assert_eq!(decode(&raw[..31], 1), Err(WeightFault::Short { found: 0, needed: 1 }));
    }
}
