//! What can go wrong with the toolchain, and what to do about it.

use std::io;
use std::path::PathBuf;

use super::python::{FoundPython, OLDEST};
use crate::process::said;

/// Why the toolchain isn't usable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolchainError {
    /// The system doesn't say where caches belong.
    #[error("no folder for caches: neither a home folder nor NPUKIT_CACHE is set")]
    NoCacheFolder,
    /// A folder or file can't be made.
    #[error("can't write to {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The lock file can't be locked.
    #[error("can't lock {}: {source}", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk is full.
    #[error("no space left for the toolchain in {}", path.display())]
    DiskFull {
        /// Where it was to be.
        path: PathBuf,
    },
    /// No Python that can be used.
    #[error("no usable Python ({}.{} or newer){}", OLDEST.0, OLDEST.1, list(found))]
    NoPython {
        /// What was looked at.
        found: Vec<FoundPython>,
    },
    /// Python is there, but the module that makes environments isn't.
    #[error("{} has no '{module}' module, which makes Python environments", python.display())]
    NoVenv {
        /// The interpreter.
        python: PathBuf,
        /// `venv` or `ensurepip`.
        module: &'static str,
    },
    /// The package index can't be reached.
    #[error("the package index can't be reached to install {tried}; pip's last words:\n{last_words}")]
    Offline {
        /// What was to be installed.
        tried: String,
        /// A file with the list of everything.
        list: PathBuf,
        /// The end of pip's output.
        last_words: String,
    },
    /// The index or wheel folder doesn't have a package for this Python and system.
    #[error("there is no {requirement} for this Python and system; pip's last words:\n{last_words}")]
    NoPackage {
        /// Name and version.
        requirement: String,
        /// The end of pip's output.
        last_words: String,
    },
    /// A step of the installation failed.
    #[error("{step} failed ({ending}){}", said(last_words))]
    Step {
        /// Which step.
        step: &'static str,
        /// How it ended.
        ending: String,
        /// The end of its output.
        last_words: String,
    },
    /// The environment isn't there although it was installed just now.
    #[error("the toolchain was installed in {} but isn't there", path.display())]
    Vanished {
        /// Where it should be.
        path: PathBuf,
    },
    /// An own Vela can't be run.
    #[error("the Vela at {} can't be used: {reason}", path.display())]
    Vela {
        /// Where it is.
        path: PathBuf,
        /// What happened.
        reason: String,
    },
}

fn list(found: &[FoundPython]) -> String {
    if found.is_empty() {
        return "; none was found on the search path".to_owned();
    }
    let all: Vec<String> = found.iter().map(ToString::to_string).collect();
    format!("; found:\n  {}", all.join("\n  "))
}

impl ToolchainError {
    /// What a person can do about it.
    pub fn advice(&self) -> Option<String> {
        Some(match self {
            Self::NoCacheFolder => "Set NPUKIT_CACHE to a folder that npukit may fill.".to_owned(),
            Self::Folder { .. } | Self::Lock { .. } => {
                "Set NPUKIT_CACHE to a folder on a local disk that npukit may write to.".to_owned()
            }
            Self::DiskFull { .. } => {
                "The toolchain needs about 250 MB. Make room, or set NPUKIT_CACHE to a folder on another disk.".to_owned()
            }
            Self::NoPython { .. } => format!(
                "Install Python {}.{} or newer, or name one with NPUKIT_PYTHON.",
                OLDEST.0, OLDEST.1
            ),
            Self::NoVenv { .. } => {
                "On Debian and Ubuntu: apt install python3-venv. Elsewhere: name a complete Python with NPUKIT_PYTHON."
                    .to_owned()
            }
            Self::Offline { list, .. } => format!(
                "Connect to the network and try again; set HTTPS_PROXY if there is a proxy, or PIP_INDEX_URL if there is a \
                 mirror. Without a network: fetch the wheels on another machine with `pip download --no-deps -d FOLDER -r \
                 {}` (the list is this file) and set NPUKIT_WHEELS to their folder.",
                list.display()
            ),
            Self::NoPackage { .. } => {
                "Name another Python (3.10 to 3.13) with NPUKIT_PYTHON, or complete the folder NPUKIT_WHEELS names.".to_owned()
            }
            Self::Vela { .. } => {
                "Name a Vela that answers to --version, or leave NPUKIT_VELA unset to use npukit's own.".to_owned()
            }
            Self::Step { .. } | Self::Vanished { .. } => return None,
        })
    }
}
