//! Whether the stack takes a graph's operators, in the order in which the stack itself asks, and where they land.
//!
//! The steps are: what TIM-VX changes, what ovxlib's optimiser changes, each operator's own check (quantisations, then
//! types, as [`crate::checks`] has it for the ovxlib version), and then what is known of the driver's choice of an
//! engine. Every step is in the report with how sure it is. A refusal by ovxlib fails the whole graph: there is no
//! fallback at that layer.
//!
//! ```
//! use npukit_vip::admission::{Options, Verdict, admit};
//! use npukit_vip::typed::TypedOperator;
//!
//! let conv = TypedOperator {
//!     op: "conv2d".into(),
//!     inputs: vec!["f32".into()],
//!     weight: Some("f32".into()),
//!     ..Default::default()
//! };
//! let report = admit(&conv.graph().unwrap(), &Options::new("1.2.22".parse().unwrap()));
//! assert!(matches!(report.operators[0].verdict, Verdict::Refused { code: Some(-3), .. }));
//! ```

pub mod beside;
mod driver;
mod nearest;
mod op_check;
pub mod quant_check;
pub mod render;
pub mod rewrite;
pub mod table_match;

pub use driver::FORMAT_NOT_SUPPORTED;
pub use nearest::Nearest;

use crate::checks::{self, CheckSet};
use crate::chip::{self, Engine, Feature, FeatureState};
use crate::graph::{ModelGraph, Operator};
use crate::tables::{self, TableSet};
use crate::version::{Certainty, OvxlibVersion};
use rewrite::Rewrite;
use serde::Serialize;
use std::fmt;

/// What admission is asked under.
#[derive(Clone, Debug)]
pub struct Options {
    /// The ovxlib version on the device or in the compiler.
    pub ovxlib: OvxlibVersion,
    /// The target number, where known.
    pub target: Option<u32>,
    /// `VSI_NN_ENABLE_I8TOU8`: 0, 1 (the default) or 2.
    pub i8_to_u8: u8,
    /// `VSI_NN_ENABLE_OPCHECK`.
    pub op_check: bool,
    /// Whether operators that the graph's importer leaves to the CPU are refused (else they are checked all the same).
    pub honour_importer: bool,
    /// What the caller knows about features.
    pub features: Vec<(Feature, bool)>,
}

impl Options {
    /// The defaults for an ovxlib version.
    pub fn new(ovxlib: OvxlibVersion) -> Options {
        Options {
            ovxlib,
            target: None,
            i8_to_u8: 1,
            op_check: true,
            honour_importer: true,
            features: Vec::new(),
        }
    }

    fn feature(&self, feature: Feature) -> FeatureState {
        match self.features.iter().rev().find(|(given, _)| *given == feature) {
            Some((_, on)) => {
                FeatureState { on: Some(*on), certainty: Certainty::Known, why: "given by the caller".into() }
            }
            None => chip::feature(self.target, feature),
        }
    }
}

/// A step of the way through the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// What brings the model to TIM-VX, such as the TFLite delegate.
    Importer,
    /// ovxlib's check as a whole.
    OpCheck,
    /// `vsi_nn_QuantCheck`.
    QuantCheck,
    /// A table of types.
    Table,
    /// The list for the tensor processor in ovxlib's FCL_RELU check.
    TpList,
    /// The driver's NN format check.
    NnFormat,
    /// The driver's TP format check.
    TpFormat,
    /// The driver's choice of an engine.
    Driver,
    /// A node seen on a device.
    Witness,
    /// A compiled file's operation list.
    Nbg,
}

/// A step's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It lets the node through.
    Pass,
    /// It refuses the node.
    Refuse,
    /// It isn't asked, though it is there.
    Skip,
    /// It can't be told.
    Unknown,
}

/// One step in the report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Where in the stack.
    pub stage: Stage,
    /// The answer.
    pub outcome: Outcome,
    /// How sure the answer is.
    pub certainty: Certainty,
    /// The rule.
    pub rule: String,
    /// The values it was asked with.
    pub detail: String,
}

impl Step {
    pub(crate) fn new(
        stage: Stage,
        outcome: Outcome,
        certainty: Certainty,
        rule: &str,
        detail: &str,
    ) -> Step {
        Step { stage, outcome, certainty, rule: rule.to_owned(), detail: detail.to_owned() }
    }
}

/// A feature that an answer hangs on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// The feature.
    pub feature: Feature,
    /// Whether it must be on or off.
    pub needed: bool,
    /// What is known of it on the target.
    pub state: FeatureState,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |on| if on { "on" } else { "off" };
        write!(f, "{} is {} ({}", self.feature, word(self.needed), self.state.certainty)?;
        if let Some(on) = self.state.on {
            write!(f, " {}", word(on))?;
        }
        f.write_str(")")
    }
}

/// The answer for one operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "answer", rename_all = "lowercase")]
pub enum Verdict {
    /// Refused.
    Refused {
        /// By whom.
        by: Stage,
        /// By which rule.
        rule: String,
        /// With which values.
        detail: String,
        /// The driver's status, where the rule is the driver's.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i32>,
    },
    /// Admitted, and the engine is on record.
    Confirmed {
        /// The engine.
        engine: Engine,
        /// What says so.
        by: String,
    },
    /// Admitted if the named features allow it.
    Conditional {
        /// The engine it gets then, where that is told.
        engine: Option<Engine>,
        /// The features.
        on: Vec<Condition>,
        /// What is left that isn't public.
        unread: String,
    },
    /// It can't be told.
    Unknown {
        /// Why not.
        why: String,
        /// Features that are known to matter.
        on: Vec<Condition>,
    },
}

impl Verdict {
    /// Whether it is a refusal.
    pub fn is_refused(&self) -> bool {
        matches!(self, Verdict::Refused { .. })
    }

    /// One word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Refused { .. } => "refused",
            Verdict::Confirmed { .. } => "confirmed",
            Verdict::Conditional { .. } => "conditional",
            Verdict::Unknown { .. } => "unknown",
        }
    }
}

/// The report on one operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperatorAdmission {
    /// What it is called where it came from.
    pub label: String,
    /// ovxlib's name for it.
    pub op: String,
    /// Its inputs as the check sees them.
    pub inputs: Vec<String>,
    /// Its outputs as the check sees them.
    pub outputs: Vec<String>,
    /// ovxlib's own answer.
    pub ovxlib: Outcome,
    /// The answer of the whole stack.
    pub verdict: Verdict,
    /// The steps that led to it.
    pub steps: Vec<Step>,
    /// Where a type was refused: the nearest signatures that would pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nearest: Vec<Nearest>,
}

/// The report on a graph.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Admission {
    /// Where the graph came from.
    pub source: String,
    /// The ovxlib version asked about.
    pub ovxlib: OvxlibVersion,
    /// The ovxlib version whose tables and checks were used, and how sure it is that they are the same.
    pub tables_of: Option<OvxlibVersion>,
    /// See `tables_of`.
    pub checks_certainty: Certainty,
    /// The target asked about.
    pub target: Option<u32>,
    /// What was changed before the checks.
    pub rewrites: Vec<Rewrite>,
    /// The operators, those that a rewrite added last.
    pub operators: Vec<OperatorAdmission>,
}

impl Admission {
    /// Whether any operator is refused.
    pub fn refused(&self) -> bool {
        self.operators.iter().any(|operator| operator.verdict.is_refused())
    }

    /// Whether every operator's engine is on record.
    pub fn confirmed(&self) -> bool {
        self.operators.iter().all(|operator| matches!(operator.verdict, Verdict::Confirmed { .. }))
    }

    /// How many operators have an answer of this word.
    pub fn count(&self, word: &str) -> usize {
        self.operators.iter().filter(|operator| operator.verdict.word() == word).count()
    }
}

/// Asks the stack about every operator of a graph.
pub fn admit(graph: &ModelGraph, options: &Options) -> Admission {
    let (graph, rewrites) = rewrite::rewrite(graph, options.ovxlib, options.i8_to_u8);
    let checks = checks::for_version(options.ovxlib);
    let tables = tables::for_version(options.ovxlib);
    let asker = Asker { options, checks, tables };
    Admission {
        source: graph.source.clone(),
        ovxlib: options.ovxlib,
        tables_of: tables.map(|set| set.ovxlib),
        checks_certainty: checks.map_or(Certainty::Unknown, |(_, certainty)| certainty),
        target: options.target,
        rewrites,
        operators: graph.operators.iter().map(|operator| asker.operator(&graph, operator)).collect(),
    }
}

pub(crate) struct Asker<'a> {
    options: &'a Options,
    checks: Option<(&'static CheckSet, Certainty)>,
    tables: Option<&'static TableSet>,
}

impl Asker<'_> {
    fn operator(&self, graph: &ModelGraph, operator: &Operator) -> OperatorAdmission {
        let operands = graph.operands(operator);
        let mut steps = Vec::new();
        let mut nearest = Vec::new();
        let ovxlib;
        let verdict = match &operator.left_out {
            Some(why) if self.options.honour_importer => {
                steps.push(Step::new(
                    Stage::Importer,
                    Outcome::Refuse,
                    Certainty::Known,
                    why,
                    "stays on the CPU",
                ));
                ovxlib = Outcome::Skip;
                Verdict::Refused {
                    by: Stage::Importer,
                    rule: why.clone(),
                    detail: "stays on the CPU".into(),
                    code: None,
                }
            }
            _ => {
                let answer = self.check(&operator.op, &operands, &mut steps, 0);
                ovxlib = answer.outcome;
                match answer.outcome {
                    Outcome::Refuse => {
                        nearest = nearest::nearest(self, &operator.op, &operands);
                        let last = steps.iter().rev().find(|step| step.outcome == Outcome::Refuse);
                        let (by, rule, detail) = last
                            .map_or((Stage::OpCheck, String::new(), String::new()), |step| {
                                (step.stage, step.rule.clone(), step.detail.clone())
                            });
                        Verdict::Refused { by, rule, detail, code: None }
                    }
                    Outcome::Pass | Outcome::Skip => {
                        let feature = |feature| self.options.feature(feature);
                        let context = driver::Context { target: self.options.target, feature: &feature };
                        driver::place(&context, operator, &operands, answer.conditions, &mut steps)
                    }
                    Outcome::Unknown => {
                        let last = steps.iter().rev().find(|step| step.outcome == Outcome::Unknown);
                        let why =
                            last.map_or_else(String::new, |step| format!("{}: {}", step.rule, step.detail));
                        Verdict::Unknown { why, on: answer.conditions }
                    }
                }
            }
        };
        let texts = |tensors: &[Option<&crate::graph::Tensor>]| {
            tensors
                .iter()
                .map(|tensor| tensor.map_or_else(|| "none".to_owned(), |tensor| tensor.to_string()))
                .collect()
        };
        OperatorAdmission {
            label: operator.label.clone(),
            op: operator.op.clone(),
            inputs: texts(&operands.inputs),
            outputs: texts(&operands.outputs),
            ovxlib,
            verdict,
            steps,
            nearest,
        }
    }
}
