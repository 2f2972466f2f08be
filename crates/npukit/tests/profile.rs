//! `npukit profile`: what it prints, what scripts and trace viewers read, and what it refuses.

mod support;

use std::fs;
use std::path::Path;

use ethosu_model::clock::{System, simulate};
use ethosu_model::{Limits, Program};
use npub::{Accel, Blob, BlobBuilder};
use npukit::{Accelerator, BuildOptions, Toolchain, build, clock};
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
    let own = "[System_Config.Board]\ncore_clock=200e6\naxi0_port=Sram\naxi1_port=OffChipFlash\nSram_clock_scale=1\n\
        OffChipFlash_clock_scale=1\n[Memory_Mode.Sram_Only]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
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
    let ran = npukit.run(&["profile", "d.npub", "--system-config", "Nix"]);
    assert!(!ran.stderr.contains("Ethos_U65") && !ran.stderr.contains("Ethos_U85"), "{ran:?}");
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

/// As `inspect` has it: what a network can't run with, it takes no time with.
#[test]
fn systems_that_a_network_cannot_run_in() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "-o", "55.npub"]);
    npukit.json(0, &["build", &digits(), "--accel", "ethos-u65-256", "-o", "65.npub"]);
    let flash = "puts the arena into OffChipFlash, which the NPU can't write";
    let both = |file: &str, status: i32, options: &[&str], words: &[&str]| {
        npukit.refused(2, &[&["profile", file], options].concat(), words);
        let inspected = npukit.run(&[&["inspect", file], options].concat());
        assert_eq!(inspected.status, status, "{options:?}: {inspected:?}");
        for word in words {
            let all = format!("{}{}", inspected.stdout, inspected.stderr);
            assert!(all.contains(word), "{options:?} doesn't say {word:?}: {inspected:?}");
        }
    };
    let embedded = ["--memory-mode", "Dedicated_Sram", "--system-config", "Ethos_U65_Embedded"];
    both("65.npub", 1, &embedded, &["65.npub", flash]);
    both("55.npub", 1, &["--memory-mode", "Dedicated_Sram"], &["55.npub", "Dedicated_Sram", flash]);
    for other in ["Ethos_U65_High_End", "Ethos_U85_SYS_DRAM_Low"] {
        let words = ["55.npub", "it is for ethos-u55-256", other, "Ethos_U55_Deep_Embedded"];
        both("55.npub", 2, &["--system-config", other], &words);
    }
    let model = ["profile", &digits(), "--system-config", "Ethos_U65_High_End"];
    npukit.refused(2, &model, &["it is for ethos-u55-256", "Ethos_U65_High_End"]);
    // The default memory mode doesn't go with every system configuration; the advice names what does, or what does with it.
    let advice = npukit.json(2, &["profile", "65.npub", "--system-config", "Ethos_U65_Embedded"]);
    let advice = advice["error"]["advice"].as_str().unwrap().to_owned();
    assert!(
        advice.contains("Dedicated_Sram_384KB") || advice.contains("Ethos_U65_Client_Server"),
        "{advice}"
    );
    // An own file is judged by what it says.
    let own = "[System_Config.Ethos_U55_High_End_Embedded]\ncore_clock=1e9\naxi0_port=Sram\naxi1_port=Dram\n\
        Sram_clock_scale=1\nDram_clock_scale=0.5\n[Memory_Mode.Shared_Sram]\nconst_mem_area=Axi1\narena_mem_area=Axi1\n";
    npukit.file("own.ini", own.as_bytes());
    let own = ["profile", "55.npub", "--vela-config", "own.ini"];
    npukit.refused(2, &own, &["55.npub", "Shared_Sram", "AXI1", "only reads"]);
}

/// Vela refuses each of these, or takes it for something else than what is meant.
#[test]
fn nonsense_in_an_own_configuration() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "-o", "d.npub"]);
    let own = "[System_Config.B]\ncore_clock=200e6\naxi0_port=Sram\naxi1_port=OffChipFlash\nSram_clock_scale=1\n\
        OffChipFlash_clock_scale=0.25\n[Memory_Mode.M]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
    npukit.file("own.ini", own.as_bytes());
    let arguments =
        ["profile", "d.npub", "--vela-config", "own.ini", "--system-config", "B", "--memory-mode", "M"];
    let figures = npukit.json(0, &arguments);
    // The only ones that it has need no names.
    assert_eq!(npukit.json(0, &arguments[..4]), figures);
    for (from, to, words) in [
        ("axi1_port=OffChipFlash", "axi1_port=Bogus", ["[System_Config.B] axi1_port=Bogus", "OnChipFlash"]),
        ("axi1_port=OffChipFlash\n", "", ["[System_Config.B] has no axi1_port", "OffChipFlash"]),
        (
            "arena_mem_area=Axi0",
            "arena_mem_area=Axi1",
            ["arena_mem_area=Axi1 is OffChipFlash", "Sram or Dram"],
        ),
        ("Sram_clock", "Srm_clock", ["Srm_clock_scale=1: Vela knows no such key", "Sram_clock_scale"]),
        ("[Memory", "[System_Config.B]\n[Memory", ["section [System_Config.B]", "a second time"]),
        ("=0.25", "=1e-300", ["OffChipFlash_clock_scale=1e-300", "from 0.0001 to 100"]),
        ("=200e6", "=1e300", ["core_clock=1e300", "a clock in hertz from 10000 to 10000000000"]),
    ] {
        npukit.file("own.ini", own.replacen(from, to, 1).as_bytes());
        npukit.refused(2, &arguments, &[&["own.ini"], &words[..]].concat());
        assert_eq!(npukit.json(2, &arguments)["error"]["kind"], "configuration");
    }
    npukit.file("own.ini", b"");
    let empty = ["profile", "d.npub", "--vela-config", "own.ini"];
    npukit.refused(2, &empty, &["own.ini", "has no section [System_Config.NAME]"]);
    npukit.refused(
        2,
        &["profile", &digits(), "--vela-config", "own.ini"],
        &["own.ini", "[System_Config.NAME]"],
    );
}

/// What only says how Vela compiles is no use for what it has compiled.
#[test]
fn options_of_a_compilation_that_was_made() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "-o", "d.npub"]);
    for (option, value) in [("--arena-cache-size", "10"), ("--io", "separate"), ("--optimise", "Size")] {
        for command in ["profile", "bench"] {
            let words = ["d.npub", option, "compiled already", "give the .tflite"];
            npukit.refused(2, &[command, "d.npub", option, value], &words);
        }
    }
    npukit.refused(2, &["bench", "d.npub", "--memory-mode", "Sram_Only"], &["d.npub", "--memory-mode"]);
    npukit.refused(2, &["bench", "d.npub", "--accel", "ethos-u55-32"], &["d.npub", "not for ethos-u55-32"]);
}

/// What Vela itself writes has the same figures as the `.npub` made of it.
#[test]
fn networks_that_vela_compiled() {
    let npukit = Npukit::new();
    let (vela, _environment) = Toolchain::from_environment().unwrap().vela(&mut Silent).unwrap();
    for accelerator in [Accelerator::U55_128, Accelerator::U65_256, Accelerator::U85_256] {
        let options = BuildOptions::new(accelerator);
        let built = build(&vela, &fs::read(digits()).unwrap(), &options, &mut Silent).unwrap();
        npukit.file("d.npub", &built.npub);
        npukit.file("d_vela.tflite", &built.compiled.output);
        let blob = npukit.json(0, &["profile", "d.npub"]);
        let report = npukit.json(0, &["profile", "d_vela.tflite", "--trace", "t.json"]);
        let [program] = report["programs"].as_array().unwrap().as_slice() else { panic!("{report}") };
        assert_eq!((&program["index"], &report["cpu_operator_count"]), (&0.into(), &0.into()));
        for key in ["accel", "system_config", "memory_mode", "total_cycles", "beats", "steps"] {
            assert_eq!(program[key], blob[key], "{accelerator}: {key}");
        }
        let trace = fs::read(npukit.folder().join("t.json")).unwrap();
        let trace: Value = serde_json::from_slice(&trace).unwrap();
        let name = format!("d_vela.tflite, operator 0 on {accelerator}, clock sim");
        assert_eq!(trace["traceEvents"][0]["args"]["name"], name);
        let text = npukit.run(&["profile", "d_vela.tflite"]);
        assert!(text.status == 0 && text.stdout.contains("d_vela.tflite, operator 0 on "), "{text:?}");
    }
    npukit.refused(2, &["profile", "d_vela.tflite", "--accel", "ethos-u55-32"], &["not for ethos-u55-32"]);
    npukit.refused(2, &["profile", "d_vela.tflite", "--memory-mode", "Shared_Sram"], &["Shared_Sram"]);
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
    npukit.refused(2, &["profile", "d.npub", "--trace", "-"], &["-: can't be written", "standard output"]);
    assert!(!npukit.exists("-"));
    if Path::new("/dev/stdout").exists() {
        npukit.refused(
            2,
            &["profile", "d.npub", "--trace", "/dev/stdout"],
            &["/dev/stdout", "it is standard output"],
        );
        let digits = digits();
        for output in ["-", "/dev/stdout"] {
            npukit.refused(2, &["build", &digits, "-o", output], &[output, "it is standard output"]);
        }
        assert!(!npukit.exists("-"));
    }
    if Path::new("/proc/self").exists() {
        npukit.refused(
            2,
            &["profile", "d.npub", "--trace", "/proc/x.json"],
            &["the folder /proc takes no new file"],
        );
        // Another pipe than standard output's takes it.
        let script = "exec 3>&1; \"$0\" profile d.npub --trace /dev/fd/3 >report.txt";
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_npukit")]).current_dir(npukit.folder());
        let ran = Ran::new(&command.output().unwrap());
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.object()["traceEvents"].is_array(), "{ran:?}");
    }
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
