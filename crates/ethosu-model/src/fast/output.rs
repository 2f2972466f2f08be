//! The output stage of a planned operation.

use ethosu_isa::ElementSize;

use super::kernels::Clamp;
use super::requant::LANES;
use super::store::Store;
use crate::operation::Results;
use crate::table::{TableMemory, TableShape};

/// Clamp, table and destination of results.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) region: u8,
    pub(super) clamp: Clamp,
    /// From a clamped byte to the stored one.
    table: Option<Box<[u8; 256]>>,
    pub(super) store: Store,
    /// Bytes of an element: 1 or 2.
    pub(super) bytes: usize,
}

impl Output {
    /// Plans an 8-bit or 16-bit output whose table, if it has one, is known. `None` for other forms. It stores what has been
    /// rearranged.
    pub(super) fn new(results: &Results, tables: &TableMemory) -> Option<Self> {
        let map = &results.ofm;
        let (zero_point, low, high) = results.output.clamp()?;
        let narrow = |value: i64| i32::try_from(value).ok();
        let clamp = Clamp { zero_point: narrow(zero_point)?, low: narrow(low)?, high: narrow(high)? };
        let bytes = match map.element {
            ElementSize::Bits8 => 1,
            ElementSize::Bits16 => 2,
            ElementSize::Bits32 | ElementSize::Bits64 => return None,
        };
        let table = match results.output.table() {
            None => None,
            Some(place) if matches!(place.shape, TableShape::Signed8 | TableShape::Unsigned8) => {
                let bytes = tables.table(place).ok()?;
                let mut table = Box::new([0; 256]);
                for (index, byte) in table.iter_mut().enumerate() {
                    // A signed value's table begins at -128.
                    let at =
                        if place.shape == TableShape::Signed8 { index as u8 ^ 0x80 } else { index as u8 };
                    *byte = bytes[usize::from(at)];
                }
                Some(table)
            }
            Some(_) => return None,
        };
        Some(Self {
            region: map.region,
            clamp,
            table,
            store: Store::new(*map, results.stored_extent()),
            bytes,
        })
    }

    /// If whole blocks of [`LANES`] clamped bytes can be written where they belong: the bytes from a pixel's block to its next.
    pub(super) fn direct_step(&self) -> Option<usize> {
        if self.bytes != 1 || self.table.is_some() || !self.store.extent.depth.is_multiple_of(LANES) {
            return None;
        }
        self.store.block_step()
    }

    /// Takes clamped bytes through the table.
    pub(super) fn finish(&self, values: &mut [u8]) {
        if let Some(table) = &self.table {
            for value in values {
                *value = table[usize::from(*value)];
            }
        }
    }
}
