//! Which memory each operation of a program touches.

use std::ops::Range;

use ethosu_isa::Layout;
use ethosu_isa::registers::{Channel, REGIONS};

use crate::Program;
use crate::map::{BRICK, Extent, FeatureMap};
use crate::operation::{Convolution, ConvolutionScale, Dma, Kernel, Operand, Operation, Target};

/// Bytes of a channel's record in a scale stream (Vela 5.2.0, `ethos_u55_weight_encoder.cpp`).
const SCALE_RECORD: usize = 10;

/// What a program does with one region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegionUse {
    /// Whether an operation reads it.
    pub reads: bool,
    /// Whether an operation writes it.
    pub writes: bool,
    /// The bytes it must have: no access ends behind this many.
    pub bytes: u64,
    /// The bytes before its base that operations reach: 0 in any sane program.
    pub before: u64,
    /// Whether data decides which of its rows are accessed. `bytes` then goes by the largest index that the commands allow.
    pub indexed: bool,
}

impl RegionUse {
    /// Whether an operation touches it at all.
    pub fn is_used(&self) -> bool {
        self.reads || self.writes
    }

    fn add(&mut self, access: &Access) {
        self.reads |= !access.writes();
        self.writes |= access.writes();
        self.indexed |= access.loose;
        self.bytes = self.bytes.max(access.range.end.max(0).unsigned_abs());
        self.before = self.before.max(access.range.start.min(0).unsigned_abs());
    }
}

impl Program {
    /// What the operations do with each region, whatever the data.
    ///
    /// ```
    /// use ethosu_isa::{Accelerator, Command, DmaRegion, DmaStride, Product};
    /// use ethosu_model::{Limits, Program};
    ///
    /// let side = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    /// let commands = [
    ///     Command::Dma0SrcRegion(side(0)),
    ///     Command::Dma0Src(32),
    ///     Command::Dma0DstRegion(side(1)),
    ///     Command::Dma0Dst(0),
    ///     Command::Dma0Len(16),
    ///     Command::DmaStart,
    ///     Command::Stop { mask: 0xFFFF },
    /// ];
    /// let mut stream = Vec::new();
    /// for command in commands {
    ///     stream.extend(command.encode(Product::U55)?.iter().flat_map(u32::to_le_bytes));
    /// }
    /// let regions = Program::decode(&stream, Accelerator::U55_128, &Limits::default())?.regions();
    /// assert_eq!((regions[0].reads, regions[0].writes, regions[0].bytes), (true, false, 48));
    /// assert_eq!((regions[1].reads, regions[1].writes, regions[1].bytes), (false, true, 16));
    /// assert!(!regions[2].is_used());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn regions(&self) -> [RegionUse; REGIONS] {
        let mut regions = [RegionUse::default(); REGIONS];
        for access in self.steps().iter().flat_map(|step| accesses(&step.operation)) {
            if let Some(region) = regions.get_mut(usize::from(access.region)) {
                region.add(&access);
            }
        }
        regions
    }
}

/// A stretch of a region that an operation reads or writes. For a map with strides it's the whole from its first byte to its
/// last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) region: u8,
    /// Offsets from the region's base. They may be negative.
    pub(crate) range: Range<i64>,
    pub(crate) channel: Channel,
    /// Set where data decides which part of it is touched: the rows of an indexed transfer.
    pub(crate) loose: bool,
}

impl Access {
    fn new(region: u8, range: Range<i64>, channel: Channel) -> Access {
        Access { region, range, channel, loose: false }
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.channel, Channel::Ofm | Channel::TransferWrite)
    }
}

/// Everything an operation touches, in the order in which it's looked at.
pub(crate) fn accesses(operation: &Operation) -> Vec<Access> {
    let mut accesses = Vec::new();
    let mut ifm = |map: &FeatureMap, extent| accesses.push(self::map(map, extent, Channel::Ifm));
    match operation {
        Operation::Convolution(convolution) => {
            ifm(&convolution.window.ifm, convolution.window.ifm_extent);
            self::convolution(convolution, &mut accesses);
        }
        Operation::Pooling(pooling) => ifm(&pooling.window.ifm, pooling.window.ifm_extent),
        Operation::Elementwise(elementwise) => {
            for operand in [Some(&elementwise.a), elementwise.b.as_ref()].into_iter().flatten() {
                if let Operand::Map { map, extent, .. } = operand {
                    ifm(map, *extent);
                }
            }
        }
        Operation::Resize(resize) => ifm(&resize.ifm, resize.ifm_extent),
        Operation::Dma(dma) => self::dma(dma, &mut accesses),
    }
    if let Some(results) = operation.results() {
        accesses.push(map(&results.ofm, results.stored_extent(), Channel::Ofm));
    }
    // What stands for a chain buffer isn't in memory.
    accesses.retain(|access| usize::from(access.region) < REGIONS);
    accesses
}

fn convolution(convolution: &Convolution, accesses: &mut Vec<Access>) {
    match &convolution.kernel {
        Kernel::Streams { region, streams, .. } => {
            for stream in streams {
                let range = bytes(stream.base, stream.length.into());
                accesses.push(Access::new(*region, range, Channel::Weights));
            }
        }
        Kernel::Map(weights) => {
            let (width, depth) =
                (convolution.window.results.extent.depth, convolution.window.ifm_extent.depth);
            accesses.push(map(weights, Extent { height: 1, width, depth }, Channel::Ifm));
        }
    }
    if let ConvolutionScale::PerChannel { region, streams, .. } = &convolution.scale {
        for stream in streams {
            let range = bytes(stream.base, (stream.channels * SCALE_RECORD) as u64);
            accesses.push(Access::new(*region, range, Channel::Scales));
        }
    }
}

fn dma(dma: &Dma, accesses: &mut Vec<Access>) {
    let (rows, planes) = (dma.rows as i64 - 1, dma.planes as i64 - 1);
    let by_index = |source| dma.indexed.filter(|indexed| indexed.source == source);
    let side = |start: u64, strides: (i64, i64), source| {
        let rows = by_index(source).map_or(rows, |indexed| indexed.max.into());
        let start = bytes(start, 0).start;
        let row_ends = [0, rows.saturating_mul(strides.1)];
        let ends =
            [0, planes * strides.0].map(|plane| row_ends.map(|row| (start + plane).saturating_add(row)));
        let (low, high) =
            ends.into_iter().flatten().fold((i64::MAX, i64::MIN), |(l, h), at| (l.min(at), h.max(at)));
        low..high.saturating_add_unsigned(dma.length)
    };
    if let Some(indexed) = &dma.indexed {
        let start = bytes(indexed.base, 0).start;
        let plane = (rows + 1) * 4;
        let last = start + planes * (plane + indexed.skip);
        let range = start.min(last)..start.max(last) + plane;
        accesses.push(Access::new(indexed.region, range, Channel::TransferIndex));
    }
    accesses.push(Access {
        region: dma.source_region,
        range: side(dma.source, (dma.plane_strides.0, dma.row_strides.0), true),
        channel: Channel::TransferRead,
        loose: by_index(true).is_some(),
    });
    if let Target::Region(region) = dma.target {
        accesses.push(Access {
            region,
            range: side(dma.destination, (dma.plane_strides.1, dma.row_strides.1), false),
            channel: Channel::TransferWrite,
            loose: by_index(false).is_some(),
        });
    }
}

fn bytes(start: u64, length: u64) -> Range<i64> {
    // Addresses have 40 bits, so nothing is cut off.
    let start = start.min(i64::MAX as u64) as i64;
    start..start.saturating_add_unsigned(length)
}

fn map(map: &FeatureMap, extent: Extent, channel: Channel) -> Access {
    Access::new(map.region, hull(map, extent), channel)
}

/// From the lowest byte of a map to the highest. Within a tile an address is linear in each coordinate, but for the channels
/// of bricks, which are looked at by brick; so the ends of each tile tell.
fn hull(map: &FeatureMap, extent: Extent) -> Range<i64> {
    let ends = |split: usize, size: usize| {
        let inner = [split.saturating_sub(1), split];
        [0, size - 1].into_iter().chain(inner.into_iter().filter(move |_| split < size))
    };
    let last = extent.depth - 1;
    let depths = match map.layout {
        Layout::Nhwc => [0, last, last, last],
        Layout::Nhcwb16 => {
            let last_brick = last / BRICK * BRICK;
            [(BRICK - 1).min(last), last_brick, last_brick.saturating_sub(1), last]
        }
    };
    let depths = || std::iter::once(0).chain(depths);
    let addresses = ends(map.width0, extent.width).flat_map(|x| {
        let rows = if x >= map.width0 { map.height1 } else { map.height0 };
        ends(rows, extent.height).flat_map(move |y| depths().map(move |c| map.address(y, x, c)))
    });
    let (low, high) =
        addresses.fold((i64::MAX, i64::MIN), |(low, high), address| (low.min(address), high.max(address)));
    low..high + map.element_bytes() as i64
}

#[cfg(test)]
mod tests {
    use ethosu_isa::ElementSize;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_hull_ends_where_the_map_does(
            height in 1usize..6, width in 1usize..6, depth in 1usize..40, bricks in any::<bool>(),
            width0 in 1usize..7, height0 in 1usize..7, height1 in 1usize..7, size in 0usize..3,
            bases in prop::array::uniform4(0u64..4096), strides in prop::array::uniform3(-600i64..600),
        ) {
            let map = FeatureMap {
                region: 1,
                bases,
                width0,
                height0,
                height1,
                stride_y: strides[0],
                stride_x: strides[1],
                stride_c: strides[2],
                element: [ElementSize::Bits8, ElementSize::Bits16, ElementSize::Bits32][size],
                signed: true,
                layout: if bricks { Layout::Nhcwb16 } else { Layout::Nhwc },
                zero_point: 0,
            };
            let extent = Extent { height, width, depth };
            let all = (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..depth).map(move |c| (y, x, c))));
            let (mut low, mut high) = (i64::MAX, i64::MIN);
            for (y, x, c) in all {
                let address = map.address(y, x, c);
                low = low.min(address);
                high = high.max(address + map.element_bytes() as i64);
            }
            prop_assert_eq!(hull(&map, extent), low..high);
        }
    }
}
