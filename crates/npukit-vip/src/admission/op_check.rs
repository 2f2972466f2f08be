//! An operator's own check in ovxlib, step by step as [`crate::checks`] has it.

use super::{Asker, Condition, Outcome, Stage, Step, quant_check, table_match};
use crate::checks::{Check, CheckStep};
use crate::chip::Feature;
use crate::codes::{Cell, Quant, VxType};
use crate::graph::Operands;
use crate::tables::{Table, TableSet};
use crate::version::{Certainty, OvxlibVersion};

/// ovxlib's answer on one node, and the features it hangs on.
pub(crate) struct CheckAnswer {
    pub outcome: Outcome,
    pub conditions: Vec<Condition>,
}

impl Asker<'_> {
    /// The operator's own check.
    pub(crate) fn check(
        &self,
        op: &str,
        operands: &Operands<'_>,
        steps: &mut Vec<Step>,
        depth: usize,
    ) -> CheckAnswer {
        let plain = |outcome| CheckAnswer { outcome, conditions: Vec::new() };
        let version = self.options.ovxlib;
        if !self.options.op_check && version > OvxlibVersion::SWITCHABLE_AFTER && depth == 0 {
            steps.push(Step::new(
                Stage::OpCheck,
                Outcome::Skip,
                Certainty::Known,
                "VSI_NN_ENABLE_OPCHECK=0",
                "no check runs",
            ));
            return plain(Outcome::Skip);
        }
        let Some((set, certainty)) = self.checks else {
            let detail = format!("ovxlib {version} was never published; 1.1.28 to 1.1.88 and 1.2.2 on were");
            steps.push(Step::new(
                Stage::OpCheck,
                Outcome::Unknown,
                Certainty::Unknown,
                "no sources for this version",
                &detail,
            ));
            return plain(Outcome::Unknown);
        };
        let Some(check) = set.get(op).filter(|_| depth < 8) else {
            let detail = format!("ovxlib {} has no operator {op}", set.ovxlib);
            steps.push(Step::new(Stage::OpCheck, Outcome::Unknown, certainty, "unknown operator", &detail));
            return plain(Outcome::Unknown);
        };
        let mut outcome = Outcome::Pass;
        let mut conditions = Vec::new();
        for step in &check.steps {
            let answer = self.step(op, check, step, operands, steps, depth, certainty);
            conditions.extend(answer.conditions);
            match answer.outcome {
                Outcome::Refuse => return CheckAnswer { outcome: Outcome::Refuse, conditions },
                Outcome::Unknown => outcome = Outcome::Unknown,
                Outcome::Pass | Outcome::Skip => {}
            }
        }
        CheckAnswer { outcome, conditions }
    }

    #[expect(clippy::too_many_arguments, reason = "one node's check, taken apart once")]
    fn step(
        &self,
        op: &str,
        check: &Check,
        step: &CheckStep,
        operands: &Operands<'_>,
        steps: &mut Vec<Step>,
        depth: usize,
        certainty: Certainty,
    ) -> CheckAnswer {
        let version = self.options.ovxlib;
        let plain = |outcome| CheckAnswer { outcome, conditions: Vec::new() };
        match step {
            CheckStep::None => {
                let detail = format!("{op} is registered without one: vsi_nn_OpCheck answers yes");
                steps.push(Step::new(Stage::OpCheck, Outcome::Pass, certainty, "no check", &detail));
                plain(Outcome::Pass)
            }
            CheckStep::Free => {
                steps.push(Step::new(
                    Stage::OpCheck,
                    Outcome::Pass,
                    certainty,
                    "the check looks at no data type",
                    op,
                ));
                plain(Outcome::Pass)
            }
            CheckStep::Shapes => {
                let rule = "the check looks at dimensions or attributes";
                let detail = "what the importer made is taken to fit";
                steps.push(Step::new(Stage::OpCheck, Outcome::Pass, Certainty::Assumed, rule, detail));
                plain(Outcome::Pass)
            }
            CheckStep::Unmodelled => {
                let detail = format!("{op}'s check isn't among those written down");
                steps.push(Step::new(
                    Stage::OpCheck,
                    Outcome::Unknown,
                    Certainty::Unknown,
                    "check not modelled",
                    &detail,
                ));
                plain(Outcome::Unknown)
            }
            CheckStep::Quant => {
                let (Some(input), Some(weight)) = (operands.input(0), operands.input(1)) else {
                    let detail = "input or weight isn't given";
                    steps.push(Step::new(
                        Stage::QuantCheck,
                        Outcome::Unknown,
                        Certainty::Unknown,
                        "vsi_nn_QuantCheck",
                        detail,
                    ));
                    return plain(Outcome::Unknown);
                };
                let (outcome, detail) = quant_check::quant_check(version, input, weight, operands.input(2));
                steps.push(Step::new(Stage::QuantCheck, outcome, certainty, "vsi_nn_QuantCheck", &detail));
                plain(outcome)
            }
            CheckStep::Table(name) => self.table(name, check, operands, steps),
            CheckStep::StreamProcessorOrTable(name) => self.stream_processor_or(name, check, operands, steps),
            CheckStep::As(other) => {
                steps.push(Step::new(
                    Stage::OpCheck,
                    Outcome::Pass,
                    certainty,
                    "checked as another operator",
                    &format!("{op} as {other}"),
                ));
                self.check(other, operands, steps, depth + 1)
            }
            CheckStep::Either(other, name) => {
                let first = self.check(other, operands, steps, depth + 1);
                if first.outcome == Outcome::Pass {
                    steps.push(self.unread_table(name, check, operands, other, certainty));
                    return first;
                }
                self.table(name, check, operands, steps)
            }
            CheckStep::TableOrTp(name) => {
                let table = self.table(name, check, operands, steps);
                if table.outcome != Outcome::Refuse {
                    return table;
                }
                plain(tp_list(operands, steps, certainty))
            }
            CheckStep::EachOutput(name) => {
                let mut worst = plain(Outcome::Pass);
                for output in &operands.outputs {
                    let one = Operands { inputs: operands.inputs.clone(), outputs: vec![*output] };
                    let answer = self.table(name, check, &one, steps);
                    if answer.outcome != Outcome::Pass {
                        return answer;
                    }
                    worst = answer;
                }
                if operands.outputs.is_empty() { self.table(name, check, operands, steps) } else { worst }
            }
            CheckStep::Slice(name, other) => {
                if operands.inputs.len() > 1 {
                    self.table(name, check, operands, steps)
                } else {
                    self.check(other, operands, steps, depth + 1)
                }
            }
        }
    }

    fn find(&self, name: &str, check: &Check) -> Option<(&'static TableSet, &'static Table)> {
        let set = self.tables?;
        Some((set, set.get_in_file(name, &check.file)?))
    }

    fn table(
        &self,
        name: &str,
        check: &Check,
        operands: &Operands<'_>,
        steps: &mut Vec<Step>,
    ) -> CheckAnswer {
        let plain = |outcome| CheckAnswer { outcome, conditions: Vec::new() };
        let version = self.options.ovxlib;
        let Some((set, table)) = self.find(name, check) else {
            steps.push(Step::new(
                Stage::Table,
                Outcome::Unknown,
                Certainty::Unknown,
                "table not at hand",
                name,
            ));
            return plain(Outcome::Unknown);
        };
        let certainty = set.certainty(table, version);
        if certainty == Certainty::Unknown {
            let detail = format!(
                "the rows of ovxlib {version} differ from those at hand, which stand since {}",
                table.since
            );
            steps.push(Step::new(
                Stage::Table,
                Outcome::Unknown,
                certainty,
                &format!("table {name}"),
                &detail,
            ));
            return plain(Outcome::Unknown);
        }
        let signature = match table_match::signature(table, operands, !operands.outputs.is_empty()) {
            Ok(signature) => signature,
            Err(detail) => {
                steps.push(Step::new(
                    Stage::Table,
                    Outcome::Unknown,
                    certainty,
                    &format!("table {name}"),
                    &detail,
                ));
                return plain(Outcome::Unknown);
            }
        };
        let text = table_match::text(&signature);
        let Some(row) = table_match::first_match(table, &signature, version) else {
            let rule = format!("no row of table {name} ({}:{}) matches", table.file_name(), table.line);
            steps.push(Step::new(Stage::Table, Outcome::Refuse, certainty, &rule, &text));
            return plain(Outcome::Refuse);
        };
        let matched = &table.rows[row];
        let label = matched.hw_generation.as_deref();
        let mut detail = format!("{text} matches row {row}, {}", table_match::text(&matched.cells));
        let mut conditions = Vec::new();
        if let Some(label) = label {
            detail += &format!(", marked for hardware {label} or newer (ovxlib doesn't test that)");
            if let Some(feature) = Feature::generation(label) {
                conditions.push(Condition { feature, needed: true, state: self.options.feature(feature) });
            }
        }
        steps.push(Step::new(Stage::Table, Outcome::Pass, certainty, &format!("table {name}"), &detail));
        CheckAnswer { outcome: Outcome::Pass, conditions }
    }

    fn stream_processor_or(
        &self,
        name: &str,
        check: &Check,
        operands: &Operands<'_>,
        steps: &mut Vec<Step>,
    ) -> CheckAnswer {
        let state = self.options.feature(Feature::StreamProcessor);
        let wide = |t: &&crate::graph::Tensor| matches!(t.vx_type, VxType::I32 | VxType::U32);
        let served = !operands.inputs.iter().flatten().any(wide);
        let rule = "the stream processor lets the node pass without its table";
        if served && state.certainty == Certainty::Known && state.on == Some(true) {
            steps.push(Step::new(Stage::OpCheck, Outcome::Skip, Certainty::Known, rule, &state.why));
            return CheckAnswer { outcome: Outcome::Pass, conditions: Vec::new() };
        }
        let mut answer = self.table(name, check, operands, steps);
        if served && answer.outcome == Outcome::Refuse && state.on != Some(false) {
            steps.push(Step::new(
                Stage::OpCheck,
                Outcome::Unknown,
                state.certainty,
                rule,
                "refused without it, accepted with it",
            ));
            answer.outcome = Outcome::Unknown;
            answer.conditions.push(Condition { feature: Feature::StreamProcessor, needed: true, state });
        }
        answer
    }

    fn unread_table(
        &self,
        name: &str,
        check: &Check,
        operands: &Operands<'_>,
        asked: &str,
        certainty: Certainty,
    ) -> Step {
        let holds = self.find(name, check).and_then(|(_, table)| {
            let signature = table_match::signature(table, operands, !operands.outputs.is_empty()).ok()?;
            Some((
                table_match::first_match(table, &signature, self.options.ovxlib),
                table_match::text(&signature),
            ))
        });
        let detail = match holds {
            Some((Some(row), text)) => format!("{asked} said yes; the table's row {row} holds {text}"),
            Some((None, text)) => {
                format!("{asked} said yes; the table doesn't hold {text}, which makes no difference")
            }
            None => format!("{asked} said yes"),
        };
        let rule = format!("table {name} is there and isn't consulted");
        Step::new(Stage::Table, Outcome::Skip, certainty, &rule, &detail)
    }
}

/// The list for the tensor processor in `fullconnect_relu.c` of ovxlib up to 1.1.88: exact, without the wildcard.
fn tp_list(operands: &Operands<'_>, steps: &mut Vec<Step>, certainty: Certainty) -> Outcome {
    use VxType as T;
    const LIST: [Cell; 11] = [
        Cell::new(T::F16, Quant::NONE),
        Cell::new(T::BF16, Quant::NONE),
        Cell::new(T::F32, Quant::NONE),
        Cell::new(T::I16, Quant::DFP),
        Cell::new(T::I16, Quant::SYM),
        Cell::new(T::I16, Quant::ASYM),
        Cell::new(T::I8, Quant::DFP),
        Cell::new(T::I8, Quant::SYM),
        Cell::new(T::I8, Quant::ASYM),
        Cell::new(T::U8, Quant::DFP),
        Cell::new(T::U8, Quant::ASYM),
    ];
    let rule = "TP list of FCL_RELU";
    let (Some(input), Some(weight), Some(output)) =
        (operands.input(0), operands.input(1), operands.output(0))
    else {
        let detail = "input, weight and output must be given";
        steps.push(Step::new(Stage::TpList, Outcome::Unknown, certainty, rule, detail));
        return Outcome::Unknown;
    };
    let bias_fits = operands.input(2).is_none_or(|bias| match weight.vx_type {
        T::F16 | T::BF16 | T::F32 => bias.vx_type == T::F32,
        T::I16 | T::I8 | T::U8 => matches!(bias.vx_type, T::I32 | T::I64),
        _ => false,
    });
    let listed = [input, weight, output].iter().all(|tensor| LIST.contains(&tensor.cell()));
    let bias = operands.input(2).map_or_else(|| "none".to_owned(), |bias| bias.vx_type.to_string());
    let detail =
        format!("input {}, weight {}, output {}, bias {bias}", input.cell(), weight.cell(), output.cell());
    let outcome = if listed && bias_fits { Outcome::Pass } else { Outcome::Refuse };
    steps.push(Step::new(Stage::TpList, outcome, certainty, rule, &detail));
    outcome
}
