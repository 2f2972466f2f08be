//! The commands, run as a user runs them.

use npukit_vip::tables::hex_sha256;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npukit-vip")).args(arguments).output().unwrap()
}

fn status(arguments: &[&str]) -> i32 {
    run(arguments).status.code().unwrap()
}

fn text(arguments: &[&str]) -> String {
    String::from_utf8(run(arguments).stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let mut all = vec!["--json"];
    all.extend(arguments);
    let output = run(&all);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{arguments:?}: {error}: {output:?}"))
}

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).to_str().unwrap().to_owned()
}

fn shared(name: &str) -> Option<String> {
    npukit_testkit::shared_file(name).map(|path: PathBuf| path.to_str().unwrap().to_owned())
}

#[test]
fn raw_exports_hash_as_in_the_devices_library() {
    for (op, hash) in [
        ("conv2d", "e9d4cf806b62e0719b26b1e2bd6ec128887324bc8e6bef2ad61c899e1412b790"),
        ("fc", "d1149e36ddc8e57d61eb70c50085cacc40b81ee376157646cac2395715e8f11e"),
    ] {
        for version in ["1.1.88", "1.2.22"] {
            let output = run(&["tables", "export", "--op", op, "--ovxlib", version, "--format", "raw"]);
            assert_eq!(hex_sha256(&output.stdout), hash);
        }
    }
    let output = run(&["tables", "export", "--op", "conv2d", "--format", "raw", "--without-x-bits"]);
    assert_eq!(
        hex_sha256(&output.stdout),
        "a6ce8be8b7a2512739cb8f47135a05135504e9e4eca7745871e5a6ebf8a9d613"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("conv.bin");
    assert_eq!(
        status(&["tables", "export", "--op", "conv2d", "--format", "raw", "-o", file.to_str().unwrap()]),
        0
    );
    assert_eq!(std::fs::read(file).unwrap().len(), 608);
    assert_eq!(status(&["tables", "export", "--format", "raw"]), 2, "raw is for one table");
}

#[test]
fn tables_are_listed_and_shown() {
    let list = text(&["tables", "show"]);
    assert_eq!(list.lines().count(), 111);
    let shown = text(&["tables", "show", "--op", "conv2d"]);
    assert!(shown.contains("hardware 9.1.1 or newer:") && shown.contains("vsi_nn_op_conv2d.c:94"), "{shown}");
    assert!(text(&["tables", "show", "--op", "fc"]).contains("no check reads it"));
    assert!(text(&["tables", "show", "--op", "fc", "--ovxlib", "1.1.88"]).contains("read by FCL, FCL2"));
    // An operator without a table of its own shows the one that its check reads.
    assert!(text(&["tables", "show", "--op", "sigmoid"]).contains("\nRSQRT: "));
    let value = json(&["tables", "show", "--op", "conv2d"]);
    assert_eq!(value["tables"][0]["rows"][10]["hw_generation"], "9.0.1");
    assert_eq!(value["tables"][0]["certainty"], "known");
    for wrong in [
        &["tables", "show", "--op", "nonsense"][..],
        &["tables", "show", "--ovxlib", "1.1.99"],
        &["tables", "show", "--ovxlib", "x"],
    ] {
        assert_eq!(status(wrong), 2, "{wrong:?}");
    }
}

#[test]
fn signatures_typed_by_hand() {
    let conv =
        ["admit", "--op", "conv2d", "--input", "u8:asym", "--weight", "i8:sym_pc", "--ovxlib", "1.2.22"];
    assert_eq!(status(&conv), 0);
    let value = json(&conv);
    assert_eq!(value["admitted"], true);
    assert_eq!(value["operators"][0]["verdict"]["answer"], "conditional");
    assert_eq!(value["operators"][0]["verdict"]["on"][0]["feature"], "0x1b");
    let mut strict = conv.to_vec();
    strict.push("--strict");
    assert_eq!(status(&strict), 1);

    let floats = [
        "admit", "--op", "conv2d", "--input", "f32", "--weight", "f32", "--ovxlib", "1.2.22", "--chip",
        "wave",
    ];
    assert_eq!(status(&floats), 1);
    let value = json(&floats);
    assert_eq!(value["operators"][0]["ovxlib"], "pass");
    assert_eq!(value["operators"][0]["verdict"]["code"], -3);
    assert_eq!(value["operators"][0]["verdict"]["by"], "nn_format");

    let off = [
        "admit",
        "--op",
        "conv2d",
        "--input",
        "f16",
        "--weight",
        "f16",
        "--ovxlib",
        "1.2.22",
        "--feature",
        "nn-f16-input=off",
    ];
    assert_eq!(status(&off), 1);
    let control = [
        "admit",
        "--op",
        "conv2d",
        "--input",
        "f16[16x1x1x1]",
        "--weight",
        "f16[3x1x1x1]",
        "--bias",
        "f32[1]",
        "--output",
        "f16[16x1x1x1]",
        "--ovxlib",
        "1.1.88",
        "--target",
        "0x1000000e",
        "--strict",
    ];
    assert_eq!(status(&control), 0);
    assert!(text(&control).contains("admitted, on NN"));
}

#[test]
fn what_cannot_be_asked_is_status_2() {
    for wrong in [
        &["admit", "--ovxlib", "1.2.22"][..],
        &["admit", "--op", "conv2d", "--input", "f32", "--weight", "f32"],
        &["admit", "--op", "conv2d", "--input", "q8", "--ovxlib", "1.2.22"],
        &["admit", "--op", "warp", "--input", "f32", "--ovxlib", "1.2.22"],
        &["admit", "absent.tflite", "--ovxlib", "1.2.22"],
        &["admit", "model.tflite", "--op", "conv2d", "--ovxlib", "1.2.22"],
        &["admit", "--op", "conv2d", "--ovxlib", "1.2.22", "--feature", "x=on"],
        &["inspect", "absent.nb"],
        &["nbg", "check", "absent.nb", "--target", "1"],
        &["tables", "recover", "absent.so"],
        &[],
    ] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong:?}");
    }
}

#[test]
fn recovery_writes_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("bundle.json");
    let library = fixture("demo-aarch64-stripped.so");
    let output = text(&["tables", "recover", &library, "-o", bundle.to_str().unwrap()]);
    assert!(output.contains("DEMO_CONV [known]"), "{output}");
    let value: Value = serde_json::from_slice(&std::fs::read(bundle).unwrap()).unwrap();
    assert_eq!(value["tables"].as_array().unwrap().len(), 6);
    assert_eq!(value["file"]["sha256"], hex_sha256(&std::fs::read(&library).unwrap()));
    assert_eq!(value["relocations"]["RELA"], 10);
    let this = env!("CARGO_BIN_EXE_npukit-vip");
    assert_eq!(status(&["tables", "recover", this]), 1, "no tables here");
    assert_eq!(status(&["tables", "recover", &fixture("demo.c")]), 2);
}

#[test]
fn real_compiled_files() {
    let (Some(yamnet), Some(sample)) =
        (shared("nbg/ameba_yamnet_s_hybrid.nb"), shared("nbg/timvx_conv2d_relu_maxpool2d_fp32.nbg"))
    else {
        return;
    };
    let value = json(&["inspect", &yamnet]);
    assert_eq!(value["header"]["target"], 0xAD);
    assert_eq!(value["coverage"]["unknown"], 0);
    assert_eq!(value, json(&["nbg", "inspect", &yamnet]));
    assert!(text(&["inspect", &sample]).contains("checksum  0x48739b09, right"));

    assert_eq!(status(&["nbg", "check", &yamnet, "--target", "0xad", "--vip-sram", "131072"]), 0);
    assert_eq!(status(&["nbg", "check", &yamnet, "--target", "0xad", "--vip-sram", "131071"]), 1);
    assert_eq!(json(&["nbg", "check", &yamnet, "--target", "0xad"])["answer"], "unknown");
    let refused = text(&["nbg", "check", &sample, "--chip", "a311d"]);
    assert!(refused.contains("binary target=0xba, actually target=0x88"), "{refused}");
    assert_eq!(status(&["nbg", "check", &sample, "--target", "0x88"]), 1);
    let loads = json(&["nbg", "check", &sample, "--target", "0xba", "--vip-sram", "262144"]);
    assert_eq!(loads["answer"], "yes");

    assert_eq!(status(&["nbg", "compare", &yamnet, &yamnet]), 0);
    assert_eq!(status(&["nbg", "compare", &yamnet, &sample]), 1);
    let folder = tempfile::tempdir().unwrap();
    let patched = folder.path().join("patched.nb");
    let mut bytes = std::fs::read(&sample).unwrap();
    bytes[8] = 0x88;
    std::fs::write(&patched, bytes).unwrap();
    let patched = patched.to_str().unwrap();
    let value = json(&["nbg", "compare", &sample, patched]);
    assert_eq!(value["differences"].as_array().unwrap().len(), 1);
    assert_eq!(value["differences"][0]["what"], "target");
    // A patched header breaks the checksum.
    assert!(text(&["nbg", "check", patched, "--target", "0x88"]).contains("changed after it was compiled"));
}

#[test]
fn a_model_beside_another_models_file() {
    let (Some(model), Some(sample)) =
        (shared("models/micro_speech_quantized.tflite"), shared("nbg/timvx_conv2d_relu_maxpool2d_fp32.nbg"))
    else {
        return;
    };
    let value = json(&["admit", &model, "--ovxlib", "1.2.22", "--nbg", &sample, "--target", "0x88"]);
    let notes = value["beside"]["notes"].as_array().unwrap();
    assert!(notes[0].as_str().unwrap().contains("for target 0xba"), "{value}");
    assert!(notes[1].as_str().unwrap().contains("nothing is paired"), "{value}");
    let rows = value["beside"]["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["agreement"] == "unpaired"));
    assert_eq!(status(&["admit", &model, "--ovxlib", "1.2.22"]), 0);
}
