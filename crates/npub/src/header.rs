//! The header: eight words that say how long everything is.

use crate::layout::{self, header, word};
use crate::{Accel, Error};

/// The header's words, magic and version already checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Length of the whole blob in bytes, header included.
    pub total_bytes: u32,
    /// Number of region descriptors behind the header.
    pub region_count: u32,
    /// Where the command stream starts, in bytes from the blob's first.
    pub cmd_offset: u32,
    /// Length of the command stream in bytes.
    pub cmd_bytes: u32,
    /// The accelerator the commands were compiled for.
    pub accel: Accel,
    /// FNV-1a over every byte from 32 on.
    pub checksum: u32,
}

impl Header {
    /// The 32 bytes of the header.
    pub fn to_bytes(&self) -> [u8; layout::HEADER_BYTES] {
        let mut bytes = [0; layout::HEADER_BYTES];
        for (offset, value) in [
            (header::MAGIC, layout::MAGIC),
            (header::VERSION, layout::VERSION),
            (header::TOTAL_BYTES, self.total_bytes),
            (header::REGION_COUNT, self.region_count),
            (header::CMD_OFFSET, self.cmd_offset),
            (header::CMD_BYTES, self.cmd_bytes),
            (header::ACCEL, self.accel.word()),
            (header::CHECKSUM, self.checksum),
        ] {
            bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}

/// Reads the header and nothing else: enough to tell an NPU1 blob from something else and to step over it, say in flash.
///
/// Only the first 32 bytes of `bytes` are looked at; they needn't hold the rest. What the words promise is unproven
/// until [`Blob::parse`](crate::Blob::parse) has seen the whole blob.
///
/// # Errors
/// [`Error::TooShort`], [`Error::Magic`] or [`Error::Version`]; [`Error::TotalBytes`] when the blob claims to be
/// shorter than its header, so that stepping over it always gets ahead.
pub fn peek(bytes: &[u8]) -> Result<Header, Error> {
    let header = read(bytes)?;
    if (header.total_bytes as usize) < layout::HEADER_BYTES {
        return Err(Error::TotalBytes { found: header.total_bytes, expected: layout::HEADER_BYTES });
    }
    Ok(header)
}

/// Length, magic and version: steps 1 to 3 of loading (NPU1 format document, section 4.2).
pub(crate) fn read(bytes: &[u8]) -> Result<Header, Error> {
    let too_short = Error::TooShort { found: bytes.len() };
    let header = bytes.get(..layout::HEADER_BYTES).ok_or(too_short)?;
    let field = |offset| word(header, offset).ok_or(too_short);
    let magic = field(header::MAGIC)?;
    if magic != layout::MAGIC {
        return Err(Error::Magic { found: magic });
    }
    let version = field(header::VERSION)?;
    if version != layout::VERSION {
        return Err(Error::Version { found: version });
    }
    Ok(Header {
        total_bytes: field(header::TOTAL_BYTES)?,
        region_count: field(header::REGION_COUNT)?,
        cmd_offset: field(header::CMD_OFFSET)?,
        cmd_bytes: field(header::CMD_BYTES)?,
        accel: Accel::from_word(field(header::ACCEL)?),
        checksum: field(header::CHECKSUM)?,
    })
}
