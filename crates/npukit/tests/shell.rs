//! How the program behaves in scripts and pipes.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::{Npukit, digits};

#[test]
fn a_closed_pipe_is_no_failure() {
    let npukit = Npukit::new();
    assert_eq!(npukit.run(&["build", &digits(), "-o", "d.npub"]).status, 0);
    for arguments in
        [&["disasm", "d.npub"][..], &["disasm", "d.npub", "--json"], &["--help"], &["completions", "zsh"]]
    {
        let mut child =
            npukit.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Closed before the first byte, or after one line: both end the reading.
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        assert!(output.stderr.is_empty(), "{arguments:?}: {output:?}");
    }
    let mut child = npukit.command(&["disasm", "d.npub"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("0x000000"));
    assert!(child.wait().unwrap().success());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_a_failure() {
    let npukit = Npukit::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        npukit.command(&["completions", "bash"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("standard output can't be written"),
        "{output:?}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_is_not_mixed_with_the_report() {
    let npukit = Npukit::new();
    let ran = npukit.run(&["build", &digits(), "-o", "/dev/stdout", "--json"]);
    assert_eq!((ran.status, &ran.object()["error"]["kind"]), (2, &"unwritable".into()), "{ran:?}");
    let report = std::fs::File::create(npukit.folder().join("report")).unwrap();
    let status = npukit.command(&["build", &digits(), "-o", "report"]).stdout(report).status().unwrap();
    assert_eq!(status.code(), Some(2));
    let nowhere = Stdio::null();
    let status = npukit.command(&["build", &digits(), "-o", "/dev/null"]).stdout(nowhere).status().unwrap();
    assert!(status.success());
}

#[test]
fn errors_are_objects_too() {
    let npukit = Npukit::new();
    for arguments in [
        &["build", "none.tflite"][..],
        &["verify", "none.tflite"],
        &["run", "none.npub"],
        &["inspect", "none.npub"],
        &["disasm", "none.npub"],
        &["build", "--no-such-option"],
        &["toolchain", "explode"],
        &["completions", "cobol"],
    ] {
        let report = npukit.json(2, arguments);
        assert!(report["error"]["message"].is_string() && report["error"]["kind"].is_string(), "{report}");
        assert_eq!(report["exit_status"], 2);
    }
}

#[test]
fn completions_know_the_commands() {
    let npukit = Npukit::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = npukit.run(&["completions", shell]);
        assert_eq!(ran.status, 0, "{ran:?}");
        for word in ["verify", "accel", "emit-rust"] {
            assert!(ran.stdout.contains(word), "{shell}: no {word}");
        }
        let report = npukit.json(0, &["completions", shell]);
        assert_eq!(report["script"], ran.stdout.as_str());
    }
}

#[test]
fn help_and_version_are_answers() {
    let npukit = Npukit::new();
    let version = npukit.run(&["--version"]);
    assert_eq!((version.status, version.stdout), (0, format!("npukit {}\n", env!("CARGO_PKG_VERSION"))));
    for command in ["build", "verify", "run", "inspect", "disasm", "toolchain", "completions"] {
        let help = npukit.run(&[command, "--help"]);
        assert_eq!(help.status, 0);
        assert!(help.stdout.contains("--json"), "{help:?}");
    }
    let bare = npukit.run(&[]);
    assert_eq!(bare.status, 2);
    assert!(bare.stderr.contains("Usage"), "{bare:?}");
}

/// A compiler that says when it has begun, and then takes its time.
#[cfg(unix)]
const SLOW_VELA: &str = "#!/bin/sh\ncase \"$1\" in\n--version) echo 5.2.0; exit 0;;\n--list-configs) exit 0;;\nesac\n\
                         touch \"$STARTED\"\nexec sleep 5\n";

#[test]
#[cfg(unix)]
fn an_interrupted_build_leaves_what_was_there() {
    use std::process::Command;
    use std::time::{Duration, Instant};

    let npukit = Npukit::new();
    npukit.file("slow-vela.txt", SLOW_VELA.as_bytes());
    // Written by another program: one that this process has open for writing can't be run.
    let mut install = Command::new("install");
    install.args(["-m", "755", "slow-vela.txt", "slow-vela"]).current_dir(npukit.folder());
    assert!(install.status().unwrap().success());
    npukit.file("d.npub", b"before");
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(npukit.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let started = tempfile::tempdir().unwrap();
    let started = started.path().join("started");
    let mut child = npukit
        .command(&["build", &digits(), "--vela", "./slow-vela", "-o", "d.npub"])
        .env("STARTED", &started)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !started.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the compiler was started");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(std::fs::read(npukit.folder().join("d.npub")).unwrap(), b"before");
    assert_eq!(names(), before);
}

/// docs/cli.md has every option of the commands it describes, and no other.
#[test]
fn the_documentation_knows_the_options() {
    let npukit = Npukit::new();
    let text = std::fs::read_to_string(npukit_testkit::repository().join("docs/cli.md")).unwrap();
    let options = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'));
        words.filter(|word| word.starts_with("--") && word.len() > 3).map(str::to_owned).collect()
    };
    let documented = options(&text);
    let mut known = std::collections::BTreeSet::new();
    let help = npukit.run(&["--help"]).stdout;
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        // Described in vip.md; help repeats the others.
        .filter(|command| !["admit", "tables", "nbg", "help"].contains(command))
        .collect();
    assert!(commands.contains(&"build") && commands.contains(&"completions"), "{help}");
    for command in commands {
        known.append(&mut options(&npukit.run(&[command, "--help"]).stdout));
    }
    known.remove("--help");
    assert_eq!(documented, known);
}
