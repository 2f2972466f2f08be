//! What the commands answer: the fields that scripts rely on, and files that other programs read.

mod support;

use std::fs;
use std::process::Command;

use npub::Blob;
use npukit_vela::npy::{Array, Dtype};
use serde_json::Value;
use support::{Npukit, digits, example, gesture};

fn keys(value: &Value, expected: &[&str]) {
    for key in expected {
        assert!(value.get(key).is_some(), "no {key:?} in {value}");
    }
}

#[test]
fn verify_has_its_fields() {
    let report = Npukit::new().json(
        0,
        &[
            "verify",
            &digits(),
            "--samples",
            "40",
            "--seed",
            "7",
            "--input",
            &example("digits/samples.npy"),
            "--labels",
            &example("digits/classes.txt"),
        ],
    );
    assert_eq!(report["model"], digits());
    assert_eq!((&report["accel"], &report["engine"]), (&"ethos-u55-256".into(), &"fast".into()));
    assert_eq!(
        (&report["samples"], &report["samples_given"], &report["seed"]),
        (&60.into(), &20.into(), &7.into())
    );
    assert_eq!((&report["reference"], &report["bit_exact"]), (&"tflm".into(), &true.into()));
    assert_eq!(report["known_defects"], Value::Array(Vec::new()));
    for outputs in [&report["outputs"], &report["other_reference"]["outputs"]] {
        assert_eq!(outputs[0]["name"], "probabilities");
        assert_eq!(outputs[0]["elements"], 600);
        keys(&outputs[0], &["mismatches", "max_abs_diff", "first_mismatch", "distinct_values"]);
    }
    assert_eq!(report["outputs"][0]["mismatches"], 0);
    assert!(report["outputs"][0]["distinct_values"].as_u64().unwrap() > 20);
    keys(&report["other_reference"], &["reference", "bit_exact"]);

    // The samples are what their labels say.
    let expected = fs::read_to_string(example("digits/samples_labels.txt")).unwrap();
    let classified = report["classified"].as_array().unwrap();
    assert_eq!(classified.len(), 20);
    for (one, expected) in classified.iter().zip(expected.lines()) {
        assert_eq!(one["class"].as_u64().map(|class| class.to_string()).as_deref(), Some(expected), "{one}");
        assert!(one["score"].as_f64().unwrap() > 0.5, "{one}");
    }
}

#[test]
fn verify_speaks_to_people() {
    let ran = Npukit::new().run(&[
        "verify",
        &gesture(),
        "--samples",
        "12",
        "--engine",
        "reference",
        "--io",
        "arena",
    ]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stdout.contains("bit exact with TFLM"), "{ran:?}");
    assert!(ran.stdout.contains("12 inputs (12 drawn with seed 1)"), "{ran:?}");
    assert!(ran.stdout.contains("reference engine"), "{ran:?}");
    // Nothing that only a terminal understands.
    assert!(
        !ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b') && !ran.stderr.contains('\r'),
        "{ran:?}"
    );
}

#[test]
fn a_reference_can_be_named() {
    let npukit = Npukit::new();
    for (against, reference, other) in [("litert", "litert-ref", "tflm"), ("tflm", "tflm", "litert-ref")] {
        let arguments = ["verify", &digits(), "--samples", "4", "--against", against];
        let ran = npukit.run(&[&arguments[..], &["--json"]].concat());
        let report = ran.object();
        assert_eq!(report["reference"], reference);
        assert_eq!(report["other_reference"]["reference"], other);
        assert_eq!(ran.status, i32::from(report["bit_exact"] == false));
    }
}

#[test]
fn where_litert_rounds_otherwise_the_layer_is_named() {
    let report = Npukit::new().json(1, &["verify", &gesture(), "--samples", "60", "--against", "litert"]);
    assert_eq!(report["bit_exact"], false);
    let output = &report["outputs"][0];
    assert!(output["mismatches"].as_u64().unwrap() > 0);
    keys(&output["first_mismatch"], &["sample", "index", "npu", "reference"]);
    assert_eq!(report["other_reference"]["bit_exact"], true);
    assert_eq!(report["other_reference"]["disagreement"]["operator"], "FULLY_CONNECTED");
}

#[test]
fn build_writes_a_blob_that_everything_reads() {
    let npukit = Npukit::new();
    let report =
        npukit.json(0, &["build", &digits(), "--accel", "ethos-u55-128", "--memory-mode", "Sram_Only"]);
    keys(&report, &["model", "io", "memory", "inputs", "outputs", "notes", "known_defects", "vela_version"]);
    assert_eq!(report["output"], "digits_int8.npub");
    assert_eq!((&report["accel"], &report["memory_mode"]), (&"ethos-u55-128".into(), &"Sram_Only".into()));
    let blob = fs::read(npukit.folder().join("digits_int8.npub")).unwrap();
    assert_eq!(Blob::parse(&blob).unwrap().accel(), npub::Accel::u55(128));
    assert_eq!(report["memory"]["flash_bytes"], blob.len());
    assert_eq!(fs::read_dir(npukit.folder()).unwrap().count(), 1, "one file");

    let seen = npukit.json(0, &["inspect", "digits_int8.npub"]);
    assert_eq!((&seen["kind"], &seen["accel"]), (&"npub".into(), &"ethos-u55-128".into()));
    assert_eq!(seen["memory"], report["memory"]);
    assert_eq!(seen["tensors"][0]["kind"], "input");
    assert_eq!(seen["tensors"][0]["shape"], serde_json::json!([1, 8, 8, 1]));
    assert_eq!((&seen["header"]["accel"], &seen["framing"]), (&128.into(), &"bare".into()));
    assert_eq!(seen["warnings"], Value::Array(Vec::new()));
    let text = npukit.run(&["inspect", "digits_int8.npub"]).stdout;
    for word in ["ethos-u55-128", "probabilities", "flash", "arena", "region 0", "zero point -128"] {
        assert!(text.contains(word), "{word:?} isn't in {text}");
    }

    let commands = npukit.json(0, &["disasm", "digits_int8.npub"]);
    let instructions = commands["instructions"].as_array().unwrap();
    let words: usize = instructions.iter().map(|one| one["words"].as_array().unwrap().len()).sum();
    assert_eq!(commands["command_bytes"], 4 * words);
    assert_eq!(instructions.last().unwrap()["command"], "NPU_OP_STOP");
    let text = npukit.run(&["disasm", "digits_int8.npub"]).stdout;
    assert_eq!(text.lines().count(), instructions.len());
    assert!(text.lines().next().unwrap().starts_with("0x000000  "));
}

#[test]
fn run_gives_what_verify_compares() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "-o", "d.npub"]);
    let samples = example("digits/samples.npy");
    let labels = example("digits/classes.txt");
    let fast = npukit
        .json(0, &["run", "d.npub", "--input", &samples, "--labels", &labels, "--output-dir", "out/deep"]);
    assert_eq!(fast["outputs"][0]["file"], "out/deep/output_0.npy");
    let array = Array::parse(&fs::read(npukit.folder().join("out/deep/output_0.npy")).unwrap()).unwrap();
    assert_eq!((array.dtype(), array.shape()), (Dtype::Int8, &[20, 10][..]));
    assert_eq!(fast["classified"][0]["label"], "0");

    let plain = npukit.json(0, &["run", "d.npub", "--input", &samples, "--engine", "reference"]);
    let values =
        plain["outputs"][0]["values"].as_array().unwrap().iter().flat_map(|one| one.as_array().unwrap());
    let values: Vec<u8> = values.map(|value| (value.as_i64().unwrap() as i8).cast_unsigned()).collect();
    assert_eq!(values, array.data());

    let ran = npukit.run(&["run", "d.npub", "--input", &samples]);
    assert!(ran.stdout.contains("samples.npy[19]: "), "{ran:?}");
}

#[test]
fn a_tflite_is_inspected_before_and_after_vela() {
    let npukit = Npukit::new();
    let before = npukit.json(0, &["inspect", &digits()]);
    assert_eq!((&before["kind"], &before["obstacle"]), (&"tflite".into(), &Value::Null));
    assert_eq!(before["operator_counts"]["CONV_2D"], 2);
    assert_eq!(before["inputs"][0]["shape"], serde_json::json!([1, 8, 8, 1]));
    assert!(npukit.run(&["inspect", &digits()]).stdout.contains("DEPTHWISE_CONV_2D"));

    let toolchain = npukit.json(0, &["toolchain", "install"]);
    assert_eq!((&toolchain["installed"], &toolchain["vela"]["version"]), (&true.into(), &"5.2.0".into()));
    let python = toolchain["vela"]["program"].as_str().unwrap();
    let mut vela = Command::new(python);
    vela.args(["-I", "-m", "ethosu.vela", "--accelerator-config", "ethos-u55-64"]);
    vela.args(["--output-dir", ".", &digits()]).current_dir(npukit.folder());
    assert!(vela.output().unwrap().status.success());
    let after = npukit.json(0, &["inspect", "digits_int8_vela.tflite"]);
    assert_eq!(
        (&after["kind"], &after["programs"][0]["accel"]),
        (&"vela_tflite".into(), &"ethos-u55-64".into())
    );
    assert_eq!(after["programs"][0]["framing"], "COP1");
    assert!(after["memory"]["arena_bytes"].as_u64().unwrap() > 0);
    let driver = &after["programs"][0]["driver"];
    assert_eq!((&driver["arm_driver"], &driver["architecture"]), (&true.into(), &"1.0.6".into()));
    assert_eq!(driver["regions"][1]["bytes"], after["memory"]["regions"][1]["bytes"]);
    assert!(
        npukit.run(&["inspect", "digits_int8_vela.tflite"]).stdout.contains("Arm's core driver take them")
    );
    assert!(npukit.run(&["disasm", "digits_int8_vela.tflite"]).stdout.contains("NPU_OP_CONV"));

    // Compiled already: neither built nor verified again.
    npukit.refused(2, &["build", "digits_int8_vela.tflite"], &["compiled already", "as it was before Vela"]);
}

#[test]
fn the_toolchain_tells_its_state() {
    let npukit = Npukit::new();
    assert_eq!(npukit.json(0, &["toolchain", "install"])["packages"]["ethos-u-vela"], "5.2.0");
    let status = npukit.json(0, &["toolchain", "status"]);
    keys(&status, &["installed", "folder", "python", "vela", "packages", "requirements"]);
    let mut absent = npukit.command(&["toolchain", "status", "--json"]);
    let absent = support::Ran::new(&absent.env("NPUKIT_CACHE", npukit.folder()).output().unwrap());
    assert_eq!((absent.status, &absent.object()["installed"]), (1, &false.into()));
}

/// Every network that Vela places is refused or proven; this one isn't placed.
#[test]
fn operators_on_the_cpu_are_an_answer() {
    let Some(model) = npukit_testkit::model("keyword_scrambled_8bit.tflite") else { return };
    let model = model.to_str().unwrap();
    let npukit = Npukit::new();
    for command in ["build", "verify"] {
        let report = npukit.json(1, &[command, model]);
        assert_eq!(report["error"]["kind"], "cpu_operators");
        let operators = report["cpu_operators"].as_array().unwrap();
        assert_eq!(operators.iter().filter(|one| one["operator"] == "SVDF").count(), 7, "{report}");
        keys(&operators[0], &["index", "operator", "name", "reason"]);
        assert!(operators.iter().any(|one| one["reason"].is_string()), "{report}");
    }
    npukit.refused(1, &["verify", model], &["SVDF", "to the CPU", "Unsupported opType"]);
    assert_eq!(fs::read_dir(npukit.folder()).unwrap().count(), 0, "nothing is written");
}

/// The commands for VeriSilicon's NPUs are npukit-vip's, which tests them; here they are mounted.
#[test]
fn vip_commands_are_mounted() {
    let npukit = Npukit::new();
    let admitted = npukit.json(0, &["admit", &digits(), "--ovxlib", "1.2.22"]);
    assert_eq!(admitted["admitted"], true);
    assert!(npukit.json(0, &["tables", "show", "--op", "conv2d"])["tables"].is_array());
    npukit.file("damaged.nb", b"VPMN");
    npukit.refused(2, &["inspect", "damaged.nb"], &["damaged.nb"]);
    for wrong in [
        &["admit", "none.tflite", "--ovxlib", "1.2.22"][..],
        &["nbg", "inspect", "none.nb"],
        &["inspect", "damaged.nb"],
    ] {
        let report = npukit.json(2, wrong);
        assert!(report["error"]["message"].is_string(), "{report}");
    }
    let Some(file) = npukit_testkit::shared_file("nbg/ameba_yamnet_s_hybrid.nb") else { return };
    let file = file.to_str().unwrap();
    assert_eq!(npukit.json(0, &["inspect", file]), npukit.json(0, &["nbg", "inspect", file]));
}
