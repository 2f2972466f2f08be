//! What a record means: exact, different for an established reason, or a failure.
//!
//! Each reason here was established by predicting what the program or the reference computes, not guessed from the difference.

use npukit::defects::Family;

use crate::record::{Case, Comparison, Comparisons, Outcome, Product, Record, Reference};

/// What a record means.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Equal to the bit to this interpreter.
    Exact(Reference),
    /// Different, and why.
    Explained {
        /// The largest difference from the interpreter that comes nearest; `None` where the program didn't run to its end.
        max_abs_diff: Option<f64>,
        /// The established reason.
        reason: String,
    },
    /// Vela doesn't make a program of it, for an established reason.
    NotCompiled(String),
    /// The model of the NPU declines to guess what this field does.
    NotModelled(String),
    /// Nobody knows why.
    Failure(String),
}

/// The comparison operators.
const COMPARISONS: [&str; 6] = ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"];
/// Vela's `QuantizedScale` has 31 bits and a shift that isn't negative; a larger scale counts as not positive.
const LARGEST_SCALE: f64 = (1u64 << 31) as f64;

/// Judges a record.
pub fn judge(record: &Record) -> Verdict {
    let stopped = |otherwise: Verdict| match defect(record) {
        Some(family) => Verdict::Explained { max_abs_diff: None, reason: family },
        None => otherwise,
    };
    match &record.outcome {
        Outcome::NotCompiled(_) if record.scales.1 >= LARGEST_SCALE => {
            Verdict::NotCompiled("Vela takes no scale of 2^31 or more".to_owned())
        }
        // Vela's program and its places contradict each other, or it gives up: defects that show before anything runs.
        Outcome::NotCompiled(reason)
            if reason.contains("make no valid blob") && has_defect(record, Family::ArgMaxInt64)
                || reason.contains("Non-passthrough operation (Conv2D)")
                    && has_defect(record, Family::PadLongStride) =>
        {
            Verdict::NotCompiled(defect(record).unwrap_or_default())
        }
        Outcome::NotCompiled(reason) => Verdict::Failure(format!("not compiled: {reason}")),
        Outcome::NotModelled { field, .. } => stopped(Verdict::NotModelled(field.clone())),
        Outcome::Stopped(reason) => stopped(Verdict::Failure(format!("stopped: {reason}"))),
        Outcome::Panicked => Verdict::Failure("panicked".to_owned()),
        Outcome::EnginesDiffer(reason) => Verdict::Failure(format!("the engines differ: {reason}")),
        Outcome::Compared(comparisons) => compared(record, comparisons),
    }
}

fn compared(record: &Record, comparisons: &Comparisons) -> Verdict {
    if let Some(reference) = comparisons.exact() {
        return Verdict::Exact(reference);
    }
    let Some(nearest) = comparisons.nearest() else {
        let reasons: Vec<String> =
            comparisons.refusals.iter().map(|(reference, reason)| format!("{reference}: {reason}")).collect();
        return Verdict::Failure(format!("no reference: {}", reasons.join("; ")));
    };
    let reason = defect(record)
        .or_else(|| reference_difference(record, comparisons, nearest).map(str::to_owned))
        .or_else(|| tiny_scale(record, nearest).map(str::to_owned));
    if let Some(reason) = reason {
        return Verdict::Explained { max_abs_diff: Some(nearest.max_abs_diff), reason };
    }
    let each = comparisons.with.iter();
    let each = each.map(|one| {
        format!("{} {} of {} off by up to {}", one.reference, one.mismatches, one.elements, one.max_abs_diff)
    });
    Verdict::Failure(each.collect::<Vec<_>>().join(", "))
}

/// The compiler defect that `npukit build` warns of in the network, and what it does.
fn defect(record: &Record) -> Option<String> {
    record.defects.first().map(|defect| format!("compiler defect, {}: {}", defect.family, defect.effect))
}

fn has_defect(record: &Record, family: Family) -> bool {
    record.defects.iter().any(|defect| defect.family == family.name())
}

/// Why the references don't compute what the program does, where that is known.
fn reference_difference(
    record: &Record,
    comparisons: &Comparisons,
    nearest: &Comparison,
) -> Option<&'static str> {
    let case = &record.case;
    let off_by_one = nearest.max_abs_diff <= 1.0;
    let refuses = |reference| comparisons.refusals.iter().any(|(one, _)| *one == reference);
    match (case.op.as_str(), case.dtype.as_str()) {
        ("FULLY_CONNECTED", "uint8") if off_by_one && refuses(Reference::Tflm) => Some(
            "LiteRT's FULLY_CONNECTED rounds once, the program twice as all of TFLite's convolutions; TFLM has no uint8 kernel",
        ),
        ("SUM", _) if off_by_one && nearest.reference == Reference::LitertDefault => {
            Some("LiteRT scales sums in float32, which errs near ties; TFLM rounds twice")
        }
        ("CONCATENATION", "uint8") if off_by_one => Some("LiteRT rescales in float32"),
        (op, "int8" | "int16") if COMPARISONS.contains(&op) && input_scale(case) < 1.0 / 256.0 => Some(
            "the references compare codes times 256 times the scale, rounded: with a scale below 1/256 different codes become equal",
        ),
        (_, "int16")
            if refuses(Reference::Tflm) && record.product != Product::U85 && has_narrow_bias(case) =>
        {
            Some(
                "LiteRT reads the 32-bit biases of an int16 CONV_2D as 64-bit ones; TFLM has no kernel for another layer",
            )
        }
        // A product that is off by one, after the convolution.
        (_, "int16")
            if nearest.reference == Reference::Tflm
                && nearest.max_abs_diff <= 8.0
                && record.product != Product::U85
                && has_narrow_bias(case)
                && has(case, "MUL") =>
        {
            Some(
                "LiteRT reads the 32-bit biases of an int16 CONV_2D as 64-bit ones; TFLM computes MUL's multiplier in double precision, LiteRT and Vela in float32",
            )
        }
        (_, "int8" | "int16") if off_by_one && refuses(Reference::Tflm) && has(case, "FULLY_CONNECTED") => {
            Some(
                "LiteRT's FULLY_CONNECTED rounds otherwise than the program and TFLM, and TFLM has no kernel for another layer",
            )
        }
        _ => None,
    }
}

fn layers(case: &Case) -> &[serde_json::Value] {
    case.parameters["layers"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether one of the layers is this operator.
fn has(case: &Case, op: &str) -> bool {
    layers(case).iter().any(|layer| layer["op"] == op)
}

/// The scale of the first input; of a case of equal scales, that of all.
fn input_scale(case: &Case) -> f64 {
    case.parameters["input"]["scale"].as_f64().unwrap_or(f64::INFINITY)
}

/// Whether one of the layers is an int16 CONV_2D with 32-bit biases.
fn has_narrow_bias(case: &Case) -> bool {
    layers(case).iter().any(|layer| layer["op"] == "CONV_2D" && layer["bias"] == "int32")
}

/// Whether scales that Vela can't hold exactly account for a difference.
fn tiny_scale(record: &Record, nearest: &Comparison) -> Option<&'static str> {
    // An error of the scale moves a code of 16 bits by so much, and the rounding by one more.
    let reach = 1.0 + record.scale_error * f64::from(u16::MAX);
    (record.scale_error > 0.0 && nearest.max_abs_diff <= reach)
        .then_some("Vela holds a scale as a multiple of 2^-63, rounded down, which is coarse for one below 2^-40: the multiplier comes out too small or large")
}

/// A failure with everything needed to see it again.
pub fn describe(record: &Record, reason: &str) -> String {
    let case = &record.case;
    format!(
        "{} on {} {}: {reason}\n  conformance --case {}:{}:{:#x} --product {} --accel {}",
        case.name,
        record.accelerator,
        record.variant,
        case.op,
        case.dtype,
        case.seed,
        record.product,
        record.accelerator
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Defect;

    fn record(op: &str, dtype: &str, differences: &[(Reference, f64)]) -> Record {
        let comparison = |&(reference, max_abs_diff): &(Reference, f64)| Comparison {
            reference,
            elements: 10,
            mismatches: usize::from(max_abs_diff > 0.0),
            max_abs_diff,
            distinct_values: 9,
        };
        let asked = [Reference::Tflm, Reference::LitertRef];
        let silent =
            asked.into_iter().filter(|one| !differences.iter().any(|(reference, _)| reference == one));
        Record {
            product: Product::U55,
            case: Case {
                name: "case".to_owned(),
                op: op.to_owned(),
                dtype: dtype.to_owned(),
                seed: 1,
                input_ranges: Vec::new(),
                parameters: json!({"input": {"scale": 0.1}, "layers": [{"op": op}]}),
            },
            accelerator: "ethos-u55-128".to_owned(),
            variant: String::new(),
            weights: std::collections::BTreeSet::new(),
            defects: Vec::new(),
            scales: (0.1, 0.2),
            scale_error: 0.0,
            outcome: Outcome::Compared(Comparisons {
                with: differences.iter().map(comparison).collect(),
                refusals: silent.map(|one| (one, "no kernel".to_owned())).collect(),
            }),
        }
    }

    #[test]
    fn one_equal_reference_suffices() {
        let both = record("ADD", "int8", &[(Reference::Tflm, 3.0), (Reference::LitertRef, 0.0)]);
        assert_eq!(judge(&both), Verdict::Exact(Reference::LitertRef));
    }

    #[test]
    fn what_nothing_explains_is_a_failure() {
        assert!(matches!(judge(&record("ADD", "int8", &[(Reference::Tflm, 1.0)])), Verdict::Failure(_)));
        assert!(matches!(judge(&record("ADD", "int8", &[])), Verdict::Failure(_)));
        // An explanation covers the operator, type and size of difference it was established for.
        let dense = |dtype, difference| {
            judge(&record("FULLY_CONNECTED", dtype, &[(Reference::LitertRef, difference)]))
        };
        assert!(matches!(dense("uint8", 1.0), Verdict::Explained { .. }));
        assert!(matches!(dense("uint8", 2.0), Verdict::Failure(_)));
        let mut compare = record("EQUAL", "int16", &[(Reference::LitertRef, 1.0)]);
        assert!(matches!(judge(&compare), Verdict::Failure(_)));
        compare.case.parameters["input"]["scale"] = json!(1e-4);
        assert!(matches!(judge(&compare), Verdict::Explained { .. }));
    }

    #[test]
    fn two_references_may_each_have_a_layer_of_their_own_way() {
        let chain = |layers: serde_json::Value, difference| {
            let differences = [(Reference::Tflm, difference), (Reference::LitertRef, 27311.0)];
            let mut record = record("CHAIN", "int16", &differences);
            record.case.parameters["layers"] = layers;
            judge(&record)
        };
        let product = json!({"op": "MUL"});
        let narrow = json!({"op": "CONV_2D", "bias": "int32"});
        assert!(matches!(chain(json!([product, narrow]), 3.0), Verdict::Explained { .. }));
        assert!(matches!(chain(json!([product, narrow]), 9.0), Verdict::Failure(_)));
        assert!(matches!(chain(json!([narrow]), 3.0), Verdict::Failure(_)));
        assert!(matches!(chain(json!([product]), 3.0), Verdict::Failure(_)));
    }

    #[test]
    fn a_coarse_scale_explains_as_much_as_it_moves() {
        let mut tiny = record("MUL", "int8", &[(Reference::Tflm, 2.0)]);
        tiny.scale_error = 1e-5;
        assert!(matches!(judge(&tiny), Verdict::Failure(_)));
        tiny.scale_error = 2e-5;
        assert!(matches!(judge(&tiny), Verdict::Explained { max_abs_diff: Some(2.0), .. }));
    }

    #[test]
    fn no_defect_excuses_engines_that_differ() {
        let mut wrong = record("NEG", "int8", &[(Reference::Tflm, 200.0)]);
        wrong.defects.push(Defect { family: "NEG".to_owned(), effect: "negates".to_owned() });
        assert!(matches!(judge(&wrong), Verdict::Explained { .. }));
        wrong.outcome = Outcome::Stopped("it writes outside its region".to_owned());
        assert!(matches!(judge(&wrong), Verdict::Explained { max_abs_diff: None, .. }));
        for outcome in [Outcome::EnginesDiffer("at 0".to_owned()), Outcome::Panicked] {
            assert!(matches!(judge(&Record { outcome, ..wrong.clone() }), Verdict::Failure(_)));
        }
    }
}
