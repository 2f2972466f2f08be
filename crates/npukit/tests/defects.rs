//! The operators that Vela 5.2.0 compiles wrong: recognised by name, and really wrong.

mod support;

use support::Npukit;
use support::tflite::{BOOL, INT8, INT32, Operator, Tensor, UINT8, graph, network};

// Numbers of schema.fbs: BuiltinOperator, and BuiltinOptions for the second one of each.
const TRANSPOSE: Operator = Operator { code: 39, options: 26, bytes: &[] };
const NEG: Operator = Operator { code: 59, options: 42, bytes: &[] };
const MIRROR_PAD: Operator = Operator { code: 100, options: 77, bytes: &[(0, 0)] };
const SUM: Operator = Operator { code: 74, options: 27, bytes: &[(0, 1)] };
const REDUCE_MAX: Operator = Operator { code: 82, options: 27, bytes: &[(0, 0)] };
const REDUCE_MAX_KEPT: Operator = Operator { code: 82, options: 27, bytes: &[(0, 1)] };
const REDUCE_MIN: Operator = Operator { code: 89, options: 27, bytes: &[(0, 0)] };

const MUL: Operator = Operator { code: 18, options: 21, bytes: &[] };
const EQUAL: Operator = Operator { code: 71, options: 53, bytes: &[] };
const CONCATENATION: Operator = Operator { code: 2, options: 10, bytes: &[(0, 1)] };
const RESIZE_BILINEAR: Operator = Operator { code: 23, options: 15, bytes: &[(3, 1)] };
const RESIZE_NEAREST: Operator = Operator { code: 97, options: 74, bytes: &[] };

fn int8(name: &'static str, shape: &[i32]) -> Tensor {
    Tensor::quantised(name, INT8, shape, 0.05, 3)
}

fn uint8(name: &'static str, shape: &[i32]) -> Tensor {
    Tensor::quantised(name, UINT8, shape, 0.05, 128)
}

/// Verifies a network of one operator: its defect is named, and it computes something else than the reference.
fn wrong(family: &str, operator: &Operator, tensors: &[Tensor]) {
    wrong_on("ethos-u55-128", family, operator, tensors);
}

/// As [`wrong`], for a product that has the defect.
fn wrong_on(accelerator: &str, family: &str, operator: &Operator, tensors: &[Tensor]) {
    let npukit = Npukit::new();
    npukit.file("model.tflite", &network(operator, tensors));
    let report = npukit.json(1, &["verify", "model.tflite", "--samples", "8", "--accel", accelerator]);
    assert_eq!(report["bit_exact"], false, "{report}");
    let defects = report["known_defects"].as_array().unwrap();
    assert_eq!(defects.len(), 1, "{report}");
    assert_eq!(defects[0]["family"], family);
    assert!(defects[0]["layer"].as_str().unwrap().starts_with("operator 0 "), "{report}");
    assert!(!defects[0]["effect"].as_str().unwrap().is_empty());
    assert!(report["outputs"][0]["mismatches"].as_u64().unwrap() > 0);

    let ran = npukit.run(&["verify", "model.tflite", "--samples", "8", "--accel", accelerator]);
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("DIFFERENT") && ran.stdout.contains(family), "{ran:?}");
    assert!(
        ran.stderr.contains("warning: Vela compiles this wrong") && ran.stderr.contains(family),
        "{ran:?}"
    );
    // Whoever only builds is told too.
    let ran = npukit.run(&["build", "model.tflite", "--accel", accelerator]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains(family), "{ran:?}");
}

/// A neighbour of a defect that is right and isn't warned of.
fn right(operator: &Operator, tensors: &[Tensor]) {
    let npukit = Npukit::new();
    npukit.file("model.tflite", &network(operator, tensors));
    let report = npukit.json(0, &["verify", "model.tflite", "--samples", "8", "--accel", "ethos-u55-128"]);
    assert_eq!(report["bit_exact"], true, "{report}");
    assert_eq!(report["known_defects"].as_array().map(Vec::len), Some(0), "{report}");
}

#[test]
fn transpose_of_uint8() {
    let permutation = |axes: &[i32]| Tensor::integers("permutation", &[4], axes);
    wrong(
        "TRANSPOSE uint8",
        &TRANSPOSE,
        &[uint8("x", &[1, 4, 6, 8]), permutation(&[0, 2, 1, 3]), uint8("y", &[1, 6, 4, 8])],
    );
    // The U85's programs have it right.
    let npukit = Npukit::new();
    let network = network(
        &TRANSPOSE,
        &[uint8("x", &[1, 4, 6, 8]), permutation(&[0, 2, 1, 3]), uint8("y", &[1, 6, 4, 8])],
    );
    npukit.file("model.tflite", &network);
    let report = npukit.json(0, &["verify", "model.tflite", "--samples", "8", "--accel", "ethos-u85-256"]);
    assert_eq!(report["known_defects"].as_array().map(Vec::len), Some(0), "{report}");
    right(&TRANSPOSE, &[uint8("x", &[1, 4, 1, 8]), permutation(&[0, 2, 1, 3]), uint8("y", &[1, 1, 4, 8])]);
    right(&TRANSPOSE, &[int8("x", &[1, 4, 6, 8]), permutation(&[0, 2, 1, 3]), int8("y", &[1, 6, 4, 8])]);
}

#[test]
fn mirror_pad_of_channels() {
    let paddings = |values: &[i32]| Tensor::integers("paddings", &[4, 2], values);
    wrong(
        "MIRROR_PAD on channels",
        &MIRROR_PAD,
        &[int8("x", &[1, 4, 6, 8]), paddings(&[0, 0, 1, 1, 1, 1, 2, 2]), int8("y", &[1, 6, 8, 12])],
    );
    right(
        &MIRROR_PAD,
        &[int8("x", &[1, 4, 6, 8]), paddings(&[0, 0, 1, 1, 1, 1, 0, 0]), int8("y", &[1, 6, 8, 8])],
    );
}

#[test]
fn sum_over_several_axes() {
    let axes = |values: &[i32]| Tensor::integers("axes", &[values.len() as i32], values);
    let sum = |shape: &[i32]| Tensor::quantised("y", INT8, shape, 0.4, 3);
    let one = network(&SUM, &[int8("x", &[1, 4, 6, 8]), axes(&[1]), sum(&[1, 1, 6, 8])]);
    let several = network(&SUM, &[int8("x", &[1, 4, 6, 8]), axes(&[1, 2]), sum(&[1, 1, 1, 8])]);
    let family = "SUM over several axes";
    let npukit = Npukit::new();
    npukit.file("model.tflite", &several);
    // Beside other tensors the overlong output goes unnoticed, and its beginning is wrong.
    let arena = npukit.json(1, &["verify", "model.tflite", "--samples", "8", "--io", "arena"]);
    assert_eq!(arena["bit_exact"], false);
    assert_eq!(arena["known_defects"][0]["family"], family);
    assert!(arena["outputs"][0]["mismatches"].as_u64().unwrap() > 0);
    // In a region of its own it doesn't fit.
    let separate = npukit.json(1, &["verify", "model.tflite", "--samples", "8"]);
    assert_eq!(separate["error"]["kind"], "npu_fault", "{separate}");
    assert_eq!(separate["bit_exact"], false);
    assert_eq!(separate["known_defects"][0]["family"], family);

    // Over one axis it is rounded otherwise than by TFLM, which is no defect.
    npukit.file("one.tflite", &one);
    let report = npukit.json(0, &["inspect", "one.tflite"]);
    assert_eq!(report["known_defects"].as_array().map(Vec::len), Some(0), "{report}");
}

#[test]
fn reductions_without_kept_dimensions() {
    let axes = |values: &[i32]| Tensor::integers("axes", &[values.len() as i32], values);
    let family = "REDUCE_MAX/REDUCE_MIN without kept dimensions";
    for operator in [REDUCE_MAX, REDUCE_MIN] {
        wrong(family, &operator, &[int8("x", &[1, 4, 6, 8]), axes(&[-1]), int8("y", &[1, 4, 6])]);
    }
    wrong(family, &REDUCE_MAX, &[int8("x", &[1, 4, 6, 8]), axes(&[2]), int8("y", &[1, 4, 8])]);
    right(&REDUCE_MAX, &[int8("x", &[1, 3, 1, 8]), axes(&[3]), int8("y", &[1, 3, 1])]);
    right(&REDUCE_MAX_KEPT, &[int8("x", &[1, 4, 6, 8]), axes(&[-1]), int8("y", &[1, 4, 6, 1])]);
    right(&REDUCE_MAX, &[int8("x", &[1, 4, 6, 8]), axes(&[1]), int8("y", &[1, 6, 8])]);
}

#[test]
fn negation() {
    wrong("NEG", &NEG, &[int8("x", &[1, 4, 6, 8]), Tensor::quantised("y", INT8, &[1, 4, 6, 8], 0.05, -3)]);
}

#[test]
fn multiplication_of_int32() {
    let int32 = |name| Tensor::quantised(name, INT32, &[1, 4, 4, 4], 1.0, 0);
    let npukit = Npukit::new();
    npukit.file("model.tflite", &network(&MUL, &[int32("a"), int32("b"), int32("y")]));
    let ran = npukit.run(&["build", "model.tflite", "--accel", "ethos-u55-128"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("MUL int32"), "{ran:?}");
}

#[test]
fn comparison_of_different_scales() {
    let boolean = |name| Tensor::quantised(name, BOOL, &[1, 4, 4, 8], 1.0, 0);
    let other = Tensor::quantised("b", INT8, &[1, 4, 4, 8], 0.07, 3);
    let tensors = [int8("a", &[1, 4, 4, 8]), other, boolean("y")];
    let npukit = Npukit::new();
    npukit.file("model.tflite", &network(&EQUAL, &tensors));
    let ran = npukit.run(&["build", "model.tflite", "--accel", "ethos-u85-256"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.stderr.contains("comparison of different scales"), "{ran:?}");
}

#[test]
fn nearest_neighbours_on_u85() {
    let size = |height, width| Tensor::integers("size", &[2], &[height, width]);
    let resize =
        |height, width| [int8("x", &[1, 4, 4, 8]), size(height, width), int8("y", &[1, height, width, 8])];
    wrong_on(
        "ethos-u85-256",
        "RESIZE_NEAREST_NEIGHBOR without half-pixel centres",
        &RESIZE_NEAREST,
        &resize(6, 4),
    );
}

/// Both operands' places count: the defect is in what follows a resized map, and the warning names the two operators.
#[test]
fn what_a_resized_map_is_joined_to() {
    let tensors = [
        int8("x", &[1, 4, 4, 8]),
        Tensor::integers("size", &[2], &[8, 8]),
        int8("resized", &[1, 8, 8, 8]),
        int8("other", &[1, 3, 8, 8]),
        int8("y", &[1, 11, 8, 8]),
    ];
    let family = "PAD or CONCATENATION behind RESIZE_BILINEAR";
    let npukit = Npukit::new();
    let verify = |first: usize, second: usize, status, accelerator| {
        let steps: [(&Operator, &[usize], usize); 2] =
            [(&RESIZE_BILINEAR, &[0, 1], 2), (&CONCATENATION, &[first, second], 4)];
        npukit.file("model.tflite", &graph(&steps, &tensors));
        npukit.json(status, &["verify", "model.tflite", "--samples", "8", "--accel", accelerator])
    };
    let report = verify(3, 2, 1, "ethos-u55-128");
    assert_eq!(report["bit_exact"], false, "{report}");
    let defect = &report["known_defects"][0];
    assert_eq!(defect["family"], family, "{report}");
    assert_eq!(
        defect["layer"], "operator 1 CONCATENATION (output 'y') behind operator 0 RESIZE_BILINEAR",
        "{report}"
    );
    assert_eq!(defect["products"], serde_json::json!(["ethos-u55", "ethos-u65"]), "{report}");
    let ran = npukit.run(&["build", "model.tflite", "--accel", "ethos-u55-128"]);
    assert!(ran.status == 0 && ran.stderr.contains(family), "{ran:?}");

    for (first, second, accelerator) in [(2, 3, "ethos-u55-128"), (3, 2, "ethos-u85-256")] {
        let report = verify(first, second, 0, accelerator);
        assert_eq!(report["bit_exact"], true, "{report}");
        assert_eq!(report["known_defects"].as_array().map(Vec::len), Some(0), "{report}");
    }
}

/// A map that something else needs too is written to a place of its own, and right.
#[test]
fn what_a_map_of_two_readers_is_joined_to() {
    let tensors = [
        int8("x", &[1, 4, 4, 8]),
        Tensor::integers("size", &[2], &[8, 8]),
        int8("resized", &[1, 8, 8, 8]),
        int8("other", &[1, 3, 8, 8]),
        int8("joined", &[1, 11, 8, 8]),
    ];
    let steps: [(&Operator, &[usize], usize); 2] =
        [(&RESIZE_BILINEAR, &[0, 1], 2), (&CONCATENATION, &[3, 2], 4)];
    let network = graph(&steps, &tensors);
    let npukit = Npukit::new();
    for (outputs, status, named) in [(&[4][..], 1, 1), (&[4, 2], 0, 0)] {
        let network = npukit_vela::tflite::with_outputs(&network, outputs).unwrap();
        npukit.file("model.tflite", &network);
        let report =
            npukit.json(status, &["verify", "model.tflite", "--samples", "8", "--accel", "ethos-u55-128"]);
        assert_eq!(report["bit_exact"], status == 0, "{report}");
        assert_eq!(report["known_defects"].as_array().map(Vec::len), Some(named), "{report}");
    }
}

/// A network in which each recogniser of neighbours finds something to look at.
fn neighbours() -> Vec<u8> {
    let op = |code, bytes| Operator { code, options: 1, bytes };
    let [strided_slice, slice, split, unpack] = [45, 65, 49, 88].map(|code| op(code, &[(1, 1)]));
    let [conv, pad, add, softmax, lstm] = [3, 34, 0, 25, 44].map(|code| op(code, &[(0, 1), (3, 1)]));
    let matmul = op(126, &[]);
    let [transposed, pack, squeeze] = [67, 83, 43].map(|code| op(code, &[]));
    let tensors = [
        int8("x", &[1, 8, 8, 4]),
        Tensor::integers("begin", &[4], &[0, -1, 0, 0]),
        Tensor::integers("end", &[4], &[1, 8, 8, 4]),
        Tensor::integers("strides", &[4], &[1, 2, 1, 1]),
        int8("rows", &[1, 4, 8, 4]),
        Tensor::integers("paddings", &[4, 2], &[0, 0, 1, 1, 1, 1, 0, 0]),
        int8("padded", &[1, 6, 10, 4]),
        int8("weights", &[4, 3, 3, 4]),
        int8("y", &[1, 4, 8, 4]),
        Tensor::integers("axis", &[1], &[3]),
        int8("split", &[1, 4, 8, 2]),
        int8("one", &[1, 4, 8, 1]),
        Tensor::integers("size", &[2], &[8, 16]),
        int8("resized", &[1, 8, 16, 4]),
        int8("behind", &[1, 10, 18, 4]),
        int8("sliced", &[1, 4, 8, 2]),
        int8("unpacked", &[1, 8, 4]),
        Tensor::integers("shape", &[4], &[1, 8, 16, 4]),
        int8("transposed", &[1, 8, 16, 4]),
        int8("joined", &[1, 10, 18, 4]),
        int8("packed", &[2, 1, 4, 8, 2]),
        int8("mirrored", &[1, 10, 10, 4]),
        int8("squeezed", &[10, 10, 4]),
    ];
    let steps: &[(&Operator, &[usize], usize)] = &[
        (&strided_slice, &[0, 1, 2, 3], 4),
        (&pad, &[4, 5], 6),
        (&conv, &[6, 7], 8),
        (&add, &[4, 8], 8),
        (&softmax, &[4], 8),
        (&split, &[9, 4], 10),
        (&REDUCE_MAX_KEPT, &[10, 9], 11),
        (&matmul, &[10, 8], 11),
        (&slice, &[4, 1, 3], 15),
        (&REDUCE_MAX_KEPT, &[15, 9], 11),
        (&unpack, &[4], 16),
        (&REDUCE_MAX_KEPT, &[16, 9], 11),
        (&RESIZE_BILINEAR, &[4, 12], 13),
        (&pad, &[13, 5], 14),
        (&lstm, &[14], 11),
        (&RESIZE_NEAREST, &[4, 12], 11),
        (&transposed, &[17, 7, 15], 18),
        (&pad, &[18, 5], 19),
        (&pack, &[15, 15], 20),
        (&MIRROR_PAD, &[0, 5], 21),
        (&squeeze, &[21], 22),
    ];
    graph(steps, &tensors)
}

#[test]
fn neighbours_are_looked_at() {
    let bytes = neighbours();
    let model = npukit_vela::tflite::Model::parse(&bytes).unwrap();
    let found = npukit::defects::find(&model);
    let families: Vec<&str> = found.iter().map(|defect| defect.family.name()).collect();
    let expected = [
        "STRIDED_SLICE before a padded kernel",
        "STRIDED_SLICE before an element-wise operator",
        "STRIDED_SLICE before an element-wise operator",
        "slice before REDUCE_MAX/REDUCE_MIN",
        "slice before BATCH_MATMUL",
        "slice before REDUCE_MAX/REDUCE_MIN",
        "slice before REDUCE_MAX/REDUCE_MIN",
        "PAD or CONCATENATION behind RESIZE_BILINEAR",
        "slice before TRANSPOSE_CONV",
        "PAD or CONCATENATION behind TRANSPOSE_CONV",
        "slice before PACK",
        "MIRROR_PAD of width before RESHAPE",
    ];
    assert_eq!(families, expected, "{found:?}");

    // The transposed convolution's result is an output too, so that it has a place of its own.
    let bytes = npukit_vela::tflite::with_outputs(&bytes, &[22, 18]).unwrap();
    let model = npukit_vela::tflite::Model::parse(&bytes).unwrap();
    let found = npukit::defects::find(&model);
    assert!(
        found.iter().all(|defect| defect.family != npukit::defects::Family::TransposedPadded),
        "{found:?}"
    );
}

proptest::proptest! {
    /// Whatever a file says, looking for defects ends without a panic.
    #[test]
    fn damaged_networks_are_looked_at(
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), proptest::prelude::any::<i32>(), 0u8..4), 1..12),
    ) {
        let mut bytes = neighbours();
        for (place, word, kind) in changes {
            let at = place.index(bytes.len() / 4) * 4;
            let word = [word, i32::MAX, i32::MIN, word & 0xFF][usize::from(kind)];
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        if let Ok(model) = npukit_vela::tflite::Model::parse(&bytes) {
            let found = npukit::defects::find(&model);
            proptest::prop_assert!(found.len() <= 2 * model.main().operators.len());
        }
    }
}
