//! The Python environment that holds Vela and the reference interpreters.
//!
//! It is made on first need, in a folder of its own below the user's cache folder, from a fixed list of versions.
//! Several processes may want it at once: one installs, the others wait. An install that is interrupted leaves
//! nothing that looks finished; the next one clears it away.
//!
//! ```no_run
//! use npukit_vela::progress::Silent;
//! use npukit_vela::toolchain::Toolchain;
//!
//! let toolchain = Toolchain::from_environment()?;
//! let environment = toolchain.ensure(&mut Silent)?;
//! println!("Vela {}", environment.vela().version());
//! # Ok::<(), npukit_vela::toolchain::ToolchainError>(())
//! ```

mod error;
mod install;
mod python;
mod vela;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use fs4::FileExt;
use serde::{Deserialize, Serialize};

use crate::progress::Progress;

pub use error::ToolchainError;
pub use python::FoundPython;
pub(crate) use python::isolated;
pub use vela::Vela;

/// What is installed, with every version fixed.
pub const REQUIREMENTS: &str = include_str!("requirements.txt");

/// The name of the file that is written last, when everything else is in place.
const MARKER: &str = "ready.json";
/// Raised when the folder's layout or the marker changes, so that an old environment isn't taken for a new one.
const LAYOUT: u32 = 1;

/// Where things are, as far as the user says so. What is `None` is looked for.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The cache folder. `NPUKIT_CACHE`; else `npukit` below the system's folder for caches.
    pub cache: Option<PathBuf>,
    /// The Python to build the environment from. `NPUKIT_PYTHON`; else the first fitting one on the search path.
    pub python: Option<PathBuf>,
    /// A Vela to use in the place of the environment's own. `NPUKIT_VELA`.
    pub vela: Option<PathBuf>,
    /// A folder with wheels to install from in the place of the package index. `NPUKIT_WHEELS`.
    pub wheels: Option<PathBuf>,
}

impl Settings {
    /// What the `NPUKIT_` variables of the environment say. Empty ones count as unset.
    pub fn from_environment() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Settings {
            cache: path("NPUKIT_CACHE"),
            python: path("NPUKIT_PYTHON"),
            vela: path("NPUKIT_VELA"),
            wheels: path("NPUKIT_WHEELS"),
        }
    }
}

/// The toolchain as a place, installed or not.
#[derive(Clone, Debug)]
pub struct Toolchain {
    settings: Settings,
    cache: PathBuf,
    folder: PathBuf,
}

/// What the marker file says about a finished environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Marker {
    layout: u32,
    /// Version of the Python it was built from.
    python: String,
    /// Installed packages and their versions.
    packages: BTreeMap<String, String>,
    /// Vela's configuration file, relative to the environment's folder.
    vela_ini: PathBuf,
}

/// An installed environment. While it is held, no other process replaces it.
#[derive(Debug)]
pub struct Environment {
    folder: PathBuf,
    marker: Marker,
    vela: Vela,
    /// Holds a shared lock as long as it is open.
    _lock: Option<File>,
}

/// What there is, without changing anything.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// Where the environment is, or would be.
    pub folder: PathBuf,
    /// Whether it is complete.
    pub installed: bool,
    /// Version of the Python it was built from, if it is.
    pub python: Option<String>,
    /// Packages in it, with their versions.
    pub packages: BTreeMap<String, String>,
    /// The Vela that would be used. `None` while the environment isn't installed and no own one is named.
    pub vela: Option<Vela>,
    /// Why the own Vela that the settings name can't be used.
    pub vela_problem: Option<String>,
}

impl Toolchain {
    /// A toolchain at the place the settings give. Nothing is read or made yet.
    ///
    /// # Errors
    ///
    /// [`ToolchainError::NoCacheFolder`] when the system doesn't say where caches belong.
    pub fn new(settings: Settings) -> Result<Self, ToolchainError> {
        let cache = match &settings.cache {
            Some(folder) => std::path::absolute(folder)
                .map_err(|source| ToolchainError::Folder { path: folder.clone(), source })?,
            None => system_cache().ok_or(ToolchainError::NoCacheFolder)?.join("npukit"),
        };
        let folder = cache.join(format!("toolchain-{:016x}", fingerprint()));
        Ok(Toolchain { settings, cache, folder })
    }

    /// The toolchain that the environment's `NPUKIT_` variables describe.
    ///
    /// # Errors
    ///
    /// As [`Toolchain::new`].
    pub fn from_environment() -> Result<Self, ToolchainError> {
        Toolchain::new(Settings::from_environment())
    }

    /// Where the environment is, or would be.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What there is. Runs nothing but an own Vela, to ask its version.
    pub fn status(&self) -> Status {
        let marker = self.marker();
        let (own, vela_problem) = match self.settings.vela.as_deref().map(Vela::own) {
            None => (None, None),
            Some(Ok(vela)) => (Some(vela), None),
            Some(Err(error)) => (None, Some(error.to_string())),
        };
        let shipped =
            || marker.as_ref().filter(|_| vela_problem.is_none()).map(|marker| self.shipped_vela(marker));
        Status {
            folder: self.folder.clone(),
            installed: marker.is_some(),
            vela: own.or_else(shipped),
            python: marker.as_ref().map(|marker| marker.python.clone()),
            packages: marker.map(|marker| marker.packages).unwrap_or_default(),
            vela_problem,
        }
    }

    /// The environment, installed first if it isn't there yet.
    ///
    /// # Errors
    ///
    /// [`ToolchainError`]; its [`advice`](ToolchainError::advice) says what to do.
    pub fn ensure(&self, progress: &mut dyn Progress) -> Result<Environment, ToolchainError> {
        let own = self.settings.vela.as_deref().map(Vela::own).transpose()?;
        loop {
            let lock = match self.lock_file() {
                Ok(lock) => lock,
                // Where nothing can be written, as in an image that came with the toolchain, nobody replaces it either.
                Err(error) => match self.marker() {
                    Some(marker) => return Ok(self.environment(marker, own, None)),
                    None => return Err(error),
                },
            };
            self.lock(
                &lock,
                Mode::Shared,
                "another npukit installs the toolchain; waiting for it",
                progress,
            )?;
            if let Some(marker) = self.marker() {
                return Ok(self.environment(marker, own, Some(lock)));
            }
            drop(lock);
            let lock = self.lock_file()?;
            self.lock(&lock, Mode::Exclusive, "another npukit uses the toolchain; waiting for it", progress)?;
            // Whoever held the lock before may have installed it.
            if self.marker().is_none() {
                self.make(progress)?;
            }
        }
    }

    fn environment(&self, marker: Marker, own: Option<Vela>, lock: Option<File>) -> Environment {
        let vela = own.unwrap_or_else(|| self.shipped_vela(&marker));
        Environment { folder: self.folder.clone(), marker, vela, _lock: lock }
    }

    /// Installs the environment. The caller holds the exclusive lock.
    fn make(&self, progress: &mut dyn Progress) -> Result<(), ToolchainError> {
        install::install(&self.settings, &self.cache, &self.folder, progress)?;
        if self.marker().is_none() {
            return Err(ToolchainError::Vanished { path: self.folder.clone() });
        }
        Ok(())
    }

    /// Checks an installed environment and makes it again if it is damaged; installs it if it isn't there.
    ///
    /// # Errors
    ///
    /// As [`Toolchain::ensure`].
    pub fn install(&self, progress: &mut dyn Progress) -> Result<Environment, ToolchainError> {
        {
            let lock = self.lock_file()?;
            self.lock(&lock, Mode::Exclusive, "another npukit uses the toolchain; waiting for it", progress)?;
            let intact = self.marker().is_some_and(|marker| {
                progress.step("checking the installed toolchain");
                install::inspect(&python::inside(&self.folder), &self.cache)
                    .is_ok_and(|found| found.packages == marker.packages)
            });
            if !intact {
                self.make(progress)?;
            }
        }
        self.ensure(progress)
    }

    /// The Vela to compile with: the own one if the settings name one, which needs no environment; else the
    /// environment's. The environment stays locked as long as the second part is held.
    ///
    /// # Errors
    ///
    /// As [`Toolchain::ensure`].
    pub fn vela(&self, progress: &mut dyn Progress) -> Result<(Vela, Option<Environment>), ToolchainError> {
        match self.settings.vela.as_deref() {
            Some(path) => Ok((Vela::own(path)?, None)),
            None => {
                let environment = self.ensure(progress)?;
                Ok((environment.vela().clone(), Some(environment)))
            }
        }
    }

    fn shipped_vela(&self, marker: &Marker) -> Vela {
        let version = marker.packages.get("ethos-u-vela").cloned().unwrap_or_default();
        Vela::shipped(python::inside(&self.folder), version, self.folder.join(&marker.vela_ini))
    }

    /// The marker of a complete environment. A Python that has gone since makes it incomplete.
    fn marker(&self) -> Option<Marker> {
        let marker: Marker = serde_json::from_slice(&fs::read(self.folder.join(MARKER)).ok()?).ok()?;
        (marker.layout == LAYOUT && python::inside(&self.folder).exists()).then_some(marker)
    }

    fn lock_file(&self) -> Result<File, ToolchainError> {
        let folder = |source| ToolchainError::Folder { path: self.cache.clone(), source };
        fs::create_dir_all(&self.cache).map_err(folder)?;
        let path = self.lock_path();
        let open = File::options().create(true).read(true).write(true).truncate(false).open(&path);
        open.map_err(|source| ToolchainError::Lock { path, source })
    }

    fn lock_path(&self) -> PathBuf {
        self.folder.with_extension("lock")
    }

    fn lock(
        &self,
        file: &File,
        mode: Mode,
        waiting: &str,
        progress: &mut dyn Progress,
    ) -> Result<(), ToolchainError> {
        let attempt = match mode {
            Mode::Shared => FileExt::try_lock_shared(file),
            Mode::Exclusive => FileExt::try_lock(file),
        };
        let outcome = match attempt {
            Ok(()) => return Ok(()),
            Err(fs4::TryLockError::WouldBlock) => {
                progress.step(waiting);
                match mode {
                    Mode::Shared => FileExt::lock_shared(file),
                    Mode::Exclusive => FileExt::lock(file),
                }
            }
            Err(fs4::TryLockError::Error(error)) => Err(error),
        };
        outcome.map_err(|source| ToolchainError::Lock { path: self.lock_path(), source })
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Shared,
    Exclusive,
}

impl Environment {
    /// Its Python interpreter.
    pub fn python(&self) -> PathBuf {
        python::inside(&self.folder)
    }

    /// The Vela to compile with.
    pub fn vela(&self) -> &Vela {
        &self.vela
    }

    /// Installed packages and their versions.
    pub fn packages(&self) -> &BTreeMap<String, String> {
        &self.marker.packages
    }

    /// Whether TensorFlow Lite Micro is there: it is built for 64-bit x86 Linux only.
    pub fn has_tflm(&self) -> bool {
        self.marker.packages.contains_key("tflite-micro")
    }
}

/// Where the system keeps caches: `$XDG_CACHE_HOME` or `~/.cache`, `~/Library/Caches` on macOS, `%LOCALAPPDATA%` on Windows.
fn system_cache() -> Option<PathBuf> {
    // The XDG specification says to ignore a path that isn't absolute.
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Caches"))
    } else {
        variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))
    }
}

/// FNV-1a of what is installed: another list makes another folder.
fn fingerprint() -> u64 {
    let bytes = REQUIREMENTS.bytes().chain(LAYOUT.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
