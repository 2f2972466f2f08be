//! The look-up tables in the NPU's own memory.

use ethosu_isa::Accelerator;

use crate::stop::Cause;

/// Bytes of SHRAM that tables may occupy: its last two banks (Vela 5.2.0, ethos_u55.cpp, `LUT` bank reservation).
const TABLE_BYTES: usize = 2048;
/// How a table's bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableShape {
    /// 256 signed bytes, indexed by value + 128.
    Signed8,
    /// 256 unsigned bytes.
    Unsigned8,
    /// 512 pairs of 16-bit base and slope, interpolated over 128 steps.
    Interpolated16,
    /// 256 32-bit values, indexed by an 8-bit value + 128.
    Wide32,
}

impl TableShape {
    /// Bytes the table has.
    pub fn bytes(self) -> usize {
        match self {
            Self::Signed8 | Self::Unsigned8 => 256,
            Self::Interpolated16 => 2048,
            Self::Wide32 => 1024,
        }
    }
}

/// A place in the table memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    start: usize,
    /// How its bytes are read.
    pub shape: TableShape,
}

impl Table {
    /// A table at a byte offset; `None` if the table memory ends before it does or it isn't aligned to its own size.
    pub(crate) fn new(start: usize, shape: TableShape) -> Option<Self> {
        let fits = start.is_multiple_of(shape.bytes()) && start + shape.bytes() <= TABLE_BYTES;
        fits.then_some(Self { start, shape })
    }
}

/// The part of SHRAM where tables live. What no DMA has written can't be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableMemory {
    bytes: [u8; TABLE_BYTES],
    loaded: [bool; TABLE_BYTES],
    /// SHRAM address of the first byte.
    start: u64,
}

impl TableMemory {
    /// The table memory of an accelerator, nothing loaded. On U85 it is a memory of its own, addressed from 0.
    pub(crate) fn new(accelerator: Accelerator) -> Self {
        let start = accelerator.shram_bytes().map_or(0, |bytes| u64::from(bytes) - TABLE_BYTES as u64);
        Self { bytes: [0; TABLE_BYTES], loaded: [false; TABLE_BYTES], start }
    }

    /// Where a DMA to the internal address `address` would land, if all of it lies in the table memory.
    pub(crate) fn span(&self, address: u64, length: u64) -> Option<std::ops::Range<usize>> {
        let start = address.checked_sub(self.start)?;
        let end = start.checked_add(length)?;
        (end <= TABLE_BYTES as u64).then_some(start as usize..end as usize)
    }

    /// Loads bytes at a span from [`span`](Self::span).
    pub(crate) fn load(&mut self, span: std::ops::Range<usize>, bytes: &[u8]) {
        self.bytes[span.clone()].copy_from_slice(bytes);
        self.loaded[span].fill(true);
    }

    /// Bytes of unknown content are loaded: nothing of the span can be read until known ones are.
    pub(crate) fn forget(&mut self, span: std::ops::Range<usize>) {
        self.loaded[span].fill(false);
    }

    /// The bytes of a table.
    ///
    /// # Errors
    /// [`Cause::NotModelled`] if a part of it was never loaded.
    pub(crate) fn table(&self, table: Table) -> Result<&[u8], Cause> {
        let span = table.start..table.start + table.shape.bytes();
        if !self.loaded[span.clone()].iter().all(|&loaded| loaded) {
            let start = table.start as i64;
            return Err(Cause::not_modelled(
                "the table's first byte",
                start,
                "no DMA has loaded all of the table",
            ));
        }
        Ok(&self.bytes[span])
    }
}

impl TableShape {
    /// The answer of a table of this shape for a value already clamped to the index type.
    pub(crate) fn look_up(self, table: &[u8], value: i64) -> i64 {
        match self {
            TableShape::Signed8 => i64::from(table[(value + 128) as usize] as i8),
            TableShape::Unsigned8 => i64::from(table[value as usize]),
            TableShape::Wide32 => {
                let at = 4 * (value + 128) as usize;
                i64::from(i32::from_le_bytes(table[at..at + 4].try_into().expect("four bytes")))
            }
            TableShape::Interpolated16 => {
                let at = 4 * ((value + 0x8000) >> 7) as usize;
                let base = i64::from(i16::from_le_bytes([table[at], table[at + 1]]));
                // The stored slope counts: Vela's last entry isn't the difference to a next one.
                let slope = i64::from(i16::from_le_bytes([table[at + 2], table[at + 3]]));
                (base + ((slope * (value & 127) + 64) >> 7)).clamp(i16::MIN.into(), i16::MAX.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(shape: TableShape) -> Table {
        Table::new(0, shape).unwrap()
    }

    #[test]
    fn tables_lie_at_the_end_of_shram() {
        let memory = TableMemory::new(Accelerator::U55_128);
        assert_eq!(memory.span(22 * 1024, 256), Some(0..256));
        assert_eq!(memory.span(24 * 1024 - 16, 16), Some(2032..2048));
        assert_eq!(memory.span(24 * 1024 - 16, 17), None);
        assert_eq!(memory.span(0, 16), None);
        assert_eq!(memory.span(u64::MAX, 16), None);
        assert_eq!(TableMemory::new(Accelerator::U85_256).span(0, 2048), Some(0..2048));
    }

    #[test]
    fn a_table_that_was_never_loaded_is_not_read() {
        let mut memory = TableMemory::new(Accelerator::U55_256);
        memory.load(0..255, &[1; 255]);
        assert!(memory.table(table(TableShape::Signed8)).is_err());
        memory.load(255..256, &[0x80]);
        let table = memory.table(table(TableShape::Signed8)).unwrap();
        assert_eq!([127, -128].map(|value| TableShape::Signed8.look_up(table, value)), [-128, 1]);
        assert_eq!(TableShape::Unsigned8.look_up(table, 255), 128);
    }

    #[test]
    fn sixteen_bit_tables_interpolate() {
        let mut memory = TableMemory::new(Accelerator::U55_256);
        let entries = (0..512i32).flat_map(|i| {
            let base = ((i - 256) * 64) as i16;
            [base.to_le_bytes(), 64i16.to_le_bytes()].concat()
        });
        memory.load(0..2048, &entries.collect::<Vec<_>>());
        let table = memory.table(table(TableShape::Interpolated16)).unwrap();
        for value in [-32768i64, -1, 0, 1, 2, 3, 100, 32767] {
            assert_eq!(TableShape::Interpolated16.look_up(table, value), (value + 1) >> 1, "{value}");
        }
    }

    #[test]
    fn tables_end_where_the_memory_does() {
        let fits = |start, shape| Table::new(start, shape).is_some();
        assert!(fits(7 * 256, TableShape::Signed8) && !fits(8 * 256, TableShape::Signed8));
        assert!(fits(1024, TableShape::Wide32) && !fits(256, TableShape::Wide32));
        assert!(fits(0, TableShape::Interpolated16) && !fits(256, TableShape::Interpolated16));
    }
}
