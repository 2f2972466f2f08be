//! Results on their way into memory.

use ethosu_isa::Layout;

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

    /// Writes bytes of row `y`: for each column, `channels` channels from `channel` (a multiple of 16) on. `values` holds
    /// `stride` bytes a column.
    pub(super) fn row(
        &self,
        memory: &mut [u8],
        y: usize,
        channel: usize,
        channels: usize,
        values: &[u8],
        stride: usize,
    ) {
        self.pixels(y, channel, channels, 1, |column, first, at, count| {
            let values = &values[column * stride + first..][..count];
            match <&[u8; BRICK]>::try_from(values) {
                // A length the compiler knows.
                Ok(values) => memory[at..at + BRICK].copy_from_slice(values),
                Err(_) => memory[at..at + count].copy_from_slice(values),
            }
        });
    }

    /// As [`row`](Self::row), the low 16 bits of each value.
    pub(super) fn row_words(
        &self,
        memory: &mut [u8],
        y: usize,
        channel: usize,
        channels: usize,
        values: &[i32],
        stride: usize,
    ) {
        self.pixels(y, channel, channels, 2, |column, first, at, count| {
            let values = &values[column * stride + first..][..count];
            for (bytes, value) in memory[at..at + 2 * count].chunks_exact_mut(2).zip(values) {
                bytes.copy_from_slice(&(*value as i16).to_le_bytes());
            }
        });
    }

    /// Calls `put(column, first, offset, count)` for each run of channels of a row that lie together in memory; `first` counts
    /// from `channel`.
    fn pixels(
        &self,
        y: usize,
        channel: usize,
        channels: usize,
        bytes: usize,
        mut put: impl FnMut(usize, usize, usize, usize),
    ) {
        for part in self.map.row(y, self.extent.width) {
            for x in part.columns.clone() {
                let offset = (x - part.columns.start) as i64;
                match self.map.layout {
                    Layout::Nhwc => {
                        let at = (part.start as i64 + offset * self.map.stride_x) as usize + channel * bytes;
                        put(x, 0, at, channels);
                    }
                    Layout::Nhcwb16 => {
                        let pixel = part.start as i64 + offset * (BRICK * bytes) as i64;
                        for first in (0..channels).step_by(BRICK) {
                            let brick = ((channel + first) / BRICK) as i64;
                            let at = (pixel + brick * self.map.stride_c) as usize;
                            put(x, first, at, BRICK.min(channels - first));
                        }
                    }
                }
            }
        }
    }
}
