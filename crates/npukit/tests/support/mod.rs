//! Runs the real program, and what several test files give to it.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]

pub mod tflite;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A call of `npukit` in a folder of its own.
pub struct Npukit {
    folder: tempfile::TempDir,
}

/// What came of a call.
#[derive(Debug)]
pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Npukit {
    pub fn new() -> Npukit {
        Npukit { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a file into the folder.
    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, bytes).expect("a writable folder");
        path
    }

    pub fn exists(&self, name: &str) -> bool {
        self.folder().join(name).exists()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_npukit"));
        command.args(arguments).current_dir(self.folder());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::new(&self.command(arguments).output().expect("npukit starts"))
    }

    /// Runs with `--json` and returns the one object, which has to be alone on standard output.
    pub fn json(&self, status: i32, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.status, status, "{arguments:?}: {ran:?}");
        ran.object()
    }

    /// Runs what has to fail with this status and these words, and leave no result.
    pub fn refused(&self, status: i32, arguments: &[&str], words: &[&str]) {
        let ran = self.run(arguments);
        assert_eq!(ran.status, status, "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments:?}");
        for word in words {
            assert!(ran.stderr.contains(word), "{arguments:?} doesn't say {word:?}: {}", ran.stderr);
        }
    }
}

impl Ran {
    pub fn new(output: &Output) -> Ran {
        Ran {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub fn object(&self) -> Value {
        let value: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert!(value.is_object(), "{value}");
        value
    }
}

/// A file of the examples.
pub fn example(name: &str) -> String {
    let path = npukit_testkit::repository().join("examples").join(name);
    path.to_str().expect("a readable path").to_owned()
}

pub fn digits() -> String {
    example("digits/digits_int8.tflite")
}

pub fn gesture() -> String {
    example("gesture/gesture_int16.tflite")
}
