//! Feature maps as the registers describe them, and the volumes of values they hold.

use ethosu_isa::{ElementSize, Layout};

use crate::memory::{BusFault, Memory};

/// Channels of an NHCWB16 brick.
pub(crate) const BRICK: usize = 16;

/// Height, width and depth of a map, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels.
    pub depth: usize,
}

impl Extent {
    /// Elements in the map.
    pub fn elements(self) -> u64 {
        (self.height as u64).saturating_mul(self.width as u64).saturating_mul(self.depth as u64)
    }
}

/// Values in height, width, depth order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its size.
    pub extent: Extent,
    /// `extent.elements()` values.
    pub values: Vec<i64>,
}

impl Volume {
    /// All channels at a position.
    pub fn channels(&self, y: usize, x: usize) -> &[i64] {
        let start = (y * self.extent.width + x) * self.extent.depth;
        &self.values[start..start + self.extent.depth]
    }
}

impl Volume {
    /// The values with their axes in another order, and then reversed along one.
    pub(crate) fn arranged(self, axes: Axes, flip: Flip) -> Self {
        if axes == Axes::Hwc && flip == Flip::None {
            return self;
        }
        let extent = axes.extent(self.extent);
        let mut values = Vec::with_capacity(self.values.len());
        for y in 0..extent.height {
            for x in 0..extent.width {
                for c in 0..extent.depth {
                    let (y, x, c) = match flip {
                        Flip::None => (y, x, c),
                        Flip::Height => (extent.height - 1 - y, x, c),
                        Flip::Width => (y, extent.width - 1 - x, c),
                        Flip::Depth => (y, x, extent.depth - 1 - c),
                    };
                    let (h, w, c) = axes.source(y, x, c);
                    values.push(self.channels(h, w)[c]);
                }
            }
        }
        Self { extent, values }
    }
}

/// The order in which an output's axes are stored: which computed axis becomes the rows, the columns and the channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axes {
    /// As computed.
    Hwc,
    /// Columns become rows and rows columns.
    Whc,
    /// Channels become columns and columns channels.
    Hcw,
    /// Columns, channels, rows.
    Wch,
    /// Channels, rows, columns.
    Chw,
    /// Channels, columns, rows.
    Cwh,
}

impl Axes {
    /// The stored extent of a computed one.
    pub fn extent(self, Extent { height: h, width: w, depth: c }: Extent) -> Extent {
        let (height, width, depth) = match self {
            Self::Hwc => (h, w, c),
            Self::Whc => (w, h, c),
            Self::Hcw => (h, c, w),
            Self::Wch => (w, c, h),
            Self::Chw => (c, h, w),
            Self::Cwh => (c, w, h),
        };
        Extent { height, width, depth }
    }

    /// The computed row, column and channel that are stored at a position.
    pub(crate) fn source(self, y: usize, x: usize, c: usize) -> (usize, usize, usize) {
        match self {
            Self::Hwc => (y, x, c),
            Self::Whc => (x, y, c),
            Self::Hcw => (y, c, x),
            Self::Wch => (c, y, x),
            Self::Chw => (x, c, y),
            Self::Cwh => (c, x, y),
        }
    }
}

/// The stored axis that is reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flip {
    /// None.
    None,
    /// Rows.
    Height,
    /// Columns.
    Width,
    /// Channels.
    Depth,
}

/// The lowest and the highest value of an integer type of fewer than 64 bits.
pub(crate) fn type_range(bits: u32, signed: bool) -> (i64, i64) {
    if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) }
}

/// Where a feature map lies in memory and what its bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureMap {
    /// The region its addresses are relative to.
    pub region: u8,
    /// First byte of each of its up to four tiles: top left, top right, bottom left, bottom right.
    pub bases: [u64; 4],
    /// Columns of the left tiles.
    pub width0: usize,
    /// Rows of the top left tile.
    pub height0: usize,
    /// Rows of the top right tile.
    pub height1: usize,
    /// Bytes from a row to the next; may be negative.
    pub stride_y: i64,
    /// Bytes from a column to the next (NHWC only; in NHCWB16 bricks lie side by side).
    pub stride_x: i64,
    /// Bytes from a brick of 16 channels to the next (NHCWB16 only).
    pub stride_c: i64,
    /// Size of an element.
    pub element: ElementSize,
    /// Whether elements are signed.
    pub signed: bool,
    /// Order of the elements.
    pub layout: Layout,
    /// What stands for zero.
    pub zero_point: i64,
}

impl FeatureMap {
    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        self.element.bytes() as usize
    }

    /// The largest distance of an element's value from the zero point.
    pub(crate) fn farthest_from_zero(&self) -> i64 {
        let (low, high) = type_range(8 * self.element.bytes(), self.signed);
        (self.zero_point - low).abs().max((high - self.zero_point).abs())
    }

    /// The offset of an element's first byte from the region's base.
    ///
    /// Coordinates must be below 2^17, as those of the registers are; then nothing overflows.
    pub fn address(&self, y: usize, x: usize, c: usize) -> i64 {
        let right = x >= self.width0;
        let rows = if right { self.height1 } else { self.height0 };
        let below = y >= rows;
        let y = if below { y - rows } else { y } as i64;
        let x = if right { x - self.width0 } else { x } as i64;
        let c = c as i64;
        let element = self.element_bytes() as i64;
        let base = self.bases[usize::from(right) + 2 * usize::from(below)] as i64;
        match self.layout {
            Layout::Nhwc => base + y * self.stride_y + x * self.stride_x + c * element,
            Layout::Nhcwb16 => {
                let brick = BRICK as i64;
                base + y * self.stride_y + c / brick * self.stride_c + (x * brick + c % brick) * element
            }
        }
    }

    /// Channels that lie next to each other in memory from channel `c` on, of `depth`.
    fn run(&self, c: usize, depth: usize) -> usize {
        match self.layout {
            Layout::Nhwc => depth - c,
            Layout::Nhcwb16 => (BRICK - c % BRICK).min(depth - c),
        }
    }

    /// Reads the whole map.
    ///
    /// # Errors
    /// [`BusFault`] for the first element outside the region.
    pub fn load(&self, memory: &Memory, extent: Extent) -> Result<Volume, BusFault> {
        let mut values = Vec::with_capacity(extent.elements() as usize);
        self.load_values(memory, extent, &mut values)?;
        Ok(Volume { extent, values })
    }

    /// As [`load`](Self::load), to the end of `values`.
    pub(crate) fn load_values(
        &self,
        memory: &Memory,
        extent: Extent,
        values: &mut Vec<i64>,
    ) -> Result<(), BusFault> {
        let bytes = self.element_bytes();
        for y in 0..extent.height {
            for x in 0..extent.width {
                let mut c = 0;
                while c < extent.depth {
                    let run = self.run(c, extent.depth);
                    let raw = memory.read(self.region, self.address(y, x, c), (run * bytes) as u64)?;
                    values.extend(raw.chunks_exact(bytes).map(|element| self.decode(element)));
                    c += run;
                }
            }
        }
        Ok(())
    }

    /// Writes the whole map: the low bytes of each value.
    ///
    /// # Errors
    /// [`BusFault`] for the first element outside the region or in a read-only one.
    pub fn store(&self, memory: &mut Memory, volume: &Volume) -> Result<(), BusFault> {
        self.store_values(memory, volume.extent, &volume.values)
    }

    /// As [`store`](Self::store), of `extent.elements()` values.
    pub(crate) fn store_values(
        &self,
        memory: &mut Memory,
        extent: Extent,
        values: &[i64],
    ) -> Result<(), BusFault> {
        let Extent { height, width, depth } = extent;
        let bytes = self.element_bytes();
        for y in 0..height {
            for x in 0..width {
                let channels = &values[(y * width + x) * depth..][..depth];
                let mut c = 0;
                while c < depth {
                    let run = self.run(c, depth);
                    let raw = memory.write(self.region, self.address(y, x, c), (run * bytes) as u64)?;
                    for (element, value) in raw.chunks_exact_mut(bytes).zip(&channels[c..c + run]) {
                        element.copy_from_slice(&value.to_le_bytes()[..bytes]);
                    }
                    c += run;
                }
            }
        }
        Ok(())
    }

    /// The value of an element's bytes.
    fn decode(&self, element: &[u8]) -> i64 {
        let mut wide = [0; 8];
        wide[..element.len()].copy_from_slice(element);
        let unused = 64 - 8 * element.len() as u32;
        let raw = u64::from_le_bytes(wide) << unused;
        if self.signed { (raw as i64) >> unused } else { (raw >> unused) as i64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map(layout: Layout, element: ElementSize, extent: Extent) -> FeatureMap {
        let bytes = i64::from(element.bytes());
        let (row, brick) = match layout {
            Layout::Nhwc => (extent.width as i64 * extent.depth as i64 * bytes, 0),
            Layout::Nhcwb16 => {
                let brick = extent.width as i64 * BRICK as i64 * bytes;
                (brick * extent.depth.div_ceil(BRICK) as i64, brick)
            }
        };
        FeatureMap {
            region: 1,
            bases: [0; 4],
            width0: extent.width,
            height0: extent.height,
            height1: extent.height,
            stride_y: row,
            stride_x: extent.depth as i64 * bytes,
            stride_c: brick,
            element,
            signed: true,
            layout,
            zero_point: 0,
        }
    }

    proptest! {
        #[test]
        fn what_is_stored_is_loaded(
            height in 1usize..6, width in 1usize..6, depth in 1usize..40, bricks in any::<bool>(), size in 0usize..3, seed in any::<u64>()
        ) {
            let extent = Extent { height, width, depth };
            let element = [ElementSize::Bits8, ElementSize::Bits16, ElementSize::Bits32][size];
            let map = map(if bricks { Layout::Nhcwb16 } else { Layout::Nhwc }, element, extent);
            let bits = 8 * element.bytes();
            let values = (0..extent.elements())
                .map(|i| ((seed ^ i).wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64) >> (64 - bits))
                .collect();
            let volume = Volume { extent, values };
            let mut memory = Memory::new();
            memory.bind_writable(1, (map.stride_y as usize) * height);
            map.store(&mut memory, &volume).unwrap();
            prop_assert_eq!(map.load(&memory, extent).unwrap(), volume);
        }
    }

    #[test]
    fn tiles_and_negative_strides() {
        let extent = Extent { height: 3, width: 3, depth: 1 };
        let mut tiled = map(Layout::Nhwc, ElementSize::Bits8, extent);
        tiled.bases = [100, 200, 300, 400];
        (tiled.width0, tiled.height0, tiled.height1) = (2, 1, 2);
        tiled.stride_y = 10;
        let addresses = |map: &FeatureMap| {
            (0..3)
                .flat_map(|y| (0..3).map(move |x| (y, x)))
                .map(|(y, x)| map.address(y, x, 0))
                .collect::<Vec<_>>()
        };
        assert_eq!(addresses(&tiled), [100, 101, 200, 300, 301, 210, 310, 311, 400]);
        let mut mirrored = map(Layout::Nhwc, ElementSize::Bits8, extent);
        mirrored.bases = [8; 4];
        (mirrored.stride_y, mirrored.stride_x) = (-3, -1);
        assert_eq!(addresses(&mirrored), [8, 7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn axes_and_flips() {
        let volume = Volume { extent: Extent { height: 2, width: 3, depth: 4 }, values: (0..24).collect() };
        let at = |volume: &Volume, y: usize, x: usize, c: usize| volume.channels(y, x)[c];
        for (axes, place) in [
            (Axes::Whc, [1, 0, 2]),
            (Axes::Hcw, [0, 2, 1]),
            (Axes::Wch, [1, 2, 0]),
            (Axes::Chw, [2, 0, 1]),
            (Axes::Cwh, [2, 1, 0]),
        ] {
            let stored = volume.clone().arranged(axes, Flip::None);
            for h in 0..2 {
                for w in 0..3 {
                    for c in 0..4 {
                        // The name says which computed axis each stored one is.
                        let to = place.map(|axis: usize| [h, w, c][axis]);
                        assert_eq!(at(&stored, to[0], to[1], to[2]), at(&volume, h, w, c), "{axes:?}");
                    }
                }
            }
        }
        let flipped = |flip| volume.clone().arranged(Axes::Hwc, flip);
        assert_eq!(at(&flipped(Flip::Height), 0, 1, 2), at(&volume, 1, 1, 2));
        assert_eq!(at(&flipped(Flip::Width), 0, 0, 2), at(&volume, 0, 2, 2));
        assert_eq!(at(&flipped(Flip::Depth), 0, 1, 0), at(&volume, 0, 1, 3));
    }

    #[test]
    fn unsigned_elements() {
        let mut map = map(Layout::Nhwc, ElementSize::Bits16, Extent { height: 1, width: 1, depth: 1 });
        assert_eq!(map.decode(&[0xFF, 0xFF]), -1);
        map.signed = false;
        assert_eq!(map.decode(&[0xFF, 0xFF]), 0xFFFF);
    }
}
