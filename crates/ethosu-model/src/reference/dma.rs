//! Copies.

use crate::memory::{Memory, Side};
use crate::operation::{Dma, Indexed, Target};
use crate::stop::Cause;
use crate::table::TableMemory;

/// Copies row by row, plane by plane.
pub(super) fn copy(copy: &Dma, memory: &mut Memory, tables: &mut TableMemory) -> Result<(), Cause> {
    let source = i64::try_from(copy.source).unwrap_or(i64::MAX);
    let destination = i64::try_from(copy.destination).unwrap_or(i64::MAX);
    let region = match copy.target {
        Target::Region(region) => region,
        Target::Internal => return load_table(copy, source, memory, tables),
    };
    let mut index_at = copy.indexed.map_or(0, |indexed| i64::try_from(indexed.base).unwrap_or(i64::MAX));
    for plane in 0..copy.planes as i64 {
        for row in 0..copy.rows as i64 {
            let (mut from_row, mut to_row) = (row, row);
            if let Some(indexed) = &copy.indexed {
                let index = read_index(indexed, index_at, memory)?;
                index_at = index_at.saturating_add(4);
                if indexed.source { from_row = index } else { to_row = index }
            }
            // Offsets and strides have 40 bits and counts 32 at most, so nothing overflows.
            let from = source + plane * copy.plane_strides.0 + from_row * copy.row_strides.0;
            let to = destination + plane * copy.plane_strides.1 + to_row * copy.row_strides.1;
            memory.copy((copy.source_region, from), (region, to), copy.length).map_err(|(side, fault)| {
                let access = if side == Side::Source { "DMA0_SRC" } else { "DMA0_DST" };
                Cause::Bus { access, fault }
            })?;
        }
        index_at = index_at.saturating_add(copy.indexed.map_or(0, |indexed| indexed.skip));
    }
    Ok(())
}

fn read_index(indexed: &Indexed, at: i64, memory: &Memory) -> Result<i64, Cause> {
    let bytes = memory.read(indexed.region, at, 4).map_err(Cause::bus("DMA0_IDX"))?;
    let index = i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes")));
    if !(0..=i64::from(indexed.max)).contains(&index) {
        return Err(Cause::not_modelled("an index", index, "indices lie between 0 and DMA0_IDX_MAX"));
    }
    Ok(index)
}

fn load_table(copy: &Dma, source: i64, memory: &Memory, tables: &mut TableMemory) -> Result<(), Cause> {
    let bytes = memory.read(copy.source_region, source, copy.length).map_err(Cause::bus("DMA0_SRC"))?;
    let Some(span) = tables.span(copy.destination, copy.length) else {
        return Err(Cause::not_modelled(
            "DMA0_DST",
            i64::try_from(copy.destination).unwrap_or(i64::MAX),
            "transfers into internal memory are known to where tables lie",
        ));
    };
    tables.load(span, bytes);
    Ok(())
}
