//! The `.tflite` reader on the repository's own models and on lies about them.

use npukit_vip::admission::{Options, admit};
use npukit_vip::codes::{Quant, VxType};
use npukit_vip::graph::{OperatorKind, Place};
use npukit_vip::tflite::{TfliteError, read};
use npukit_vip::version::OvxlibVersion;
use proptest::prelude::*;

fn example(name: &str) -> Vec<u8> {
    std::fs::read(npukit_testkit::repository().join("examples").join(name)).unwrap()
}

#[test]
fn an_int8_model_becomes_what_the_delegate_makes_of_it() {
    let graph = read(&example("digits/digits_int8.tflite"), "digits").unwrap();
    assert!(graph.through_tim_vx && !graph.operators.is_empty());
    let conv = graph.operators.iter().find(|o| o.op == "CONV2D" || o.op == "GROUPED_CONV2D").unwrap();
    let operands = graph.operands(conv);
    let (input, weight, bias) =
        (operands.input(0).unwrap(), operands.input(1).unwrap(), operands.input(2).unwrap());
    assert_eq!((input.vx_type, input.quant.scheme), (VxType::I8, Quant::ASYM));
    assert_eq!((weight.vx_type, weight.place), (VxType::I8, Place::Constant));
    assert_eq!(bias.vx_type, VxType::I32);
    assert!(weight.quant.channels > 1 && weight.quant.scheme == Quant::SYM_PC);
    // A fused activation is a node of its own behind a tensor between.
    if let Some(fused) = graph.operators.iter().find(|o| o.kind == OperatorKind::FusedActivation) {
        let between = graph.operands(fused).input(0).unwrap().clone();
        assert_eq!(between.place, Place::Virtual);
    }
    assert!(graph.tensors.iter().filter(|tensor| tensor.place == Place::Graph).count() >= 2);
    let report = admit(&graph, &Options::new(OvxlibVersion::NEWEST));
    assert!(!report.refused(), "{report}");
}

#[test]
fn an_int16_model_stays_on_the_cpu() {
    let graph = read(&example("gesture/gesture_int16.tflite"), "gesture").unwrap();
    let refused = graph
        .operators
        .iter()
        .filter(|o| o.left_out.as_ref().is_some_and(|why| why.contains("I16 output")))
        .count();
    assert!(refused > 0, "{graph:?}");
    assert!(admit(&graph, &Options::new(OvxlibVersion::NEWEST)).refused());
}

#[test]
fn cuts_and_lies_are_errors_or_graphs() {
    let bytes = example("digits/digits_int8.tflite");
    assert!(matches!(read(b"", "x"), Err(TfliteError::Short { .. })));
    assert!(matches!(read(b"\x10\0\0\0TFL2", "x"), Err(TfliteError::Identifier { .. })));
    for length in (0..bytes.len()).step_by(7) {
        let _ = read(&bytes[..length], "x");
    }
    let mut refused = 0;
    for offset in (0..bytes.len() - 4).step_by(4) {
        for lie in [0u32, 1, 0x7FFF_FFFF, 0xFFFF_FFF0] {
            let mut changed = bytes.clone();
            changed[offset..offset + 4].copy_from_slice(&lie.to_le_bytes());
            refused += usize::from(read(&changed, "x").is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

/// A model of one table: `size` words, each of which any offset may lead back to.
fn cyclic(words: usize) -> Vec<u8> {
    let mut bytes = b"\x14\0\0\0TFL3".to_vec();
    bytes.resize(0x14, 0);
    // The root table at 0x14: its vtable at 0x08 would be the identifier's neighbour; point it there.
    bytes[8..20].copy_from_slice(&[12, 0, 64, 0, 4, 0, 4, 0, 4, 0, 4, 0]);
    bytes.extend((0x14i32 - 8).to_le_bytes());
    bytes.extend(4u32.to_le_bytes());
    // A vector that claims as many tables as there are words, each of which leads back to the vector itself.
    bytes.extend((words as u32).to_le_bytes());
    for index in 0..words {
        bytes.extend((0u32.wrapping_sub(4 * index as u32)).to_le_bytes());
    }
    bytes
}

#[test]
fn shared_and_cyclic_tables_end() {
    for words in [1, 2, 1000, 100_000] {
        assert!(read(&cyclic(words), "x").is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn changed_models(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)) {
        let mut bytes = example("digits/digits_int8.tflite");
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes[4..8].copy_from_slice(b"TFL3");
        if let Ok(graph) = read(&bytes, "x") {
            let _ = admit(&graph, &Options::new(OvxlibVersion::NEWEST)).to_string();
        }
    }

    #[test]
    fn any_bytes_behind_the_identifier(mut bytes in prop::collection::vec(any::<u8>(), 8..3000)) {
        bytes[..8].copy_from_slice(b"\x10\0\0\0TFL3");
        let _ = read(&bytes, "x");
    }
}
