//! `.npz` archives: ZIP files with a `.npy` file for each array.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::{Array, NpyError};

/// The largest array that is unpacked, in bytes. Deflate packs zeros a thousandfold, so a small file could fill memory.
const MAXIMUM_BYTES: u64 = 1 << 31;

/// An opened archive. Arrays are read when asked for, so those this crate can't read don't stand in the way.
pub struct Npz<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Npz<'a> {
    /// Opens an archive.
    ///
    /// # Errors
    ///
    /// [`NpyError::Zip`] when it isn't a ZIP file.
    pub fn open(file: &'a [u8]) -> Result<Self, NpyError> {
        let archive = ZipArchive::new(Cursor::new(file))
            .map_err(|error| NpyError::Zip { reason: error.to_string() })?;
        Ok(Npz { archive })
    }

    /// The arrays' names, in the archive's order.
    pub fn names(&self) -> Vec<String> {
        let name =
            |index| self.archive.name_for_index(index).map(|name| name.strip_suffix(".npy").unwrap_or(name));
        (0..self.archive.len()).filter_map(name).map(str::to_owned).collect()
    }

    /// Reads one array.
    ///
    /// # Errors
    ///
    /// [`NpyError::NoMember`], or [`NpyError::Member`] with what is wrong with it.
    pub fn read(&mut self, name: &str) -> Result<Array, NpyError> {
        let present = self.names();
        let Some(index) = present.iter().position(|known| known == name) else {
            return Err(NpyError::NoMember { name: name.to_owned(), present });
        };
        let member = |source| NpyError::Member { name: name.to_owned(), source: Box::new(source) };
        let zip = |reason: String| member(NpyError::Zip { reason });
        let mut file = Vec::new();
        let entry = self.archive.by_index(index).map_err(|error| zip(error.to_string()))?;
        entry.take(MAXIMUM_BYTES + 1).read_to_end(&mut file).map_err(|error| zip(error.to_string()))?;
        if file.len() as u64 > MAXIMUM_BYTES {
            return Err(zip(format!("it unpacks to more than {MAXIMUM_BYTES} bytes")));
        }
        Array::parse(&file).map_err(member)
    }
}

/// Packs named arrays into an archive, uncompressed, as `numpy.savez` does. The bytes depend on nothing but the arrays.
///
/// # Errors
///
/// [`NpyError::Zip`] when the arrays don't fit a ZIP file, or two have one name.
pub fn write_npz<'n>(arrays: impl IntoIterator<Item = (&'n str, &'n Array)>) -> Result<Vec<u8>, NpyError> {
    let zip = |error: &dyn std::fmt::Display| NpyError::Zip { reason: error.to_string() };
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default());
    for (name, array) in arrays {
        let file = array.to_npy();
        let options = options.large_file(file.len() as u64 > u64::from(u32::MAX));
        writer.start_file(format!("{name}.npy"), options).map_err(|error| zip(&error))?;
        writer.write_all(&file).map_err(|error| zip(&error))?;
    }
    Ok(writer.finish().map_err(|error| zip(&error))?.into_inner())
}
