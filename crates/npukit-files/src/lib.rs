//! Reads files that a user names, no more of them than can be meant: a device, or a pipe that never ends, would fill memory.
//!
//! ```
//! let error = npukit_files::read(std::path::Path::new("."), npukit_files::TEXT_BYTES).unwrap_err();
//! assert_eq!(error.to_string(), "it is a folder");
//! ```

#![forbid(unsafe_code)]

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::Path;

/// The most that a network, compiled or not, or a library may have, in bytes. What an embedded NPU runs is far smaller.
pub const NETWORK_BYTES: u64 = 1 << 30;
/// The most that a file of arrays may have, in bytes.
pub const ARRAY_BYTES: u64 = 1 << 31;
/// The most that a text may have, in bytes: a configuration, names of classes.
pub const TEXT_BYTES: u64 = 16 << 20;

/// Reads a file, or a pipe that ends, of at most `most` bytes.
///
/// # Errors
/// What the system says; [`io::ErrorKind::IsADirectory`]; [`io::ErrorKind::InvalidInput`] for a device;
/// [`io::ErrorKind::FileTooLarge`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a device may do something.
    let there = fs::metadata(path)?;
    let kind = there.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !kind.is_file() && !is_pipe(kind) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a file nor a pipe"));
    }
    let too_large = |found: &str| {
        let message = format!("it has {found}, and at most {most} can be meant");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if there.len() > most {
        return Err(too_large(&format!("{} bytes", there.len())));
    }
    let mut bytes = Vec::new();
    // What the system says about the length is no promise: a file may grow, and those of procfs have none.
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_large("more bytes"));
    }
    Ok(bytes)
}

/// Reads a text of at most [`TEXT_BYTES`].
///
/// # Errors
/// As [`read`], and [`io::ErrorKind::InvalidData`] where it isn't UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path, TEXT_BYTES)?).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("it isn't UTF-8 text: byte {offset:#x}"))
    })
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_largest_size_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, [7; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap(), [7; 100]);
        let error = read(&path, 99).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it has 100 bytes, and at most 99 can be meant");
        fs::write(&path, b"text \xFF").unwrap();
        assert_eq!(read_text(&path).unwrap_err().to_string(), "it isn't UTF-8 text: byte 0x5");
    }

    #[test]
    fn what_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |path: &Path| read(path, 1).unwrap_err().kind();
        assert_eq!(kind(folder.path()), io::ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("none")), io::ErrorKind::NotFound);
        #[cfg(unix)]
        assert_eq!(kind(Path::new("/dev/null")), io::ErrorKind::InvalidInput);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_read_until_it_has_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let fed = |bytes: Vec<u8>| {
            let writer = path.clone();
            let writer = std::thread::spawn(move || fs::write(writer, bytes));
            let found = read(&path, 200_000);
            // A reader that has seen enough closes the pipe.
            (found, writer.join().unwrap())
        };
        assert_eq!(fed(vec![1; 200_000]).0.unwrap().len(), 200_000);
        let (found, written) = fed(vec![1; 10 << 20]);
        assert_eq!(found.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
