//! What can't be compiled is refused with its reason, and a compiler that misbehaves is caught.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use common::network::{FLOAT32, INT8, INT32, Network, UINT8};
use npukit_vela::Accelerator;
use npukit_vela::compile::{BuildOptions, CompileError, build, prepare};
use npukit_vela::distil::{DistilError, IoMode, from_raw, from_vela_tflite};
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Vela;

fn options() -> BuildOptions {
    BuildOptions::new(Accelerator::U55_128)
}

fn one_layer() -> Vec<u8> {
    let mut network = Network::new();
    let x = network.tensor("x", INT8, &[1, 4, 4, 4], 0.05, -3);
    let y = network.tensor("y", INT8, &[1, 4, 4, 8], 0.1, 0);
    network.convolution(x, 4, y, 8);
    network.finish_graph(&[x], &[y]);
    network.bytes()
}

#[test]
fn what_is_no_network_is_refused_before_a_compiler_runs() {
    let says = |bytes: &[u8], expected: &str| {
        let text = prepare(bytes).unwrap_err().to_string();
        assert!(text.contains(expected), "{text:?} doesn't say {expected:?}");
    };
    says(b"", "not a TensorFlow Lite flatbuffer");
    says(b"not a network at all", "not a TensorFlow Lite flatbuffer");
    says(b"PK\x03\x04 a zip archive", "expected \"TFL3\"");
    let network = one_layer();
    says(&network[..network.len() / 2], "truncated or damaged");
    says(&network[..200], "truncated or damaged");

    let mut empty = Network::new();
    let x = empty.tensor("x", INT8, &[1, 4], 0.05, -3);
    empty.finish_graph(&[x], &[x]);
    says(&empty.bytes(), "has no operators");

    let mut float = Network::new();
    let x = float.unquantised("x", FLOAT32, &[1, 4]);
    let y = float.unquantised("y", FLOAT32, &[1, 4]);
    float.subtraction(x, x, y);
    float.finish_graph(&[x], &[y]);
    says(&float.bytes(), "isn't quantised: 'x' is float32");
}

#[test]
fn open_sizes_are_fixed_or_refused() {
    let with = |shape: &[i32], signature: &[i32]| {
        let mut network = Network::new();
        let x = network.tensor("x", INT8, shape, 0.05, -3);
        network.signature(x, signature);
        let y = network.tensor("y", INT8, &[1, 4, 4, 8], 0.1, 0);
        network.signature(y, &[-1, 4, 4, 8]);
        network.convolution(x, 4, y, 8);
        network.finish_graph(&[x], &[y]);
        network.bytes()
    };
    let prepared = prepare(&with(&[1, 4, 4, 4], &[-1, 4, 4, 4])).unwrap();
    assert_eq!(prepared.notes.len(), 1);
    let model = npukit_vela::tflite::Model::parse(&prepared.network).unwrap();
    assert!(model.main().tensors.iter().all(|tensor| !tensor.shape_signature.contains(&-1)));
    // A file that carries the open size in the shape itself.
    let prepared = prepare(&with(&[-1, 4, 4, 4], &[])).unwrap();
    let model = npukit_vela::tflite::Model::parse(&prepared.network).unwrap();
    assert_eq!(model.main().tensors[0].shape, [1, 4, 4, 4]);

    let error = prepare(&with(&[1, 4, 4, 4], &[-1, -1, 4, 4])).unwrap_err();
    assert!(matches!(&error, CompileError::DynamicShape { signature, .. } if *signature == [-1, -1, 4, 4]));
    assert!(error.to_string().contains("'x'"), "{error}");
    let error = prepare(&with(&[8, 4, 4, 4], &[-1, 4, 4, 4])).unwrap_err();
    assert!(matches!(error, CompileError::BatchSize { batch: 8, .. }), "{error}");
}

/// A compiler that is a shell script: answers to `--version`, then does what `body` says with `$output` and `$network`.
#[cfg(unix)]
fn fake_vela(folder: &Path, body: &str) -> Vela {
    let script = format!(
        "#!/bin/sh\n\
         case \"$1\" in\n--version) echo 9.9.9; exit 0;;\n--list-configs) exit 0;;\nesac\n\
         while [ $# -gt 1 ]; do\n[ \"$1\" = --output-dir ] && output=\"$2\"\nshift\ndone\nnetwork=\"$1\"\n{body}\n"
    );
    Vela::own(&common::script(folder, "fake-vela", &script)).unwrap()
}

#[cfg(unix)]
fn outcome(body: &str, options: &BuildOptions) -> CompileError {
    let folder = tempfile::tempdir().unwrap();
    let vela = fake_vela(folder.path(), body);
    assert_eq!((vela.version(), vela.is_named_by_user()), ("9.9.9", true));
    build(&vela, &one_layer(), options, &mut Silent).unwrap_err()
}

#[test]
#[cfg(unix)]
fn a_compiler_that_dies_by_a_signal() {
    let error = outcome("echo reading the network; echo allocating tensors >&2; kill -SEGV $$", &options());
    let CompileError::Failed { ending, last_words } = &error else { panic!("{error}") };
    assert_eq!(
        (ending.as_str(), last_words.as_str()),
        ("killed by signal 11 (SIGSEGV)", "allocating tensors")
    );
    assert!(error.to_string().contains("SIGSEGV") && error.to_string().contains("allocating tensors"));
}

#[test]
#[cfg(unix)]
fn a_compiler_that_fails_after_writing_half_a_file() {
    let error = outcome(
        "mkdir -p \"$output\"; echo half > \"$output/network_vela.tflite\"; echo no >&2; exit 3",
        &options(),
    );
    assert!(matches!(&error, CompileError::Failed { ending, .. } if ending == "exit status 3"), "{error}");
}

#[test]
#[cfg(unix)]
fn a_compiler_that_leaves_nothing() {
    let error = outcome("echo all is well", &options());
    assert!(
        matches!(&error, CompileError::NoOutput { last_words } if last_words == "all is well"),
        "{error}"
    );
    let error = outcome("mkdir -p \"$output\"; : > \"$output/network_vela.tflite\"", &options());
    assert!(matches!(&error, CompileError::NoOutput { .. }), "an empty file is nothing: {error}");
}

#[test]
#[cfg(unix)]
fn a_compiler_that_hangs_is_stopped() {
    let mut options = options();
    options.time_limit = Duration::from_millis(500);
    let started = Instant::now();
    let error = outcome("echo optimising forever; exec sleep 600", &options);
    assert!(
        matches!(&error, CompileError::TimedOut { last_words, .. } if last_words == "optimising forever"),
        "{error}"
    );
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
#[cfg(unix)]
fn a_compiler_that_writes_another_network_is_noticed() {
    // It copies its input: a network without an ethos-u operator.
    let error = outcome("mkdir -p \"$output\"; cp \"$network\" \"$output/network_vela.tflite\"", &options());
    let CompileError::CpuOperators(operators) = &error else { panic!("{error}") };
    assert_eq!((operators[0].index, operators[0].operator.as_str()), (Some(0), "CONV_2D"));
}

#[test]
#[cfg(unix)]
fn what_is_no_vela_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = Vela::own(&folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(text.contains("nowhere") && text.contains("No such file"), "{text}");
    let text = Vela::own(Path::new("/bin/false")).unwrap_err().to_string();
    assert!(text.contains("exit status 1"), "{text}");
}

#[test]
fn names_that_the_configuration_file_lacks_are_answered_with_those_it_has() {
    let environment = common::environment();
    let refuse = |options: &BuildOptions| {
        build(environment.vela(), &one_layer(), options, &mut Silent).unwrap_err().to_string()
    };
    let mut unknown = options();
    unknown.system_config = Some("Nope".into());
    let text = refuse(&unknown);
    assert!(
        text.contains("no system configuration 'Nope'") && text.contains("Ethos_U55_High_End_Embedded"),
        "{text}"
    );
    let mut unknown = options();
    unknown.memory_mode = Some("Shared".into());
    let text = refuse(&unknown);
    assert!(
        text.contains("no memory mode 'Shared'") && text.contains("Shared_Sram, Dedicated_Sram"),
        "{text}"
    );

    let folder = tempfile::tempdir().unwrap();
    let own = |text: &str| -> PathBuf {
        let path = folder.path().join("board.txt");
        fs::write(&path, text).unwrap();
        path
    };
    let board = "[System_Config.Board]\ncore_clock=400e6\naxi0_port=Sram\naxi1_port=OffChipFlash\n\
        Sram_clock_scale=1.0\nOffChipFlash_clock_scale=0.1\n\
        [Memory_Mode.Two]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
    // One of each: no need to name them. The name of the file doesn't matter.
    let mut named = options();
    named.vela_config = Some(own(board));
    let built = build(environment.vela(), &one_layer(), &named, &mut Silent).unwrap();
    let configuration = &built.compiled.configuration;
    assert_eq!((configuration.system_config.as_str(), configuration.memory_mode.as_str()), ("Board", "Two"));

    named.vela_config = Some(own(&board.replace("Board]", "Board]\n[System_Config.Other]")));
    let text = refuse(&named);
    assert!(text.contains("name a system configuration") && text.contains("Board, Other"), "{text}");
    named.vela_config = Some(own("nothing of the kind"));
    assert!(refuse(&named).contains("line 1"));
    named.vela_config = Some(folder.path().join("absent.ini"));
    assert!(refuse(&named).contains("absent.ini"));
}

#[test]
fn separate_regions_need_cop2() {
    let environment = common::environment();
    let mut options = options();
    options.payload = Some(npukit_vela::PayloadKind::Cop1);
    let error = build(environment.vela(), &one_layer(), &options, &mut Silent).unwrap_err();
    assert!(matches!(error, CompileError::SeparateNeedsCop2));
}

#[test]
fn a_compiled_network_is_not_compiled_again() {
    let environment = common::environment();
    let compiled =
        npukit_vela::compile::compile(environment.vela(), &one_layer(), &options(), &mut Silent).unwrap();
    assert!(matches!(prepare(&compiled.output), Err(CompileError::AlreadyCompiled)));
    // But it is distilled, and by the same way truncations of it are refused.
    let program = from_vela_tflite(&compiled.output).unwrap();
    assert_eq!((program.io, program.tensors.len()), (IoMode::Separate, 2));
    for length in (0..compiled.output.len()).step_by(97) {
        assert!(from_vela_tflite(&compiled.output[..length]).is_err(), "{length} bytes");
    }
}

/// A network that looks compiled, in as many pieces as `pieces`.
fn pieces(pieces: usize, inputs: usize) -> Network {
    let mut network = Network::new();
    let mut x = network.tensor("x", INT8, &[1, 4], 0.05, -3);
    let first = x;
    let parts: Vec<i32> = (0..inputs)
        .map(|part| network.constant(&format!("part {part}"), UINT8, &[4], &[], vec![0; 4]))
        .collect();
    for piece in 0..pieces {
        let y = network.tensor(&format!("y{piece}"), INT8, &[1, 4], 0.05, -3);
        let inputs: Vec<i32> = parts.iter().copied().chain([x]).collect();
        network.custom("ethos-u", &inputs, &[y]);
        x = y;
    }
    network.finish_graph(&[first], &[x]);
    network
}

#[test]
fn what_is_compiled_but_not_as_vela_does_it_is_refused() {
    let error = from_vela_tflite(&pieces(3, 4).bytes()).unwrap_err();
    assert_eq!(error, DistilError::SeveralPrograms { count: 3, indices: vec![0, 1, 2] });
    let error = from_vela_tflite(&pieces(1, 2).bytes()).unwrap_err();
    assert!(matches!(&error, DistilError::Operator { problem } if problem.contains("input 3")), "{error}");
    // Four bytes of zeros are no payload.
    let error = from_vela_tflite(&pieces(1, 4).bytes()).unwrap_err();
    assert!(matches!(error, DistilError::Payload(_)), "{error}");
    let mut mixed = pieces(1, 4);
    mixed.subtraction(0, 0, 0);
    let error = from_vela_tflite(&mixed.bytes()).unwrap_err();
    assert!(matches!(&error, DistilError::CpuOperators(left) if left[0].operator == "SUB"), "{error}");
}

#[test]
fn what_is_not_compiled_gives_no_npub() {
    assert_eq!(from_vela_tflite(&one_layer()), Err(DistilError::NotCompiled));
    assert!(matches!(from_vela_tflite(b"rubbish"), Err(DistilError::Tflite(_))));
    assert!(matches!(from_raw(b"rubbish", &one_layer()), Err(DistilError::Npy(_))));
    let mut ints = Network::new();
    let x = ints.unquantised("x", INT32, &[1, 4]);
    let y = ints.unquantised("y", INT32, &[1, 4]);
    ints.subtraction(x, x, y);
    ints.finish_graph(&[x], &[y]);
    // Integers that aren't quantised are Vela's to judge.
    assert!(prepare(&ints.bytes()).is_ok());
}
