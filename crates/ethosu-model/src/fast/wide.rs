//! Element-wise operations that no kernel is for: 32-bit ones above all, as the steps of a softmax are.

use super::scratch::Scratch;
use crate::map::Extent;
use crate::memory::Memory;
use crate::operation::{Elementwise, Operand};
use crate::reference;
use crate::stop::Cause;
use crate::table::TableMemory;

/// An operation that is computed as the reference engine does it, but in buffers that are kept.
#[derive(Debug, Clone)]
pub(super) struct Wide {
    operation: Elementwise,
}

/// The operands' and the results' values, row by row.
#[derive(Debug, Clone, Default)]
pub(super) struct WideBuffers {
    a: Vec<i64>,
    b: Vec<i64>,
    results: Vec<i64>,
}

impl Wide {
    /// `None` if the output is rearranged.
    pub(super) fn new(operation: &Elementwise) -> Option<Self> {
        operation.results.is_straight().then_some(Self { operation: *operation })
    }

    /// As the reference engine, with the same causes to stop.
    pub(super) fn run(
        &self,
        memory: &mut Memory,
        tables: &TableMemory,
        scratch: &mut Scratch,
    ) -> Result<(), Cause> {
        let operation = &self.operation;
        let extent = operation.results.extent;
        let WideBuffers { a, b, results } = &mut scratch.wide;
        let size_a = load(&operation.a, memory, a)?;
        let size_b = operation.b.as_ref().map(|operand| load(operand, memory, b)).transpose()?;
        results.clear();
        match size_b {
            None if size_a == extent => {
                for &a in &*a {
                    results.push(reference::unary(operation, a)?);
                }
            }
            Some(size_b) if size_a == extent && size_b == extent => {
                for (&a, &b) in a.iter().zip(&*b) {
                    results.push(reference::binary(operation, a, b)?);
                }
            }
            _ => {
                for y in 0..extent.height {
                    for x in 0..extent.width {
                        for c in 0..extent.depth {
                            let a = a[broadcast(size_a, y, x, c)];
                            results.push(match size_b {
                                None => reference::unary(operation, a)?,
                                Some(size) => reference::binary(operation, a, b[broadcast(size, y, x, c)])?,
                            });
                        }
                    }
                }
            }
        }
        let output = operation.results.output.with_tables(tables)?;
        for value in results.iter_mut() {
            *value = output.apply(*value)?;
        }
        operation.results.ofm.store_values(memory, extent, results).map_err(Cause::bus("OFM"))
    }
}

/// The index of an element; an extent of 1 stands for all positions.
fn broadcast(size: Extent, y: usize, x: usize, c: usize) -> usize {
    let one = |position: usize, size: usize| if size == 1 { 0 } else { position };
    (one(y, size.height) * size.width + one(x, size.width)) * size.depth + one(c, size.depth)
}

/// Reads an operand, less its zero point.
fn load(operand: &Operand, memory: &Memory, values: &mut Vec<i64>) -> Result<Extent, Cause> {
    values.clear();
    match operand {
        Operand::Scalar(value) => {
            values.push(*value);
            Ok(Extent { height: 1, width: 1, depth: 1 })
        }
        Operand::Map { map, extent, name } => {
            map.load_values(memory, *extent, values).map_err(Cause::bus(name))?;
            if map.zero_point != 0 {
                values.iter_mut().for_each(|value| *value -= map.zero_point);
            }
            Ok(*extent)
        }
    }
}
