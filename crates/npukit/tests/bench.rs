//! `npukit bench`: its fields, and figures that make sense beside each other.

mod support;

use support::{Npukit, digits};

#[test]
fn a_network_is_measured_against_litert() {
    let arguments =
        ["bench", &digits(), "--against", "litert", "--threads", "2", "--rounds", "3", "--turn", "5"];
    let report = Npukit::new().json(0, &arguments);
    assert_eq!((&report["engine"], &report["threads"]), (&"fast".into(), &2.into()));
    for field in ["ns_per_inference", "ns_per_inference_single_thread", "planning_ns", "constant_bytes"] {
        assert!(report[field].as_u64().is_some_and(|number| number > 0), "{field} in {report}");
    }
    assert!(report["speedup"].as_f64().is_some_and(|speedup| speedup > 0.0));
    let against = report["against"].as_array().expect("a list");
    let runtimes: Vec<&str> = against.iter().filter_map(|one| one["runtime"].as_str()).collect();
    assert_eq!(runtimes, ["litert-xnnpack", "litert-default", "litert-ref"]);
    for one in against {
        assert!(one["ns_per_inference"].as_u64().is_some_and(|number| number > 0), "{one}");
        assert!(one["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{one}");
    }
}

#[test]
fn a_compiled_network_is_measured_alone() {
    let npukit = Npukit::new();
    let built = npukit.run(&["build", &digits(), "-o", "digits.npub"]);
    assert_eq!(built.status, 0, "{built:?}");
    let short = ["bench", "digits.npub", "--engine", "reference", "--rounds", "2", "--turn", "1"];
    let report = npukit.json(0, &short);
    assert_eq!((&report["engine"], &report["threads"]), (&"reference".into(), &1.into()));
    assert_eq!((&report["speedup"], &report["against"]), (&serde_json::Value::Null, &serde_json::json!([])));

    let refused = npukit.json(2, &["bench", "digits.npub", "--against", "litert"]);
    assert_eq!(refused["error"]["kind"], "usage");
    let missing = npukit.json(2, &["bench", "nothing.npub"]);
    assert_eq!(missing["error"]["kind"], "no_such_file");
    let damaged = npukit.file("damaged.npub", b"NPU1 but no more");
    let damaged = npukit.json(2, &["bench", damaged.to_str().expect("UTF-8")]);
    assert_eq!(damaged["error"]["kind"], "not_an_npub");
}
