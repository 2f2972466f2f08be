//! Bad input: exit status 2, a message that names the file and the fault, and no result.

mod support;

use std::fs;
use std::path::Path;

use npukit_vela::npy::{Array, Dtype};
use support::tflite::{INT8, Operator, Tensor, network};
use support::{Npukit, Ran, digits, example};

/// SUB of schema.fbs.
const SUB: Operator = Operator { code: 41, options: 28, bytes: &[] };

fn array(dtype: Dtype, shape: &[usize]) -> Vec<u8> {
    let bytes = dtype.bytes() * shape.iter().product::<usize>();
    Array::new(dtype, shape.to_vec(), vec![0; bytes]).unwrap().to_npy()
}

#[test]
fn models_that_are_none() {
    let npukit = Npukit::new();
    let model = fs::read(digits()).unwrap();
    npukit.file("text.tflite", b"this is no network");
    npukit.file("empty.tflite", b"");
    npukit.file("blob.tflite", b"NPU1 and more");
    npukit.file("half.tflite", &model[..model.len() / 2]);
    let float = |name, shape: &[i32]| Tensor::float(name, shape);
    npukit.file(
        "float.tflite",
        &network(&SUB, &[float("a", &[1, 4]), float("b", &[1, 4]), float("y", &[1, 4])]),
    );
    let int8 = |name, shape: &[i32]| Tensor::quantised(name, INT8, shape, 0.5, 0);
    let open = int8("width", &[1, 1, 8]).open(&[1, -1, 8]);
    npukit.file("open.tflite", &network(&SUB, &[open, int8("b", &[1, 1, 8]), int8("y", &[1, 1, 8])]));
    for command in ["build", "verify"] {
        let refused = |file: &str, words: &[&str]| {
            npukit.refused(2, &[command, file], &[&[file], words].concat());
            assert!(!npukit.exists(&file.replace("tflite", "npub")));
        };
        refused("none.tflite", &["No such file"]);
        refused("text.tflite", &["not a TensorFlow Lite flatbuffer", "TFL3"]);
        refused("empty.tflite", &["not a TensorFlow Lite flatbuffer", "fewer than 8 bytes"]);
        refused("half.tflite", &["truncated or damaged", "0x"]);
        refused("float.tflite", &["isn't quantised", "'a' is float32", "int8"]);
        refused("blob.tflite", &["compiled already", "npukit run"]);
        refused("open.tflite", &["'width'", "[1, -1, 8]", "fixed input shape"]);
    }
    npukit.refused(2, &["inspect", "half.tflite"], &["half.tflite", "truncated or damaged"]);
    npukit.refused(
        2,
        &["inspect", "text.tflite"],
        &["neither an .npub, a .tflite nor an .nb", "74 68 69 73"],
    );
    npukit.refused(2, &["inspect", "empty.tflite"], &["it is empty"]);
}

#[test]
fn options_that_make_no_sense() {
    let npukit = Npukit::new();
    let digits = digits();
    let refused = |options: &[&str], words: &[&str]| {
        npukit.refused(2, &[&["build", &digits], options].concat(), words);
    };
    refused(&["--accel", "ethos-u55-100"], &["ethos-u55-100", "ethos-u55-32", "ethos-u65-512"]);
    refused(
        &["--system-config", "Nowhere"],
        &["no system configuration 'Nowhere'", "Ethos_U55_Deep_Embedded"],
    );
    refused(&["--memory-mode", "Nowhere"], &["no memory mode 'Nowhere'", "Shared_Sram"]);
    refused(&["--vela-config", "none.ini"], &["none.ini"]);
    refused(&["--cop-format", "COP1"], &["COP2", "--io arena"]);
    refused(&["--io", "somewhere"], &["somewhere", "separate", "arena"]);
    refused(&["--vela", "/nowhere/vela"], &["/nowhere/vela"]);
    refused(
        &["--vela-arg", "--no-such-option"],
        &["compiler failed", "no-such-option", "Vela refuses its options"],
    );
    refused(&["--memory-mode", "Dedicated_Sram"], &["arena_mem_area", "Vela refuses its options"]);
    refused(&["--vela", "/bin/echo"], &["isn't Vela", "--version"]);
    npukit.file("odd.ini", b"[System_Config.a]\ncore_clock=fast\n[Memory_Mode.b]\nconst_mem_area=Axi0\n");
    refused(&["--vela-config", "odd.ini"], &["fast", "Look at --vela-config first"]);
    fs::remove_file(npukit.folder().join("odd.ini")).unwrap();
    let json = npukit.json(2, &["build", &digits, "--arena-cache-size", "99999999999999"]);
    assert_eq!(json["error"]["kind"], "configuration");
    // More than memory holds is refused before anything is made of it, and the object says so.
    for samples in ["18446744073709551615", "9999999999"] {
        let json = npukit.json(2, &["verify", &digits, "--samples", samples]);
        assert_eq!(json["error"]["kind"], "usage", "{json}");
    }
    npukit.refused(2, &["verify", &digits, "--engine", "slow"], &["slow", "fast", "reference"]);
    npukit.refused(2, &["verify", &digits, "--against", "tf"], &["tflm", "litert"]);
    npukit.refused(2, &["verify", &digits, "--samples", "0"], &["nothing to compare"]);
    npukit.refused(2, &["verify", &digits, "--labels", "x.txt"], &["--input"]);
    npukit.refused(2, &["no-such-command"], &["no-such-command"]);
    assert_eq!(fs::read_dir(npukit.folder()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn inputs_that_do_not_fit() {
    let npukit = Npukit::new();
    assert_eq!(npukit.run(&["build", &digits(), "-o", "d.npub"]).status, 0);
    npukit.file("shape.npy", &array(Dtype::Int8, &[3, 8, 9, 1]));
    npukit.file("dtype.npy", &array(Dtype::Float32, &[1, 8, 8, 1]));
    npukit.file("none.npy", &array(Dtype::Int8, &[0, 8, 8, 1]));
    npukit.file("text.npy", b"1 2 3");
    npukit.file("short.npy", &array(Dtype::Int8, &[1, 8, 8, 1])[..150]);
    npukit.file("empty.npy", b"");
    npukit.file("cut.npy", &array(Dtype::Int8, &[1, 8, 8, 1])[..100]);
    npukit.file("labels.txt", b"cat\ndog\n");
    fs::create_dir(npukit.folder().join("empty")).unwrap();
    let digits = digits();
    for what in [["verify", digits.as_str()], ["run", "d.npub"]] {
        let refused = |input: &str, words: &[&str]| {
            npukit.refused(2, &[&what[..], &["--input", input]].concat(), &[&[input], words].concat());
        };
        let takes = "input 'input' int8 (1, 8, 8, 1)";
        refused("shape.npy", &["(3, 8, 9, 1)", "expected (1, 8, 8, 1)", takes]);
        refused("dtype.npy", &["float32, expected int8", "zero point -128"]);
        refused("none.npy", &["no samples"]);
        refused("text.npy", &["not a .npy file"]);
        refused("short.npy", &["takes 64 bytes of data"]);
        refused("missing.npy", &["No such file"]);
        refused("empty", &["no .npy or .npz file"]);
        refused("empty.npy", &["not a .npy file: it is empty"]);
        refused("cut.npy", &["ends inside its header", "cut off"]);
        let named = ["--input", "other=shape.npy"];
        npukit.refused(2, &[&what[..], &named].concat(), &["no input 'other'", "'input'"]);
        let labels = ["--input", &example("digits/samples.npy"), "--labels", "labels.txt"];
        npukit.refused(2, &[&what[..], &labels].concat(), &["labels.txt", "2 names", "10 elements"]);
    }
    npukit.refused(2, &["run", "d.npub"], &["takes input 'input'", "--input"]);
    npukit.refused(2, &["run", &digits, "--input", "shape.npy"], &["it is a .tflite", "npukit build"]);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("loop.npy", npukit.folder().join("loop.npy")).unwrap();
        let json = npukit.json(2, &["run", "d.npub", "--input", "loop.npy"]);
        assert_eq!(json["error"]["kind"], "unreadable");
    }
}

#[test]
fn the_number_of_arrays_has_to_fit() {
    let npukit = Npukit::new();
    let int8 = |name| Tensor::quantised(name, INT8, &[1, 4, 4, 8], 0.5, 0);
    npukit.file("sub.tflite", &network(&SUB, &[int8("a"), int8("b"), int8("y")]));
    npukit.file("x.npy", &array(Dtype::Int8, &[5, 4, 4, 8]));
    npukit.file("y.npy", &array(Dtype::Int8, &[4, 4, 4, 8]));
    let refused = |inputs: &[&str], words: &[&str]| {
        let inputs = inputs.iter().flat_map(|input| ["--input", input]);
        npukit.refused(2, &["verify", "sub.tflite"].into_iter().chain(inputs).collect::<Vec<_>>(), words);
    };
    refused(&["x.npy"], &["input 'b' is missing", "'a', 'b'"]);
    refused(&["x.npy", "x.npy", "x.npy"], &["one too many"]);
    refused(&["x.npy", "y.npy"], &["x.npy has 5", "y.npy has 4"]);
    let report = npukit
        .json(0, &["verify", "sub.tflite", "--samples", "8", "--input", "b=x.npy", "--input", "a=x.npy"]);
    assert_eq!((&report["samples"], &report["bit_exact"]), (&13.into(), &true.into()));
}

#[test]
fn blobs_that_are_damaged() {
    let npukit = Npukit::new();
    assert_eq!(npukit.run(&["build", &digits(), "-o", "d.npub"]).status, 0);
    let blob = fs::read(npukit.folder().join("d.npub")).unwrap();
    let mut flipped = blob.clone();
    flipped[200] ^= 4;
    npukit.file("flipped.npub", &flipped);
    npukit.file("half.npub", &blob[..blob.len() / 2]);
    let mut unnamed = blob;
    unnamed[24..28].fill(0);
    npukit.file("unnamed.npub", &unnamed);
    let samples = example("digits/samples.npy");
    for command in [&["inspect"][..], &["disasm"], &["run", "--input", &samples]] {
        npukit.refused(2, &[command, &["flipped.npub"]].concat(), &["flipped.npub", "checksum"]);
        npukit.refused(2, &[command, &["half.npub"]].concat(), &["half.npub", "the header states"]);
    }
    let run = ["run", "unnamed.npub", "--input", &samples];
    npukit.refused(2, &run, &["which accelerator", "--accel"]);
    assert_eq!(npukit.run(&[&run[..], &["--accel", "ethos-u55-256"]].concat()).status, 0);
    let other = ["run", "d.npub", "--input", &samples, "--accel", "ethos-u55-32"];
    npukit.refused(2, &other, &["ethos-u55-256", "ethos-u55-32"]);
    let other = ["disasm", "d.npub", "--accel", "ethos-u55-32"];
    npukit.refused(2, &other, &["ethos-u55-256", "ethos-u55-32"]);
    assert_eq!(npukit.run(&["disasm", "d.npub", "--accel", "ethos-u55-256"]).status, 0);
}

#[test]
fn results_that_cannot_be_written() {
    let npukit = Npukit::new();
    let digits = digits();
    fs::create_dir(npukit.folder().join("taken")).unwrap();
    // Named before anything is compiled: a compiler that isn't there would be the next error.
    let refused = |options: &[&str], words: &[&str]| {
        let vela = ["build", &digits, "--vela", "/nowhere/vela"];
        npukit.refused(2, &[&vela[..], options].concat(), words);
    };
    refused(&["-o", "no/such/folder/x.npub"], &["x.npub", "no folder no/such/folder"]);
    refused(&["-o", "taken"], &["taken", "is a folder"]);
    refused(&["--emit-c", "no/x.h"], &["x.h"]);
    refused(&["--emit-rust", "no/x.rs"], &["x.rs"]);
    refused(&["-o", "x", "--emit-c", "./x"], &["named twice"]);
    npukit.file("model.tflite", &fs::read(&digits).unwrap());
    npukit.refused(2, &["build", "model.tflite", "-o", "model.tflite"], &["named twice"]);
    npukit.file("d.npub", b"");
    npukit.refused(2, &["run", "d.npub", "--output-dir", "d.npub", "--input", "x.npy"], &["d.npub"]);
}

#[test]
fn results_do_not_overwrite_what_they_are_made_from() {
    let npukit = Npukit::new();
    assert_eq!(npukit.run(&["build", &digits(), "-o", "d.npub"]).status, 0);
    let folder = npukit.folder().join("x");
    fs::create_dir(&folder).unwrap();
    let input = array(Dtype::Int8, &[1, 8, 8, 1]);
    fs::write(folder.join("output_0.npy"), &input).unwrap();
    for given in ["x/output_0.npy", "x/../x/output_0.npy", "input=x/output_0.npy", "x", "x/."] {
        let run = ["run", "d.npub", "--input", given, "--output-dir", "x"];
        npukit.refused(2, &run, &["is read and written", "another folder"]);
    }
    assert_eq!(fs::read(folder.join("output_0.npy")).unwrap(), input);
    assert_eq!(npukit.run(&["run", "d.npub", "--input", "x", "--output-dir", "x/y"]).status, 0);
}

/// A search path and a cache with nothing in them.
fn bare(npukit: &Npukit, path: &Path, variables: &[(&str, &str)]) -> Ran {
    let mut command = npukit.command(&["verify", &digits(), "--json"]);
    command.env("PATH", path).env("NPUKIT_CACHE", npukit.folder().join("cache"));
    for name in ["NPUKIT_PYTHON", "NPUKIT_VELA", "NPUKIT_WHEELS"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    Ran::new(&command.output().unwrap())
}

#[test]
fn no_python() {
    let npukit = Npukit::new();
    let ran = bare(&npukit, npukit.folder(), &[]);
    assert_eq!((ran.status, &ran.object()["error"]["kind"]), (2, &"no_python".into()), "{ran:?}");
    assert!(ran.stderr.contains("no usable Python") && ran.stderr.contains("NPUKIT_PYTHON"), "{ran:?}");
}

#[test]
fn no_network() {
    let npukit = Npukit::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Nobody listens on port 1.
    let nowhere = "http://127.0.0.1:1/";
    let variables = [
        ("PIP_INDEX_URL", nowhere),
        ("PIP_EXTRA_INDEX_URL", ""),
        ("PIP_RETRIES", "0"),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("HTTP_PROXY", ""),
        ("http_proxy", ""),
    ];
    let ran = bare(&npukit, Path::new(&path), &variables);
    assert_eq!((ran.status, &ran.object()["error"]["kind"]), (2, &"offline".into()), "{ran:?}");
    assert!(ran.stderr.contains("can't be reached") && ran.stderr.contains("NPUKIT_WHEELS"), "{ran:?}");
}
