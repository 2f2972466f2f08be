//! Real networks through the real compiler, by all ways to an `.npub`.

mod common;

use std::fs;

use npub::{Blob, Role, Storage, TensorKind};
use npukit_vela::compile::{BuildOptions, Built, CompileError, Optimise, OutputFormat, build, compile};
use npukit_vela::distil::{self, DistilError, IoMode};
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Environment;
use npukit_vela::{Accelerator, PayloadKind};

const U55: [Accelerator; 4] =
    [Accelerator::U55_32, Accelerator::U55_64, Accelerator::U55_128, Accelerator::U55_256];

fn options(
    accelerator: Accelerator,
    io: IoMode,
    format: OutputFormat,
    payload: Option<PayloadKind>,
) -> BuildOptions {
    let mut options = BuildOptions::new(accelerator);
    options.io = io;
    options.output_format = format;
    options.payload = payload;
    options
}

fn built(environment: &Environment, network: &[u8], options: &BuildOptions) -> Built {
    build(environment.vela(), network, options, &mut Silent)
        .unwrap_or_else(|error| panic!("{options:?}: {error}"))
}

/// The four ways to an `.npub` of each network give the same file for each placement of inputs and outputs.
fn all_ways_agree(models: &[&str]) {
    let environment = common::environment();
    for name in models {
        let Some(path) = npukit_testkit::model(name) else { continue };
        let network = fs::read(path).unwrap();
        for accelerator in U55 {
            let separate = built(
                &environment,
                &network,
                &options(accelerator, IoMode::Separate, OutputFormat::Tflite, None),
            );
            let raw = built(
                &environment,
                &network,
                &options(accelerator, IoMode::Separate, OutputFormat::Raw, None),
            );
            assert_eq!(
                separate.npub, raw.npub,
                "{name} {accelerator} separate: .tflite and raw output differ"
            );
            assert_eq!((separate.io, separate.program.payload), (IoMode::Separate, PayloadKind::Cop2));

            let arena = options(accelerator, IoMode::Arena, OutputFormat::Tflite, Some(PayloadKind::Cop1));
            let arena = built(&environment, &network, &arena);
            let raw = options(accelerator, IoMode::Arena, OutputFormat::Raw, Some(PayloadKind::Cop2));
            let raw = built(&environment, &network, &raw);
            assert_eq!(
                arena.npub, raw.npub,
                "{name} {accelerator} arena: COP1 .tflite and COP2 raw output differ"
            );
            assert_eq!((arena.program.payload, raw.program.payload), (PayloadKind::Cop1, PayloadKind::Cop2));

            looks_right(&separate, accelerator, name);
            looks_right(&arena, accelerator, name);
        }
    }
}

/// What holds for every network here: one input, one output, wholly on the NPU.
fn looks_right(built: &Built, accelerator: Accelerator, name: &str) {
    let blob = Blob::parse(&built.npub).unwrap();
    assert_eq!(blob.accel().word(), accelerator.macs(), "{name}");
    let table = blob.tensors().expect("every network here has tensors");
    let [input, output] = [table.inputs().next().unwrap(), table.outputs().next().unwrap()];
    assert_eq!(table.len(), 2, "{name}");
    let model = npukit_vela::tflite::Model::parse(&built.network).unwrap();
    let graph = model.main();
    for (tensor, index) in [(input, graph.inputs[0]), (output, graph.outputs[0])] {
        let original = &graph.tensors[index];
        assert_eq!(tensor.name, original.name, "{name}");
        assert_eq!(tensor.size as usize, original.bytes().unwrap(), "{name}");
        let (found, expected) = (tensor.quantisation.unwrap(), original.quantisation.unwrap());
        assert_eq!(
            (found.scale, i64::from(found.zero_point)),
            (expected.scale(), expected.zero_point()),
            "{name}"
        );
    }
    let roles: Vec<Role> = blob.regions().iter().map(|region| region.role).collect();
    let places = [input.place.unwrap().region, output.place.unwrap().region];
    match built.io {
        IoMode::Separate => {
            let expected =
                [Role::Weights, Role::Scratch, Role::Scratch, Role::Input, Role::Output, Role::Other];
            assert_eq!(roles, expected, "{name}");
            assert_eq!(places, [3, 4], "{name}");
            assert_eq!(blob.regions()[3].size, input.size.next_multiple_of(16), "{name}");
            assert_eq!(blob.regions()[2].size, 0, "{name}: the stream has no fast scratch");
        }
        IoMode::Arena => {
            assert_eq!(roles, [Role::Weights, Role::Scratch, Role::Other], "{name}");
            assert_eq!(places, [1, 1], "{name}");
        }
    }
    assert!(matches!(blob.regions()[0].storage(), Storage::Baked { offset } if offset % 16 == 0), "{name}");
    assert!(built.compiled.summary.as_ref().unwrap().number("cycles_npu").unwrap() > 0.0, "{name}");
}

// Split so that they run side by side.
#[test]
fn all_ways_agree_on_the_smaller_networks() {
    all_ways_agree(&[
        "ad01_int8.tflite",
        "hello_world_int8.tflite",
        "kws_ref_model.tflite",
        "micro_speech_quantized.tflite",
    ]);
}

#[test]
fn all_ways_agree_on_the_larger_networks() {
    all_ways_agree(&["person_detect.tflite", "pretrainedResnet_quant.tflite", "vww_96_int8.tflite"]);
}

#[test]
fn the_open_batch_is_fixed_and_said() {
    let Some(path) = npukit_testkit::model("hello_world_int8.tflite") else { return };
    let network = fs::read(path).unwrap();
    let built = built(&common::environment(), &network, &BuildOptions::new(Accelerator::U55_128));
    assert_eq!(built.notes.len(), 1, "{:?}", built.notes);
    assert!(built.notes[0].contains("batch") && built.notes[0].contains("serving_default_dense_input:0"));
    let fixed = npukit_vela::tflite::Model::parse(&built.network).unwrap();
    let tensor = &fixed.main().tensors[fixed.main().inputs[0]];
    assert_eq!((tensor.shape.as_slice(), tensor.shape_signature.as_slice()), (&[1, 1][..], &[1, 1][..]));
    assert!(!built.compiled.stderr.contains("dynamic signature"), "Vela saw a fixed batch");
}

#[test]
fn operators_left_to_the_cpu_are_named_with_reasons() {
    let Some(path) = npukit_testkit::model("keyword_scrambled_8bit.tflite") else { return };
    let network = fs::read(path).unwrap();
    let environment = common::environment();
    for format in [OutputFormat::Tflite, OutputFormat::Raw] {
        let options = options(Accelerator::U55_128, IoMode::Separate, format, None);
        let error = build(environment.vela(), &network, &options, &mut Silent).unwrap_err();
        let CompileError::CpuOperators(operators) = &error else { panic!("{error}") };
        let names: Vec<&str> = operators.iter().map(|operator| operator.operator.as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "SVDF").count(), 7, "{format:?}: {names:?}");
        assert_eq!(names.iter().filter(|name| **name == "QUANTIZE").count(), 1, "{format:?}: {names:?}");
        for operator in operators {
            let reason = operator.reason.as_deref().unwrap_or_default();
            let expected =
                if operator.operator == "SVDF" { "Unsupported opType" } else { "Unsupported dataType Int32" };
            assert!(reason.starts_with(expected), "{operator}");
        }
        let text = error.to_string();
        assert!(text.starts_with("8 operators are left to the CPU:\n"), "{text}");
        assert!(text.contains("SVDF: Unsupported opType"), "{text}");
        if format == OutputFormat::Tflite {
            // Their positions in the network, from the network itself.
            let model = npukit_vela::tflite::Model::parse(&network).unwrap();
            for operator in operators {
                let index = operator.index.expect("the compiled network shows which it is");
                assert_eq!(model.main().operators[index].name(), operator.operator);
            }
        }
    }
    // The compiled file by itself is refused as well, without reasons.
    let compiled =
        compile(environment.vela(), &network, &BuildOptions::new(Accelerator::U55_128), &mut Silent).unwrap();
    let error = distil::from_vela_tflite(&compiled.output).unwrap_err();
    assert!(matches!(&error, DistilError::CpuOperators(operators) if operators.len() == 8), "{error}");
}

#[test]
fn every_memory_mode_and_strategy_that_fits_a_u55_builds() {
    let Some(path) = npukit_testkit::model("kws_ref_model.tflite") else { return };
    let network = fs::read(path).unwrap();
    let environment = common::environment();
    for mode in ["Sram_Only", "Shared_Sram"] {
        for system in ["Ethos_U55_High_End_Embedded", "Ethos_U55_Deep_Embedded"] {
            let mut options = BuildOptions::new(Accelerator::U55_128);
            options.memory_mode = Some(mode.into());
            options.system_config = Some(system.into());
            let built = built(&environment, &network, &options);
            assert_eq!(built.compiled.configuration.memory_mode, mode);
            assert_eq!(built.compiled.configuration.system_config, system);
        }
    }
    let mut options = BuildOptions::new(Accelerator::U55_128);
    options.optimise = Some(Optimise::Size);
    let small = built(&environment, &network, &options);
    options.optimise = Some(Optimise::Performance);
    options.arena_cache_bytes = Some(16 << 10);
    let tight = built(&environment, &network, &options);
    assert!(
        Blob::parse(&small.npub).unwrap().arena_bytes() <= Blob::parse(&tight.npub).unwrap().arena_bytes()
    );
    // The U55 has no port that writes to a second memory.
    options.memory_mode = Some("Dedicated_Sram_256KB".into());
    let error = build(environment.vela(), &network, &options, &mut Silent).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("exit status 1") && text.contains("arena_mem_area") && !text.contains("Traceback"),
        "{text}"
    );
}

#[test]
fn a_u65_has_a_fast_scratch_of_its_own() {
    let Some(path) = npukit_testkit::model("kws_ref_model.tflite") else { return };
    let network = fs::read(path).unwrap();
    let environment = common::environment();
    let mut files = Vec::new();
    for format in [OutputFormat::Tflite, OutputFormat::Raw] {
        let built =
            built(&environment, &network, &options(Accelerator::U65_256, IoMode::Separate, format, None));
        let blob = Blob::parse(&built.npub).unwrap();
        assert_eq!(blob.regions()[2].role, Role::Scratch);
        assert!(blob.regions()[2].size > 0);
        files.push(built.npub);
    }
    assert_eq!(files[0], files[1]);
}

#[test]
fn a_stream_for_another_npu_is_noticed() {
    let environment = common::environment();
    let network = common::network::two_inputs();
    let built = built(&environment, &network, &BuildOptions::new(Accelerator::U55_64));
    let error = built.program.check_accelerator(Accelerator::U55_256).unwrap_err();
    assert_eq!(error.to_string(), "the command stream is for ethos-u55-64, not for ethos-u55-256");
}

#[test]
fn arguments_are_passed_on_and_extra_files_kept() {
    let environment = common::environment();
    let mut options = BuildOptions::new(Accelerator::U55_128);
    options.vela_arguments = vec!["--enable-debug-db".into(), "--verbose-register-command-stream".into()];
    let built = built(&environment, &common::network::two_inputs(), &options);
    assert!(built.compiled.extra_files.iter().any(|(name, _)| name.ends_with(".xml")), "the debug database");
    assert!(format!("{}{}", built.compiled.stdout, built.compiled.stderr).contains("NPU_SET_IFM_REGION"));
}

#[test]
fn inputs_keep_the_networks_order() {
    let environment = common::environment();
    let network = common::network::two_inputs();
    for io in [IoMode::Separate, IoMode::Arena] {
        let mut files = Vec::new();
        for format in [OutputFormat::Tflite, OutputFormat::Raw] {
            let built = built(&environment, &network, &options(Accelerator::U55_128, io, format, None));
            let names: Vec<&str> = built.program.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "y"]);
            // The convolution of b comes first, so b lies first.
            let offsets: Vec<u32> = built
                .program
                .tensors
                .iter()
                .filter_map(|tensor| tensor.place)
                .map(|place| place.offset)
                .collect();
            if io == IoMode::Separate {
                assert_eq!(offsets, [512, 0, 0]);
                assert_eq!(Blob::parse(&built.npub).unwrap().regions()[3].size, 768);
            }
            files.push(built.npub);
        }
        assert_eq!(files[0], files[1], "{io}");
    }
}

#[test]
fn an_input_that_is_not_used_has_no_place_and_moves_the_rest_to_the_arena_where_vela_errs() {
    use common::network::{INT8, INT32, Network};
    let environment = common::environment();
    // A convolution transposed: its output's shape is a second input that the NPU never reads.
    let mut network = Network::new();
    let shape = network.unquantised("shape", INT32, &[4]);
    let weights = network.weights("weights", &[4, 2, 2, 8], 0.01);
    let x = network.tensor("x", INT8, &[1, 4, 4, 8], 0.05, -3);
    let y = network.tensor("y", INT8, &[1, 8, 8, 4], 0.1, 0);
    // TransposeConvOptions: padding SAME, strides of two.
    use common::network::Field;
    let strides = vec![(0, Field::Byte(0)), (1, Field::Int(2)), (2, Field::Int(2))];
    network.operator(67, &[shape, weights, x], &[y], Some((49, strides)));
    network.finish_graph(&[shape, x], &[y]);
    let network = network.bytes();
    for format in [OutputFormat::Tflite, OutputFormat::Raw] {
        let options = options(Accelerator::U55_128, IoMode::Separate, format, None);
        let built = built(&environment, &network, &options);
        assert_eq!(built.io, IoMode::Arena);
        assert!(built.notes.iter().any(|note| note.contains("'shape'")), "{:?}", built.notes);
        let places: Vec<bool> = built.program.tensors.iter().map(|tensor| tensor.place.is_some()).collect();
        assert_eq!(places, [false, true, true]);
    }
    // The separate file by itself is refused, because its note gives x's place to the shape.
    let options = options(Accelerator::U55_128, IoMode::Separate, OutputFormat::Tflite, None);
    let compiled = compile(environment.vela(), &network, &options, &mut Silent).unwrap();
    let error = distil::from_vela_tflite(&compiled.output).unwrap_err();
    assert!(matches!(error, DistilError::MixedPlaces { .. }), "{error}");
}

#[test]
fn variable_tensors_become_states_in_the_arena() {
    let environment = common::environment();
    let network = common::network::lstm();
    let built = built(&environment, &network, &BuildOptions::new(Accelerator::U55_128));
    assert_eq!(built.io, IoMode::Arena);
    assert!(built.notes.iter().any(|note| note.contains("state")), "{:?}", built.notes);
    let blob = Blob::parse(&built.npub).unwrap();
    let mut states: Vec<_> = blob.tensors().unwrap().states().collect();
    states.sort_by_key(|state| state.name);
    let described: Vec<_> = states
        .iter()
        .map(|state| (state.name, state.fed_from, state.quantisation.unwrap().zero_point))
        .collect();
    assert_eq!(described, [("cell state", None, 0), ("hidden state", None, -4)]);

    let mut raw = options(Accelerator::U55_128, IoMode::Arena, OutputFormat::Raw, None);
    let error = build(environment.vela(), &network, &raw, &mut Silent).unwrap_err();
    assert!(error.to_string().contains("_vela.tflite"), "{error}");
    raw.output_format = OutputFormat::Tflite;
    raw.io = IoMode::Separate;
    let compiled = compile(environment.vela(), &network, &raw, &mut Silent).unwrap();
    let error = distil::from_vela_tflite(&compiled.output).unwrap_err();
    assert!(
        matches!(error, DistilError::State { .. }) && error.to_string().contains("--io arena"),
        "{error}"
    );
}

#[test]
fn resource_variables_become_states_that_are_fed() {
    let environment = common::environment();
    let options = BuildOptions::new(Accelerator::U55_128);
    let built = built(&environment, &common::network::streaming(-3), &options);
    assert_eq!(built.io, IoMode::Arena);
    let kinds: Vec<_> = built
        .program
        .tensors
        .iter()
        .map(|tensor| (tensor.name.as_str(), tensor.kind, tensor.fed_from))
        .collect();
    let expected = [
        ("x", TensorKind::Input, None),
        ("y", TensorKind::Output, None),
        ("previous", TensorKind::State, Some(3)),
        ("next", TensorKind::NextState, None),
    ];
    assert_eq!(kinds, expected);

    // One that starts elsewhere can't be kept by the format's rule.
    let error = build(environment.vela(), &common::network::streaming(0), &options, &mut Silent).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("'previous'") && text.contains("zero point -3"), "{text}");
}

/// Vela's older core writes both forms in its own way: other names, other shapes, no strings, its own order.
#[test]
fn the_older_cores_output_is_distilled_too() {
    let environment = common::environment();
    for name in ["hello_world_int8.tflite", "kws_ref_model.tflite"] {
        let Some(path) = npukit_testkit::model(name) else { return };
        for accelerator in [Accelerator::U55_128, Accelerator::U65_256] {
            let folder = tempfile::tempdir().unwrap();
            for format in ["tflite", "raw"] {
                let mut command = std::process::Command::new(environment.python());
                command.args([
                    "-I",
                    "-m",
                    "ethosu.vela",
                    "--debug-force-legacy-core",
                    "--output-format",
                    format,
                ]);
                command
                    .args(["--accelerator-config", accelerator.name()])
                    .arg("--output-dir")
                    .arg(folder.path());
                assert!(command.arg(&path).output().unwrap().status.success());
            }
            let stem = name.strip_suffix(".tflite").unwrap();
            let compiled = fs::read(folder.path().join(format!("{stem}_vela.tflite"))).unwrap();
            let raw = fs::read(folder.path().join(format!("{stem}_vela_sg0.npz"))).unwrap();
            let network = fs::read(&path).unwrap();
            let one = distil::from_vela_tflite(&compiled).unwrap();
            let other = distil::from_raw(&raw, &network).unwrap();
            assert_eq!(one.io, IoMode::Arena);
            assert_eq!(one.accelerator, accelerator);
            assert_eq!(one.to_npub().unwrap(), other.to_npub().unwrap(), "{name} {accelerator}");
            let own = one.fast_scratch != distil::FastScratch::None;
            assert_eq!(own, accelerator == Accelerator::U65_256, "{name}: only the U65 has a fast scratch");
        }
    }
}
