//! Which bytes of the regions are known before a run: constants, and what DMA copies of them.

use std::ops::Range;

use crate::memory::{Memory, SLOTS};

/// Bytes of a writable region that are a copy of constant ones.
#[derive(Debug, Clone)]
struct Copy {
    bytes: Range<usize>,
    region: u8,
    source: usize,
}

/// Copies that are followed at a time, so that each write costs no more than so many comparisons.
const FOLLOWED: usize = 1 << 10;

/// Follows a program's writes.
#[derive(Debug)]
pub(super) struct Provenance<'a> {
    memory: &'a Memory,
    copies: [Vec<Copy>; SLOTS],
}

/// Constant bytes, by the region and the offset they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) region: u8,
    pub(super) bytes: Range<usize>,
}

impl<'a> Provenance<'a> {
    /// Nothing written yet.
    pub(super) fn new(memory: &'a Memory) -> Self {
        Self { memory, copies: std::array::from_fn(|_| Vec::new()) }
    }

    /// The lowest region that shares `region`'s bytes, so that aliases are followed as one.
    fn owner(&self, region: u8) -> u8 {
        (0..region).find(|&lower| self.memory.same(lower, region)).unwrap_or(region)
    }

    /// Where these bytes come from, if all of them are known.
    pub(super) fn constant(&self, region: u8, bytes: Range<usize>) -> Option<Constant> {
        if bytes.end > self.memory.bytes(region)?.len() {
            return None;
        }
        if self.memory.is_constant(region) {
            return Some(Constant { region, bytes });
        }
        let copy = self.copies[usize::from(self.owner(region))]
            .iter()
            .find(|copy| copy.bytes.start <= bytes.start && bytes.end <= copy.bytes.end)?;
        let start = copy.source + bytes.start - copy.bytes.start;
        Some(Constant { region: copy.region, bytes: start..start + bytes.len() })
    }

    /// Something unknown is written.
    pub(super) fn write(&mut self, region: u8, bytes: &Range<usize>) {
        let owner = usize::from(self.owner(region));
        let old = std::mem::take(&mut self.copies[owner]);
        for copy in old {
            // What lies before and after the written bytes stays known.
            for part in [
                copy.bytes.start..copy.bytes.end.min(bytes.start),
                copy.bytes.start.max(bytes.end)..copy.bytes.end,
            ] {
                if !part.is_empty() {
                    let source = copy.source + part.start - copy.bytes.start;
                    self.copies[owner].push(Copy { bytes: part, region: copy.region, source });
                }
            }
        }
    }

    /// Known bytes are copied.
    pub(super) fn copy(&mut self, region: u8, start: usize, from: &Constant) {
        let bytes = start..start + from.bytes.len();
        self.write(region, &bytes);
        let owner = usize::from(self.owner(region));
        // What isn't followed is unknown, which is always true.
        if self.copies[owner].len() < FOLLOWED {
            self.copies[owner].push(Copy { bytes, region: from.region, source: from.bytes.start });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_followed_until_they_are_overwritten() {
        let mut memory = Memory::new();
        memory.bind_constant(0, vec![0; 100].into());
        memory.bind_writable(1, 100);
        memory.bind_alias(2, 1);
        let mut known = Provenance::new(&memory);
        assert_eq!(known.constant(1, 0..10), None);
        let from = known.constant(0, 20..60).unwrap();
        known.copy(2, 10, &from);
        assert_eq!(known.constant(1, 10..50), Some(Constant { region: 0, bytes: 20..60 }));
        assert_eq!(known.constant(1, 9..50), None);
        known.write(1, &(20..30));
        assert_eq!(known.constant(2, 10..20), Some(Constant { region: 0, bytes: 20..30 }));
        assert_eq!(known.constant(2, 30..50), Some(Constant { region: 0, bytes: 40..60 }));
        assert_eq!(known.constant(2, 19..21), None);
        known.write(1, &(0..100));
        assert_eq!(known.constant(2, 10..20), None);
        assert_eq!(known.constant(0, 90..101), None);
    }
}
