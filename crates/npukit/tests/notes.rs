//! What `verify` adds where the references or the drawn inputs are the reason of a bad answer.

mod support;

use support::Npukit;
use support::tflite::{INT8, INT32, Operator, Tensor, network};

// Numbers of schema.fbs: BuiltinOperator, and BuiltinOptions for the second one of each.
const ADD: Operator = Operator { code: 0, options: 11, bytes: &[] };
const SUM: Operator = Operator { code: 74, options: 27, bytes: &[(0, 1)] };

/// Both interpreters' kernels are known to differ from what LiteRT's optimised ones and the NPU compute.
#[test]
fn a_sum_that_differs_has_its_reason() {
    let npukit = Npukit::new();
    let tensors = [
        Tensor::quantised("input", INT8, &[1, 4, 6, 8], 0.05, 3),
        Tensor::integers("axes", &[1], &[2]),
        Tensor::quantised("output", INT8, &[1, 4, 1, 8], 0.13, -4),
    ];
    npukit.file("model.tflite", &network(&SUM, &tensors));
    let report = npukit.json(1, &["verify", "model.tflite", "--samples", "20", "--accel", "ethos-u55-128"]);
    let notes: Vec<&str> =
        report["notes"].as_array().unwrap().iter().filter_map(|note| note.as_str()).collect();
    assert!(notes.iter().any(|note| note.starts_with("SUM: ")), "{report}");
}

/// 32-bit operands from all over their range leave 32 bits once they are scaled, which the model declines to guess.
#[test]
fn inputs_that_the_network_cant_take_are_advised_against() {
    let npukit = Npukit::new();
    let map = |name, scale| Tensor::quantised(name, INT32, &[1, 4, 4, 8], scale, 0);
    npukit.file("model.tflite", &network(&ADD, &[map("a", 1.0), map("b", 1.0), map("c", 1.0)]));
    let report = npukit.json(2, &["verify", "model.tflite", "--samples", "5", "--accel", "ethos-u55-128"]);
    assert_eq!(report["error"]["kind"], "not_executable", "{report}");
    assert!(report["error"]["advice"].as_str().unwrap().contains("--samples 0"), "{report}");
}
