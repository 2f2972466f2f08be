//! The compiler's known defects, on both sides of their limits: where one is named the program is wrong, and in a harmless
//! neighbour nothing is named and the program is exact.

mod support;

use npukit_conformance::judge::{self, Verdict};
use npukit_conformance::measure::Bench;
use npukit_conformance::record::{Outcome, Product};
use npukit_conformance::suite::Suite;
use serde_json::{Value, json};
use support::with_suite;

const BOTH: [Product; 2] = [Product::U55, Product::U85];
/// Compiled with inputs and outputs in regions of their own, for performance, in the default memory mode.
const SEPARATE: u64 = 0x111 + 1;
/// The same with inputs and outputs in the arena.
const ARENA: u64 = 0x111;

/// A network and what is known about it.
struct Network {
    shape: Vec<usize>,
    dtype: &'static str,
    layers: Vec<Value>,
    seed: u64,
}

fn network(shape: &[usize], layers: &[Value]) -> Network {
    Network { shape: shape.to_vec(), dtype: "int8", layers: layers.to_vec(), seed: SEPARATE }
}

/// A map of 8 rows and columns.
fn map(layers: &[Value]) -> Network {
    network(&[1, 8, 8, 4], layers)
}

impl Network {
    fn of(self, dtype: &'static str) -> Network {
        Network { dtype, ..self }
    }

    fn in_arena(self) -> Network {
        Network { seed: ARENA, ..self }
    }

    /// Checks what is named and what comes out, on these products.
    fn check(&self, suite: &Suite<'_>, bench: &Bench<'_>, products: &[Product], family: Option<&str>) {
        let zero_point = if matches!(self.dtype, "int8" | "uint8") { 3 } else { 0 };
        let scale = if self.dtype == "int8" { 0.015_625 } else { 1.0 };
        let input = json!({"shape": self.shape, "scale": scale, "zero_point": zero_point});
        let op = &self.layers[0]["op"];
        let parameters = json!({"op": op, "dtype": self.dtype, "input": input, "layers": self.layers});
        for &product in products {
            let (mut case, model) = suite
                .server()
                .from_parameters(product, &parameters)
                .unwrap_or_else(|error| panic!("{parameters}: {error}"));
            case.seed = self.seed;
            let accelerator = product.accelerators()[0];
            let record = bench.measure(product, &case, &model, &[accelerator]).expect("measured").remove(0);
            let named: Vec<&str> = record.defects.iter().map(|defect| defect.family.as_str()).collect();
            let about = format!("{accelerator} {parameters}: {:?}", record.outcome);
            assert_eq!(named, family.into_iter().collect::<Vec<_>>(), "{about}");
            let exact = matches!(&record.outcome, Outcome::Compared(all) if all.exact().is_some());
            assert_eq!(exact, family.is_none(), "{about}");
            assert!(!matches!(judge::judge(&record), Verdict::Failure(_)), "{about}");
        }
    }
}

/// A STRIDED_SLICE from a place on, with strides along height and width.
fn slice(begin: [usize; 4], size: [usize; 4], (height, width): (usize, usize)) -> Value {
    json!({"op": "STRIDED_SLICE", "begin": begin, "size": size, "strides": [1, height, width, 1], "begin_mask": 0,
           "end_mask": 0, "shrink": false, "negative_end": false})
}

/// Every second row, or column, of the map.
fn rows() -> Value {
    slice([0; 4], [1, 8, 8, 4], (2, 1))
}

fn columns() -> Value {
    slice([0; 4], [1, 8, 8, 4], (1, 2))
}

fn conv(op: &str, kernel: [usize; 2], stride: [usize; 2], padding: &str) -> Value {
    json!({"op": op, "kernel": kernel, "stride": stride, "dilation": [1, 1], "padding": padding, "channels": 4, "seed": 3,
           "depth_multiplier": 1, "weights": "bell", "per_channel": false, "channel_octaves": 0, "bias": "int32", "bias_reach": 1.0,
           "gain": 30.0, "activation": "NONE", "scale": 0.05, "zero_point": 2})
}

fn pool(op: &str, kernel: [usize; 2]) -> Value {
    json!({"op": op, "kernel": kernel, "stride": [1, 1], "padding": "SAME", "activation": "NONE"})
}

fn pad(height: [usize; 2], width: [usize; 2], channels: [usize; 2]) -> Value {
    json!({"op": "PAD", "paddings": [[0, 0], height, width, channels], "index": "int32"})
}

#[test]
fn slices_with_a_stride_before_padding() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("STRIDED_SLICE before a padded kernel");
        let check = |layers: &[Value], products: &[Product], family| {
            map(layers).check(suite, &bench, products, family)
        };
        let same = |op, kernel| conv(op, kernel, [1, 1], "SAME");
        for op in ["CONV_2D", "DEPTHWISE_CONV_2D"] {
            check(&[rows(), same(op, [3, 1])], &BOTH, name);
            check(&[columns(), same(op, [1, 3])], &BOTH, name);
            // Padded along the other axis, or behind the map alone.
            check(&[rows(), same(op, [1, 3])], &BOTH, None);
            check(&[rows(), same(op, [2, 1])], &BOTH, None);
            check(&[rows(), conv(op, [3, 1], [2, 1], "SAME")], &BOTH, None);
            check(&[rows(), conv(op, [3, 1], [1, 1], "VALID")], &BOTH, None);
        }
        // Of nine rows five are left, of which the window of stride 2 has padding on either side.
        let five = slice([0; 4], [1, 9, 8, 4], (2, 1));
        network(&[1, 9, 8, 4], &[five, conv("CONV_2D", [3, 1], [2, 1], "SAME")])
            .check(suite, &bench, &BOTH, name);
        check(&[slice([0, 3, 0, 0], [1, 1, 8, 4], (2, 1)), same("CONV_2D", [3, 1])], &BOTH, name);
        check(&[slice([0, 1, 0, 0], [1, 4, 8, 4], (1, 1)), same("CONV_2D", [3, 1])], &BOTH, None);
        check(&[rows(), pool("MAX_POOL_2D", [3, 1])], &BOTH, name);
        check(&[rows(), pool("AVERAGE_POOL_2D", [3, 1])], &BOTH, name);
        check(&[rows(), pool("MAX_POOL_2D", [2, 1])], &BOTH, None);
        // A PAD that becomes a convolution's own, and those that don't.
        let valid = |kernel| conv("CONV_2D", kernel, [1, 1], "VALID");
        check(&[rows(), pad([1, 1], [0, 0], [0, 0]), valid([3, 1])], &BOTH, name);
        check(&[rows(), pad([0, 1], [0, 0], [0, 0]), valid([2, 1])], &BOTH, None);
        check(&[rows(), pad([1, 1], [0, 0], [0, 0]), valid([1, 1])], &BOTH, None);

        let transposed = |kernel, stride| conv("TRANSPOSE_CONV", kernel, stride, "SAME");
        check(&[rows(), transposed([3, 3], [2, 2])], &BOTH, name);
        check(&[rows(), transposed([2, 1], [1, 1])], &BOTH, name);
        for kernel in [transposed([2, 2], [2, 2]), transposed([1, 3], [1, 1])] {
            check(&[rows(), kernel.clone()], &[Product::U55], name);
            check(&[rows(), kernel], &[Product::U85], None);
        }
        check(&[columns(), transposed([3, 1], [1, 1])], &[Product::U55], name);
        check(&[rows(), transposed([1, 1], [2, 2])], &BOTH, None);
    });
}

#[test]
fn slices_with_a_stride_beside_a_map() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("STRIDED_SLICE before an element-wise operator");
        let check = |layers: &[Value], products: &[Product], family| {
            map(layers).check(suite, &bench, products, family)
        };
        let with = |op: &str, kind: &str, shape: &[usize]| {
            json!({"op": op, "seed": 1, "activation": "NONE", "gain": 30.0, "zero_point": 0, "same_quant": true,
                   "other": {"kind": kind, "shape": shape, "scale": 0.02, "zero_point": 3, "first": false}})
        };
        for op in ["ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM"] {
            check(&[rows(), with(op, "input", &[1, 4, 8, 4])], &[Product::U55, Product::U65], name);
            check(&[rows(), with(op, "input", &[1, 4, 8, 4])], &[Product::U85], None);
        }
        check(&[rows(), with("ADD", "constant", &[1, 4, 1, 4])], &[Product::U55], name);
        // One element along the axis of the stride, a scalar, no stride, another operator.
        check(&[rows(), with("ADD", "input", &[1, 1, 8, 4])], &BOTH, None);
        check(&[rows(), with("ADD", "constant", &[4])], &BOTH, None);
        check(&[rows(), with("ADD", "scalar", &[1])], &BOTH, None);
        check(&[slice([0, 1, 0, 0], [1, 4, 8, 4], (1, 1)), with("ADD", "input", &[1, 4, 8, 4])], &BOTH, None);
        check(&[rows(), with("SQUARED_DIFFERENCE", "input", &[1, 4, 8, 4])], &BOTH, None);
        check(&[slice([0, 3, 0, 0], [1, 1, 8, 4], (2, 1)), with("ADD", "input", &[1, 1, 8, 4])], &BOTH, None);

        let softmax = json!({"op": "SOFTMAX", "beta": 1.0});
        check(&[rows(), softmax.clone()], &[Product::U55], name);
        check(&[rows(), softmax.clone()], &[Product::U85], None);
        check(&[slice([0, 1, 0, 0], [1, 4, 8, 4], (1, 1)), softmax], &BOTH, None);
    });
}

#[test]
fn slices_before_reductions_and_products() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("slice before REDUCE_MAX/REDUCE_MIN");
        let check = |layers: &[Value], products: &[Product], family| {
            map(layers).check(suite, &bench, products, family)
        };
        let reduce = |op: &str, axis: usize| json!({"op": op, "axes": [axis], "keep_dims": true});
        let inner = [
            cut([0, 1, 0, 0], [1, 4, 8, 4]),
            cut([0, 0, 0, 0], [1, 8, 4, 4]),
            cut([0, 0, 0, 1], [1, 8, 8, 2]),
            json!({"op": "SPLIT", "axis": 3, "count": 2}),
            rows(),
        ];
        for slice in &inner {
            check(&[slice.clone(), reduce("REDUCE_MAX", 3)], &BOTH, name);
            check(&[slice.clone(), reduce("REDUCE_MIN", 3)], &[Product::U85], name);
            check(&[slice.clone(), reduce("REDUCE_MIN", 3)], &[Product::U55], None);
            check(&[slice.clone(), reduce("REDUCE_MAX", 2)], &BOTH, None);
            check(&[slice.clone(), reduce("REDUCE_MAX", 1)], &[Product::U85], None);
        }
        for slice in [&inner[0], &inner[2], &inner[3], &inner[4]] {
            check(&[slice.clone(), reduce("REDUCE_MAX", 1)], &[Product::U55], name);
        }
        check(&[inner[1].clone(), reduce("REDUCE_MAX", 1)], &[Product::U55], None);
        // The first rows, all of each.
        check(&[cut([0; 4], [1, 4, 8, 4]), reduce("REDUCE_MAX", 3)], &BOTH, None);

        // One element is left, or there is one from the first.
        let one = |axis: usize| {
            cut(
                [[0; 4], [0, 2, 0, 0], [0; 4], [0, 0, 0, 2]][axis],
                [[0; 4], [1, 1, 8, 4], [0; 4], [1, 8, 8, 1]][axis],
            )
        };
        check(&[one(3), reduce("REDUCE_MAX", 3)], &BOTH, name);
        check(&[one(3), reduce("REDUCE_MIN", 3)], &[Product::U85], name);
        check(&[one(1), reduce("REDUCE_MAX", 1)], &[Product::U55], name);
        check(&[one(1), reduce("REDUCE_MAX", 1)], &[Product::U85], None);
        let flat = network(&[1, 4, 4, 1], &[cut([0, 1, 0, 0], [1, 2, 4, 1]), reduce("REDUCE_MAX", 3)]);
        flat.check(suite, &bench, &BOTH, name);
        // Both of the last axes: the channels are not reduced from the slice itself.
        let both = |op: &str, axis: usize| json!({"op": op, "axes": [axis, axis + 1], "keep_dims": true});
        check(&[cut([0, 1, 0, 1], [1, 4, 8, 2]), both("REDUCE_MAX", 2)], &BOTH, None);
        check(&[cut([0, 1, 0, 1], [1, 4, 8, 2]), both("REDUCE_MIN", 2)], &BOTH, None);
        let two = || cut([0, 1, 1, 3], [2, 2, 2, 5]);
        network(&[2, 4, 4, 17], &[two(), both("REDUCE_MAX", 2)]).check(suite, &bench, &BOTH, name);
        let unpack = || json!({"op": "UNPACK", "axis": 0});
        let unpacked = |last: Value| network(&[2, 9, 7, 20], &[unpack(), last]);
        unpacked(both("REDUCE_MAX", 1)).check(suite, &bench, &[Product::U55], name);
        unpacked(both("REDUCE_MAX", 1)).check(suite, &bench, &[Product::U85], None);
        unpacked(reduce("REDUCE_MAX", 2)).check(suite, &bench, &BOTH, name);
        unpacked(reduce("REDUCE_MIN", 2)).check(suite, &bench, &[Product::U85], name);

        let name = Some("slice before BATCH_MATMUL");
        let product = |adjoined| {
            json!({"op": "BATCH_MATMUL", "seed": 1, "columns": 3, "adj_x": adjoined, "adj_y": false, "gain": 30.0, "zero_point": 0,
                   "other": {"kind": "input", "scale": 0.02, "zero_point": 3}})
        };
        check(&[cut([0, 0, 0, 1], [1, 8, 8, 2]), product(false)], &[Product::U55], name);
        check(&[cut([0, 0, 0, 1], [1, 8, 8, 2]), product(false)], &[Product::U85], None);
        check(&[rows(), product(false)], &BOTH, name);
        check(&[columns(), product(false)], &[Product::U85], None);
        check(&[rows(), product(true)], &[Product::U55], None);
        let tail = |first| json!({"op": "SLICE", "begin": [first, 0], "size": [4, 16], "to_end": false});
        network(&[8, 16], &[tail(0), product(false)]).check(suite, &bench, &[Product::U55], name);
        network(&[8, 16], &[tail(4), product(false)]).check(suite, &bench, &BOTH, None);
    });
}

#[test]
fn what_stands_behind_a_resized_map() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("PAD or CONCATENATION behind RESIZE_BILINEAR");
        let resize = |mode: &str| json!({"op": "RESIZE_BILINEAR", "factor": 2, "mode": mode});
        let half = || resize("half_pixel_centers");
        let check = |layers: &[Value], products: &[Product], family| {
            network(&[1, 4, 4, 4], layers).check(suite, &bench, products, family);
        };
        for padding in [pad([1, 0], [0, 0], [0, 0]), pad([0, 0], [1, 0], [0, 0]), pad([0, 0], [0, 0], [1, 0])]
        {
            check(&[half(), padding.clone()], &[Product::U55, Product::U65], name);
            check(&[half(), padding.clone()], &[Product::U85], None);
            check(&[resize("plain"), padding.clone()], &BOTH, None);
            check(&[resize("align_corners"), padding], &BOTH, None);
        }
        let mut valued = pad([1, 1], [1, 1], [0, 0]);
        valued["op"] = json!("PADV2");
        valued["value"] = json!(5);
        check(&[half(), valued], &[Product::U55], name);
        check(&[half(), pad([0, 2], [0, 1], [0, 1])], &BOTH, None);
        check(&[half(), pad([1, 1], [1, 1], [0, 0]), conv("CONV_2D", [3, 3], [1, 1], "VALID")], &BOTH, None);
        let mut mirror = pad([1, 1], [1, 1], [0, 0]);
        mirror["op"] = json!("MIRROR_PAD");
        mirror["mode"] = json!("REFLECT");
        check(&[half(), mirror], &BOTH, None);
        let mut point = half();
        point["free_size"] = json!([3, 3]);
        network(&[1, 1, 1, 4], &[point, pad([1, 1], [1, 1], [0, 0])]).check(suite, &bench, &BOTH, None);
        // Here the resized map is the first one.
        let join =
            json!({"op": "CONCATENATION", "axis": 1, "seed": 1, "others": [{"kind": "input", "size": 3}]});
        check(&[half(), join], &BOTH, None);
    });
}

fn cut(begin: [usize; 4], size: [usize; 4]) -> Value {
    json!({"op": "SLICE", "begin": begin, "size": size, "to_end": false})
}

#[test]
fn slices_before_a_transposed_convolution() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("slice before TRANSPOSE_CONV");
        let check = |layers: &[Value], products: &[Product], family| {
            map(layers).check(suite, &bench, products, family)
        };
        let transposed = |kernel, padding| conv("TRANSPOSE_CONV", kernel, [2, 2], padding);
        let usual = || transposed([3, 3], "SAME");
        for behind in [cut([0, 2, 0, 0], [1, 4, 8, 4]), cut([0, 0, 2, 0], [1, 8, 4, 4])] {
            check(&[behind.clone(), usual()], &Product::ALL, name);
            check(&[behind.clone(), transposed([3, 3], "VALID")], &BOTH, name);
            check(&[behind.clone(), transposed([1, 1], "SAME")], &[Product::U85], name);
            check(&[behind.clone(), transposed([1, 1], "SAME")], &[Product::U55], None);
            check(&[behind, json!({"op": "TANH"}), usual()], &BOTH, None);
        }
        let parts = [
            cut([0; 4], [1, 4, 8, 4]),
            cut([0, 0, 0, 2], [1, 8, 8, 2]),
            json!({"op": "SPLIT", "axis": 1, "count": 2}),
            json!({"op": "SPLIT_V", "axis": 2, "sizes": [3, 5]}),
        ];
        for part in parts {
            check(&[part.clone(), usual()], &[Product::U55, Product::U65], name);
            check(&[part, usual()], &[Product::U85], None);
        }
        network(&[2, 1, 8, 8, 4], &[json!({"op": "UNPACK", "axis": 0}), usual()]).check(
            suite,
            &bench,
            &[Product::U55],
            name,
        );
        check(&[cut([0; 4], [1, 8, 8, 4]), usual()], &BOTH, None);
        // With a stride that is right on U85 otherwise.
        let strided = slice([0, 3, 0, 0], [1, 4, 8, 4], (2, 1));
        check(&[strided, transposed([1, 1], "SAME")], &[Product::U85], name);
    });
}

#[test]
fn what_stands_behind_a_transposed_convolution() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("PAD or CONCATENATION behind TRANSPOSE_CONV");
        let check = |layers: &[Value], products: &[Product], family| {
            network(&[1, 4, 6, 4], layers).check(suite, &bench, products, family);
        };
        let transposed = |kernel| conv("TRANSPOSE_CONV", kernel, [2, 2], "SAME");
        let mut valued = pad([1, 1], [0, 0], [0, 0]);
        valued["op"] = json!("PADV2");
        valued["value"] = json!(5);
        for padding in [pad([1, 0], [0, 0], [0, 0]), pad([0, 0], [1, 0], [0, 0]), valued] {
            check(&[transposed([3, 3]), padding.clone()], &[Product::U85], name);
            check(&[transposed([1, 1]), padding.clone()], &[Product::U85], name);
            check(&[transposed([3, 3]), padding], &[Product::U55, Product::U65], None);
        }
        check(&[transposed([3, 3]), pad([0, 1], [0, 1], [1, 1])], &BOTH, None);
        let folded = conv("CONV_2D", [3, 3], [1, 1], "VALID");
        check(&[transposed([3, 3]), pad([1, 1], [1, 1], [0, 0]), folded], &BOTH, None);
        let join = |axis: usize, last: bool| json!({"op": "CONCATENATION", "axis": axis, "seed": 1, "others": [{"kind": "input", "size": 2}], "last": last});
        for axis in [1, 2] {
            check(&[transposed([3, 3]), join(axis, true)], &[Product::U85], name);
            check(&[transposed([3, 3]), join(axis, true)], &[Product::U55], None);
            check(&[transposed([3, 3]), join(axis, false)], &BOTH, None);
        }
        check(&[transposed([3, 3]), join(3, true)], &BOTH, None);
    });
}

#[test]
fn mirrored_paddings() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let mirror = |paddings: &[[usize; 2]]| json!({"op": "MIRROR_PAD", "paddings": paddings, "mode": "REFLECT", "index": "int32"});
        let reshaped = |height: [usize; 2], width: [usize; 2], behind: &Value, family| {
            let padded = mirror(&[[0, 0], height, width, [0, 0]]);
            network(&[1, 5, 4, 7], &[padded, behind.clone()]).check(suite, &bench, &BOTH, family);
        };
        let name = Some("MIRROR_PAD of width before RESHAPE");
        let behind = [
            json!({"op": "SQUEEZE", "axes": [0]}),
            json!({"op": "EXPAND_DIMS", "axis": 0}),
            json!({"op": "RESHAPE", "split": []}),
        ];
        for behind in &behind {
            reshaped([0, 0], [1, 1], behind, name);
            reshaped([1, 1], [0, 0], behind, None);
        }
        reshaped([1, 1], [1, 0], &behind[0], name);
        reshaped([0, 0], [1, 1], &json!({"op": "TANH"}), None);
        network(&[1, 4, 7], &[mirror(&[[0, 0], [1, 1], [0, 0]]), behind[0].clone()])
            .check(suite, &bench, &BOTH, name);

        let padded = |shape: &[usize], axis: usize, family| {
            let mut paddings = vec![[0, 0]; shape.len()];
            paddings[axis] = [1, 1];
            network(shape, &[mirror(&paddings)]).check(suite, &bench, &BOTH, family);
        };
        let name = Some("MIRROR_PAD in front of the height");
        padded(&[3, 5, 6, 4], 0, name);
        padded(&[2, 3, 11, 4, 7], 0, name);
        padded(&[1, 3, 11, 4, 7], 1, name);
        padded(&[1, 3, 11, 4, 7], 2, None);
        padded(&[3, 5, 6, 4], 1, None);
        padded(&[3, 5, 7], 0, None);
    });
}

#[test]
fn slices_that_are_packed() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("slice before PACK");
        let check = |shape: &[usize], split: usize, axis: usize, products: &[Product], family| {
            let split = json!({"op": "SPLIT", "axis": split, "count": 2});
            let pack = json!({"op": "PACK", "axis": axis, "count": 2});
            network(shape, &[split, pack]).check(suite, &bench, products, family);
        };
        for split in 1..=3 {
            check(&[2, 4, 6, 4], split, 0, &Product::ALL, name);
            check(&[1, 4, 6, 4], split, 0, &[Product::U85], name);
            check(&[1, 4, 6, 4], split, 0, &[Product::U55, Product::U65], None);
            check(&[2, 4, 6, 4], split, 1, &BOTH, None);
        }
        check(&[3, 1, 6, 4], 2, 0, &BOTH, name);
        check(&[1, 4, 6, 4], 1, 1, &[Product::U85], name);
        check(&[1, 4, 6, 4], 1, 1, &[Product::U55], None);
        check(&[1, 2, 2, 4], 1, 0, &BOTH, None);
        check(&[1, 4, 6, 4], 1, 2, &BOTH, None);
        check(&[6, 6, 4], 0, 0, &BOTH, None);
        let pack = json!({"op": "PACK", "axis": 0, "count": 2});
        network(&[2, 4, 6, 4], std::slice::from_ref(&pack)).check(suite, &bench, &BOTH, None);
        let halves = json!({"op": "SPLIT", "axis": 2, "count": 2});
        network(&[2, 4, 6, 4], &[halves, json!({"op": "TANH"}), pack]).check(suite, &bench, &BOTH, None);
    });
}

#[test]
fn padding_before_a_long_stride() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let name = Some("PAD before a long stride");
        let check = |layers: &[Value], products: &[Product], family| {
            network(&[1, 12, 12, 4], layers).check(suite, &bench, products, family);
        };
        let older = [Product::U55, Product::U65];
        let around = || pad([1, 1], [1, 1], [0, 0]);
        let valid = |kernel, stride| conv("CONV_2D", kernel, stride, "VALID");
        check(&[around(), valid([3, 3], [4, 4])], &older, name);
        check(&[around(), valid([3, 3], [1, 5])], &older, name);
        check(&[pad([0, 1], [0, 1], [0, 0]), valid([3, 3], [4, 2])], &older, name);
        check(&[around(), valid([3, 3], [3, 3])], &older, None);
        check(&[around(), valid([1, 1], [4, 4])], &older, None);
        check(&[pad([5, 5], [5, 5], [0, 0]), valid([3, 3], [4, 4])], &older, None);
        check(&[pad([1, 1], [1, 1], [1, 1]), valid([3, 3], [4, 4])], &older, None);
        let valued = |value: i32| {
            let mut valued = around();
            valued["op"] = json!("PADV2");
            valued["value"] = json!(value);
            valued
        };
        // The zero point pads as a PAD does.
        check(&[valued(3), valid([3, 3], [4, 4])], &older, name);
        check(&[valued(5), valid([3, 3], [4, 4])], &older, None);
    });
}

#[test]
fn single_operators_at_their_limits() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let lstm = |units: usize, time_major: bool| {
            json!({"op": "UNIDIRECTIONAL_SEQUENCE_LSTM", "seed": 1, "units": units, "time_major": time_major, "reach": 1.0,
                   "cell_bits": -12, "cell_clip": 0.0, "zero_point": 0})
        };
        let name = Some("LSTM of one step, time major");
        for (units, batches) in [(7, 3), (4, 5), (1, 17)] {
            network(&[1, batches, 8], &[lstm(units, true)]).check(suite, &bench, &Product::ALL, name);
        }
        network(&[1, 5, 8], &[lstm(8, true)]).check(suite, &bench, &Product::ALL, None);
        network(&[1, 3, 8], &[lstm(4, true)]).check(suite, &bench, &Product::ALL, None);
        network(&[2, 5, 8], &[lstm(4, true)]).check(suite, &bench, &Product::ALL, None);
        network(&[1, 5, 8], &[lstm(4, false)]).check(suite, &bench, &Product::ALL, None);

        let arg_max = |output: &str| json!({"op": "ARG_MAX", "output": output});
        let shallow = |output| network(&[1, 6, 8, 5], &[arg_max(output)]);
        shallow("int64").in_arena().check(suite, &bench, &[Product::U65], Some("ARG_MAX int64"));
        shallow("int64").check(suite, &bench, &[Product::U65], None);
        shallow("int64").in_arena().check(suite, &bench, &BOTH, None);
        shallow("int32").in_arena().check(suite, &bench, &[Product::U65], None);
        network(&[1, 6, 8, 9], &[arg_max("int64")]).in_arena().check(suite, &bench, &[Product::U65], None);

        let product = |octave: u32| {
            json!({"op": "MUL", "seed": 1, "activation": "NONE", "octave": octave,
                   "other": {"kind": "input", "shape": [1, 4, 4, 4], "scale": 1.0, "zero_point": 0, "first": false}})
        };
        let int32 = |octave| network(&[1, 4, 4, 4], &[product(octave)]).of("int32");
        int32(0).check(suite, &bench, &BOTH, Some("MUL int32"));
        int32(29).check(suite, &bench, &BOTH, Some("MUL int32"));
        int32(30).check(suite, &bench, &BOTH, None);

        let compare = |op: &str, scale: f64| {
            json!({"op": op, "seed": 1, "same_quant": false,
                   "other": {"kind": "input", "shape": [1, 4, 4, 8], "scale": scale, "zero_point": 0, "first": false}})
        };
        let compared = |op, scale| network(&[1, 4, 4, 8], &[compare(op, scale)]);
        let family = Some("comparison of different scales");
        for op in ["LESS", "GREATER_EQUAL"] {
            compared(op, 0.03).check(suite, &bench, &[Product::U85], family);
            compared(op, 0.015_625).check(suite, &bench, &[Product::U85], None);
            compared(op, 0.5).of("int16").check(suite, &bench, &[Product::U85], None);
        }

        let truth = |op: &str, axis: usize, keep: bool| json!({"op": op, "axes": [axis], "keep_dims": keep});
        for op in ["REDUCE_ANY", "REDUCE_ALL"] {
            // Few elements are reduced, so that not all results are alike.
            let reduced = |axis, keep| network(&[1, 4, 3, 8], &[truth(op, axis, keep)]).of("bool");
            let family = Some("REDUCE_ANY/REDUCE_ALL without kept dimensions");
            reduced(2, false).check(suite, &bench, &[Product::U85], family);
            reduced(2, true).check(suite, &bench, &[Product::U85], None);
            reduced(1, false).check(suite, &bench, &[Product::U85], None);
        }
    });
}
