//! Signals while a compiler runs: nothing is left behind.
#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::{Npukit, digits};

/// A compiler that says who it is and then takes its time.
const SLOW: &str = "#!/bin/sh\ncase \"$1\" in\n--version) echo 9.9.9; exit 0;;\n--list-configs) exit 0;;\nesac\n\
    echo $$ > pid.part; mv pid.part pid; exec sleep 60\n";

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(60) {
        if let Some(found) = found() {
            return found;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{what}");
}

fn send(signal: &str, process: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{signal}"), process]).stderr(Stdio::null());
    kill.status().unwrap().success()
}

/// A compilation that has come as far as the compiler, whose process it returns.
fn compiling(npukit: &Npukit, before: &str) -> (Child, String) {
    npukit.file("vela.txt", SLOW.as_bytes());
    fs::create_dir_all(npukit.folder().join("tmp")).unwrap();
    let _ = fs::remove_file(npukit.folder().join("pid"));
    // Another program writes what is run: see npukit-vela's tests.
    assert!(
        Command::new("install")
            .args(["-m", "755", "vela.txt", "vela"])
            .current_dir(npukit.folder())
            .status()
            .unwrap()
            .success()
    );
    let script = format!("{before} exec \"$0\" build \"$1\" --vela ./vela -o d.npub");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_npukit"), &digits()]).current_dir(npukit.folder());
    command.env("TMPDIR", npukit.folder().join("tmp")).stdin(Stdio::null());
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = wait_for("the compiler doesn't start", || fs::read_to_string(npukit.folder().join("pid")).ok());
    assert_eq!(fs::read_dir(npukit.folder().join("tmp")).unwrap().count(), 1);
    (child, pid.trim().to_owned())
}

/// Whether these tests were started with a signal ignored, as a shell does for what runs in the background. Then npukit is, too, and
/// nothing can set it back. Known on Linux only; elsewhere npukit doesn't look.
fn is_ignored(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (number - 1) & 1 == 1
}

#[test]
fn nothing_is_left_behind() {
    let npukit = Npukit::new();
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        if is_ignored(number as u32) {
            eprintln!("skipped: SIG{signal} is ignored here");
            continue;
        }
        let (mut child, compiler) = compiling(&npukit, "");
        assert!(send(signal, &child.id().to_string()));
        assert_eq!(child.wait().unwrap().signal(), Some(number), "{signal}");
        assert_eq!(fs::read_dir(npukit.folder().join("tmp")).unwrap().count(), 0, "{signal}");
        assert!(!send("0", &compiler), "{signal}: the compiler still runs");
        assert!(!npukit.exists("d.npub"));
    }
}

/// As under nohup.
#[cfg(target_os = "linux")]
#[test]
fn ignored_signals_stay_ignored() {
    let npukit = Npukit::new();
    let (mut child, compiler) = compiling(&npukit, "trap '' HUP;");
    assert!(send("HUP", &child.id().to_string()));
    thread::sleep(Duration::from_millis(300));
    assert!(send("0", &compiler) && child.try_wait().unwrap().is_none());
    assert!(send("TERM", &child.id().to_string()));
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}
