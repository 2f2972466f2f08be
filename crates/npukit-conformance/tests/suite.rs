//! The part of the suite that runs with every change: 600 networks for U55 and U65, 300 for U85, and those that once failed.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use npukit::{BuildOptions, build};
use npukit_conformance::judge::{self, Verdict};
use npukit_conformance::record::{Case, Outcome, Product, Record, WeightForm};
use npukit_conformance::suite::Request;
use npukit_conformance::{shrink, table};
use npukit_vela::progress::Silent;
use serde_json::{Value, json};
use support::with_suite;

/// Networks of other seeds than the long run's, so that time adds to what has been seen.
const SEED: u64 = 41;

#[test]
fn every_case_is_exact_or_explained() {
    with_suite(|suite, _| {
        let request = Request {
            shares: vec![(Product::U55, 400), (Product::U65, 200), (Product::U85, 300)],
            seed: SEED,
            operators: None,
            accelerators: Vec::new(),
            accelerators_per_case: 1,
            samples: 4,
            jobs: thread::available_parallelism().map_or(2, usize::from),
            time_limit: None,
        };
        let mut records: Vec<Record> = Vec::new();
        let counts = suite.run(&request, &mut |record| records.push(record)).expect("the suite runs");
        assert_eq!(counts, (900, 900));
        println!("seed {SEED}: {}", table::summary(&records));
        let mut failures = Vec::new();
        for record in &records {
            if let Verdict::Failure(reason) = judge::judge(record) {
                failures.push(record);
                println!("{}", judge::describe(record, &reason));
            }
        }
        let folder = npukit_testkit::repository().join("target/conformance-failures");
        for record in failures.iter().take(2) {
            match shrink::shrink(suite, record, request.samples, &folder) {
                Ok(found) => println!("{found}"),
                Err(error) => println!("{}: not shrunk: {error}", record.case.name),
            }
        }
        assert!(failures.is_empty(), "{} unexplained cases", failures.len());
        // The suite has to prove something: most programs are compared, equal, and their outputs alive.
        let exact = records.iter().filter(|record| matches!(judge::judge(record), Verdict::Exact(_))).count();
        assert!(exact * 10 > records.len() * 9, "{exact} of {}", records.len());
        let alive = records.iter().filter(|record| {
            matches!(&record.outcome, Outcome::Compared(all) if all.with.iter().any(|one| one.distinct_values > 3))
        });
        assert!(alive.count() * 10 > records.len() * 7);
    });
}

/// Cases that a fault in npukit once made fail, all of them exact since.
#[test]
fn what_once_failed_stays_exact() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        for (product, op, dtype, seed, fault) in [
            (
                Product::U65,
                "BATCH_MATMUL",
                "int8",
                0x9b02_4abf,
                "a fast scratch of scratch's size was taken for scratch",
            ),
            (Product::U65, "RESIZE_BILINEAR", "int16", 0x218a_fe61, "the same"),
            (Product::U85, "LOGICAL_OR", "bool", 0x010b_8610, "the same"),
            (
                Product::U85,
                "GATHER",
                "int8",
                0xc387_ff6f,
                "the unused stride of a transfer of one row was asked for",
            ),
            (Product::U85, "SCATTER_ND", "int32", 0x061a_5208, "the same"),
            (
                Product::U85,
                "TRANSPOSE_CONV",
                "int16",
                0xd523_4d55,
                "the padding of a stream without channels wasn't skipped in the fast weight format",
            ),
        ] {
            let (case, model) = suite.server().draw(product, op, dtype, seed).expect("the case");
            let records = bench.measure(product, &case, &model, &product.accelerators()).expect("measured");
            for record in records {
                let verdict = judge::judge(&record);
                assert!(
                    matches!(verdict, Verdict::Exact(_)),
                    "{op} {dtype} on {}: {verdict:?} ({fault})",
                    record.accelerator
                );
            }
        }
    });
}

/// A layer over many input channels, with weights of one distribution.
fn deep_layer(op: &str, dtype: &str, kernel: u32, weights: &str) -> Value {
    let int16 = dtype == "int16";
    let mut layer = json!({
        "op": op, "channels": 64, "seed": 5, "weights": weights, "per_channel": dtype != "uint8", "channel_octaves": 1,
        "bias": if int16 { "int64" } else { "int32" }, "bias_reach": 1.0, "gain": if int16 { 7000.0 } else { 30.0 },
        "activation": "NONE", "scale": 0.05, "zero_point": 0,
    });
    if dtype == "uint8" {
        layer["weight_zero_point"] = json!(128);
    }
    let shape = if op == "CONV_2D" {
        layer["kernel"] = json!([kernel, kernel]);
        layer["stride"] = json!([1, 1]);
        layer["dilation"] = json!([1, 1]);
        layer["padding"] = json!("SAME");
        json!([1, 5, 5, 256])
    } else {
        layer["keep_num_dims"] = json!(false);
        json!([1, 256])
    };
    json!({"op": op, "dtype": dtype, "input": {"shape": shape, "scale": 0.02, "zero_point": 0}, "layers": [layer]})
}

/// Vela makes sparse streams of weights of which two of every four input channels are zero, read from SRAM also in the fast format;
/// of few values it makes the fast format alone. All of them occur, and are exact.
#[test]
fn every_weight_format_occurs_and_is_exact() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        // A seed's bits choose how a case is compiled: here for weights in flash, and for SRAM alone.
        let (flash, sram) = (0x111, 0x11);
        let accelerators = Product::U85.accelerators();
        let mut seen: BTreeMap<WeightForm, BTreeSet<String>> = BTreeMap::new();
        for (op, dtype, kernel) in [
            ("CONV_2D", "int8", 1),
            ("CONV_2D", "int8", 3),
            ("CONV_2D", "uint8", 1),
            ("CONV_2D", "uint8", 3),
            ("CONV_2D", "int16", 1),
            ("CONV_2D", "int16", 3),
            ("FULLY_CONNECTED", "int8", 1),
            ("FULLY_CONNECTED", "int16", 1),
        ] {
            for (weights, seed) in
                [("bell", flash), ("pruned", flash), ("pruned", sram), ("pruned few", sram), ("few", sram)]
            {
                let parameters = deep_layer(op, dtype, kernel, weights);
                let (case, model) =
                    suite.server().from_parameters(Product::U85, &parameters).expect("a case");
                let case = Case { seed, ..case };
                for record in bench.measure(Product::U85, &case, &model, &accelerators).expect("measured") {
                    let verdict = judge::judge(&record);
                    let about =
                        format!("{op} {dtype} {weights} on {} {}", record.accelerator, record.variant);
                    assert!(matches!(verdict, Verdict::Exact(_)), "{about}: {verdict:?}");
                    assert!(
                        !weights.starts_with("pruned") || record.weights.iter().all(|form| form.sparse),
                        "{about}"
                    );
                    for form in record.weights {
                        seen.entry(form).or_default().insert(record.accelerator.clone());
                    }
                }
            }
        }
        // Vela's estimates don't let the fast format win for sparse weights in four streams.
        for (fast, sparse, least) in [(false, false, 5), (false, true, 5), (true, true, 3), (true, false, 5)]
        {
            let found = seen.get(&WeightForm { fast, sparse }).map_or(0, BTreeSet::len);
            assert!(found >= least, "fast {fast}, sparse {sparse}: {seen:?}");
        }
    });
}

/// The forked compiler makes what Vela makes in a process of its own.
#[test]
fn the_forked_compiler_is_vela() {
    with_suite(|suite, environment| {
        let forked = suite.bench(1).expect("a bench").vela;
        for (product, op, dtype) in [(Product::U55, "CHAIN", "int8"), (Product::U85, "CONV_2D", "uint8")] {
            let (_, model) = suite.server().draw(product, op, dtype, 7).expect("a case");
            let options = BuildOptions::new(product.accelerators()[0]);
            let npub = |vela| build(vela, &model, &options, &mut Silent).expect("it compiles").npub;
            assert_eq!(npub(&forked), npub(environment.vela()), "{op}");
        }
    });
}

/// A wrong program is seen, and shrinks: NEG, of which the compiler is known to make another function.
#[test]
fn what_is_wrong_is_seen_and_shrinks() {
    with_suite(|suite, _| {
        let bench = suite.bench(4).expect("a bench");
        let accelerator = Product::U55.accelerators()[0];
        let (case, model) = suite.server().draw(Product::U55, "NEG", "int8", 1).expect("a case");
        let mut record =
            bench.measure(Product::U55, &case, &model, &[accelerator]).expect("measured").remove(0);
        assert!(matches!(judge::judge(&record), Verdict::Explained { .. }), "{:?}", judge::judge(&record));
        let different = |record: &Record| matches!(&record.outcome, Outcome::Compared(all) if all.exact().is_none() && all.nearest().is_some());
        let smallest = shrink::smallest(suite, &record, 4, &different).expect("it shrinks");
        assert!(different(&smallest.record));
        let elements = |parameters: &serde_json::Value| -> u64 {
            let shape = parameters["input"]["shape"].as_array().expect("a shape");
            shape.iter().filter_map(serde_json::Value::as_u64).product()
        };
        assert_eq!(elements(&smallest.case.parameters), 1, "{}", smallest.case.parameters);
        assert!(elements(&record.case.parameters) > 1);
        // Without the knowledge of the defect it is a failure.
        record.defects.clear();
        assert!(matches!(judge::judge(&record), Verdict::Failure(_)));
    });
}
