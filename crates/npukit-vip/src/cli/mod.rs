//! The subcommands as clap types, for a program to mount: [`TablesArgs`], [`AdmitArgs`], [`NbgArgs`] and
//! [`inspect`].
//!
//! Each `run` prints its answer on standard output, as text or as one JSON object, and diagnostics on standard error.
//! It returns how it ended: yes or done, the answer is no, it could not be done.

mod admit;
mod nbg;
mod tables;

pub use admit::AdmitArgs;
pub use nbg::{NbgArgs, NbgCommand, inspect};
pub use tables::{Format, TablesArgs, TablesCommand};

use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Yes, or done.
    Yes,
    /// The answer is no.
    No,
    /// It could not be done.
    Failed,
}

impl Exit {
    /// The exit status: 0, 1 or 2.
    pub fn code(self) -> u8 {
        match self {
            Exit::Yes => 0,
            Exit::No => 1,
            Exit::Failed => 2,
        }
    }

    fn yes_if(yes: bool) -> Exit {
        if yes { Exit::Yes } else { Exit::No }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// What a command answers with, or the sentence that says why it couldn't.
type Answer = Result<Exit, String>;

/// Ends a command that may have failed. A script that asked for an object gets one for a failure too.
fn finish(answer: Answer, json: bool) -> Exit {
    answer.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        if json {
            let error = serde_json::json!({
                "error": { "kind": "vip", "message": message, "advice": null },
                "exit_status": Exit::Failed.code(),
            });
            // Standard error has the message already.
            let _ = write_out(format!("{error}\n").as_bytes());
        }
        Exit::Failed
    })
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn in_file<E: Display>(path: &Path) -> impl Fn(E) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Prints a report. A reader that closes the pipe has seen enough: that is no failure.
fn print<T: Serialize + Display>(report: &T, json: bool) -> Result<(), String> {
    let text = if json { to_json(report)? + "\n" } else { report.to_string() };
    write_out(text.as_bytes())
}

fn to_json<T: Serialize>(report: &T) -> Result<String, String> {
    serde_json::to_string_pretty(report).map_err(|error| error.to_string())
}

fn write_out(bytes: &[u8]) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(()),
    }
}
