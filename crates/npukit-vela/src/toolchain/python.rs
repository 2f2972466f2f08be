//! Finds a Python to build the environment from.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ToolchainError;
use crate::process::{self, RunError};

/// The oldest Python that Vela 5.2.0 runs on.
pub(super) const OLDEST: (u32, u32) = (3, 10);
/// The newest one that all packages were checked to be built for.
const NEWEST: (u32, u32) = (3, 13);
/// What to try, in order: the user's default first, then those that all packages are built for.
const CANDIDATES: &[&str] = if cfg!(windows) {
    &["python", "python3", "py"]
} else {
    &["python3", "python3.13", "python3.12", "python3.11", "python3.10", "python"]
};
/// A Python that takes longer than this to say its version isn't one.
const PROBE_LIMIT: Duration = Duration::from_secs(60);
/// Prints the version, the interpreter, and whether each module that makes environments is there.
const PROBE: &str = "import sys, importlib.util as u\n\
    print('%d.%d.%d' % sys.version_info[:3])\nprint(sys.executable)\n\
    print(int(u.find_spec('venv') is not None), int(u.find_spec('ensurepip') is not None))";

/// A Python that was looked at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FoundPython {
    /// The command or path.
    pub command: PathBuf,
    /// Its version, or why it has none.
    pub version: Result<String, String>,
}

impl fmt::Display for FoundPython {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Ok(version) => write!(formatter, "{} is Python {version}", self.command.display()),
            Err(problem) => write!(formatter, "{}: {problem}", self.command.display()),
        }
    }
}

/// A Python that environments can be made from.
#[derive(Clone, Debug)]
pub(super) struct Python {
    pub(super) program: PathBuf,
    pub(super) version: String,
}

/// The interpreter inside an environment.
pub(super) fn inside(folder: &Path) -> PathBuf {
    if cfg!(windows) { folder.join("Scripts").join("python.exe") } else { folder.join("bin").join("python") }
}

/// A command that runs `program` as Python without what the user's environment would add to it: `PYTHONPATH`,
/// the user's own packages, the current folder.
pub(crate) fn isolated(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("-I");
    command
}

/// The Python the settings name, or the first fitting one on the search path. One that is newer than what the packages
/// were checked for is the last resort: pip will say what is missing.
pub(super) fn find(named: Option<&Path>) -> Result<Python, ToolchainError> {
    let mut found = Vec::new();
    let candidates: Vec<&Path> = match named {
        Some(path) => vec![path],
        None => CANDIDATES.iter().map(Path::new).collect(),
    };
    let mut incomplete = None;
    let mut newer = None;
    for candidate in candidates {
        let probed = match probe(candidate) {
            Ok(Some(probed)) => probed,
            // Not being there is only worth a word when the user named it.
            Ok(None) if named.is_none() => continue,
            Ok(None) => {
                found.push(FoundPython {
                    command: candidate.to_owned(),
                    version: Err("not found".to_owned()),
                });
                continue;
            }
            Err(problem) => {
                found.push(FoundPython { command: candidate.to_owned(), version: Err(problem) });
                continue;
            }
        };
        if !probed.fits {
            found.push(FoundPython { command: candidate.to_owned(), version: Ok(probed.python.version) });
        } else if let Some(module) = probed.missing {
            incomplete.get_or_insert(ToolchainError::NoVenv { python: probed.python.program, module });
        } else if probed.newer {
            newer.get_or_insert(probed.python);
        } else {
            return Ok(probed.python);
        }
    }
    if let Some(python) = newer {
        return Ok(python);
    }
    Err(incomplete.unwrap_or(ToolchainError::NoPython { found }))
}

struct Probed {
    python: Python,
    fits: bool,
    newer: bool,
    missing: Option<&'static str>,
}

/// Asks a command whether it is Python. `None` when there is no such command.
fn probe(candidate: &Path) -> Result<Option<Probed>, String> {
    let mut command = isolated(candidate);
    command.args(["-c", PROBE]);
    let done = match process::run(command, Some(PROBE_LIMIT), &mut |_| {}) {
        Ok(done) => done,
        Err(RunError::Start(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(RunError::Start(error) | RunError::Wait(error)) => return Err(error.to_string()),
        Err(RunError::TimedOut { after, .. }) => {
            return Err(format!("no answer after {} s", after.as_secs()));
        }
    };
    if !done.status.success() {
        let words = done.last_words();
        let words = words.lines().last().unwrap_or_default();
        return Err(format!("not usable ({}): {words}", process::ending(done.status)));
    }
    let mut lines = done.stdout.lines();
    let version = lines.next().unwrap_or_default().to_owned();
    let program =
        lines.next().filter(|path| !path.is_empty()).map_or_else(|| candidate.to_owned(), PathBuf::from);
    let modules = lines.next().unwrap_or_default();
    let mut numbers = version.split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Err(format!("not Python: it answered {version:?}"));
    };
    let missing = match modules {
        "1 1" => None,
        "1 0" => Some("ensurepip"),
        _ => Some("venv"),
    };
    Ok(Some(Probed {
        fits: (major, minor) >= OLDEST,
        newer: (major, minor) > NEWEST,
        python: Python { program, version },
        missing,
    }))
}
