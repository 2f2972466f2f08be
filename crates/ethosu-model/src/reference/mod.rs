//! The reference engine: each operation read whole, computed element by element in 64-bit integers, written whole.
//!
//! It is meant to be checked by eye and to check the fast engine against; nothing in it is there for speed.

mod convolution;
mod dma;
mod elementwise;
mod pooling;
mod resize;
mod taps;

pub(crate) use elementwise::{binary, unary};

use crate::map::{Extent, FeatureMap, Volume};
use crate::memory::Memory;
use crate::operation::{Operation, Results};
use crate::program::Program;
use crate::stop::{Cause, Stop};
use crate::table::TableMemory;

/// Runs a program on `memory`: inputs are read from it, outputs are left in it.
///
/// # Errors
/// [`Stop`] at the first operation that faults or whose result isn't known. What earlier operations wrote stays written.
pub fn run(program: &Program, memory: &mut Memory) -> Result<(), Stop> {
    let mut tables = program.tables();
    memory.prepare_chain(program.chain_bytes());
    for step in program.steps() {
        execute(&step.operation, memory, &mut tables).map_err(|cause| Stop {
            offset: step.offset,
            operation: step.operation.name(),
            cause,
        })?;
    }
    Ok(())
}

pub(crate) fn execute(
    operation: &Operation,
    memory: &mut Memory,
    tables: &mut TableMemory,
) -> Result<(), Cause> {
    let scaled = match operation {
        Operation::Convolution(convolution) => convolution::compute(convolution, memory)?,
        Operation::Pooling(pooling) => pooling::compute(pooling, memory)?,
        Operation::Elementwise(elementwise) => elementwise::compute(elementwise, memory)?,
        Operation::Resize(resize) => resize::compute(resize, memory)?,
        Operation::Dma(copy) => return dma::copy(copy, memory, tables),
    };
    match operation.results() {
        Some(results) => finish(scaled, results, memory, tables),
        None => Ok(()),
    }
}

/// Takes scaled values through the output stage into memory.
fn finish(
    mut scaled: Volume,
    results: &Results,
    memory: &mut Memory,
    tables: &TableMemory,
) -> Result<(), Cause> {
    let output = results.output.with_tables(tables)?;
    for value in &mut scaled.values {
        *value = output.apply(*value)?;
    }
    let stored = scaled.arranged(results.axes, results.flip);
    results.ofm.store(memory, &stored).map_err(Cause::bus("OFM"))
}

/// Reads a map and subtracts its zero point.
fn load(map: &FeatureMap, extent: Extent, name: &'static str, memory: &Memory) -> Result<Volume, Cause> {
    let mut volume = map.load(memory, extent).map_err(Cause::bus(name))?;
    for value in &mut volume.values {
        *value -= map.zero_point;
    }
    Ok(volume)
}
