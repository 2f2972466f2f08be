//! The two packed forms of relocation tables: RELR (one bit per word) and Android's APS2 (grouped, LEB128).

/// What is wrong with a packed table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PackedError {
    /// It doesn't start with `APS2`.
    #[error("the table doesn't start with `APS2`")]
    Magic,
    /// It ends inside a number.
    #[error("the table ends at byte {0:#x} inside a number")]
    Short(usize),
    /// A number of more than 64 bits.
    #[error("the number at byte {0:#x} has more than 64 bits")]
    Wide(usize),
    /// More relocations than the caller takes.
    #[error("the table claims {claimed} relocations, at most {limit} fit the file")]
    TooMany {
        /// The claim.
        claimed: u64,
        /// The limit.
        limit: u64,
    },
    /// A group that is empty or larger than what is left.
    #[error("a group of {size} with {left} relocations left")]
    Group {
        /// The group's size.
        size: u64,
        /// How many were left.
        left: u64,
    },
    /// RELR: a bitmap before any address.
    #[error("a bitmap comes before any address")]
    BitmapFirst,
    /// RELR: the table isn't whole words.
    #[error("{0} bytes aren't whole words")]
    Words(usize),
}

/// One decoded entry of an Android table: place, info word, addend (0 where the table has none).
pub type AndroidEntry = (u64, u64, i64);

/// Decodes Android's packed form (`APS2`), as bionic's linker reads it.
///
/// `limit` bounds the result: a group can stand for any number of relocations in a few bytes.
///
/// # Errors
/// See [`PackedError`].
pub fn decode_android(table: &[u8], limit: u64) -> Result<Vec<AndroidEntry>, PackedError> {
    const BY_INFO: u64 = 1;
    const BY_OFFSET_DELTA: u64 = 2;
    const BY_ADDEND: u64 = 4;
    const HAS_ADDEND: u64 = 8;
    let mut numbers = Numbers { bytes: table.strip_prefix(b"APS2").ok_or(PackedError::Magic)?, at: 0 };
    let claimed = numbers.next()? as u64;
    if claimed > limit {
        return Err(PackedError::TooMany { claimed, limit });
    }
    let mut offset = numbers.next()?;
    let mut addend: i64 = 0;
    let mut entries = Vec::new();
    let mut left = claimed;
    while left > 0 {
        let size = numbers.next()? as u64;
        if size == 0 || size > left {
            return Err(PackedError::Group { size, left });
        }
        let flags = numbers.next()? as u64;
        let group_delta = if flags & BY_OFFSET_DELTA != 0 { Some(numbers.next()?) } else { None };
        let group_info = if flags & BY_INFO != 0 { Some(numbers.next()?) } else { None };
        if flags & HAS_ADDEND == 0 {
            addend = 0;
        } else if flags & BY_ADDEND != 0 {
            addend = addend.wrapping_add(numbers.next()?);
        }
        for _ in 0..size {
            let delta = match group_delta {
                Some(delta) => delta,
                None => numbers.next()?,
            };
            offset = offset.wrapping_add(delta);
            let info = match group_info {
                Some(info) => info,
                None => numbers.next()?,
            };
            if flags & HAS_ADDEND != 0 && flags & BY_ADDEND == 0 {
                addend = addend.wrapping_add(numbers.next()?);
            }
            entries.push((offset as u64, info as u64, addend));
        }
        left -= size;
    }
    Ok(entries)
}

struct Numbers<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Numbers<'_> {
    /// The next signed LEB128 number.
    fn next(&mut self) -> Result<i64, PackedError> {
        let start = self.at;
        let mut value: i64 = 0;
        let mut shift = 0;
        loop {
            let byte = *self.bytes.get(self.at).ok_or(PackedError::Short(self.at + 4))?;
            self.at += 1;
            if shift >= 64 {
                return Err(PackedError::Wide(start + 4));
            }
            value |= i64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Ok(value);
            }
        }
    }
}

/// Decodes RELR: an even word is an address, an odd one a bitmap over the words that follow.
///
/// `words` are the table's words in order, `width` the bytes of one. The result is at most 64 times as long as the
/// table.
///
/// # Errors
/// A bitmap before the first address.
pub fn decode_relr(words: impl Iterator<Item = u64>, width: u64) -> Result<Vec<u64>, PackedError> {
    let mut places = Vec::new();
    let mut next = None;
    for word in words {
        if word & 1 == 0 {
            places.push(word);
            next = Some(word.wrapping_add(width));
        } else {
            let base: u64 = next.ok_or(PackedError::BitmapFirst)?;
            let bits = 8 * width - 1;
            for bit in (0..bits).filter(|bit| word >> (bit + 1) & 1 == 1) {
                places.push(base.wrapping_add(bit * width));
            }
            next = Some(base.wrapping_add(bits * width));
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relr_bitmaps_continue_each_other() {
        let words = [0x1000, 0b1011, 0x8000_0000_0000_0001, 0x4000];
        let places = decode_relr(words.into_iter(), 8).unwrap();
        // The first bitmap covers 63 words from 0x1008, the second the 63 after those.
        assert_eq!(places, [0x1000, 0x1008, 0x1018, 0x1008 + 63 * 8 + 62 * 8, 0x4000]);
        assert_eq!(decode_relr([1].into_iter(), 8), Err(PackedError::BitmapFirst));
        assert_eq!(decode_relr([0x100, 0xFFFF_FFFF].into_iter(), 4).unwrap().len(), 32);
    }

    #[test]
    fn android_groups_unfold() {
        // Three relocations from 0x1000: two by delta and info with addends of their own, one free.
        let mut table = b"APS2".to_vec();
        table.extend([3, 0x80, 0x20, 2, 1 | 2 | 8, 0x10, 0x17, 5, 0x7B, 1, 8, 4, 0x08, 2]);
        let entries = decode_android(&table, 100).unwrap();
        assert_eq!(entries, [(0x1010, 0x17, 5), (0x1020, 0x17, 0), (0x1024, 8, 2)]);
    }

    #[test]
    fn android_lies_are_errors() {
        let table = |bytes: &[u8]| [b"APS2", bytes].concat();
        assert_eq!(decode_android(b"APA1", 9), Err(PackedError::Magic));
        assert!(matches!(
            decode_android(&table(&[0x7F]), 9),
            Err(PackedError::TooMany { claimed: u64::MAX, .. })
        ));
        assert!(matches!(decode_android(&table(&[10, 0]), 9), Err(PackedError::TooMany { claimed: 10, .. })));
        assert_eq!(
            decode_android(&table(&[2, 0, 3, 3, 0, 0]), 9),
            Err(PackedError::Group { size: 3, left: 2 })
        );
        assert_eq!(decode_android(&table(&[2, 0, 0, 3]), 9), Err(PackedError::Group { size: 0, left: 2 }));
        assert!(matches!(decode_android(&table(&[2, 0x80]), 9), Err(PackedError::Short(_))));
        assert!(matches!(decode_android(&table(&[0xFF; 12]), 9), Err(PackedError::Wide(_))));
        assert_eq!(decode_android(&table(&[0, 0]), 9), Ok(vec![]));
    }
}
