//! What several test files need: the installed environment, networks made on the spot, inputs.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]

pub mod network;

use std::fs;
use std::path::{Path, PathBuf};

use npukit_vela::npy::Array;
use npukit_vela::oracle::Signature;
use npukit_vela::progress::Progress;
use npukit_vela::toolchain::{Environment, Toolchain};

/// Shows the first install, which takes a while, in the test's output.
pub struct Printed;

impl Progress for Printed {
    fn step(&mut self, what: &str) {
        eprintln!("{what}");
    }
}

/// The environment of the default cache, installed on first need.
pub fn environment() -> Environment {
    let toolchain = Toolchain::from_environment().expect("a cache folder");
    toolchain
        .ensure(&mut Printed)
        .unwrap_or_else(|error| panic!("{error}\n{}", error.advice().unwrap_or_default()))
}

/// Bytes that look random and are the same in every run.
pub struct Noise(pub u64);

impl Noise {
    pub fn byte(&mut self) -> u8 {
        // Knuth's MMIX generator; its high bits are good enough.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 48) as u8
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.byte()).collect()
    }

    pub fn sample(&mut self, inputs: &[Signature]) -> Vec<Array> {
        let array = |signature: &Signature| {
            let bytes = signature.shape.iter().product::<usize>() * signature.dtype.bytes();
            let data = self.bytes(bytes);
            Array::new(signature.dtype, signature.shape.clone(), data)
                .expect("as many bytes as the shape asks")
        };
        inputs.iter().map(array).collect()
    }
}

/// Puts a shell script in `folder` that can be run.
///
/// Another program writes it: while this one has a file open for writing, a process that another test thread starts has
/// it open too for a moment, and the system runs no program that somebody writes.
#[cfg(unix)]
pub fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, path) = (folder.join(format!("{name}.txt")), folder.join(name));
    fs::write(&source, text).expect("a writable folder");
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).arg(&source).arg(&path).status();
    assert!(installed.expect("install(1)").success());
    path
}
