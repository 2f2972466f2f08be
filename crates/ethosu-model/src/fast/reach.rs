//! Which bytes a feature map touches, and its rows as straight runs of columns.

use std::ops::Range;

use ethosu_isa::Layout;

use crate::map::{BRICK, Extent, FeatureMap};

/// Columns of a row that lie in one tile.
#[derive(Debug, Clone)]
pub(super) struct RowPart {
    /// The columns.
    pub(super) columns: Range<usize>,
    /// Offset of the first column's channel 0 from the region's base.
    pub(super) start: usize,
}

impl FeatureMap {
    /// The bytes of the region that the map touches, if all of them have offsets from 0 on.
    pub(super) fn reach(&self, extent: Extent) -> Option<Range<usize>> {
        let ends = |split: usize, size: usize| {
            let mut ends = vec![0, size - 1];
            if split < size {
                ends.extend([split - 1, split]);
            }
            ends
        };
        let last_brick = (extent.depth - 1) / BRICK * BRICK;
        let depths = match self.layout {
            Layout::Nhwc => vec![0, extent.depth - 1],
            // First and last channel of the first brick, the last whole one and the last one.
            Layout::Nhcwb16 => {
                let last_whole = last_brick.saturating_sub(1);
                vec![0, (BRICK - 1).min(extent.depth - 1), last_whole, last_brick, extent.depth - 1]
            }
        };
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for x in ends(self.width0, extent.width) {
            let rows = if x >= self.width0 { self.height1 } else { self.height0 };
            for y in ends(rows, extent.height) {
                for &c in &depths {
                    let address = self.address(y, x, c);
                    low = low.min(address);
                    high = high.max(address);
                }
            }
        }
        let low = usize::try_from(low).ok()?;
        let high = usize::try_from(high).ok()?.checked_add(self.element_bytes())?;
        Some(low..high)
    }

    /// Whether no two elements share a byte: then the order in which they are written makes no difference. May say no where
    /// it is so.
    pub(super) fn is_injective(&self, extent: Extent) -> bool {
        // The rectangles of rows and columns that lie in one tile each.
        let width0 = self.width0.min(extent.width);
        let mut tiles = Vec::new();
        for (columns, split) in [(0..width0, self.height0), (width0..extent.width, self.height1)] {
            let split = split.min(extent.height);
            tiles.extend([(0..split, columns.clone()), (split..extent.height, columns)]);
        }
        tiles.retain(|(rows, columns)| !rows.is_empty() && !columns.is_empty());
        let element = self.element_bytes() as i64;
        let brick = (BRICK.min(extent.depth)) as i64 * element;
        // Steps and counts of the loops over a tile, and the bytes of the innermost run.
        let loops = |rows: usize, columns: usize| match self.layout {
            Layout::Nhwc => {
                (extent.depth as i64 * element, vec![(self.stride_x, columns), (self.stride_y, rows)])
            }
            Layout::Nhcwb16 => {
                let bricks = extent.depth.div_ceil(BRICK);
                let step = BRICK as i64 * element;
                (brick, vec![(step, columns), (self.stride_c, bricks), (self.stride_y, rows)])
            }
        };
        let mut spans = Vec::new();
        for (rows, columns) in &tiles {
            let (mut span, mut loops) = loops(rows.len(), columns.len());
            loops.retain(|&(_, count)| count > 1);
            loops.sort_by_key(|(step, _)| step.unsigned_abs());
            for (step, count) in loops {
                if step.abs() < span {
                    return false;
                }
                span += step.abs() * (count as i64 - 1);
            }
            let corners = [rows.start, rows.end - 1].into_iter().flat_map(|y| {
                [columns.start, columns.end - 1].into_iter().flat_map(move |x| {
                    [0, (extent.depth - 1) / BRICK * BRICK].into_iter().map(move |c| self.address(y, x, c))
                })
            });
            let start = corners.min().unwrap_or(0);
            spans.push(start..start + span);
        }
        spans.sort_by_key(|span| span.start);
        spans.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    /// The one or two parts of row `y`.
    pub(super) fn row(&self, y: usize, width: usize) -> impl Iterator<Item = RowPart> {
        let split = self.width0.min(width);
        [0..split, split..width].into_iter().filter(|columns| !columns.is_empty()).map(move |columns| {
            RowPart {
                // Callers have checked `reach`, so no address is negative.
                start: self.address(y, columns.start, 0) as usize,
                columns,
            }
        })
    }

    /// Whether a row's pixels follow each other without gaps: one copy moves all of a part.
    pub(super) fn dense_rows(&self, depth: usize) -> bool {
        match self.layout {
            Layout::Nhwc => self.stride_x == (depth * self.element_bytes()) as i64,
            Layout::Nhcwb16 => depth == BRICK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ethosu_isa::ElementSize;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn reach_is_exact(
            (height, width, depth) in (1usize..5, 1usize..5, 1usize..40),
            (width0, height0, height1) in (1usize..6, 1usize..6, 1usize..6),
            bases in any::<[u8; 4]>(),
            strides in (-40i64..200, -40i64..200, -40i64..200),
            bricks in any::<bool>(),
            two in any::<bool>(),
        ) {
            let extent = Extent { height, width, depth };
            let map = FeatureMap {
                region: 0,
                bases: bases.map(|base| u64::from(base) + 300),
                width0, height0, height1,
                stride_y: strides.0, stride_x: strides.1, stride_c: strides.2,
                element: if two { ElementSize::Bits16 } else { ElementSize::Bits8 },
                signed: false,
                layout: if bricks { Layout::Nhcwb16 } else { Layout::Nhwc },
                zero_point: 0,
            };
            let addresses: Vec<i64> = (0..height)
                .flat_map(|y| (0..width).flat_map(move |x| (0..depth).map(move |c| (y, x, c))))
                .map(|(y, x, c)| map.address(y, x, c))
                .collect();
            let (low, high) = (*addresses.iter().min().unwrap(), *addresses.iter().max().unwrap());
            let expected = usize::try_from(low).ok().map(|low| low..high as usize + map.element_bytes());
            prop_assert_eq!(map.reach(extent), expected);
            if map.is_injective(extent) {
                let mut bytes: Vec<i64> =
                    addresses.iter().flat_map(|&address| address..address + map.element_bytes() as i64).collect();
                bytes.sort_unstable();
                prop_assert!(bytes.windows(2).all(|pair| pair[0] != pair[1]));
            }
            if low >= 0 {
                for y in 0..height {
                    for part in map.row(y, width) {
                        for x in part.columns.clone() {
                            let step = if bricks { 16 * map.element_bytes() as i64 } else { map.stride_x };
                            let start = part.start as i64 + (x - part.columns.start) as i64 * step;
                            prop_assert_eq!(start, map.address(y, x, 0));
                        }
                    }
                }
            }
        }
    }
}
