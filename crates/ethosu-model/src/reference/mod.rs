//! The reference engine: each operation read whole, computed element by element in 64-bit integers, written whole.
//!
//! It is meant to be checked by eye and to check the fast engine against; nothing in it is there for speed.

mod convolution;
mod elementwise;
mod pooling;
mod taps;

pub(crate) use elementwise::{binary, unary};

use crate::map::{Extent, FeatureMap, Volume};
use crate::memory::{Memory, Side};
use crate::operation::{Dma, Operation};
use crate::output::OutputStage;
use crate::program::Program;
use crate::stop::{Cause, Stop};
use crate::table::TableMemory;

/// Runs a program on `memory`: inputs are read from it, outputs are left in it.
///
/// # Errors
/// [`Stop`] at the first operation that faults or whose result isn't known. What earlier operations wrote stays written.
pub fn run(program: &Program, memory: &mut Memory) -> Result<(), Stop> {
    let mut tables = program.tables();
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
    match operation {
        Operation::Convolution(convolution) => {
            let scaled = convolution::compute(convolution, memory)?;
            finish(scaled, &convolution.window.ofm, &convolution.window.output, memory, tables)
        }
        Operation::Pooling(pooling) => {
            let scaled = pooling::compute(pooling, memory)?;
            finish(scaled, &pooling.window.ofm, &pooling.window.output, memory, tables)
        }
        Operation::Elementwise(elementwise) => {
            let scaled = elementwise::compute(elementwise, memory)?;
            finish(scaled, &elementwise.ofm, &elementwise.output, memory, tables)
        }
        Operation::Dma(copy) => dma(copy, memory, tables),
    }
}

/// Takes scaled values through the output stage into memory.
fn finish(
    mut scaled: Volume,
    ofm: &FeatureMap,
    output: &OutputStage,
    memory: &mut Memory,
    tables: &TableMemory,
) -> Result<(), Cause> {
    let output = output.with_tables(tables)?;
    for value in &mut scaled.values {
        *value = output.apply(*value)?;
    }
    ofm.store(memory, &scaled).map_err(Cause::bus("OFM"))
}

/// Reads a map and subtracts its zero point.
fn load(map: &FeatureMap, extent: Extent, name: &'static str, memory: &Memory) -> Result<Volume, Cause> {
    let mut volume = map.load(memory, extent).map_err(Cause::bus(name))?;
    for value in &mut volume.values {
        *value -= map.zero_point;
    }
    Ok(volume)
}

pub(crate) fn dma(copy: &Dma, memory: &mut Memory, tables: &mut TableMemory) -> Result<(), Cause> {
    let source = i64::try_from(copy.source).unwrap_or(i64::MAX);
    let destination = i64::try_from(copy.destination).unwrap_or(i64::MAX);
    match copy.destination_region {
        Some(region) => memory
            .copy((copy.source_region, source), (region, destination), copy.length)
            .map_err(|(side, fault)| Cause::Bus {
                access: if side == Side::Source { "DMA0_SRC" } else { "DMA0_DST" },
                fault,
            })?,
        None => {
            let bytes =
                memory.read(copy.source_region, source, copy.length).map_err(Cause::bus("DMA0_SRC"))?;
            let Some(span) = tables.span(copy.destination, copy.length) else {
                return Err(Cause::not_modelled(
                    "DMA0_DST",
                    destination,
                    "transfers into internal memory are known to the two banks that hold tables",
                ));
            };
            tables.load(span, bytes);
        }
    }
    Ok(())
}
