//! The rule by which a descriptor is told from any other data.

use super::RecoverError;
use super::image::Image;
use super::relocations::Relative;
use crate::codes::Cell;
use std::collections::BTreeMap;

/// The most inputs or outputs that a descriptor may declare; ovxlib's largest table has seven of both.
const MOST_TENSORS: u32 = 16;
/// The most rows; ovxlib's largest table has 132.
const MOST_ROWS: u32 = 512;
/// Every known type and quantisation packs to less.
const CELL_LIMIT: u32 = 0x1_0000;
/// The pointer's place behind the four words.
const POINTER: u64 = 16;
/// ovxlib has about 110 tables; files that claim many more are made to exhaust the reader.
const MOST_TABLES: usize = 4096;
/// The same for the bytes of all rows together.
const MOST_BYTES: usize = 16 << 20;

/// A descriptor that fits, and its rows.
pub(super) struct Found {
    pub descriptor: u64,
    pub descriptor_offset: u64,
    pub rows: u64,
    pub rows_offset: u64,
    pub found_by: &'static str,
    pub inputs: u32,
    pub outputs: u32,
    pub row_count: u32,
    /// The rows as little-endian words.
    pub raw: Vec<u8>,
    pub cells: Vec<Vec<Cell>>,
}

pub(super) fn by_relocations(
    image: &Image<'_>,
    list: &[Relative],
    rejected: &mut BTreeMap<&'static str, usize>,
) -> Result<Vec<Found>, RecoverError> {
    let candidates = list.iter().filter_map(|relocation| {
        Some((relocation.place.checked_sub(POINTER)?, relocation.target, relocation.kind))
    });
    collect(image, candidates, rejected)
}

/// Every aligned word of the loaded data: for files linked to fixed addresses.
pub(super) fn by_scan(
    image: &Image<'_>,
    rejected: &mut BTreeMap<&'static str, usize>,
) -> Result<Vec<Found>, RecoverError> {
    let word = image.word();
    let candidates = image.segments.iter().flat_map(|segment| {
        // A segment at the very end of the address space may have no aligned word.
        let first = segment.address.checked_next_multiple_of(word).unwrap_or(u64::MAX);
        let last = segment.address + segment.size;
        (first..last).step_by(word as usize).filter_map(|address| {
            let target = image.pointer(address.checked_add(POINTER)?)?;
            Some((address, target, "scan"))
        })
    });
    collect(image, candidates, rejected)
}

fn collect(
    image: &Image<'_>,
    candidates: impl Iterator<Item = (u64, u64, &'static str)>,
    rejected: &mut BTreeMap<&'static str, usize>,
) -> Result<Vec<Found>, RecoverError> {
    let mut found = Vec::new();
    let mut bytes = 0;
    for (descriptor, target, found_by) in candidates {
        match judge(image, descriptor, target, found_by) {
            Ok(Some(table)) => {
                bytes += table.raw.len();
                if found.len() >= MOST_TABLES || bytes > MOST_BYTES {
                    return Err(RecoverError::TooMany { what: "tables", limit: MOST_TABLES });
                }
                found.push(table);
            }
            Ok(None) => {}
            Err(why) => *rejected.entry(why).or_default() += 1,
        }
    }
    Ok(found)
}

/// `Ok(None)`: not even the first words fit, as with most relocations. `Err`: they fit and something else didn't.
fn judge(
    image: &Image<'_>,
    descriptor: u64,
    target: u64,
    found_by: &'static str,
) -> Result<Option<Found>, &'static str> {
    let word = |index: u64| image.u32(descriptor.checked_add(4 * index)?);
    let (Some(inputs), Some(outputs), Some(row_bytes), Some(row_count)) =
        (word(0), word(1), word(2), word(3))
    else {
        return Ok(None);
    };
    if !(1..=MOST_TENSORS).contains(&inputs) || outputs > MOST_TENSORS || row_bytes != 4 * (inputs + outputs)
    {
        return Ok(None);
    }
    if !(1..=MOST_ROWS).contains(&row_count) {
        return Err("row count out of range");
    }
    let size = u64::from(row_bytes) * u64::from(row_count);
    let Some(rows_offset) = image.offset(target, size) else { return Err("rows not in the file") };
    let Some(data) = image.slice(target, size) else { return Err("rows not in the file") };
    let words: Vec<u32> = data.chunks_exact(4).map(Image::word32).collect();
    if words.iter().any(|word| *word >= CELL_LIMIT) {
        return Err("a cell is no type");
    }
    let descriptor_offset = image.offset(descriptor, POINTER).ok_or("descriptor not in the file")?;
    let cells = words
        .chunks_exact((inputs + outputs) as usize)
        .map(|row| row.iter().map(|word| Cell(*word)).collect());
    Ok(Some(Found {
        descriptor,
        descriptor_offset,
        rows: target,
        rows_offset,
        found_by,
        inputs,
        outputs,
        row_count,
        cells: cells.collect(),
        raw: words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    }))
}
