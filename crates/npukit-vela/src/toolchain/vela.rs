//! A Vela that can be run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::ToolchainError;
use crate::ini::VelaIni;
use crate::process::{self, RunError};

/// Vela answers at once; a wrapper that starts a container takes longer.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);
/// The configuration file that comes with Vela, by the name Vela itself finds it.
pub(crate) const SHIPPED_CONFIG: &str = "Arm/vela.ini";

/// A Vela: npukit's own, or one the user named.
#[derive(Clone, Debug)]
pub struct Vela {
    program: PathBuf,
    arguments: Vec<OsString>,
    version: String,
    named_by_user: bool,
    ini: Option<PathBuf>,
}

impl Vela {
    /// The Vela of an environment.
    pub(super) fn shipped(python: PathBuf, version: String, ini: PathBuf) -> Self {
        let arguments = ["-I", "-m", "ethosu.vela"].map(OsString::from).to_vec();
        Vela { program: python, arguments, version, named_by_user: false, ini: Some(ini) }
    }

    /// A Vela the user names: an executable that answers to `--version`.
    ///
    /// # Errors
    ///
    /// [`ToolchainError::Vela`].
    pub fn own(path: &Path) -> Result<Self, ToolchainError> {
        let error = |reason| ToolchainError::Vela { path: path.to_owned(), reason };
        let mut vela = Vela {
            program: path.to_owned(),
            arguments: Vec::new(),
            version: String::new(),
            named_by_user: true,
            ini: None,
        };
        let mut command = vela.command();
        command.arg("--version");
        let done =
            process::run(command, Some(ANSWER_LIMIT), &mut |_| {}).map_err(|problem| match problem {
                RunError::Start(source) | RunError::Wait(source) => error(source.to_string()),
                RunError::TimedOut { after, .. } => {
                    error(format!("no answer to --version after {} s", after.as_secs()))
                }
            })?;
        if !done.status.success() {
            let ending = process::ending(done.status);
            return Err(error(format!("--version ended with {ending}: {}", done.last_words())));
        }
        let version = done.stdout.lines().map(str::trim).rfind(|line| !line.is_empty());
        let version = version.ok_or_else(|| error("it says nothing to --version".to_owned()))?;
        if !is_version(version) {
            return Err(error(format!("it isn't Vela: to --version it says {version:?}")));
        }
        vela.version = version.to_owned();
        Ok(vela)
    }

    /// What it calls its version, such as "5.2.0".
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether the user named it.
    pub fn is_named_by_user(&self) -> bool {
        self.named_by_user
    }

    /// The program that is run, Vela itself or the Python that runs it.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The command that runs it, without the arguments of a compilation.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// The system configurations and memory modes it ships with. An own Vela is asked, and then only the names are known.
    ///
    /// # Errors
    ///
    /// [`ToolchainError::Vela`].
    pub fn configurations(&self) -> Result<VelaIni, ToolchainError> {
        let error = |reason| ToolchainError::Vela { path: self.program.clone(), reason };
        if let Some(path) = &self.ini {
            let text = npukit_files::read_text(path)
                .map_err(|source| ToolchainError::Folder { path: path.clone(), source })?;
            return VelaIni::parse(&text).map_err(|problem| error(problem.to_string()));
        }
        let mut command = self.command();
        command.args(["--list-configs", SHIPPED_CONFIG]);
        let done = process::run(command, Some(ANSWER_LIMIT), &mut |_| {});
        let done = done.map_err(|_| error("no answer to --list-configs".to_owned()))?;
        let names = done.stdout.lines().map(str::trim);
        let names =
            names.filter(|line| line.starts_with("System_Config.") || line.starts_with("Memory_Mode."));
        Ok(VelaIni::from_names(names.map(str::to_owned)))
    }
}

/// Whether it looks like "5.2.0" or "5.0.1.dev3+g1234567".
fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next().is_some_and(numeric) && parts.next().is_some_and(numeric)
}
