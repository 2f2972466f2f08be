//! The match of a signature against a table's rows (`validate_op_io_types` in `vsi_nn_constraint_check.c`).
//!
//! It isn't equality: a tensor without a quantisation matches any quantisation of the row. That wildcard never works
//! for the 0x8xx types (BF16, I4, U4, FP8), whose own bits lie where the quantisation's are looked for. Before
//! ovxlib 1.1.32 rows were compared byte by byte.

use crate::codes::Cell;
use crate::graph::Operands;
use crate::tables::Table;
use crate::version::OvxlibVersion;

/// A signature as the matcher builds it: one cell for each that the table declares, zero where there is no tensor.
///
/// Inputs and outputs beyond the declaration are left away, as the matcher does after a warning. The error names
/// outputs that the table looks at and the caller didn't give.
pub fn signature(table: &Table, operands: &Operands<'_>, outputs_known: bool) -> Result<Vec<Cell>, String> {
    let mut cells = vec![Cell(0); table.inputs + table.outputs];
    let (inputs, outputs) = cells.split_at_mut(table.inputs);
    for (cell, tensor) in inputs.iter_mut().zip(&operands.inputs) {
        *cell = tensor.map_or(Cell(0), |tensor| tensor.cell());
    }
    if table.outputs > 0 && !outputs_known {
        return Err(format!("the table looks at {} output(s) and none is given", table.outputs));
    }
    for (cell, tensor) in outputs.iter_mut().zip(&operands.outputs) {
        *cell = tensor.map_or(Cell(0), |tensor| tensor.cell());
    }
    Ok(cells)
}

/// The first row that matches.
pub fn first_match(table: &Table, signature: &[Cell], version: OvxlibVersion) -> Option<usize> {
    let wildcard = version >= OvxlibVersion::WILDCARD;
    table.rows.iter().position(|row| {
        row.cells.len() == signature.len()
            && row.cells.iter().zip(signature).all(|(row, cell)| cell_matches(*row, *cell, wildcard))
    })
}

/// Whether one cell of a signature matches one cell of a row.
pub fn cell_matches(row: Cell, cell: Cell, wildcard: bool) -> bool {
    if wildcard {
        cell.type_bits() == row.type_bits()
            && (cell.quant_bits() == 0 || cell.quant_bits() == row.quant_bits())
    } else {
        cell == row
    }
}

/// A signature in the form of the data files.
pub fn text(cells: &[Cell]) -> String {
    cells.iter().map(Cell::to_string).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    fn row(op: &str, signature: &str, version: OvxlibVersion) -> Option<usize> {
        let cells: Vec<Cell> = signature.split('/').map(|cell| cell.parse().unwrap()).collect();
        first_match(tables::newest().get(op).unwrap(), &cells, version)
    }

    const NEW: OvxlibVersion = OvxlibVersion::NEWEST;

    #[test]
    fn the_pairs_worth_testing_are_in_both_tables() {
        for op in ["CONV2D", "FCL"] {
            for pair in ["f16/f16", "u8:asym/u8:asym", "u8:asym/i8:sym_pc", "f32/f32"] {
                assert!(row(op, pair, NEW).is_some(), "{op} {pair}");
            }
            assert_eq!(row(op, "f16/u8:asym", NEW), None);
        }
    }

    #[test]
    fn no_quantisation_matches_any_from_1_1_32_on() {
        assert_eq!(row("CONV2D", "u8/u8", NEW), Some(4));
        assert_eq!(row("CONV2D", "u8/u8", OvxlibVersion(1, 1, 31)), None);
        assert_eq!(row("CONV2D", "u8:asym/u8:asym", OvxlibVersion(1, 1, 31)), Some(4));
    }

    #[test]
    fn the_wildcard_never_works_for_four_bit_and_brain_floats() {
        assert_eq!(row("CONV2D", "i4/i8:asym", NEW), None);
        assert!(row("CONV2D", "i4:asym/i8:asym", NEW).is_some());
        let group = |quant| Cell::new(crate::codes::VxType::I4, crate::codes::Quant(quant));
        let dfp_row: Cell = "i4:dfp".parse().unwrap();
        assert!(
            cell_matches(dfp_row, group(9), true),
            "I4 with GROUP_ASYM is the same number as I4 with DFP"
        );
        assert!(!cell_matches("bf16".parse().unwrap(), Cell(0x1A), false));
    }

    #[test]
    fn packed_weights_match_no_row() {
        for table in &tables::newest().tables {
            for row in &table.rows {
                assert!(
                    row.cells.iter().all(|cell| !cell_matches(*cell, "vdata".parse().unwrap(), true)),
                    "{}",
                    table.op
                );
            }
        }
    }

    #[test]
    fn an_absent_tensor_matches_only_a_none_cell() {
        let svdf = tables::newest().get("SVDF").unwrap();
        assert!(svdf.rows.iter().any(|row| row.cells.contains(&Cell(0))));
        assert!(!cell_matches("i32:dfp".parse().unwrap(), Cell(0), true));
        assert!(cell_matches(Cell(0), Cell(0), true));
    }
}
