//! Files that appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::failure::{Failure, Outcome};

/// Where a result will go, checked before the work that makes it.
#[derive(Debug)]
pub(super) struct Destination {
    /// As the user wrote it.
    named: PathBuf,
    /// With symbolic links followed, so that a link stays a link.
    file: PathBuf,
}

impl Destination {
    /// Checks that a file can be written there: the folder takes a new file, and no folder is in the way.
    pub(super) fn check(named: &Path) -> Outcome<Destination> {
        let unwritable = |error: &dyn std::fmt::Display| {
            Failure::of_file("unwritable", named, format_args!("can't be written: {error}"))
                .advise("Name another file or folder.")
        };
        if named == Path::new("-") || is_standard_output(named) {
            return Err(unwritable(&"it is standard output, where the report goes"));
        }
        let file = match fs::metadata(named) {
            Ok(there) if there.is_dir() => return Err(unwritable(&"it is a folder")),
            Ok(there) if there.is_file() => fs::canonicalize(named).map_err(|error| unwritable(&error))?,
            // A pipe behind /dev/fd has no path of its own.
            _ => named.to_owned(),
        };
        let destination = Destination { named: named.to_owned(), file };
        if destination.is_special() {
            File::options().write(true).open(&destination.file).map_err(|error| unwritable(&error))?;
        } else {
            if fs::metadata(&destination.file).is_ok_and(|there| there.permissions().readonly()) {
                return Err(unwritable(&"it is write-protected"));
            }
            // Gone again at once: an interrupted run leaves nothing behind.
            destination.temporary().map_err(|error| {
                let (there, folder) = (destination.folder_of().is_dir(), destination.folder_of().display());
                match error.kind() {
                    io::ErrorKind::NotFound if !there => {
                        unwritable(&format_args!("there is no folder {folder}"))
                    }
                    kind => unwritable(&format_args!("the folder {folder} takes no new file ({kind})")),
                }
            })?;
        }
        Ok(destination)
    }

    /// Makes a folder, and the folders it is in, unless it is there.
    pub(super) fn folder(path: &Path) -> Outcome<()> {
        fs::create_dir_all(path).map_err(|error| {
            Failure::of_file("unwritable", path, format_args!("the folder can't be made: {error}"))
                .advise("Name another folder.")
        })
    }

    /// The path as the user wrote it.
    pub(super) fn path(&self) -> &Path {
        &self.named
    }

    /// The file that is meant, however it is named.
    pub(super) fn resolved(&self) -> PathBuf {
        let folder = fs::canonicalize(self.folder_of());
        match (folder, self.file.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => self.file.clone(),
        }
    }

    /// Writes the file. Until everything is on disk, what was there before stays.
    pub(super) fn write(&self, bytes: &[u8]) -> Outcome<()> {
        self.replace(bytes).map_err(|error| {
            Failure::of_file("unwritable", &self.named, format_args!("can't be written: {error}"))
        })
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        if self.is_special() {
            return File::options().write(true).open(&self.file)?.write_all(bytes);
        }
        let mut temporary = self.temporary()?;
        temporary.write_all(bytes)?;
        if let Ok(there) = fs::metadata(&self.file) {
            temporary.as_file().set_permissions(there.permissions())?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&self.file).map_err(|error| error.error)?;
        // The file's new name is on disk once its folder is. Not every system lets a folder be opened for that.
        if let Ok(folder) = File::open(self.folder_of()) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    fn temporary(&self) -> io::Result<tempfile::NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".npukit-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // What any new file gets, less what the user's mask takes away.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        builder.tempfile_in(self.folder_of())
    }

    fn folder_of(&self) -> &Path {
        self.file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// A pipe or a device, such as `/dev/stdout`: written to as it is.
    pub(super) fn is_special(&self) -> bool {
        fs::metadata(&self.file).is_ok_and(|there| !there.is_file())
    }
}

/// Whether a file is the one that standard output goes to. What a device such as `/dev/null` is given can't be mixed up; a
/// terminal is one that shows it.
#[cfg(unix)]
fn is_standard_output(file: &Path) -> bool {
    use std::io::IsTerminal;
    use std::os::fd::AsFd;
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let Ok(there) = fs::metadata(file) else { return false };
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(|output| File::from(output).metadata());
    (!there.file_type().is_char_device() || io::stdout().is_terminal())
        && output.is_ok_and(|output| (output.dev(), output.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_standard_output(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        Destination::check(&path).unwrap().write(b"one").unwrap();
        Destination::check(&path).unwrap().write(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = |path: &Path| Destination::check(path).unwrap_err().text();
        assert!(text(folder.path()).contains("is a folder"));
        assert!(text(&folder.path().join("no/such/a.bin")).contains("there is no folder"));
        assert!(text(Path::new("-")).contains("it is standard output"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        Destination::check(&link).unwrap().write(b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
        Destination::check(Path::new("/dev/null")).unwrap().write(b"gone").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_has_the_usual_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        Destination::check(&ours).unwrap().write(b"").unwrap();
        fs::write(&theirs, b"").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&theirs));
    }
}
