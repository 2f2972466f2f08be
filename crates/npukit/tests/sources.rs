//! A blob as source: what is written compiles without a warning, lies at a multiple of 16 and is the blob.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use npukit::emit::{self, Origin};
use support::{Npukit, digits};

/// Runs a compiler, which may not say anything; returns whether there is one.
fn compiles(command: &mut Command) -> bool {
    let program = command.get_program().to_owned();
    match command.output() {
        Ok(output) => {
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            assert!(output.stderr.is_empty(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => {
            eprintln!("skipped: there is no {}", program.display());
            false
        }
    }
}

fn prints_the_blob(folder: &Path, program: &str, blob: &[u8]) {
    let output = Command::new(folder.join(program)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == blob, "{program} carries other bytes than the blob");
}

const MAIN_C: &str = r#"
#include <stdio.h>
#define DIGITS_IMPLEMENTATION
#include "digits.h"
#include "digits.h"
DIGITS_INPUT_0_TYPE input[DIGITS_INPUT_0_BYTES];
int main(void) {
    static const unsigned shape[] = DIGITS_INPUT_0_SHAPE;
    if (sizeof shape / sizeof shape[0] != DIGITS_INPUT_0_RANK || shape[1] != 8) return 3;
    if (DIGITS_INPUT_0_ZERO_POINT != -128 || DIGITS_OUTPUT_0_SCALE <= 0.0f || sizeof input != 64) return 4;
    if (DIGITS_ACCEL != 256u || DIGITS_INPUTS != 1 || DIGITS_INPUT_0_NAME[0] != 'i') return 5;
    if ((uintptr_t)digits_npub % 16 != 0 || sizeof digits_npub != DIGITS_NPUB_BYTES) return 6;
    return fwrite(digits_npub, 1, sizeof digits_npub, stdout) == DIGITS_NPUB_BYTES ? 0 : 7;
}
"#;

/// Another file of the program, which only uses the blob.
const OTHER_C: &str = r#"
#include "digits.h"
unsigned first_byte(void);
unsigned first_byte(void) { return digits_npub[0]; }
"#;

const MAIN_RS: &str = r#"
#![deny(warnings)]
#![allow(dead_code)]
mod digits;
use std::io::Write;
fn main() {
    assert_eq!(digits::NPUB.as_ptr() as usize % 16, 0);
    assert_eq!(digits::input_0::SHAPE.iter().product::<usize>(), digits::input_0::BYTES);
    assert_eq!((digits::input_0::NAME, digits::input_0::DTYPE, digits::ACCEL), ("input", "int8", 256));
    assert_eq!(digits::input_0::ZERO_POINT, -128);
    std::io::stdout().write_all(digits::NPUB).unwrap();
}
"#;

#[test]
fn what_build_emits_compiles() {
    let npukit = Npukit::new();
    let report = npukit
        .json(0, &["build", &digits(), "-o", "d.npub", "--emit-c", "digits.h", "--emit-rust", "digits.rs"]);
    assert_eq!((&report["c_header"], &report["rust_module"]), (&"digits.h".into(), &"digits.rs".into()));
    let blob = fs::read(npukit.folder().join("d.npub")).unwrap();
    npukit.file("main.c", MAIN_C.as_bytes());
    npukit.file("other.c", OTHER_C.as_bytes());
    npukit.file("main.rs", MAIN_RS.as_bytes());
    let strict = ["-Wall", "-Wextra", "-Werror", "-Wpedantic"];
    let cases = [
        ("cc", "-std=c99", "c"),
        ("cc", "-std=c11", "c"),
        ("cc", "-std=c2x", "c"),
        ("c++", "-std=c++11", "c++"),
    ];
    for (compiler, standard, language) in cases {
        let mut command = Command::new(compiler);
        command.current_dir(npukit.folder()).args(strict).args([standard, "-x", language]);
        if compiles(command.args(["main.c", "other.c", "-o", "program"])) {
            prints_the_blob(npukit.folder(), "program", &blob);
        }
    }
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(npukit.folder()).args(["--edition", "2021", "main.rs", "-o", "rust-program"]);
    assert!(compiles(&mut rustc), "a test run has a compiler");
    prints_the_blob(npukit.folder(), "rust-program", &blob);
}

/// Names are whatever the network's author liked.
#[test]
fn awkward_names_compile() {
    let npukit = Npukit::new();
    let name = "quote\" back\\slash */ trigraph??/ newline\n tab\t é \u{1}23 {}";
    let mut builder = npub::BlobBuilder::new(npub::Accel::u55(32));
    builder.commands(&[0xFFFF_0000]);
    builder.runtime(npub::Role::Scratch, 64);
    for (kind, offset) in [(npub::TensorKind::Input, 0), (npub::TensorKind::Output, 16)] {
        builder.tensor(npub::TensorEntry {
            kind,
            name: name.to_owned(),
            dtype: npub::DType::Int8,
            shape: npub::Shape::new(&[4]).unwrap(),
            quantisation: None,
            place: Some(npub::Place { region: 0, offset }),
            fed_from: None,
        });
    }
    let blob = builder.build().unwrap();
    let mut origin = Origin::new("7 odd*/names");
    origin.vela_version = Some("5.2 */ \" \n");
    npukit.file("odd.h", emit::c_header(&blob, origin).unwrap().as_bytes());
    npukit.file("odd.rs", emit::rust_module(&blob, origin).unwrap().as_bytes());
    let c = r#"
#include <stdio.h>
#define NETWORK_7_ODD__NAMES_IMPLEMENTATION
#include "odd.h"
int main(void) { return fputs(NETWORK_7_ODD__NAMES_OUTPUT_0_NAME, stdout) < 0 || network_7_odd__names_npub[0] != 'N'; }
"#;
    npukit.file("main.c", c.as_bytes());
    npukit
        .file("main.rs", b"#![allow(dead_code)] mod odd; fn main() { print!(\"{}\", odd::output_0::NAME) }");
    let mut cc = Command::new("cc");
    cc.current_dir(npukit.folder()).args([
        "-Wall",
        "-Wextra",
        "-Werror",
        "-std=c11",
        "main.c",
        "-o",
        "c-program",
    ]);
    if compiles(&mut cc) {
        prints_the_blob(npukit.folder(), "c-program", name.as_bytes());
    }
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.current_dir(npukit.folder()).args(["--edition", "2021", "main.rs", "-o", "rust-program"]);
    assert!(compiles(&mut rustc), "a test run has a compiler");
    prints_the_blob(npukit.folder(), "rust-program", name.as_bytes());
}
