//! Results on their way into memory.

use std::ops::Range;

use ethosu_isa::Layout;

use super::requant::LANES;
use crate::map::{BRICK, Extent, FeatureMap};

/// Writes pixels of an output map, channels a slice at a time.
#[derive(Debug, Clone)]
pub(super) struct Store {
    map: FeatureMap,
    pub(super) extent: Extent,
}

impl Store {
    /// A writer for a map whose [`reach`](FeatureMap::reach) has been checked.
    pub(super) fn new(map: FeatureMap, extent: Extent) -> Self {
        Self { map, extent }
    }

    /// Bytes from a pixel's block of [`LANES`] channels to its next; `None` if the next lies before it. For maps of bytes.
    pub(super) fn block_step(&self) -> Option<usize> {
        match self.map.layout {
            Layout::Nhwc => Some(LANES),
            Layout::Nhcwb16 if self.extent.depth <= LANES => Some(0),
            Layout::Nhcwb16 => usize::try_from(self.map.stride_c).ok(),
        }
    }

    /// The parts of row `y`: columns, where the first one's first channel goes, and the bytes from a column to the next, which may
    /// be negative and then wrap. For maps of bytes.
    pub(super) fn row_parts(&self, y: usize) -> impl Iterator<Item = (Range<usize>, usize, usize)> {
        let step = self.pixel(0, 1, 1) as usize;
        self.map.row(y, self.extent.width).map(move |part| (part.columns, part.start, step))
    }

    /// The map written to.
    pub(super) fn map(&self) -> &FeatureMap {
        &self.map
    }

    /// Writes all channels of row `y`, pixel after pixel.
    pub(super) fn row(&self, memory: &mut [u8], y: usize, values: &[u8]) {
        let depth = self.extent.depth;
        for part in self.map.row(y, self.extent.width) {
            let values = &values[part.columns.start * depth..part.columns.end * depth];
            if self.map.dense_rows(depth) {
                memory[part.start..part.start + values.len()].copy_from_slice(values);
                continue;
            }
            for (column, values) in values.chunks_exact(depth).enumerate() {
                let pixel = self.pixel(part.start, column, 1);
                for (brick, values) in values.chunks(BRICK).enumerate() {
                    copy(&mut memory[self.brick(pixel, brick, 1)..], values);
                }
            }
        }
    }

    /// Writes the channels of one block of row `y`: [`LANES`] values a pixel.
    pub(super) fn block_row(&self, memory: &mut [u8], y: usize, block: usize, values: &[u8]) {
        let channels = LANES.min(self.extent.depth - block * LANES);
        for part in self.map.row(y, self.extent.width) {
            let values = &values[part.columns.start * LANES..part.columns.end * LANES];
            if channels == BRICK && self.map.layout == Layout::Nhcwb16 {
                let at = self.brick(part.start as i64, block, 1);
                memory[at..at + values.len()].copy_from_slice(values);
                continue;
            }
            let first = self.brick(part.start as i64, block, 1);
            let step = self.pixel(0, 1, 1);
            let values = values.as_chunks::<LANES>().0;
            match channels {
                16 => pixels::<16>(memory, first, step, values),
                8 => pixels::<8>(memory, first, step, values),
                4 => pixels::<4>(memory, first, step, values),
                _ => {
                    for (column, values) in values.iter().enumerate() {
                        let at = (first as i64 + column as i64 * step) as usize;
                        memory[at..at + channels].copy_from_slice(&values[..channels]);
                    }
                }
            }
        }
    }

    /// As [`block_row`](Self::block_row), the low 16 bits of each value.
    pub(super) fn block_row_words(&self, memory: &mut [u8], y: usize, block: usize, values: &[i32]) {
        let channels = LANES.min(self.extent.depth - block * LANES);
        for part in self.map.row(y, self.extent.width) {
            for x in part.columns.clone() {
                let at = self.brick(self.pixel(part.start, x - part.columns.start, 2), block, 2);
                words(&mut memory[at..], &values[x * LANES..][..channels]);
            }
        }
    }

    /// As [`row`](Self::row), the low 16 bits of each value.
    pub(super) fn row_words(&self, memory: &mut [u8], y: usize, values: &[i32]) {
        let depth = self.extent.depth;
        for part in self.map.row(y, self.extent.width) {
            for x in part.columns.clone() {
                let pixel = self.pixel(part.start, x - part.columns.start, 2);
                for (brick, values) in values[x * depth..][..depth].chunks(BRICK).enumerate() {
                    words(&mut memory[self.brick(pixel, brick, 2)..], values);
                }
            }
        }
    }

    /// Where a column of a part of a row begins.
    fn pixel(&self, start: usize, column: usize, bytes: usize) -> i64 {
        let step = match self.map.layout {
            Layout::Nhwc => self.map.stride_x,
            Layout::Nhcwb16 => (BRICK * bytes) as i64,
        };
        start as i64 + column as i64 * step
    }

    /// Where sixteen channels of a pixel begin.
    fn brick(&self, pixel: i64, brick: usize, bytes: usize) -> usize {
        let step = match self.map.layout {
            Layout::Nhwc => (BRICK * bytes) as i64,
            Layout::Nhcwb16 => self.map.stride_c,
        };
        (pixel + brick as i64 * step) as usize
    }
}

/// Writes the first `N` values of each pixel, `step` bytes apart.
fn pixels<const N: usize>(memory: &mut [u8], first: usize, step: i64, values: &[[u8; LANES]]) {
    let mut at = first as i64;
    for values in values {
        memory[at as usize..][..N].copy_from_slice(&values[..N]);
        at += step;
    }
}

/// Copies a few bytes; the usual numbers without a call.
fn copy(memory: &mut [u8], values: &[u8]) {
    macro_rules! fixed {
        ($($count:literal)*) => {
            match values.len() {
                $($count => memory[..$count].copy_from_slice(&values[..$count]),)*
                count => memory[..count].copy_from_slice(values),
            }
        };
    }
    fixed!(16 8 4 1);
}

fn words(memory: &mut [u8], values: &[i32]) {
    for (bytes, value) in memory[..2 * values.len()].chunks_exact_mut(2).zip(values) {
        bytes.copy_from_slice(&(*value as i16).to_le_bytes());
    }
}
