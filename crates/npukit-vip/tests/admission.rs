//! Admission end to end: the findings of the study of a device's driver, the rules of ovxlib, and real models.

use npukit_vip::admission::{Admission, Options, Outcome, Stage, Verdict, admit};
use npukit_vip::chip::{Engine, Feature};
use npukit_vip::graph::ModelGraph;
use npukit_vip::typed::TypedOperator;
use npukit_vip::version::{Certainty, OvxlibVersion};

const NEW: OvxlibVersion = OvxlibVersion::NEWEST;
const OLD: OvxlibVersion = OvxlibVersion::LAST_WITH_FCL_TABLE;
const WAVE: u32 = 0x1000_000E;

fn node(op: &str, input: &str, weight: &str, bias: Option<&str>, output: Option<&str>) -> ModelGraph {
    TypedOperator {
        op: op.into(),
        inputs: vec![input.into()],
        weight: Some(weight.into()),
        bias: bias.map(Into::into),
        outputs: output.map(Into::into).into_iter().collect(),
    }
    .graph()
    .unwrap()
}

fn ask(graph: &ModelGraph, version: OvxlibVersion, target: Option<u32>) -> Admission {
    admit(graph, &Options { target, ..Options::new(version) })
}

fn verdict(graph: &ModelGraph, version: OvxlibVersion, target: Option<u32>) -> Verdict {
    ask(graph, version, target).operators[0].verdict.clone()
}

#[test]
fn f32_weights_pass_ovxlib_and_are_refused_by_the_nn_check() {
    for version in [OLD, NEW] {
        let report = ask(&node("conv2d", "f32", "f32", None, Some("f32")), version, Some(WAVE));
        assert_eq!(report.operators[0].ovxlib, Outcome::Pass);
        let Verdict::Refused { by, code, rule, .. } = &report.operators[0].verdict else {
            panic!("{report}")
        };
        assert_eq!((*by, *code), (Stage::NnFormat, Some(-3)));
        assert!(rule.contains("F32 weights"));
        assert!(report.to_string().contains("hw not support this format"));
    }
}

#[test]
fn an_f32_convolution_runs_on_the_shader_where_that_was_seen() {
    let answer = verdict(&node("conv2d", "f32", "f32", None, Some("f32")), NEW, Some(0xBA));
    let Verdict::Conditional { engine, on, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(engine, Some(Engine::Shader));
    assert_eq!(on[0].feature, Feature::ShaderF32Convolution);
    assert_eq!(on[0].state.certainty, Certainty::Assumed);
}

#[test]
fn f16_and_asymmetric_u8_pairs_are_admitted_to_nn_on_named_features() {
    for (op, input, weight, features) in [
        ("conv2d", "f16", "f16", vec![Feature::NnF16Input]),
        ("fc", "f16", "f16", vec![Feature::NnF16Input]),
        ("conv2d", "u8:asym@1,0", "u8:asym@1,0", vec![Feature::RefusesU8Weights, Feature::NnU8AsymInput]),
        ("fc", "u8:asym@1,0", "u8:asym@1,0", vec![Feature::RefusesU8Weights, Feature::NnU8AsymInput]),
        ("conv2d", "u8:asym@1,0", "i8:sym_pc", vec![Feature::NnU8AsymInput]),
    ] {
        for version in [OLD, NEW] {
            let report = ask(&node(op, input, weight, None, Some(input)), version, None);
            assert_eq!(report.operators[0].ovxlib, Outcome::Pass, "{report}");
            let Verdict::Conditional { engine, on, unread } = &report.operators[0].verdict else {
                panic!("{report}")
            };
            assert_eq!(*engine, Some(Engine::NeuralNetwork));
            assert_eq!(on.iter().map(|c| c.feature).collect::<Vec<_>>(), features);
            assert!(on.iter().all(|c| c.state.certainty == Certainty::Unknown));
            assert!(!unread.is_empty());
        }
    }
}

#[test]
fn features_that_the_caller_knows_decide() {
    let graph = node("conv2d", "f16", "f16", None, Some("f16"));
    let with =
        |on| admit(&graph, &Options { features: vec![(Feature::NnF16Input, on)], ..Options::new(NEW) });
    assert!(matches!(with(false).operators[0].verdict, Verdict::Refused { code: Some(-3), .. }));
    assert!(
        matches!(&with(true).operators[0].verdict, Verdict::Conditional { on, .. } if on[0].state.certainty == Certainty::Known)
    );
    let graph = node("conv2d", "u8:asym@1,0", "u8:asym@1,0", None, Some("u8:asym@1,0"));
    let options = Options { features: vec![(Feature::RefusesU8Weights, true)], ..Options::new(NEW) };
    assert!(admit(&graph, &options).to_string().contains("0x2ac is on"));
}

#[test]
fn the_two_control_graphs_are_confirmed_on_their_device_and_nowhere_else() {
    let conv = node("conv2d", "f16[16x1x1x1]", "f16[3x1x1x1]", Some("f32[1]"), Some("f16[16x1x1x1]"));
    let layer = node(
        "fc",
        "u8:asym@1,0[16x1]",
        "u8:asym@1,0[16x4]",
        Some("i32:asym@1,0[4]"),
        Some("u8:asym@1,0[4x1]"),
    );
    for graph in [&conv, &layer] {
        let answer = verdict(graph, NEW, Some(WAVE));
        assert!(matches!(answer, Verdict::Confirmed { engine: Engine::NeuralNetwork, .. }), "{answer:?}");
        assert!(matches!(verdict(graph, NEW, None), Verdict::Conditional { .. }));
        assert!(matches!(verdict(graph, NEW, Some(0x88)), Verdict::Conditional { .. }));
    }
    // Another shape is another graph: its features are then assumed from the control.
    let other = node("conv2d", "f16[17x1x1x1]", "f16[3x1x1x1]", Some("f32[1]"), Some("f16[17x1x1x1]"));
    let Verdict::Conditional { on, .. } = verdict(&other, NEW, Some(WAVE)) else { panic!() };
    assert_eq!((on[0].state.on, on[0].state.certainty), (Some(true), Certainty::Assumed));
}

#[test]
fn a_constant_f16_bias_becomes_f32_on_the_way() {
    let report = ask(&node("conv2d", "f16", "f16", Some("f16"), Some("f16")), NEW, None);
    assert_eq!((report.rewrites[0].from.as_str(), report.rewrites[0].to.as_str()), ("f16", "f32"));
    assert_eq!(report.operators[0].inputs[2], "f32");
    let report = ask(&node("fc", "f16", "f16", Some("f16"), Some("f16")), NEW, None);
    assert_eq!(report.operators[0].inputs[2], "f32");
}

#[test]
fn the_batched_product_is_not_the_fully_connected_path() {
    let mut product = TypedOperator { op: "batch_matmul".into(), ..Default::default() };
    product.inputs = vec!["u8:asym@1,0".into(), "u8:asym@1,0".into()];
    product.outputs = vec!["u8:asym@1,0".into()];
    let Verdict::Conditional { on, .. } = verdict(&product.graph().unwrap(), NEW, Some(WAVE)) else {
        panic!()
    };
    assert_eq!(on.iter().map(|c| c.feature).collect::<Vec<_>>(), [Feature::BatchGemm]);
    assert_eq!(
        on[0].state.certainty,
        Certainty::Unknown,
        "the U8 control on this device says nothing about it"
    );
    let report = admit(
        &product.graph().unwrap(),
        &Options { features: vec![(Feature::BatchGemm, false)], ..Options::new(NEW) },
    );
    assert!(matches!(report.operators[0].verdict, Verdict::Unknown { .. }));
}

#[test]
fn an_f32_fully_connected_layer_is_not_on_nn_and_the_rest_is_unknown() {
    let Verdict::Unknown { why, .. } = verdict(&node("fc", "f32", "f32", None, Some("f32")), NEW, Some(WAVE))
    else {
        panic!()
    };
    assert!(why.contains("not on NN") && why.contains("TP"), "{why}");
}

/// From 1.2.2 on every pair that passes QuantCheck passes the fully-connected check: the table is there and unread.
#[test]
fn the_fcl_table_is_not_decisive_from_1_2_2_on() {
    let odd = node("fc", "f16", "u8:asym@1,0", None, Some("f16"));
    let report = ask(&odd, NEW, None);
    assert_eq!(report.operators[0].ovxlib, Outcome::Pass, "{report}");
    let step = report.operators[0].steps.iter().find(|step| step.outcome == Outcome::Skip).unwrap();
    assert!(step.rule.contains("isn't consulted") && step.detail.contains("doesn't hold"), "{step:?}");
    // Up to 1.1.88 the same pair gets past FCL_RELU's list for the tensor processor, and one that isn't on it doesn't.
    let report = ask(&odd, OLD, None);
    assert!(
        report.operators[0]
            .steps
            .iter()
            .any(|step| step.stage == Stage::TpList && step.outcome == Outcome::Pass)
    );
    assert_eq!(report.operators[0].ovxlib, Outcome::Pass);
    let unlisted = node("fc", "f16", "u8:asym@1,0", None, Some("i32"));
    let report = ask(&unlisted, OLD, None);
    assert_eq!(report.operators[0].ovxlib, Outcome::Refuse, "{report}");
    assert_eq!(ask(&unlisted, NEW, None).operators[0].ovxlib, Outcome::Pass);
    assert!(!report.operators[0].nearest.is_empty());
}

#[test]
fn the_tp_list_minds_the_bias_and_has_no_wildcard() {
    let with =
        |bias| ask(&node("fc", "u8:asym@1,0", "u8:asym@1,0", Some(bias), Some("u8:asym@1,0")), OLD, None);
    let tp = |report: &Admission| {
        report.operators[0].steps.iter().find(|s| s.stage == Stage::TpList).map(|s| s.outcome)
    };
    assert_eq!(tp(&with("i32:asym@1,0")), Some(Outcome::Pass));
    assert_eq!(tp(&with("f32")), Some(Outcome::Refuse), "an integer weight wants an integer bias");
    assert_eq!(with("f32").operators[0].ovxlib, Outcome::Pass, "FCL's own table still holds the pair");
    let report = ask(&node("fc", "u8", "u8:asym@1,0", None, Some("u8:asym@1,0")), OLD, None);
    assert_eq!(tp(&report), Some(Outcome::Refuse), "{report}");
}

#[test]
fn quant_check_comes_before_the_wildcard() {
    let bare = node("conv2d", "u8", "u8", None, Some("u8"));
    assert!(matches!(verdict(&bare, NEW, None), Verdict::Refused { by: Stage::QuantCheck, .. }));
    let hybrid = node("conv2d", "u8", "u8", Some("i32:asym@1,0"), Some("u8"));
    let report = ask(&hybrid, NEW, None);
    assert_eq!(report.operators[0].ovxlib, Outcome::Pass);
    assert!(
        report.operators[0].steps.iter().any(|step| step.detail.contains("matches row 4, u8:asym/u8:asym")),
        "{report}"
    );
    for pair in ["i32:asym@1,0", "i4:dfp@1"] {
        assert!(matches!(
            verdict(&node("conv2d", pair, pair, None, None), NEW, None),
            Verdict::Refused { by: Stage::QuantCheck, .. }
        ));
    }
}

#[test]
fn conv1d_asks_its_table_first() {
    let report = ask(&node("conv1d", "u8", "u8", None, None), NEW, None);
    let stages: Vec<(Stage, Outcome)> =
        report.operators[0].steps.iter().map(|step| (step.stage, step.outcome)).collect();
    assert_eq!(stages, [(Stage::Table, Outcome::Pass), (Stage::QuantCheck, Outcome::Refuse)]);
}

#[test]
fn i16_pairs_of_the_table_are_refused_by_quant_check_up_to_1_1_88() {
    let graph = node("conv2d", "i16:asym@1,0", "i16:asym@1,0", None, None);
    assert!(matches!(verdict(&graph, OLD, None), Verdict::Refused { by: Stage::QuantCheck, .. }));
    let report = ask(&graph, NEW, None);
    assert_eq!(report.operators[0].ovxlib, Outcome::Pass);
    let Verdict::Unknown { on, .. } = &report.operators[0].verdict else { panic!("{report}") };
    assert_eq!(on[0].feature, Feature::Generation911);
}

#[test]
fn rows_of_newer_hardware_are_conditions() {
    let report = ask(&node("conv2d", "u8:asym@1,0", "i8:sym@1,0", None, None), NEW, None);
    let conditions = match &report.operators[0].verdict {
        Verdict::Unknown { on, .. } | Verdict::Conditional { on, .. } => on,
        other => panic!("{other:?}"),
    };
    assert!(conditions.iter().any(|c| c.feature == Feature::Generation901), "{report}");
}

#[test]
fn output_and_bias_types_are_not_looked_at_for_convolutions() {
    for (bias, output) in [("f32", "i64"), ("i64:sym", "bf16")] {
        let report = ask(&node("conv2d", "f16", "f16", Some(bias), Some(output)), NEW, None);
        assert_eq!(report.operators[0].ovxlib, Outcome::Pass, "{report}");
    }
}

#[test]
fn refusals_name_the_nearest_pairs_that_would_pass() {
    let report = ask(&node("conv2d", "u8:asym@1,0", "f16", None, None), NEW, None);
    let refused = &report.operators[0];
    assert!(matches!(refused.verdict, Verdict::Refused { by: Stage::Table, .. }), "{report}");
    let rows: Vec<&str> = refused.nearest.iter().map(|near| near.row.as_str()).collect();
    assert!(rows.contains(&"f16/f16") && rows.contains(&"u8:asym/u8:asym"), "{rows:?}");
    for near in &refused.nearest {
        let (input, weight) = near.row.split_once('/').unwrap();
        let again = ask(&node("conv2d", input, weight, None, None), NEW, None);
        assert_ne!(again.operators[0].ovxlib, Outcome::Refuse, "{}", near.row);
        assert!(!near.row.contains("i8:asym"), "the I8-to-U8 pass would change it");
    }
    let bare = ask(&node("conv2d", "u8", "u8", None, None), NEW, None);
    assert_eq!(
        bare.operators[0].nearest[0].row,
        "u8:asym/u8:sym_pc".replace("u8:sym_pc", "u8:asym"),
        "{bare}"
    );
}

#[test]
fn versions_without_sources_are_unknown() {
    for version in [OvxlibVersion(1, 1, 90), OvxlibVersion(1, 0, 0), OvxlibVersion(1, 1, 50)] {
        let report = ask(&node("conv2d", "f16", "f16", None, None), version, None);
        assert_eq!(report.operators[0].ovxlib, Outcome::Unknown, "{version}");
        assert!(matches!(report.operators[0].verdict, Verdict::Unknown { .. }));
    }
    // A newer version than was read: the same answers, assumed.
    let report = ask(&node("conv2d", "f16", "f16", None, None), OvxlibVersion(1, 3, 0), None);
    assert_eq!(report.checks_certainty, Certainty::Assumed);
    assert_eq!(report.operators[0].ovxlib, Outcome::Pass);
}

#[test]
fn switches_are_honoured() {
    let bare = node("conv2d", "u8", "u8", None, Some("u8"));
    let off = Options { op_check: false, ..Options::new(NEW) };
    assert_eq!(admit(&bare, &off).operators[0].ovxlib, Outcome::Skip);
    let off = Options { op_check: false, ..Options::new(OvxlibVersion(1, 1, 28)) };
    assert_ne!(admit(&bare, &off).operators[0].ovxlib, Outcome::Skip, "1.1.28 has no such switch");
}

#[test]
fn the_stream_processor_lets_nodes_pass_without_their_table() {
    let mut add = TypedOperator { op: "add".into(), ..Default::default() };
    add.inputs = vec!["u4:asym@1,0".into(), "bf16".into()];
    add.outputs = vec!["f32".into()];
    let graph = add.graph().unwrap();
    let with = |features| admit(&graph, &Options { features, ..Options::new(NEW) }).operators.remove(0);
    assert_eq!(with(vec![(Feature::StreamProcessor, true)]).ovxlib, Outcome::Pass);
    let without = with(vec![(Feature::StreamProcessor, false)]);
    assert!(without.verdict.is_refused(), "{without}");
    let unknown = with(vec![]);
    assert_eq!(unknown.ovxlib, Outcome::Unknown);
    assert!(
        matches!(unknown.verdict, Verdict::Unknown { on, .. } if on[0].feature == Feature::StreamProcessor)
    );
    add.inputs[1] = "i32".into();
    let report = admit(
        &add.graph().unwrap(),
        &Options { features: vec![(Feature::StreamProcessor, true)], ..Options::new(NEW) },
    );
    assert!(report.operators[0].verdict.is_refused(), "I32 inputs aren't served: {report}");
}

#[test]
fn outputs_that_a_table_wants_and_nobody_gave_are_unknown() {
    let softmax = TypedOperator { op: "softmax".into(), inputs: vec!["f16".into()], ..Default::default() };
    assert_eq!(ask(&softmax.graph().unwrap(), NEW, None).operators[0].ovxlib, Outcome::Unknown);
    let softmax = TypedOperator { outputs: vec!["f16".into()], ..softmax };
    assert_eq!(ask(&softmax.graph().unwrap(), NEW, None).operators[0].ovxlib, Outcome::Pass);
}

fn model(name: &str) -> Option<ModelGraph> {
    let bytes = std::fs::read(npukit_testkit::model(name)?).unwrap();
    Some(npukit_vip::tflite::read(&bytes, name).unwrap())
}

#[test]
fn int8_networks_are_checked_as_u8_with_per_channel_weights() {
    let Some(graph) = model("kws_ref_model.tflite") else { return };
    let report = ask(&graph, NEW, None);
    let convolutions: Vec<_> = report.operators.iter().filter(|o| o.op == "CONV2D").collect();
    assert_eq!(convolutions.len(), 9, "{report}");
    for conv in convolutions {
        assert!(conv.inputs[0].starts_with("u8:asym"), "{conv}");
        assert!(conv.inputs[1].starts_with("i8:sym_pc"));
        assert!(
            conv.steps.iter().any(|step| step.detail.contains("matches row 8, u8:asym/i8:sym_pc")),
            "{conv}"
        );
        assert!(matches!(&conv.verdict, Verdict::Conditional { engine: Some(Engine::NeuralNetwork), .. }));
    }
    let layer = report.operators.iter().find(|o| o.op == "FCL2").unwrap();
    assert!(layer.inputs[1].starts_with("u8:asym"), "per-tensor I8 weights become U8: {layer}");
    assert!(!report.refused(), "{report}");
    assert_eq!(report.operators.iter().filter(|o| o.op == "DATACONVERT").count(), 2, "one at each end");
    // Without the pass the same convolutions match another row.
    let report = admit(&graph, &Options { i8_to_u8: 0, ..Options::new(NEW) });
    let conv = report.operators.iter().find(|o| o.op == "CONV2D").unwrap();
    assert!(conv.steps.iter().any(|step| step.detail.contains("matches row 7, i8:asym/i8:sym_pc")), "{conv}");
}

#[test]
fn every_real_model_is_read_and_answered() {
    for name in
        npukit_testkit::MODELS.iter().chain(&["keyword_scrambled_8bit.tflite", "kws_micronet_m.tflite"])
    {
        let Some(graph) = model(name) else { continue };
        for version in [OLD, NEW] {
            let report = ask(&graph, version, Some(WAVE));
            assert!(report.operators.len() >= graph.operators.len());
            // Nothing is left without a step that says why.
            assert!(report.operators.iter().all(|operator| !operator.steps.is_empty()), "{report}");
            assert!(!report.confirmed());
        }
    }
}

#[test]
fn what_the_delegate_keeps_is_refused_by_the_importer_and_still_checked_when_asked() {
    let Some(graph) = model("keyword_scrambled_8bit.tflite") else { return };
    let report = ask(&graph, NEW, None);
    let svdf = report.operators.iter().find(|o| o.op == "SVDF").unwrap();
    assert!(matches!(&svdf.verdict, Verdict::Refused { by: Stage::Importer, .. }), "{svdf}");
    let report = admit(&graph, &Options { honour_importer: false, ..Options::new(NEW) });
    let svdf = report.operators.iter().find(|o| o.op == "SVDF").unwrap();
    assert!(svdf.steps.iter().any(|step| step.stage == Stage::Table), "{svdf}");
}
