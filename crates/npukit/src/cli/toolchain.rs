//! `npukit toolchain`: Vela and the reference interpreters, installed or not.

use std::collections::BTreeMap;
use std::fmt;

use clap::{Args, Subcommand};
use npukit::Toolchain;
use npukit_vela::toolchain::REQUIREMENTS;
use serde::Serialize;

use super::failure::{Failure, Outcome};
use super::progress::Display;
use super::report::{Answer, bad, good, table};

/// Install Vela and the reference interpreters, or see what is installed
#[derive(Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Install what is missing and check what is there; other commands do it on first need
    Install,
    /// Say what is installed, where, and which Vela is used; exit status 1 where nothing is
    Status,
}

#[derive(Serialize)]
struct Report {
    installed: bool,
    folder: String,
    python: Option<String>,
    vela: Option<Vela>,
    vela_problem: Option<String>,
    packages: BTreeMap<String, String>,
    requirements: Vec<&'static str>,
}

#[derive(Serialize)]
struct Vela {
    version: String,
    program: String,
    own: bool,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let toolchain = Toolchain::from_environment().map_err(Failure::toolchain)?;
    if matches!(arguments.command, Command::Install) {
        let mut progress = Display::new();
        toolchain.install(&mut progress).map_err(Failure::toolchain)?;
        progress.finish();
    }
    let status = toolchain.status();
    let usable = status.installed && status.vela_problem.is_none();
    Ok(Answer::new(
        usable,
        Report {
            installed: status.installed,
            folder: status.folder.display().to_string(),
            python: status.python,
            vela: status.vela.map(|vela| Vela {
                version: vela.version().to_owned(),
                program: vela.program().display().to_string(),
                own: vela.is_named_by_user(),
            }),
            vela_problem: status.vela_problem,
            packages: status.packages,
            requirements: REQUIREMENTS
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty() && !line.starts_with('#'))
                .collect(),
        },
    ))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.installed { good("installed") } else { bad("not installed") };
        writeln!(f, "{state} in {}", self.folder)?;
        if let Some(python) = &self.python {
            writeln!(f, "  Python {python}")?;
        }
        if let Some(vela) = &self.vela {
            let own = if vela.own { ", named by NPUKIT_VELA" } else { "" };
            writeln!(f, "  Vela {} ({}{own})", vela.version, vela.program)?;
        }
        if let Some(problem) = &self.vela_problem {
            writeln!(f, "  {}: {problem}", bad("problem"))?;
        }
        if self.installed {
            let rows: Vec<Vec<String>> =
                self.packages.iter().map(|(name, version)| vec![name.clone(), version.clone()]).collect();
            f.write_str(&table(&rows, 2))
        } else {
            writeln!(f, "  npukit toolchain install puts there:")?;
            self.requirements.iter().try_for_each(|line| writeln!(f, "    {line}"))
        }
    }
}
