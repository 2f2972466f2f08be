//! `npukit completions`: what a shell needs to complete commands and options.

use std::fmt;

use clap::Args;
use clap_complete::Shell;
use serde::Serialize;

use super::failure::Outcome;
use super::report::Answer;

/// Print a completion script for a shell
///
/// For bash: npukit completions bash > ~/.local/share/bash-completion/completions/npukit
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The shell
    shell: Shell,
}

#[derive(Serialize)]
struct Report {
    shell: String,
    script: String,
}

pub(super) fn execute(arguments: &Arguments, mut command: clap::Command) -> Outcome<Answer> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "npukit", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Answer::yes(Report { shell: arguments.shell.to_string(), script }))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.script)
    }
}
