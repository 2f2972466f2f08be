//! `npukit profile`: what it prints, what scripts and trace viewers read, and what it refuses.

mod support;

use std::fs;
use std::path::Path;

use ethosu_model::clock::{System, simulate};
use ethosu_model::{Limits, Program};
use npub::{Accel, Blob, BlobBuilder};
use npukit::{Accelerator, Toolchain, clock};
use npukit_vela::compile::default_names;
use npukit_vela::progress::Silent;
use serde_json::Value;
use support::{Npukit, Ran, digits};

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn steps(report: &Value) -> &[Value] {
    report["steps"].as_array().unwrap()
}

#[test]
fn the_figures_are_the_clocks() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "--accel", "ethos-u55-128", "-o", "d.npub"]);
    let report = npukit.json(0, &["profile", "d.npub"]);
    let bytes = fs::read(npukit.folder().join("d.npub")).unwrap();
    let blob = Blob::parse(&bytes).unwrap();
    let accelerator = Accelerator::U55_128;
    let program = Program::decode(blob.command_stream().bytes(), accelerator, &Limits::default()).unwrap();
    let known = simulate(&program, &System::usual(accelerator)).unwrap();

    assert_eq!((&report["accel"], &report["clock"]), (&"ethos-u55-128".into(), &"sim".into()));
    assert_eq!(
        (&report["system_config"], &report["memory_mode"]),
        (&"Ethos_U55_High_End_Embedded".into(), &"Shared_Sram".into())
    );
    assert_eq!((number(&report, "total_cycles"), number(&report, "macs")), (known.total(), known.macs()));
    assert_eq!(report["core_clock_hz"], 500e6);
    assert!((report["milliseconds"].as_f64().unwrap() - known.total() as f64 / 500e3).abs() < 1e-9);
    let possible = known.total() as f64 * 128.0;
    assert!((report["mac_utilisation"].as_f64().unwrap() - known.macs() as f64 / possible).abs() < 1e-12);
    assert_eq!(number(&report, "beat_bytes"), 8);
    assert_eq!((&report["vela_estimated_cycles"], &report["trace"]), (&Value::Null, &Value::Null));

    // The parts are those of the clock, and add up.
    assert_eq!(steps(&report).len(), known.costs.len());
    for (step, cost) in steps(&report).iter().zip(&known.costs) {
        assert_eq!((number(step, "offset"), number(step, "start")), (cost.offset as u64, cost.start));
        assert_eq!((number(step, "cycles"), &step["command"]), (cost.cycles, &cost.name.into()));
        assert_eq!(number(step, "weight_decoder_cycles"), cost.weight_cycles);
        assert_eq!(number(step, "dma_cycles"), cost.transfer_cycles);
        assert!(
            (step["percent"].as_f64().unwrap() - 100.0 * cost.cycles as f64 / known.total() as f64).abs()
                < 1e-9
        );
        assert_eq!(step["layer"], Value::Null, "a blob has no names");
    }
    for port in ["axi0_read", "axi0_written", "axi1_read", "axi1_written"] {
        let sum: u64 = steps(&report).iter().map(|step| number(&step["beats"], port)).sum();
        assert_eq!(sum + number(&report["command_beats"], port), number(&report["beats"], port), "{port}");
    }
    assert!(number(&report["beats"], "axi1_read") > 0 && number(&report["beats"], "axi1_written") == 0);

    // The network itself gives the same, and names.
    let named = npukit.json(0, &["profile", &digits(), "--accel", "ethos-u55-128"]);
    assert_eq!(named["total_cycles"], report["total_cycles"]);
    let layers: Vec<&str> = steps(&named).iter().filter_map(|step| step["layer"].as_str()).collect();
    assert_eq!(layers[0], "0_conv");
    assert!(layers.contains(&"5_dense") && layers.contains(&"probabilities"), "{layers:?}");
    assert!(number(&named, "vela_estimated_cycles") > 1000);
}

#[test]
fn the_compilers_clock_says_what_vela_says() {
    let npukit = Npukit::new();
    for accel in ["ethos-u55-64", "ethos-u65-512", "ethos-u85-256"] {
        let report = npukit.json(0, &["profile", &digits(), "--clock", "compiler", "--accel", accel]);
        let (found, wanted) = (number(&report, "total_cycles"), number(&report, "vela_estimated_cycles"));
        // Whole networks are within 3 and 7 %; in this one, steps of a few elements have a large share.
        let difference = (found as f64 - wanted as f64) / wanted as f64;
        assert!(difference.abs() < 0.1, "{accel}: {found} cycles, Vela says {wanted}");
        assert!(report["accuracy"].as_str().unwrap().contains("what Vela believes"), "{report}");
        assert!(steps(&report).iter().all(|step| step["layer"].is_string()), "{accel}: {report}");
    }
}

#[test]
fn people_read_a_table() {
    let npukit = Npukit::new();
    let ran = npukit.run(&["profile", &digits(), "--accel", "ethos-u85-256"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let report = npukit.json(0, &["profile", &digits(), "--accel", "ethos-u85-256"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].contains("digits_int8.tflite on ethos-u85-256: ")
            && lines[0].ends_with("at 1000 MHz (clock sim)"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("it ranks, it doesn't predict"), "{ran:?}");
    let head = lines.iter().position(|line| line.trim_start().starts_with("offset")).unwrap();
    for word in ["AXI_SRAM rd", "AXI_EXT rd", "weights", "DMA", "bound by", "layer"] {
        assert!(lines[head].contains(word), "{word}: {}", lines[head]);
    }
    assert_eq!(lines.len() - head - 1, steps(&report).len(), "a row for each command");
    // Numbers end under the names of their columns.
    let end = lines[head].find("cycles").unwrap() + "cycles".len();
    for (line, step) in lines[head + 1..].iter().zip(steps(&report)) {
        assert!(line[..end].ends_with(&format!(" {}", step["cycles"])), "{line}");
        assert!(line.contains(step["command"].as_str().unwrap()), "{line}");
    }
    assert!(!ran.stdout.contains('\x1b'), "{ran:?}");
}

#[test]
fn traces_are_what_viewers_read() {
    let npukit = Npukit::new();
    npukit.file("t.json", b"something older");
    let report = npukit.json(0, &["profile", &digits(), "--accel", "ethos-u65-256", "--trace", "t.json"]);
    assert_eq!(report["trace"], "t.json");
    let trace: Value = serde_json::from_slice(&fs::read(npukit.folder().join("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let (names, slices): (Vec<&Value>, Vec<&Value>) = events.iter().partition(|event| event["ph"] == "M");
    assert_eq!(names.len(), 3);
    assert_eq!(names[0]["args"]["name"], "digits_int8.tflite on ethos-u65-256, clock sim");
    assert_eq!(slices.len(), steps(&report).len());
    let clock = report["core_clock_hz"].as_f64().unwrap();
    let total = number(&report, "total_cycles") as f64 / clock * 1e6;
    let mut ends = [0.0; 3];
    for (slice, step) in slices.iter().zip(steps(&report)) {
        assert_eq!(slice["ph"], "X");
        let (start, duration) = (slice["ts"].as_f64().unwrap(), slice["dur"].as_f64().unwrap());
        assert!((start - number(step, "start") as f64 / clock * 1e6).abs() < 1e-6, "{slice}");
        assert!((duration - number(step, "cycles") as f64 / clock * 1e6).abs() < 1e-6, "{slice}");
        // What shares a track doesn't overlap, and nothing lasts longer than the whole.
        let track = number(slice, "tid") as usize;
        assert_eq!(track, if step["command"] == "DMA" { 2 } else { 1 });
        assert!(start + 1e-9 >= ends[track] && start + duration <= total + 1e-6, "{slice}");
        ends[track] = start + duration;
        assert_eq!(&slice["args"], step);
        assert_eq!(slice["name"], *step["layer"].as_str().or(step["command"].as_str()).unwrap());
    }
    assert!(ends[1] > 0.0 && ends[2] > 0.0, "both tracks are used");
    // Nothing is left beside it.
    assert_eq!(fs::read_dir(npukit.folder()).unwrap().count(), 1);
}

/// The figures that a blob is profiled with are those of Vela's file.
#[test]
fn defaults_are_velas() {
    let (vela, _environment) = Toolchain::from_environment().unwrap().vela(&mut Silent).unwrap();
    let file = vela.configurations().unwrap();
    for accelerator in Accelerator::ALL {
        let (system_config, memory_mode) = default_names(accelerator.product());
        let found = clock::system(&file, system_config, memory_mode).unwrap();
        assert_eq!(found, System::usual(accelerator), "{accelerator}");
    }
}

#[test]
fn configurations_are_named() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "-o", "d.npub"]);
    let flash = npukit.json(0, &["profile", "d.npub"]);
    let sram = npukit.json(0, &["profile", "d.npub", "--memory-mode", "Sram_Only"]);
    assert_eq!(number(&sram["beats"], "axi1_read"), 0);
    assert!(number(&sram, "total_cycles") < number(&flash, "total_cycles"), "SRAM is faster than flash");
    // By a file of one's own, with a name of one's own.
    let own = "[System_Config.Board]\ncore_clock=200e6\naxi0_port=Sram\naxi1_port=OffChipFlash\n\
        [Memory_Mode.Sram_Only]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
    npukit.file("own.ini", own.as_bytes());
    let board = [
        "profile",
        "d.npub",
        "--vela-config",
        "own.ini",
        "--system-config",
        "Board",
        "--memory-mode",
        "Sram_Only",
    ];
    let board = npukit.json(0, &board);
    assert_eq!((&board["system_config"], &board["core_clock_hz"]), (&"Board".into(), &200e6.into()));
    assert_eq!(board["beats"], flash["beats"], "beats don't depend on the memory's speed");
    assert!(number(&board, "total_cycles") < number(&flash, "total_cycles"));

    npukit.refused(
        2,
        &["profile", "d.npub", "--memory-mode", "Dedicated_Sram"],
        &["d.npub", "Dedicated_Sram", "Sram_Only, Shared_Sram"],
    );
    npukit.refused(
        2,
        &["profile", "d.npub", "--system-config", "Nix"],
        &["[System_Config.Nix]", "Ethos_U55_Deep_Embedded"],
    );
    let missing = ["profile", "d.npub", "--vela-config", "own.ini", "--system-config", "Other"];
    npukit.refused(2, &missing, &["own.ini", "[System_Config.Other]", "Board"]);
    npukit.file("broken.ini", b"core_clock=1");
    npukit.refused(2, &["profile", "d.npub", "--vela-config", "broken.ini"], &["broken.ini", "line 1"]);
    npukit.refused(2, &["profile", "d.npub", "--vela-config", "none.ini"], &["none.ini"]);
    npukit.file("slow.ini", own.replace("core_clock=200e6\n", "").as_bytes());
    let slow = [
        "profile",
        "d.npub",
        "--vela-config",
        "slow.ini",
        "--system-config",
        "Board",
        "--memory-mode",
        "Sram_Only",
    ];
    npukit.refused(2, &slow, &["slow.ini", "core_clock", "hertz"]);
}

#[test]
fn what_cannot_be_profiled() {
    let npukit = Npukit::new();
    npukit.refused(2, &["profile", "none.npub"], &["none.npub"]);
    assert_eq!(npukit.json(2, &["profile", "none.npub"])["error"]["kind"], "no_such_file");
    npukit.file("x.npub", b"NPU1 and no more");
    assert_eq!(npukit.json(2, &["profile", "x.npub"])["error"]["kind"], "not_an_npub");
    npukit.file("x.tflite", b"something else");
    assert_eq!(npukit.json(2, &["profile", "x.tflite"])["error"]["kind"], "not_a_tflite");
    let blob = |accel, words: &[u32]| {
        let mut builder = BlobBuilder::new(accel);
        builder.commands(words);
        builder.build().unwrap()
    };
    npukit.file("unknown.npub", &blob(Accel::default(), &[0xFFFF_0000]));
    npukit.refused(2, &["profile", "unknown.npub"], &["unknown.npub", "which accelerator", "--accel"]);
    let told = npukit.json(0, &["profile", "unknown.npub", "--accel", "ethos-u65-512"]);
    assert_eq!(told["accel"], "ethos-u65-512");
    npukit.file("other.npub", &blob(Accel::u55(64), &[0xFFFF_0000]));
    let other = ["profile", "other.npub", "--accel", "ethos-u55-32"];
    npukit.refused(2, &other, &["other.npub", "ethos-u55-64", "not for ethos-u55-32"]);
    npukit.file("nonsense.npub", &blob(Accel::u55(64), &[0x1234_0AFF]));
    assert_eq!(npukit.json(2, &["profile", "nonsense.npub"])["error"]["kind"], "not_executable");
    // Nothing to do takes no time, and divides nothing by it.
    npukit.file("empty.npub", &blob(Accel::u55(64), &[0xFFFF_0000]));
    let empty = npukit.json(0, &["profile", "empty.npub"]);
    assert_eq!((number(&empty, "total_cycles"), &empty["mac_utilisation"]), (0, &0.0.into()));
    npukit.refused(2, &["profile", "empty.npub", "--clock", "wall"], &["wall", "sim", "compiler"]);
}

#[test]
fn traces_that_cannot_be_written() {
    let npukit = Npukit::new();
    let mut builder = BlobBuilder::new(Accel::u55(64));
    builder.commands(&[0xFFFF_0000]);
    let blob = builder.build().unwrap();
    npukit.file("d.npub", &blob);
    fs::create_dir(npukit.folder().join("taken")).unwrap();
    npukit.refused(2, &["profile", "d.npub", "--trace", "no/such/t.json"], &["t.json", "no folder no/such"]);
    npukit.refused(2, &["profile", "d.npub", "--trace", "taken"], &["taken", "is a folder"]);
    npukit.refused(2, &["profile", "d.npub", "--trace", "./d.npub"], &["d.npub", "is read and written"]);
    assert_eq!(fs::read(npukit.folder().join("d.npub")).unwrap(), blob);
    // Named before anything is compiled: a compiler that isn't there would be the next error.
    let digits = digits();
    let early = ["profile", &digits, "--vela", "/nowhere/vela", "--trace", "taken"];
    npukit.refused(2, &early, &["taken", "is a folder"]);
    if Path::new("/dev/full").exists() {
        npukit.refused(2, &["profile", "d.npub", "--trace", "/dev/full"], &["/dev/full", "can't be written"]);
        let mut command = npukit.command(&["profile", "d.npub"]);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = Ran::new(&command.stdout(full).output().unwrap());
        assert!(ran.status == 2 && ran.stderr.contains("standard output can't be written"), "{ran:?}");
    }
}

/// Published totals have a test of their own; here every network and product goes through the command.
#[test]
fn real_networks() {
    let npukit = Npukit::new();
    for name in ["kws_ref_model.tflite", "vww_96_int8.tflite"] {
        let Some(model) = npukit_testkit::model(name) else { continue };
        let model = model.to_str().unwrap();
        let cycles = ["ethos-u55-32", "ethos-u55-256", "ethos-u65-512", "ethos-u85-2048"].map(|accel| {
            let report = npukit.json(0, &["profile", model, "--accel", accel]);
            let utilisation = report["mac_utilisation"].as_f64().unwrap();
            assert!((0.005..1.0).contains(&utilisation), "{name} on {accel}: {utilisation}");
            number(&report, "total_cycles")
        });
        assert!(cycles.is_sorted_by(|a, b| a > b), "more MACs, fewer cycles: {cycles:?}");
    }
}
