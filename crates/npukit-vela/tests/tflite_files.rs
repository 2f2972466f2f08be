//! The `.tflite` reader on real networks, made ones, truncated ones and damaged ones.

mod common;

use std::fs;

use npukit_vela::tflite::{BuiltinOperator, DataType, Error, Model, with_batch_of_one, with_outputs};
use proptest::prelude::*;

#[test]
fn real_networks_are_described() {
    let Some(path) = npukit_testkit::model("kws_ref_model.tflite") else { return };
    let bytes = fs::read(path).unwrap();
    let model = Model::parse(&bytes).unwrap();
    assert_eq!((model.version, model.description.as_ref(), model.subgraphs.len()), (3, "MLIR Converted.", 1));
    let graph = model.main();
    let names: Vec<_> = graph.operators.iter().map(|operator| operator.name().into_owned()).collect();
    assert_eq!(names[..2], ["CONV_2D", "DEPTHWISE_CONV_2D"]);
    assert_eq!(names[9..], ["AVERAGE_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"]);
    assert_eq!(graph.operators[11].to_string(), "operator 11 FULLY_CONNECTED");
    let input = &graph.tensors[graph.inputs[0]];
    assert_eq!((input.name.as_ref(), input.data_type), ("input_1", DataType::Int8));
    assert_eq!(
        (input.shape.as_slice(), input.shape_signature.as_slice()),
        (&[1, 49, 10, 1][..], &[-1, 49, 10, 1][..])
    );
    let quantisation = input.quantisation.unwrap();
    assert_eq!((quantisation.scale(), quantisation.zero_point()), (0.584_702_9, 83));
    assert_eq!((input.elements(), input.bytes()), (Some(490), Some(490)));
    // A convolution's weights have a scale for each output channel.
    let weights = &graph.tensors[graph.operators[0].inputs[1].unwrap()];
    let quantisation = weights.quantisation.unwrap();
    assert!(quantisation.is_per_axis());
    assert_eq!((quantisation.scales.len(), quantisation.axis), (64, 0));
    assert_eq!(model.data(weights).unwrap().len(), weights.bytes().unwrap());
    // Conv2DOptions: padding SAME, which is 0 and left out, strides of two.
    let options = graph.operators[0].options.unwrap();
    assert_eq!((options.number::<u8>(0, 0), options.number::<i32>(1, 0)), (0, 2));
    assert_eq!(options.number::<i32>(4, 1), 1, "dilation has its default");
    assert!(model.metadata.iter().any(|note| note.name == "min_runtime_version"));
    assert!(!model.is_stateful() && !model.is_compiled());
}

#[test]
fn signatures_name_inputs_and_outputs() {
    let Some(path) = npukit_testkit::model("hello_world_int8.tflite") else { return };
    let bytes = fs::read(path).unwrap();
    let model = Model::parse(&bytes).unwrap();
    let signature = &model.signatures[0];
    assert_eq!((signature.key.as_ref(), signature.subgraph), ("serving_default", 0));
    assert_eq!(signature.inputs, [("dense_input".into(), model.main().inputs[0])]);
    assert_eq!(signature.outputs, [("dense_2".into(), model.main().outputs[0])]);
}

#[test]
fn made_networks_are_described() {
    let bytes = common::network::lstm();
    let model = Model::parse(&bytes).unwrap();
    let graph = model.main();
    assert_eq!(graph.operators[0].inputs.iter().filter(|input| input.is_none()).count(), 9);
    assert_eq!(graph.operators[0].intermediates.len(), 5);
    assert_eq!(graph.tensors.iter().filter(|tensor| tensor.is_variable).count(), 2);
    assert!(model.is_stateful());

    let bytes = common::network::streaming(-3);
    let model = Model::parse(&bytes).unwrap();
    assert_eq!(model.subgraphs.len(), 2);
    let handle =
        model.main().operators.iter().find(|operator| operator.code == BuiltinOperator::VAR_HANDLE).unwrap();
    assert_eq!(handle.options.unwrap().string(1).as_deref(), Some("state"));
    assert_eq!(model.main().tensors[handle.outputs[0]].data_type, DataType::Resource);
    assert!(model.is_stateful());
}

#[test]
fn every_truncation_of_a_real_network_is_refused() {
    for name in npukit_testkit::MODELS {
        let Some(path) = npukit_testkit::model(name) else { return };
        let bytes = fs::read(path).unwrap();
        // What lies last in these files is needed, but may be followed by padding.
        let last = bytes.len() - 4;
        let lengths = (0..64).chain((64..last).step_by(last / 500)).chain(last - 200..last);
        for length in lengths {
            let error = Model::parse(&bytes[..length]).err();
            let expected = matches!(error, Some(Error::OutOfBounds { .. } | Error::Identifier { .. }));
            assert!(expected, "{name} cut to {length} of {} bytes: {error:?}", bytes.len());
        }
    }
}

#[test]
fn indices_and_lists_that_do_not_fit_are_refused() {
    let edit = |bytes: &[u8], old: &[u8], new: &[u8]| {
        let at = bytes.windows(old.len()).position(|window| window == old).unwrap();
        let mut edited = bytes.to_vec();
        edited[at..at + new.len()].copy_from_slice(new);
        edited
    };
    let bytes = common::network::two_inputs();
    // The list of inputs: two entries, tensors 0 and 1.
    let old = [2u32, 0, 1].map(u32::to_le_bytes).concat();
    let outside = edit(&bytes, &old, &[2u32, 0, 99].map(u32::to_le_bytes).concat());
    let error = Model::parse(&outside).unwrap_err();
    assert!(matches!(error, Error::Index { list: "tensor", index: 99, .. }), "{error}");
    let negative = edit(&bytes, &old, &[2u32, 0, u32::MAX].map(u32::to_le_bytes).concat());
    assert!(matches!(Model::parse(&negative), Err(Error::Index { index: -1, .. })));
    let long = edit(&bytes, &old, &[u32::MAX, 0, 1].map(u32::to_le_bytes).concat());
    let error = Model::parse(&long).unwrap_err();
    assert!(matches!(error, Error::OutOfBounds { .. }), "{error}");
    assert!(error.to_string().starts_with("truncated or damaged: "), "{error}");
}

#[test]
fn a_file_that_refers_to_one_list_over_and_over_is_refused() {
    // One table of one element each for "subgraphs" and "tensors", referred to so often that reading it all would take
    // a million times the file.
    let count = 5000u32;
    let mut file = Vec::new();
    let word = |file: &mut Vec<u8>, value: u32| file.extend(value.to_le_bytes());
    // Root table at 0x20; its vtable at 0x10: two header halfwords, three fields, the third (subgraphs) at +4.
    word(&mut file, 0x20);
    file.extend(b"TFL3");
    file.resize(0x10, 0);
    for half in [10u16, 8, 0, 0, 4] {
        file.extend(half.to_le_bytes());
    }
    file.resize(0x20, 0);
    word(&mut file, 0x10);
    word(&mut file, 0x40 - 0x24);
    // The subgraph's vtable at 0x30: one field (tensors) at +4.
    file.resize(0x30, 0);
    for half in [6u16, 8, 4] {
        file.extend(half.to_le_bytes());
    }
    file.resize(0x40, 0);
    // The list of subgraphs, all the same one, and the list of tensors, all the same one.
    let subgraph = 0x44 + 4 * count;
    let tensors = subgraph + 8;
    word(&mut file, count);
    for index in 0..count {
        word(&mut file, subgraph - (0x44 + 4 * index));
    }
    word(&mut file, subgraph - 0x30);
    word(&mut file, 4);
    word(&mut file, count);
    let tensor = tensors + 4 + 4 * count;
    for index in 0..count {
        word(&mut file, tensor - (tensors + 4 + 4 * index));
    }
    // A tensor without fields; its vtable follows it.
    word(&mut file, (-4i32).cast_unsigned());
    file.extend(4u16.to_le_bytes());
    file.extend(4u16.to_le_bytes());
    assert!(matches!(Model::parse(&file), Err(Error::Overlapping { .. })), "{:?}", Model::parse(&file).err());
}

#[test]
fn data_behind_the_flatbuffer_is_found() {
    let inside = common::network::layered().bytes();
    let behind = common::network::layered().bytes_with_data_behind();
    let (inside, outside) = (Model::parse(&inside).unwrap(), Model::parse(&behind).unwrap());
    assert_eq!(inside.buffers, outside.buffers);
    assert!(inside.buffers.iter().filter(|data| !data.is_empty()).count() >= 2);
    let error = Model::parse(&behind[..behind.len() - 1]).unwrap_err();
    assert!(matches!(error, Error::OutOfBounds { what: "buffer", .. }), "{error}");
}

#[test]
fn a_compiled_network_is_recognised() {
    let environment = common::environment();
    let options = npukit_vela::compile::BuildOptions::new(npukit_vela::Accelerator::U55_128);
    let network = common::network::two_inputs();
    let progress = &mut npukit_vela::progress::Silent;
    let compiled = npukit_vela::compile::compile(environment.vela(), &network, &options, progress).unwrap();
    let model = Model::parse(&compiled.output).unwrap();
    assert!(model.is_compiled());
    assert_eq!(model.description, "Vela Optimised");
    let operator = &model.main().operators[0];
    assert_eq!(operator.to_string(), "operator 0 ethos-u");
    let stream = model.data(&model.main().tensors[operator.inputs[0].unwrap()]).unwrap();
    assert_eq!(&stream[..4], b"COP2");
}

#[test]
fn outputs_can_be_moved_inside_the_network() {
    let bytes = common::network::two_inputs();
    for outputs in [vec![2], vec![2, 5], vec![]] {
        let edited = with_outputs(&bytes, &outputs).unwrap();
        let model = Model::parse(&edited).unwrap();
        assert_eq!(model.main().outputs, outputs);
        assert_eq!(model.main().operators.len(), 2);
    }
    assert!(matches!(with_outputs(&bytes, &[99]), Err(Error::Index { index: 99, .. })));
    assert!(with_outputs(b"rubbish", &[0]).is_err());
    // Files that aren't a multiple of four bytes long.
    let mut odd = bytes.clone();
    odd.push(0);
    assert_eq!(Model::parse(&with_outputs(&odd, &[2]).unwrap()).unwrap().main().outputs, [2]);
}

fn networks() -> Vec<Vec<u8>> {
    vec![common::network::two_inputs(), common::network::lstm(), common::network::streaming(-3)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_never_panic(
        which in 0usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut: prop::sample::Index,
    ) {
        let mut bytes = networks().swap_remove(which);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = Model::parse(&bytes);
        let _ = with_outputs(&bytes, &[0, 1]);
        let _ = with_batch_of_one(&bytes);
        let _ = npukit_vela::compile::prepare(&bytes);
        let _ = npukit_vela::distil::from_vela_tflite(&bytes);
        let cut = cut.index(bytes.len());
        let _ = Model::parse(&bytes[..cut]);
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 8..400)) {
        let _ = Model::parse(&bytes);
        bytes[4..8].copy_from_slice(b"TFL3");
        let _ = Model::parse(&bytes);
    }
}
