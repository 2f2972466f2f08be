//! Why a network didn't compile.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::distil::{CpuOperator, DistilError};
use crate::process::said;
use crate::tflite;
use crate::toolchain::ToolchainError;

/// Why a network didn't compile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The network's file can't be read.
    #[error(transparent)]
    Network(#[from] tflite::Error),
    /// The network computes with floats.
    #[error(
        "the network isn't quantised: {tensor} is {data_type}, and nothing it computes is an 8 or 16-bit integer"
    )]
    Float {
        /// A tensor that shows it.
        tensor: String,
        /// Its type.
        data_type: tflite::DataType,
    },
    /// The network has been through Vela already.
    #[error("the network is compiled already: it has an ethos-u operator")]
    AlreadyCompiled,
    /// The network does nothing.
    #[error("the network has no {what}")]
    Empty {
        /// What it hasn't.
        what: &'static str,
    },
    /// The size of an axis other than the batch is open.
    #[error(
        "{tensor} has an open size: its shape is {signature:?}, and only the first axis (the batch) can be fixed, to 1"
    )]
    DynamicShape {
        /// Which tensor.
        tensor: String,
        /// Its shape with -1 for what is open.
        signature: Vec<i32>,
    },
    /// The file says one batch size and leaves it open at the same time.
    #[error("{tensor} leaves its batch open, but the network's constants are for a batch of {batch}")]
    BatchSize {
        /// Which tensor.
        tensor: String,
        /// The size its shape gives.
        batch: i32,
    },
    /// An own configuration file can't be read.
    #[error("the configuration file {}: {problem}", path.display())]
    ConfigFile {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The configuration file has no such section.
    #[error("there is no {kind} '{name}'; the configuration file has {}", names(known))]
    UnknownName {
        /// "system configuration" or "memory mode".
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// An own configuration file leaves open which section is meant.
    #[error("name a {kind}; the configuration file has {}", names(known))]
    NameNeeded {
        /// "system configuration" or "memory mode".
        kind: &'static str,
        /// The names there are.
        known: Vec<String>,
    },
    /// Separate inputs and outputs can't be framed as COP1.
    #[error("separate regions for inputs and outputs need COP2 framing; COP1 was asked for")]
    SeparateNeedsCop2,
    /// The folder where Vela works can't be used.
    #[error("the temporary folder for the compiler: {0}")]
    Temporary(#[source] io::Error),
    /// Vela can't be run.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// Vela can't be started.
    #[error("{program} can't be run: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Vela took too long.
    #[error("the compiler was stopped after {} s{}", after.as_secs(), said(last_words))]
    TimedOut {
        /// How long it ran.
        after: Duration,
        /// The end of its output.
        last_words: String,
    },
    /// Vela failed or crashed.
    #[error("the compiler failed ({ending}){}", said(last_words))]
    Failed {
        /// "exit status 1", "killed by signal 11 (SIGSEGV)".
        ending: String,
        /// The end of its output.
        last_words: String,
    },
    /// Vela says it succeeded but wrote nothing.
    #[error("the compiler left no output{}", said(last_words))]
    NoOutput {
        /// The end of its output.
        last_words: String,
    },
    /// Operators are left to the CPU.
    #[error("{}", DistilError::CpuOperators(.0.clone()))]
    CpuOperators(Vec<CpuOperator>),
    /// What Vela wrote makes no `.npub`.
    #[error(transparent)]
    Distil(#[from] DistilError),
}

fn names(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// Python's report of where it failed says nothing to a user; the line behind it does.
pub(super) fn without_traceback(words: &str) -> String {
    let mut kept = Vec::new();
    let mut inside = false;
    for line in words.lines() {
        inside =
            line.starts_with("Traceback (most recent call last)") || inside && line.starts_with([' ', '\t']);
        if !inside {
            kept.push(line);
        }
    }
    // Where the report's beginning is cut off, its frames are still indented.
    while kept.len() > 1 && kept[0].starts_with([' ', '\t']) {
        kept.remove(0);
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::without_traceback;

    #[test]
    fn a_traceback_is_left_out() {
        let words = "before\nTraceback (most recent call last):\n  File \"a.py\", line 1\n    x()\n      ^^^\nSomeError: 'why'";
        assert_eq!(without_traceback(words), "before\nSomeError: 'why'");
        assert_eq!(without_traceback("    x()\n  File \"b.py\"\nSomeError: 'why'"), "SomeError: 'why'");
        assert_eq!(without_traceback("just this"), "just this");
    }
}
