//! Builds the environment: in a folder beside its place, moved there when it is complete.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::python::{self, isolated};
use super::{LAYOUT, MARKER, Marker, REQUIREMENTS, Settings, ToolchainError};
use crate::process::{self, Finished, RunError};
use crate::progress::Progress;

/// The name of the list of requirements, in the environment and beside it.
const REQUIREMENTS_FILE: &str = "requirements.txt";
/// Making an empty environment takes seconds; loading all packages for the first time takes longer.
const STEP_LIMIT: Duration = Duration::from_secs(600);
/// Loads what is used and prints what there is, as JSON.
const INSPECT: &str = include_str!("inspect.py");
/// What pip says, among much else, when it can't reach the index.
const OFFLINE_SIGNS: &[&str] = &[
    "NewConnectionError",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "NameResolutionError",
    "ProxyError",
    "SSLError",
    "Failed to establish a new connection",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Connection refused",
    "Connection reset",
    "getaddrinfo failed",
];
const DISK_FULL_SIGNS: &[&str] = &["No space left on device", "Errno 28", "not enough space on the disk"];

/// What an environment says about itself.
#[derive(Debug, Deserialize)]
pub(super) struct Inspection {
    pub(super) packages: BTreeMap<String, String>,
    vela_ini: PathBuf,
}

/// Installs the environment at `folder`. The caller holds the exclusive lock.
pub(super) fn install(
    settings: &Settings,
    cache: &Path,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<(), ToolchainError> {
    progress.step("installing the toolchain (Vela and the reference interpreters; once, about 45 MB)");
    let python = python::find(settings.python.as_deref())?;
    clear(cache, folder)?;

    // A build of a process that was killed may still have a pip running in it. So every build has its own folder,
    // and only a finished one takes the environment's place.
    let prefix = building_prefix(folder);
    let building = tempfile::Builder::new().prefix(&prefix).tempdir_in(cache);
    let building = building.map_err(|source| storage(cache, source))?;
    let at = building.path();

    progress.detail(&format!(
        "making an environment from Python {} ({})",
        python.version,
        python.program.display()
    ));
    let mut command = isolated(&python.program);
    command.args(["-m", "venv", "--clear"]).arg(at);
    check("making a Python environment", cache, run(command, Some(STEP_LIMIT), &mut |_| {}))?;

    let requirements = at.join(REQUIREMENTS_FILE);
    fs::write(&requirements, REQUIREMENTS).map_err(|source| storage(cache, source))?;
    let mut command = isolated(&python::inside(at));
    command.args([
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-warn-script-location",
    ]);
    // The list is complete, and building a compiler from source is nothing to do behind a user's back.
    command.args(["--progress-bar", "off", "--no-deps", "--only-binary", ":all:"]);
    // pip only says that it can't reach the index when it tries again.
    command.args(["--retries", "3"]);
    if let Some(wheels) = &settings.wheels {
        command.arg("--no-index").arg("--find-links").arg(wheels);
    }
    command.arg("-r").arg(&requirements);
    let outcome = run(command, None, &mut |line| {
        if let Some(what) = summarise(line) {
            progress.detail(&what);
        }
    });
    check("installing the packages", cache, outcome)?;

    progress.detail("checking that everything loads");
    let inspection = inspect(&python::inside(at), cache)?;
    let outside = || ToolchainError::Step {
        step: "checking the installed packages",
        ending: "exit status 0".to_owned(),
        last_words: format!(
            "Vela's configuration file {} isn't in the environment",
            inspection.vela_ini.display()
        ),
    };
    let real = at.canonicalize().map_err(|source| storage(at, source))?;
    let vela_ini = inspection.vela_ini.canonicalize().map_err(|_| outside())?;
    let vela_ini = vela_ini.strip_prefix(&real).map_err(|_| outside())?.to_owned();
    let marker = Marker { layout: LAYOUT, python: python.version, packages: inspection.packages, vela_ini };
    let text = serde_json::to_vec_pretty(&marker).map_err(|error| storage(cache, io::Error::other(error)))?;
    fs::write(at.join(MARKER), text).map_err(|source| storage(cache, source))?;
    let built = building.keep();
    fs::rename(&built, folder).map_err(|source| {
        let _ = fs::remove_dir_all(&built);
        storage(folder, source)
    })
}

/// Loads the packages of an environment and asks for their versions.
pub(super) fn inspect(python: &Path, cache: &Path) -> Result<Inspection, ToolchainError> {
    const STEP: &str = "checking the installed packages";
    let mut command = isolated(python);
    command.args(["-c", INSPECT]);
    let done = check(STEP, cache, run(command, Some(STEP_LIMIT), &mut |_| {}))?;
    // The packages may print on loading; the answer is the last line.
    serde_json::from_str(done.stdout.lines().last().unwrap_or_default()).map_err(|error| {
        ToolchainError::Step { step: STEP, ending: error.to_string(), last_words: done.last_words() }
    })
}

fn run(
    command: std::process::Command,
    limit: Option<Duration>,
    on_line: &mut dyn FnMut(&str),
) -> Result<Finished, RunError> {
    process::run(command, limit, on_line)
}

fn building_prefix(folder: &Path) -> String {
    format!("{}.building-", folder.file_name().unwrap_or_default().to_string_lossy())
}

/// Removes a damaged environment and what interrupted installs left.
fn clear(cache: &Path, folder: &Path) -> Result<(), ToolchainError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            return Err(ToolchainError::Folder { path: folder.to_owned(), source });
        }
        _ => {}
    }
    let prefix = building_prefix(folder);
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            // A pip that is still running there may put files back; then it stays until the next install.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

fn storage(path: &Path, source: io::Error) -> ToolchainError {
    match source.kind() {
        io::ErrorKind::StorageFull => ToolchainError::DiskFull { path: path.to_owned() },
        _ => ToolchainError::Folder { path: path.to_owned(), source },
    }
}

/// Turns a failed step into the error that says most.
fn check(
    step: &'static str,
    path: &Path,
    outcome: Result<Finished, RunError>,
) -> Result<Finished, ToolchainError> {
    let (ending, last_words, everything) = match outcome {
        Ok(done) if done.status.success() => return Ok(done),
        Ok(done) => {
            (process::ending(done.status), done.last_words(), format!("{}\n{}", done.stdout, done.stderr))
        }
        Err(RunError::TimedOut { after, last_words }) => {
            (format!("stopped after {} s", after.as_secs()), last_words, String::new())
        }
        Err(RunError::Start(error) | RunError::Wait(error)) => {
            (error.to_string(), String::new(), String::new())
        }
    };
    let says = |signs: &[&str]| signs.iter().any(|sign| everything.contains(sign));
    if says(DISK_FULL_SIGNS) {
        return Err(ToolchainError::DiskFull { path: path.to_owned() });
    }
    let missing = everything.lines().find_map(|line| line.split_once("No matching distribution found for "));
    let missing = missing.map(|(_, requirement)| requirement.trim().to_owned());
    let offline = everything.lines().find(|line| OFFLINE_SIGNS.iter().any(|sign| line.contains(sign)));
    if let Some(reason) = offline {
        let tried = missing.unwrap_or_else(|| "the packages".to_owned());
        // A person who carries the wheels over needs the list.
        let list = path.join(REQUIREMENTS_FILE);
        let _ = fs::write(&list, REQUIREMENTS);
        return Err(ToolchainError::Offline {
            tried,
            list,
            last_words: format!("{}\n{last_words}", reason.trim()),
        });
    }
    if let Some(requirement) = missing {
        return Err(ToolchainError::NoPackage { requirement, last_words });
    }
    Err(ToolchainError::Step { step, ending, last_words })
}

/// The part of a line of pip's output that a person wants to see.
fn summarise(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("Downloading ") {
        // "Downloading https://…/numpy-2.4.6-cp311-….whl (16.6 MB)", or the file name alone.
        let (file, size) = rest.split_once(' ').unwrap_or((rest, ""));
        let file = file.rsplit('/').next().unwrap_or(file);
        let mut parts = file.split('-');
        let (name, version) = (parts.next().unwrap_or(file), parts.next().unwrap_or_default());
        return Some(format!("downloading {name} {version} {size}").trim_end().to_owned());
    }
    if line.starts_with("Installing collected packages") {
        return Some("unpacking the packages".to_owned());
    }
    if line.starts_with("WARNING: Retrying") {
        return Some("the package index doesn't answer; trying again".to_owned());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_lines_are_summarised() {
        assert_eq!(
            summarise("  Downloading numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.whl (16.9 MB)").as_deref(),
            Some("downloading numpy 2.4.6 (16.9 MB)")
        );
        assert_eq!(
            summarise("Downloading https://index.example/a/b/tqdm-4.70.1-py3-none-any.whl.metadata (57 kB)")
                .as_deref(),
            Some("downloading tqdm 4.70.1 (57 kB)")
        );
        assert_eq!(summarise("Collecting numpy==2.4.6"), None);
    }
}
