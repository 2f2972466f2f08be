//! The file's checksum: CRC-32 of everything with the checksum's own four bytes zeroed.

use super::layout;
use serde::Serialize;

/// What the checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum Checksum {
    /// The file carries none: the word is zero or the version has no such word.
    Absent,
    /// It is right.
    Match {
        /// The value.
        stored: u32,
    },
    /// It is wrong.
    Mismatch {
        /// The value in the file.
        stored: u32,
        /// The value over the file.
        computed: u32,
    },
    /// The version stores one, but what it covers isn't known.
    Unknown {
        /// The value in the file.
        stored: u32,
        /// The value over the whole file, which is another.
        whole_file: u32,
    },
}

/// The CRC-32 of zlib and Ethernet (polynomial 0xEDB88320, reflected), continued over several slices.
pub fn crc32(slices: &[&[u8]]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut i = 0;
        while i < 256 {
            let mut value = i as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            table[i] = value;
            i += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| TABLE[((crc ^ u32::from(*byte)) & 0xFF) as usize] ^ (crc >> 8);
    !slices.iter().flat_map(|slice| slice.iter()).fold(!0, step)
}

/// The verdict for a version-1 file that is long enough to have the word.
pub(super) fn judge(bytes: &[u8], version: u32) -> Checksum {
    let at = layout::CHECKSUM_OFFSET as usize;
    let (Some(before), Some(word), Some(after)) =
        (bytes.get(..at), bytes.get(at..at + 4), bytes.get(at + 4..))
    else {
        return Checksum::Absent;
    };
    let stored = word.try_into().map_or(0, u32::from_le_bytes);
    if version < layout::FEATURES_FROM || stored == 0 && version != layout::CHECKSUM_KNOWN_IN {
        return Checksum::Absent;
    }
    let computed = crc32(&[before, &[0; 4], after]);
    if computed == stored {
        Checksum::Match { stored }
    } else if version == layout::CHECKSUM_KNOWN_IN {
        Checksum::Mismatch { stored, computed }
    } else {
        Checksum::Unknown { stored, whole_file: computed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc_is_zlibs() {
        assert_eq!(crc32(&[b"123456789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[b"1234", b"56789"]), 0xCBF4_3926);
        assert_eq!(crc32(&[]), 0);
    }
}
