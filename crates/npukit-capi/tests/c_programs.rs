//! The libraries and the header in programs of other languages: compiled with warnings as errors and, where the
//! compiler brings them, with the address and undefined-behaviour sanitizers.
//!
//! A C compiler is required (`cc`, or what the environment variable CC names).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

const WARNINGS: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"];
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
/// What the standard library inside the static library asks of the system.
const SYSTEM: [&str; 3] = ["-pthread", "-ldl", "-lm"];

static LIBRARIES: LazyLock<PathBuf> = LazyLock::new(|| {
    build("hosted", &["build", "--lib"]);
    folder("hosted").join("debug")
});

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name)
}

/// Builds this crate in a target folder of its own: the one that this test runs from is locked by the outer cargo.
fn build(name: &str, arguments: &[&str]) {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .args([
            "--quiet",
            "--manifest-path",
            concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
            "--target-dir",
        ])
        .arg(folder(name))
        .env_remove("CARGO_BUILD_TARGET")
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo {arguments:?}:\n{}", String::from_utf8_lossy(&output.stderr));
}

fn compiler(variable: &str, default: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| default.to_owned())
}

/// Runs a compiler; None if there is none.
fn try_compile(compiler: &str, arguments: &[&str], files: &[&Path], out: &Path) -> Option<Output> {
    let mut command = Command::new(compiler);
    command.args(arguments).arg("-I").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"));
    match command.args(files).args(SYSTEM).arg("-o").arg(out).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{compiler}: {error}"),
    }
}

fn compile_c(arguments: &[&str], files: &[&Path], out: &Path) -> Output {
    let name = compiler("CC", "cc");
    let output = try_compile(&name, &[&["-std=c11"], &WARNINGS[..], arguments].concat(), files, out);
    output.unwrap_or_else(|| panic!("no C compiler: {name} isn't there; install gcc or clang, or set CC"))
}

fn assert_success(what: &str, output: &Output) {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{stdout}{stderr}", output.status);
}

fn run(program: &Path) {
    let output = Command::new(program).output().expect("a compiled program runs");
    assert_success(&program.display().to_string(), &output);
}

/// The sanitizers' flags; none, with a word about it, where their runtime is missing.
static SANITIZE: LazyLock<&[&str]> = LazyLock::new(|| {
    let probe = folder("probe");
    std::fs::create_dir_all(&probe).expect("the folder for temporary files is writable");
    let (file, program) = (probe.join("probe.c"), probe.join("probe"));
    std::fs::write(&file, "int main(void) { return 0; }\n")
        .expect("the folder for temporary files is writable");
    let built = compile_c(&SANITIZERS, &[&file], &program);
    if built.status.success() && Command::new(&program).status().is_ok_and(|status| status.success()) {
        &SANITIZERS
    } else {
        eprintln!("skipped: the sanitizers; this C compiler can't link or run them:");
        eprintln!("{}", String::from_utf8_lossy(&built.stderr));
        &[]
    }
});

#[test]
fn c_program_with_the_static_library() {
    let program = LIBRARIES.join("load-static");
    let library = LIBRARIES.join("libnpukit_capi.a");
    assert_success("cc", &compile_c(&SANITIZE, &[&source("load.c"), &library], &program));
    run(&program);
}

#[test]
fn c_program_with_the_shared_library() {
    let program = LIBRARIES.join("load-shared");
    let search = format!("-L{}", LIBRARIES.display());
    let at_run_time = format!("-Wl,-rpath,{}", LIBRARIES.display());
    let library = LIBRARIES.join(format!(
        "{}npukit_capi{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    let arguments = [SANITIZE.to_vec(), vec![&search, &at_run_time]].concat();
    assert_success("cc", &compile_c(&arguments, &[&source("load.c"), &library], &program));
    run(&program);
}

/// As firmware links it: no standard library in it, and its own panic handler, which nothing in the loader can reach.
#[test]
fn c_program_with_the_firmware_library() {
    let firmware = ["rustc", "--lib", "--crate-type", "staticlib", "--release", "--no-default-features"];
    let options = ["--features", "panic-handler", "--config", "profile.release.panic=\"abort\""];
    build("firmware", &[&firmware[..], &options].concat());
    let program = folder("firmware").join("load-firmware");
    let library = folder("firmware").join("release/libnpukit_capi.a");
    // Without debug information, which names functions that were inlined; the symbol table stays.
    let arguments = ["-Wl,--gc-sections,--strip-debug"];
    assert_success("cc", &compile_c(&arguments, &[&source("load.c"), &library], &program));
    run(&program);

    let linked = std::fs::read(&program).expect("the program is there");
    let names = |name: &[u8]| linked.windows(name.len()).any(|bytes| bytes == name);
    assert!(names(b"ra8_npu_load"), "the program has a symbol table");
    assert!(!names(b"panicking"), "the loader reaches a panic of Rust's core library");
}

#[test]
fn cpp_program() {
    let name = compiler("CXX", "c++");
    let library = LIBRARIES.join("libnpukit_capi.a");
    for standard in ["-std=c++11", "-std=c++17"] {
        let program = LIBRARIES.join(format!("header{standard}"));
        let arguments = [&[standard], &WARNINGS[..]].concat();
        let Some(output) = try_compile(&name, &arguments, &[&source("header.cpp"), &library], &program)
        else {
            eprintln!("skipped: no C++ compiler, {name} isn't there (set CXX)");
            return;
        };
        assert_success(&name, &output);
        run(&program);
    }
}

#[test]
fn a_dropped_result_is_a_warning() {
    let program = LIBRARIES.join("dropped-result");
    let library = LIBRARIES.join("libnpukit_capi.a");
    let output = compile_c(&[], &[&source("dropped_result.c"), &library], &program);
    let diagnosis = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && diagnosis.contains("unused-result"), "{diagnosis}");
}
