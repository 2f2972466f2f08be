//! Files that never end, or are none: refused before they fill memory.
#![cfg(unix)]

mod support;

use std::process::Stdio;

use npub::{Accel, BlobBuilder};
use npukit_vela::npy::{Array, Dtype};
use support::{Npukit, Ran};

/// Runs with memory for what is meant and no more, and what a shell script writes as standard input.
fn bounded(npukit: &Npukit, feed: &str, arguments: &[&str]) -> Ran {
    let script = format!("ulimit -v 2000000; {feed} | \"$@\"");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_npukit")]);
    command.args(arguments).current_dir(npukit.folder()).stdin(Stdio::null());
    Ran::new(&command.output().unwrap())
}

fn blob() -> Vec<u8> {
    let mut builder = BlobBuilder::new(Accel::u55(64));
    builder.commands(&[0xFFFF_0000]);
    builder.build().unwrap()
}

#[test]
fn devices_are_no_files() {
    let npukit = Npukit::new();
    npukit.file("d.npub", &blob());
    npukit.json(0, &["build", &support::digits(), "-o", "n.npub"]);
    let image = Array::new(Dtype::Int8, vec![1, 8, 8, 1], vec![0; 64]).unwrap();
    npukit.file("x.npy", &image.to_npy());
    let zero = "/dev/zero";
    for arguments in [
        &["inspect", zero][..],
        &["profile", zero],
        &["run", zero],
        &["disasm", zero],
        &["bench", zero],
        &["build", zero],
        &["verify", zero],
        &["admit", "--ovxlib", "1.1.88", zero],
        &["nbg", "compare", zero, zero],
        &["profile", "d.npub", "--vela-config", zero],
        &["profile", &support::digits(), "--vela-config", zero],
        &["build", &support::digits(), "--vela-config", zero],
        &["run", "n.npub", "--input", zero],
        &["run", "n.npub", "--input", "x.npy", "--labels", zero],
    ] {
        let ran = bounded(&npukit, "true", arguments);
        assert_eq!((ran.status, ran.stdout.as_str()), (2, ""), "{arguments:?}: {ran:?}");
        assert!(
            ran.stderr.contains(zero) && ran.stderr.contains("neither a file nor a pipe"),
            "{arguments:?}: {ran:?}"
        );
    }
}

#[test]
fn a_pipe_has_to_end() {
    let npukit = Npukit::new();
    npukit.file("d.npub", &blob());
    let endless = bounded(&npukit, "yes", &["profile", "d.npub", "--vela-config", "/dev/stdin"]);
    assert_eq!(endless.status, 2, "{endless:?}");
    assert!(endless.stderr.contains("/dev/stdin: it has more bytes, and at most 16777216"), "{endless:?}");
    let ended = bounded(&npukit, "cat d.npub", &["inspect", "/dev/stdin"]);
    assert!(ended.status == 0 && ended.stdout.contains("ethos-u55-64"), "{ended:?}");
}

/// A configuration is read once, for Vela and for the clocks.
#[test]
fn a_configuration_may_come_through_a_pipe() {
    let npukit = Npukit::new();
    let own = "[System_Config.Board]\ncore_clock=250e6\naxi0_port=Sram\naxi1_port=OffChipFlash\nSram_clock_scale=1\n\
        OffChipFlash_clock_scale=0.125\n\
        [Memory_Mode.Mine]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
    npukit.file("own.ini", own.as_bytes());
    let digits = support::digits();
    let ran = bounded(&npukit, "cat own.ini", &["profile", &digits, "--vela-config", "/dev/stdin", "--json"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(ran.object()["core_clock_hz"], 250e6);
}
