//! The signatures nearest to a refused one that the same check would let pass.

use super::{Asker, Outcome};
use crate::checks::CheckStep;
use crate::codes::{Cell, Quant, VxType, tim_vx_can_say};
use crate::graph::{Operands, Tensor};
use crate::typed::retyped;
use serde::Serialize;

/// How many are reported.
const REPORTED: usize = 4;

/// A signature that would pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nearest {
    /// The row: the cells that the table looks at.
    pub row: String,
    /// What would have to change.
    pub changes: Vec<String>,
    /// The hardware generation that the row is marked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hw_generation: Option<String>,
    /// Whether a TIM-VX user can say these types at all.
    pub from_tim_vx: bool,
    /// Whether the parameters (scales, fixed-point positions) still have to fit.
    pub parameters_must_fit: bool,
}

/// Tries every row of the table that the operator's check reads, through the whole check, and keeps the nearest.
pub(super) fn nearest(asker: &Asker<'_>, op: &str, operands: &Operands<'_>) -> Vec<Nearest> {
    let Some((name, file)) = table_of(asker, op, 0) else { return Vec::new() };
    let Some(table) = asker.tables.and_then(|set| set.get_in_file(&name, &file)) else { return Vec::new() };
    let mut found: Vec<(u32, usize, Nearest)> = Vec::new();
    for (index, row) in table.rows.iter().enumerate() {
        if table.rows[..index].iter().any(|before| before.cells == row.cells) || !stays(asker, &row.cells) {
            continue;
        }
        let (inputs, outputs) = row.cells.split_at(table.inputs);
        let mut distance = 0;
        let mut changes = Vec::new();
        let mut apply =
            |tensors: &[Option<&Tensor>], cells: &[Cell], what: &str| -> Option<Vec<Option<Tensor>>> {
                let mut new: Vec<Option<Tensor>> = tensors.iter().map(|tensor| tensor.cloned()).collect();
                for (slot, cell) in new.iter_mut().zip(cells) {
                    let old = slot.as_ref().map_or(Cell(0), Tensor::cell);
                    if old == *cell {
                        continue;
                    }
                    // An absent tensor can't be invented, a present one can't be dropped: such a row is for another use.
                    let tensor = slot.as_ref().filter(|_| cell.0 != 0)?;
                    distance += if old.type_bits() == cell.type_bits() { 1 } else { 3 };
                    changes.push(format!("{what} {} instead of {old}", cell));
                    *slot = Some(retyped(tensor, *cell)?);
                }
                Some(new)
            };
        let Some(new_inputs) = apply(&operands.inputs, inputs, "input") else { continue };
        let Some(new_outputs) = apply(&operands.outputs, outputs, "output") else { continue };
        let candidate = Operands {
            inputs: new_inputs.iter().map(Option::as_ref).collect(),
            outputs: new_outputs.iter().map(Option::as_ref).collect(),
        };
        let answer = asker.check(op, &candidate, &mut Vec::new(), 0);
        if changes.is_empty() || answer.outcome == Outcome::Refuse {
            continue;
        }
        if row.hw_generation.is_some() {
            distance += 1;
        }
        let nearest = Nearest {
            row: super::table_match::text(&row.cells),
            changes,
            hw_generation: row.hw_generation.clone(),
            from_tim_vx: row.cells.iter().all(|cell| tim_vx_can_say(*cell)),
            parameters_must_fit: answer.outcome == Outcome::Unknown,
        };
        found.push((distance, index, nearest));
    }
    found.sort_by_key(|(distance, index, nearest)| (*distance, !nearest.from_tim_vx, *index));
    found.into_iter().take(REPORTED).map(|(.., nearest)| nearest).collect()
}

/// A row that the I8-to-U8 pass would turn into another can't be reached.
fn stays(asker: &Asker<'_>, cells: &[Cell]) -> bool {
    asker.options.i8_to_u8 == 0
        || asker.options.ovxlib < crate::version::OvxlibVersion::REWRITE
        || !cells.contains(&Cell::new(VxType::I8, Quant::ASYM))
}

fn table_of(asker: &Asker<'_>, op: &str, depth: usize) -> Option<(String, String)> {
    let check = asker.checks?.0.get(op).filter(|_| depth < 8)?;
    check.steps.iter().find_map(|step| match step {
        CheckStep::Table(name)
        | CheckStep::StreamProcessorOrTable(name)
        | CheckStep::TableOrTp(name)
        | CheckStep::EachOutput(name)
        | CheckStep::Slice(name, _)
        | CheckStep::Either(_, name) => Some((name.clone(), check.file.clone())),
        CheckStep::As(other) => table_of(asker, other, depth + 1),
        CheckStep::None | CheckStep::Free | CheckStep::Shapes | CheckStep::Quant | CheckStep::Unmodelled => {
            None
        }
    })
}
