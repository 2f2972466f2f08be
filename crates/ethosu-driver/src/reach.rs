//! How far into its regions an operation reaches, from the registers that the commands have set.

use ethosu_isa::Product;

use crate::scan::code;

/// The bytes of a region that one operation uses, as offsets from the region's base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The first byte; below zero in no sane program.
    pub(crate) start: i64,
    /// Behind the last byte.
    pub(crate) end: i64,
    /// The operation, in bytes from the start of the command stream.
    pub(crate) command: u32,
}

impl Reach {
    /// Whether all of it lies inside a region of `bytes`.
    pub(crate) fn fits(self, bytes: u64) -> bool {
        self.start >= 0 && self.end.max(0) as u64 <= bytes
    }

    /// Puts `other` in its place, if that reaches further.
    pub(crate) fn extend(&mut self, other: Reach) {
        let further = |reach: Reach| if reach.start < 0 { i64::MAX } else { reach.end };
        if further(other) > further(*self) {
            *self = other;
        }
    }
}

/// Registers by the codes of the commands that set them, from the one place that has those.
mod set {
    use ethosu_isa::{
        Broadcast85, Command, Decomposition, ElementSize, Ifm2Precision, IfmPrecision, KernelStride, Layout,
        OfmPrecision, OfmScaleMode, OperandScaleMode, Rounding, Upscale, WeightEncoding85, WeightFormat85,
    };

    const SIGNED: bool = false;
    const SIZE: ElementSize = ElementSize::Bits8;
    const LAYOUT: Layout = Layout::Nhwc;
    const ROUNDING: Rounding = Rounding::Double;
    const ONE: Broadcast85 = Broadcast85 { height: false, width: false, depth: false, scalar: false };
    const STRIDE: KernelStride = KernelStride {
        stride_x: 1,
        stride_y: 1,
        part_kernel_first: false,
        dilation_x: 1,
        dilation_y: 1,
        decomposition: Decomposition::D8x8,
    };
    const FORMAT: WeightFormat85 = WeightFormat85 { encoding: WeightEncoding85::Standard, sparse: false };
    const IFM: IfmPrecision = IfmPrecision {
        signed: SIGNED,
        size: SIZE,
        layout: LAYOUT,
        scale_mode: OperandScaleMode::Both16,
        rounding: ROUNDING,
    };
    const IFM2: Ifm2Precision = Ifm2Precision { signed: SIGNED, size: SIZE, layout: LAYOUT };
    const OFM: OfmPrecision = OfmPrecision {
        signed: SIGNED,
        size: SIZE,
        layout: LAYOUT,
        scale_mode: OfmScaleMode::Global,
        rounding: ROUNDING,
    };

    pub(super) const PAD_TOP: u16 = Command::IfmPadTop(0).code();
    pub(super) const PAD_LEFT: u16 = Command::IfmPadLeft(0).code();
    pub(super) const PAD_RIGHT: u16 = Command::IfmPadRight(0).code();
    pub(super) const PAD_BOTTOM: u16 = Command::IfmPadBottom(0).code();
    pub(super) const IFM_DEPTH: u16 = Command::IfmDepthM1(0).code();
    pub(super) const UPSCALE: u16 = Command::IfmUpscale(Upscale::None).code();
    pub(super) const OFM_WIDTH: u16 = Command::OfmWidthM1(0).code();
    pub(super) const OFM_HEIGHT: u16 = Command::OfmHeightM1(0).code();
    pub(super) const OFM_DEPTH: u16 = Command::OfmDepthM1(0).code();
    pub(super) const KERNEL_WIDTH: u16 = Command::KernelWidthM1(0).code();
    pub(super) const KERNEL_HEIGHT: u16 = Command::KernelHeightM1(0).code();
    pub(super) const KERNEL_STRIDE: u16 = Command::KernelStride(STRIDE).code();
    pub(super) const WEIGHT_FORMAT: u16 = Command::WeightFormat85(FORMAT).code();
    pub(super) const DMA_ROWS: u16 = Command::Dma0Size0(0).code();
    pub(super) const DMA_PLANES: u16 = Command::Dma0Size1(0).code();
    pub(super) const WEIGHT_BASE: [u16; 4] = [
        Command::WeightBase(0).code(),
        Command::Weight1Base(0).code(),
        Command::Weight2Base(0).code(),
        Command::Weight3Base(0).code(),
    ];
    pub(super) const SCALE_BASE: [u16; 2] = [Command::ScaleBase(0).code(), Command::Scale1Base(0).code()];
    pub(super) const DMA_SOURCE: u16 = Command::Dma0Src(0).code();
    pub(super) const DMA_DESTINATION: u16 = Command::Dma0Dst(0).code();
    pub(super) const DMA_LENGTH: u16 = Command::Dma0Len(0).code();
    pub(super) const DMA_SOURCE_STRIDES: u16 = Command::Dma0SrcStride0(0).code();
    pub(super) const DMA_DESTINATION_STRIDES: u16 = Command::Dma0DstStride0(0).code();
    pub(super) const DMA_INDEX: u16 = Command::Dma0Idx(0).code();
    pub(super) const DMA_INDEX_MAX: u16 = Command::Dma0IdxMax(0).code();
    pub(super) const DMA_INDEX_SKIP: u16 = Command::Dma0IdxSkip1(0).code();
    pub(super) const REGION: [u16; 3] =
        [Command::IfmRegion(0).code(), Command::Ifm2Region(0).code(), Command::OfmRegion(0).code()];
    pub(super) const WIDTH0: [u16; 3] =
        [Command::IfmWidth0M1(0).code(), Command::Ifm2Width0M1(0).code(), Command::OfmWidth0M1(0).code()];
    pub(super) const BASE0: [u16; 3] =
        [Command::IfmBase0(0).code(), Command::Ifm2Base0(0).code(), Command::OfmBase0(0).code()];
    pub(super) const PRECISION: [u16; 3] = [
        Command::IfmPrecision(IFM).code(),
        Command::Ifm2Precision(IFM2).code(),
        Command::OfmPrecision(OFM).code(),
    ];
    pub(super) const BROADCAST: u16 = Command::IfmBroadcast85(ONE).code();
    pub(super) const BROADCAST2: u16 = Command::Ifm2Broadcast85(ONE).code();
}

const PARAMETERS: usize = 0x90;
const PAYLOADS: usize = 0x98;

/// Everything the commands have set so far.
pub(crate) struct Registers {
    product: Product,
    streams: u32,
    parameters: [u16; PARAMETERS],
    payloads: [u64; PAYLOADS],
}

/// Which feature map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    Ifm,
    Ifm2,
    Ofm,
}

impl Map {
    pub(crate) const fn region(self) -> u16 {
        set::REGION[self as usize]
    }

    pub(crate) const fn precision(self) -> u16 {
        set::PRECISION[self as usize]
    }

    /// Set on the U85 where one value stands for a whole input, besides the axes of which there is only one element.
    pub(crate) const fn broadcast(self) -> u16 {
        match self {
            Map::Ifm | Map::Ofm => set::BROADCAST,
            Map::Ifm2 => set::BROADCAST2,
        }
    }
}

/// Rows, columns and channels of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    height: i64,
    width: i64,
    depth: i64,
}

/// Where an input's extent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// From output, kernel and padding; all the input's channels.
    Deep,
    /// The same, as many channels as the output.
    Flat,
}

const BRICK: i64 = 16;
/// Bytes of a channel's record in a stream of scales (Vela 5.2.0, `ethos_u55_weight_encoder.cpp`).
const SCALE_RECORD: i64 = 10;

impl Registers {
    pub(crate) fn new(product: Product, streams: u32) -> Registers {
        Registers { product, streams, parameters: [0; PARAMETERS], payloads: [0; PAYLOADS] }
    }

    /// Takes a command; of those that set nothing, nothing.
    pub(crate) fn set_parameter(&mut self, code: u16, parameter: u16) {
        if let Some(register) = self.parameters.get_mut(usize::from(code.wrapping_sub(0x100))) {
            *register = parameter;
        }
    }

    /// Takes a command with a payload.
    pub(crate) fn set_payload(&mut self, code: u16, parameter: u16, payload: u32) {
        if let Some(register) = self.payloads.get_mut(usize::from(code.wrapping_sub(0x4000))) {
            *register = u64::from(parameter) << 32 | u64::from(payload);
        }
    }

    pub(crate) fn parameter(&self, code: u16) -> u16 {
        self.parameters.get(usize::from(code.wrapping_sub(0x100))).copied().unwrap_or(0)
    }

    fn payload(&self, code: u16) -> u64 {
        self.payloads.get(usize::from(code.wrapping_sub(0x4000))).copied().unwrap_or(0)
    }

    /// A parameter whose register holds one less.
    fn size(&self, code: u16) -> i64 {
        i64::from(self.parameter(code)) + 1
    }

    fn address(&self, code: u16) -> i64 {
        (self.payload(code) & ((1 << self.product.address_bits()) - 1)) as i64
    }

    fn stride(&self, code: u16) -> i64 {
        let unused = 64 - self.product.address_bits();
        (self.payload(code) << unused) as i64 >> unused
    }

    pub(crate) fn output_extent(&self) -> Extent {
        Extent {
            height: self.size(set::OFM_HEIGHT),
            width: self.size(set::OFM_WIDTH),
            depth: self.size(set::OFM_DEPTH),
        }
    }

    /// The output as it is stored: the U85 may exchange its axes.
    pub(crate) fn stored_output(&self) -> Extent {
        let Extent { height: h, width: w, depth: c } = self.output_extent();
        let transpose = match self.product {
            Product::U85 => self.parameter(Map::Ofm.precision()) >> 11 & 7,
            Product::U55 | Product::U65 => 0,
        };
        let (height, width, depth) = match transpose {
            1 => (w, h, c),
            2 => (h, c, w),
            3 => (w, c, h),
            6 => (c, h, w),
            7 => (c, w, h),
            _ => (h, w, c),
        };
        Extent { height, width, depth }
    }

    /// The input under a kernel: no register has its size.
    pub(crate) fn window(&self, window: Window) -> Extent {
        let output = self.output_extent();
        let kernel = self.parameter(set::KERNEL_STRIDE);
        let stride = |low: u32, high: u32| i64::from(1 + (kernel >> low & 1) + 2 * (kernel >> high & 1));
        let pad = |code| i64::from(self.parameter(code));
        let side = |outputs: i64, stride: i64, kernel: i64, padding: i64| {
            let size = (outputs - 1) * stride + kernel - padding;
            let stored = if self.parameter(set::UPSCALE) & 3 == 0 { size } else { (size + 1) / 2 };
            stored.max(1)
        };
        Extent {
            height: side(
                output.height,
                stride(1, 9),
                self.size(set::KERNEL_HEIGHT),
                pad(set::PAD_TOP) + pad(set::PAD_BOTTOM),
            ),
            width: side(
                output.width,
                stride(0, 6),
                self.size(set::KERNEL_WIDTH),
                pad(set::PAD_LEFT) + pad(set::PAD_RIGHT),
            ),
            depth: match window {
                Window::Deep => self.size(set::IFM_DEPTH),
                Window::Flat => output.depth,
            },
        }
    }

    /// The input of a resize, whose size the kernel's registers have.
    pub(crate) fn resized(&self) -> Extent {
        Extent {
            height: self.size(set::KERNEL_HEIGHT),
            width: self.size(set::KERNEL_WIDTH),
            depth: self.size(set::OFM_DEPTH),
        }
    }

    /// The second factor of a matrix product.
    pub(crate) fn matrix(&self) -> Extent {
        Extent { height: 1, width: self.size(set::OFM_DEPTH), depth: self.size(set::IFM_DEPTH) }
    }

    /// An operand of an element-wise operation, with one element on each axis of `broadcast`.
    pub(crate) fn operand(&self, broadcast: u16) -> Extent {
        let Extent { height, width, depth } = self.output_extent();
        let one = |axis: u32, size| if broadcast >> axis & 1 != 0 { 1 } else { size };
        Extent { height: one(0, height), width: one(1, width), depth: one(2, depth) }
    }

    /// From the lowest byte of a map to behind the highest. Inside a tile an address is linear in each coordinate but for the
    /// channels of bricks, so the corners tell.
    pub(crate) fn map(&self, map: Map, extent: Extent) -> (i64, i64) {
        // A map's bases and strides follow one another, and so do the sizes of its tiles.
        let (sizes, payloads) = (set::WIDTH0[map as usize], set::BASE0[map as usize]);
        let precision = self.parameter(map.precision());
        let element = 1i64 << (precision >> if map == Map::Ofm { 1 } else { 2 } & 3);
        let bricks = precision >> 6 & 3 == 1;
        let base = |tile: u16| self.address(payloads + tile);
        if self.product == Product::U85 && precision >> 14 == 1 {
            // Three tiles one above the other, which no compiler makes: the first element of the first.
            return (base(0), base(0) + element);
        }
        let [x_stride, y_stride, c_stride] = [4, 5, 6].map(|n| self.stride(payloads + n));
        let [width0, height0, height1] = [0, 1, 2].map(|n| self.size(sizes + n));
        let last = extent.depth - 1;
        let channels = if bricks {
            let brick = last / BRICK;
            let inside = if brick > 0 { BRICK - 1 } else { last };
            let (first, end) = (inside * element, brick * c_stride + last % BRICK * element);
            let before = (brick - 1).max(0) * c_stride + inside * element;
            let start = brick * c_stride;
            let low = 0.min(start);
            (low, first.max(end).max(before).max(start))
        } else {
            (0, last * element)
        };
        let x_step = if bricks { BRICK * element } else { x_stride };
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for right in [false, true] {
            let columns = if right { extent.width - width0 } else { extent.width.min(width0) };
            let rows = if right { height1 } else { height0 };
            for below in [false, true] {
                let rows = if below { extent.height - rows } else { extent.height.min(rows) };
                if rows <= 0 || columns <= 0 {
                    continue;
                }
                let start = base(u16::from(right) + 2 * u16::from(below));
                let (x, y) = ((columns - 1) * x_step, (rows - 1) * y_stride);
                low = low.min(start + x.min(0) + y.min(0) + channels.0);
                high = high.max(start + x.max(0) + y.max(0) + channels.1 + element);
            }
        }
        (low, high)
    }

    /// Calls `visit` with each stream of weights that a convolution reads.
    pub(crate) fn weights(&self, mut visit: impl FnMut((i64, i64))) {
        let depth = self.size(set::OFM_DEPTH);
        let all_in_first = self.product == Product::U85 && self.parameter(set::WEIGHT_FORMAT) & 1 != 0;
        // Cores of a U65 take channels in turn, streams of a U85 four at a time. What has none is as an earlier operation left it.
        let each = if self.product == Product::U85 { 4 } else { 1 };
        let streams = if all_in_first { 1 } else { self.streams };
        for (stream, base) in (0..i64::from(streams)).zip(set::WEIGHT_BASE) {
            if depth > each * stream {
                visit(self.stretch(base));
            }
        }
    }

    /// Calls `visit` with each stream of scales that a convolution reads: its length, or the records of its channels if those are
    /// more. No document says which of the two the NPU goes by.
    pub(crate) fn scales(&self, mut visit: impl FnMut((i64, i64))) {
        let streams = if self.product == Product::U65 { i64::from(self.streams) } else { 1 };
        for (stream, base) in (0..streams).zip(set::SCALE_BASE) {
            let channels = (self.size(set::OFM_DEPTH) + streams - 1 - stream) / streams;
            if channels > 0 {
                let (start, end) = self.stretch(base);
                visit((start, end.max(start + SCALE_RECORD * channels)));
            }
        }
    }

    /// A base, with its length in the next register.
    fn stretch(&self, base: u16) -> (i64, i64) {
        let start = self.address(base);
        // The lengths of weights and scales are the payload alone.
        (start, start + (self.payload(base + 1) & 0xFFFF_FFFF) as i64)
    }

    /// A side of a transfer. Of several rows on a U65, which no compiler makes and nobody has described, only the first.
    pub(crate) fn transfer(&self, source: bool) -> (i64, i64) {
        let (base, strides) = if source {
            (set::DMA_SOURCE, set::DMA_SOURCE_STRIDES)
        } else {
            (set::DMA_DESTINATION, set::DMA_DESTINATION_STRIDES)
        };
        let start = self.address(base);
        let length = self.address(set::DMA_LENGTH);
        if self.product != Product::U85 {
            return (start, start + length);
        }
        let (rows, planes) = self.transfer_rows();
        let indexed =
            self.parameter(if source { code::DMA_SOURCE } else { code::DMA_DESTINATION }) >> 11 & 1 != 0;
        let rows = if indexed { (self.payload(set::DMA_INDEX_MAX) & 0x7FFF_FFFF) as i64 } else { rows - 1 };
        let row = rows.saturating_mul(self.stride(strides));
        let plane = (planes - 1) * self.stride(strides + 1);
        let low = start.saturating_add(row.min(0)).saturating_add(plane.min(0));
        let high = start.saturating_add(row.max(0)).saturating_add(plane.max(0));
        (low, high.saturating_add(length))
    }

    /// The index array of a U85's transfer.
    pub(crate) fn indices(&self) -> (i64, i64) {
        let (rows, planes) = self.transfer_rows();
        let start = self.address(set::DMA_INDEX);
        let last = (planes - 1) * (4 * rows + self.stride(set::DMA_INDEX_SKIP));
        (start + last.min(0), start + last.max(0) + 4 * rows)
    }

    /// Rows and planes of a U85's transfer.
    fn transfer_rows(&self) -> (i64, i64) {
        let size = |code, used: bool| if used { i64::from(self.parameter(code)).max(1) } else { 1 };
        let mode = self.parameter(code::DMA_SOURCE) >> 9 & 3;
        (size(set::DMA_ROWS, mode > 0), size(set::DMA_PLANES, mode > 1))
    }
}
