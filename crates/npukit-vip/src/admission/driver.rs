//! What the closed driver below ovxlib decides: which engine a node gets, as far as that is public.
//!
//! Public is one study of a device's `libOpenVX.so`: the NN engine's format check, what the convolution's initialiser
//! does where that check says no, that the fully-connected layer considers TP and NN, and the gate of the batched
//! matrix product. It isn't known which features a chip has, but for what a log of two graphs tells. So the answers
//! here name the features they hang on.

use super::{Condition, Outcome, Stage, Step, Verdict};
use crate::chip::{Engine, Feature, FeatureState, WITNESSES};
use crate::codes::{Cell, Quant, VxType};
use crate::graph::{Operands, Operator, OperatorKind};
use crate::version::Certainty;

/// The status that the convolution's initialiser returns where the NN format check says no; the driver prints
/// `hw not support this format`.
pub const FORMAT_NOT_SUPPORTED: i32 = -3;

/// What stays unread, in every answer of this stage.
pub(super) const UNREAD: &str = "the NN check also consults HAL features for the other output and weight types, and the initialisers check dimensions, weight preparation and alignment: not public";

/// The stage's inputs beside the node itself.
pub(super) struct Context<'a> {
    pub target: Option<u32>,
    pub feature: &'a dyn Fn(Feature) -> FeatureState,
}

/// The engine stage for a node that ovxlib accepted. `open` are conditions left by the stages before.
pub(super) fn place(
    context: &Context<'_>,
    operator: &Operator,
    operands: &Operands<'_>,
    open: Vec<Condition>,
    steps: &mut Vec<Step>,
) -> Verdict {
    if let Some(verdict) = witnessed(context, operator, operands, steps) {
        return verdict;
    }
    match operator.op.as_str() {
        "CONV2D" => convolution(context, operator, operands, open, steps),
        "FCL" | "FCL2" => fully_connected(context, operands, open, steps),
        "MATRIXMUL" => batch_gemm(context, open, steps),
        _ => {
            let why = format!("which engine takes {} isn't public", operator.op);
            steps.push(Step::new(Stage::Driver, Outcome::Unknown, Certainty::Unknown, "engine choice", &why));
            Verdict::Unknown { why, on: open }
        }
    }
}

fn witnessed(
    context: &Context<'_>,
    operator: &Operator,
    operands: &Operands<'_>,
    steps: &mut Vec<Step>,
) -> Option<Verdict> {
    let squeeze = |shape: &[u32]| -> Vec<u32> {
        let end = shape.iter().rposition(|dim| *dim != 1).map_or(1.min(shape.len()), |last| last + 1);
        shape.get(..end).unwrap_or(shape).to_vec()
    };
    let same = |tensor: Option<&crate::graph::Tensor>, (cell, dims): (Cell, &[u32])| {
        tensor.is_some_and(|tensor| {
            tensor.cell() == cell
                && tensor.shape.as_ref().is_some_and(|shape| squeeze(shape) == squeeze(dims))
        })
    };
    let witness = WITNESSES.iter().find(|witness| {
        Some(witness.target) == context.target
            && witness.op == operator.op
            && operator.kind == OperatorKind::Plain
            && operands.inputs.len() == 3
            && (0..3).all(|i| same(operands.input(i), witness.tensors[i]))
            && same(operands.output(0), witness.tensors[3])
    })?;
    steps.push(Step::new(
        Stage::Witness,
        Outcome::Pass,
        Certainty::Known,
        "a node of this type and shape was seen",
        witness.source,
    ));
    Some(Verdict::Confirmed { engine: witness.engine, by: witness.source.to_owned() })
}

enum NnAnswer {
    No(&'static str, Option<FeatureState>),
    If(Vec<Condition>),
    NotRead(String),
}

/// `vxnneIsNNSupportFormat` for a node with weight and output.
fn nn_format(context: &Context<'_>, input: Cell, weight: Cell) -> NnAnswer {
    let f32_weight = Cell::new(VxType::F32, Quant::NONE);
    let f16 = Cell::new(VxType::F16, Quant::NONE);
    let u8_asym = Cell::new(VxType::U8, Quant::ASYM);
    let i8_per_channel = Cell::new(VxType::I8, Quant::SYM_PC);
    if weight == f32_weight {
        return NnAnswer::No("the NN format check refuses F32 weights where there is an output", None);
    }
    let mut conditions = Vec::new();
    let mut ask = |feature: Feature, needed: bool| {
        let state = (context.feature)(feature);
        let known_wrong = state.certainty == Certainty::Known && state.on == Some(!needed);
        conditions.push(Condition { feature, needed, state: state.clone() });
        known_wrong.then_some(state)
    };
    if weight.type_bits() == VxType::U8.0
        && let Some(state) = ask(Feature::RefusesU8Weights, false)
    {
        return NnAnswer::No("HAL feature 0x2ac is on and refuses U8 weights", Some(state));
    }
    if input == f16
        && let Some(state) = ask(Feature::NnF16Input, true)
    {
        return NnAnswer::No("an F16 input needs the context flag, which is off", Some(state));
    }
    if input == u8_asym
        && let Some(state) = ask(Feature::NnU8AsymInput, true)
    {
        return NnAnswer::No("an asymmetric U8 input needs feature 0x1b, which is off", Some(state));
    }
    let described = (input == f16 && weight == f16)
        || (input == u8_asym && (weight == u8_asym || weight == i8_per_channel));
    if described {
        NnAnswer::If(conditions)
    } else {
        NnAnswer::NotRead(format!(
            "the NN format check for {input} with {weight} hangs on features that nobody has named"
        ))
    }
}

fn convolution(
    context: &Context<'_>,
    operator: &Operator,
    operands: &Operands<'_>,
    mut open: Vec<Condition>,
    steps: &mut Vec<Step>,
) -> Verdict {
    let (Some(input), Some(weight)) = (operands.input(0), operands.input(1)) else {
        return Verdict::Unknown { why: "input or weight isn't given".into(), on: open };
    };
    let certainty = match operator.kind {
        OperatorKind::Depthwise => Certainty::Assumed,
        _ => Certainty::Known,
    };
    match nn_format(context, input.cell(), weight.cell()) {
        NnAnswer::No(rule, state) => {
            let detail = format!(
                "weight {}: the convolution's initialiser prints `hw not support this format` and returns {FORMAT_NOT_SUPPORTED}{}",
                weight.cell(),
                state.map(|state| format!(" ({})", state.why)).unwrap_or_default()
            );
            steps.push(Step::new(Stage::NnFormat, Outcome::Refuse, certainty, rule, &detail));
            let shader = (context.feature)(Feature::ShaderF32Convolution);
            if weight.vx_type == VxType::F32 && shader.on == Some(true) {
                let why = "never on NN; a shader path was seen on this target";
                steps.push(Step::new(Stage::Driver, Outcome::Pass, shader.certainty, why, &shader.why));
                open.push(Condition { feature: Feature::ShaderF32Convolution, needed: true, state: shader });
                return Verdict::Conditional {
                    engine: Some(Engine::Shader),
                    on: open,
                    unread: UNREAD.into(),
                };
            }
            Verdict::Refused {
                by: Stage::NnFormat,
                rule: rule.to_owned(),
                detail,
                code: Some(FORMAT_NOT_SUPPORTED),
            }
        }
        NnAnswer::If(conditions) => {
            steps.push(Step::new(
                Stage::NnFormat,
                Outcome::Pass,
                certainty,
                "admitted to NN if the named features allow it",
                &names(&conditions),
            ));
            open.extend(conditions);
            Verdict::Conditional { engine: Some(Engine::NeuralNetwork), on: open, unread: UNREAD.into() }
        }
        NnAnswer::NotRead(why) => {
            steps.push(Step::new(
                Stage::NnFormat,
                Outcome::Unknown,
                Certainty::Unknown,
                "NN format check",
                &why,
            ));
            Verdict::Unknown { why, on: open }
        }
    }
}

fn fully_connected(
    context: &Context<'_>,
    operands: &Operands<'_>,
    mut open: Vec<Condition>,
    steps: &mut Vec<Step>,
) -> Verdict {
    let (Some(input), Some(weight)) = (operands.input(0), operands.input(1)) else {
        return Verdict::Unknown { why: "input or weight isn't given".into(), on: open };
    };
    let tp = "the layer considers TP as well as NN; the TP format check hasn't been described";
    match nn_format(context, input.cell(), weight.cell()) {
        NnAnswer::No(rule, _) => {
            steps.push(Step::new(Stage::NnFormat, Outcome::Refuse, Certainty::Known, rule, "not on NN"));
            steps.push(Step::new(
                Stage::TpFormat,
                Outcome::Unknown,
                Certainty::Unknown,
                "TP format check",
                tp,
            ));
            Verdict::Unknown { why: format!("not on NN ({rule}); {tp}"), on: open }
        }
        NnAnswer::If(conditions) => {
            steps.push(Step::new(
                Stage::NnFormat,
                Outcome::Pass,
                Certainty::Known,
                "admitted to NN if the named features allow it",
                &names(&conditions),
            ));
            steps.push(Step::new(
                Stage::TpFormat,
                Outcome::Unknown,
                Certainty::Unknown,
                "TP format check",
                tp,
            ));
            open.extend(conditions);
            Verdict::Conditional {
                engine: Some(Engine::NeuralNetwork),
                on: open,
                unread: format!("{UNREAD}; {tp}"),
            }
        }
        NnAnswer::NotRead(why) => {
            steps.push(Step::new(
                Stage::NnFormat,
                Outcome::Unknown,
                Certainty::Unknown,
                "NN format check",
                &why,
            ));
            Verdict::Unknown { why: format!("{why}; {tp}"), on: open }
        }
    }
}

/// The batched matrix product has a gate of its own and isn't the fully-connected path.
fn batch_gemm(context: &Context<'_>, mut open: Vec<Condition>, steps: &mut Vec<Step>) -> Verdict {
    let state = (context.feature)(Feature::BatchGemm);
    let rule = "the batched product needs feature 0x2ca and passes shape checks of its own; the rules of FCL don't apply";
    if state.certainty == Certainty::Known && state.on == Some(false) {
        steps.push(Step::new(
            Stage::Driver,
            Outcome::Unknown,
            Certainty::Known,
            rule,
            "0x2ca is off: not on NN",
        ));
        return Verdict::Unknown {
            why: "not on NN: feature 0x2ca is off; what takes it then isn't public".into(),
            on: open,
        };
    }
    steps.push(Step::new(Stage::Driver, Outcome::Pass, Certainty::Known, rule, &state.why));
    open.push(Condition { feature: Feature::BatchGemm, needed: true, state });
    let unread = "the batched product's shape checks aren't public".to_owned();
    Verdict::Conditional { engine: Some(Engine::NeuralNetwork), on: open, unread }
}

fn names(conditions: &[Condition]) -> String {
    conditions.iter().map(Condition::to_string).collect::<Vec<_>>().join(", ")
}
