//! Bounds-checked little-endian reads: the barrier in front of every access to the file.

use super::NbgError;

/// A file and its name for errors.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// `size` bytes from `offset`.
    pub(super) fn slice(&self, what: &str, offset: u64, size: u64) -> Result<&'a [u8], NbgError> {
        let short = || NbgError::Short { what: what.to_owned(), offset, needed: size, length: self.len() };
        let end = offset.checked_add(size).filter(|end| *end <= self.len()).ok_or_else(short)?;
        self.bytes.get(offset as usize..end as usize).ok_or_else(short)
    }

    pub(super) fn u32(&self, what: &str, offset: u64) -> Result<u32, NbgError> {
        let bytes = self.slice(what, offset, 4)?;
        Ok(bytes.try_into().map_or(0, u32::from_le_bytes))
    }

    /// A text field: up to the first NUL, anything that isn't UTF-8 replaced.
    pub(super) fn text(&self, what: &str, offset: u64, size: u64) -> Result<String, NbgError> {
        let bytes = self.slice(what, offset, size)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}
