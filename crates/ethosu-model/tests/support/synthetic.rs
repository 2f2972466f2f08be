//! Single operations written for the tests and benchmarks: any form the registers can express, with weights of their own.

use ethosu_isa::{
    AccFormat, Accelerator, Activation, ActivationFunction, ClipRange, Command, Decomposition, ElementSize,
    ElementwiseMode, Ifm2Broadcast, Ifm2Precision, IfmPrecision, KernelStride, Layout, OfmPrecision,
    OfmScaleMode, OperandScaleMode, PoolMode, Rounding, ScaleShift, Upscale,
};
use ethosu_model::operation::Kernel;
use ethosu_model::weights::WeightFault;
use ethosu_model::{Limits, Operation, Program};

use super::{Fixture, Region};

/// Which operation it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Conv { part_kernel_first: bool },
    Depthwise,
    Pool(PoolMode),
    Elementwise(ElementwiseMode),
}

/// A map's elements and their places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    pub(crate) size: ElementSize,
    pub(crate) signed: bool,
    pub(crate) layout: Layout,
    pub(crate) zero_point: u16,
    /// Columns of the left tiles, rows of the upper left and the upper right one: beyond the map, where it has one tile.
    pub(crate) tiles: (u16, u16, u16),
    /// Bytes between rows, columns and bricks beyond what they need.
    pub(crate) gap: u16,
}

impl Map {
    /// Signed bytes without gaps.
    pub(crate) fn bytes(layout: Layout) -> Self {
        Self {
            size: ElementSize::Bits8,
            signed: true,
            layout,
            zero_point: 3,
            tiles: (u16::MAX, u16::MAX, u16::MAX),
            gap: 0,
        }
    }

    /// Strides of rows, columns and bricks.
    fn strides(&self, width: usize, depth: usize) -> (i64, i64, i64) {
        let (bytes, gap) = (self.size.bytes() as usize, usize::from(self.gap));
        let (y, x, c) = match self.layout {
            Layout::Nhwc => {
                let column = depth * bytes + gap;
                (width * column + gap, column, 0)
            }
            Layout::Nhcwb16 => {
                let brick = width * 16 * bytes + gap;
                (depth.div_ceil(16) * brick + gap, 0, brick)
            }
        };
        (y as i64, x as i64, c as i64)
    }
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) struct Synthetic {
    pub(crate) accelerator: Accelerator,
    pub(crate) kind: Kind,
    /// Output height, width and depth.
    pub(crate) ofm: (u16, u16, u16),
    pub(crate) ifm_depth: u16,
    /// Rows and columns that the kernel covers, dilation included.
    pub(crate) kernel: (u16, u16),
    pub(crate) stride: (u8, u8),
    pub(crate) dilation: (u8, u8),
    /// Top, left, bottom, right.
    pub(crate) pad: (u8, u8, u8, u8),
    pub(crate) upscale: Upscale,
    pub(crate) ifm_map: Map,
    pub(crate) ifm2_map: Map,
    pub(crate) ofm_map: Map,
    pub(crate) broadcast: Ifm2Broadcast,
    pub(crate) scalar: u16,
    pub(crate) operand_scale: (OperandScaleMode, ScaleShift, u16),
    pub(crate) scale: ScaleShift,
    /// Whether a pool takes OFM_SCALE.
    pub(crate) global_scale: bool,
    pub(crate) rounding: Rounding,
    pub(crate) activation: (u16, u16),
    pub(crate) accumulators: AccFormat,
    /// How far behind the input the output begins in the same region; `None` puts it into a region of its own.
    pub(crate) overlap: Option<u32>,
    /// Largest distance of a weight from zero.
    pub(crate) weight_range: u16,
    pub(crate) seed: u64,
}

/// Bits, least significant first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: usize,
}

impl Bits {
    fn put(&mut self, value: u32, count: u32) {
        for bit in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.last_mut().expect("pushed above");
            *last |= ((value >> bit & 1) as u8) << (self.used % 8);
            self.used += 1;
        }
    }
}

/// A weight stream of uncompressed slices, nine bits a weight.
pub(crate) fn uncompressed(weights: &[i16]) -> Vec<u8> {
    let mut bits = Bits::default();
    for slice in weights.chunks(1 << 15) {
        // No zero runs, so many symbols, no divisor, not truncated, a palette without entries, nine bits.
        for (value, count) in
            [(6, 3), (slice.len() as u32 - 1, 15), (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3)]
        {
            bits.put(value, count);
        }
        for &weight in slice {
            bits.put(u32::from(weight.unsigned_abs()) << 1 | u32::from(weight < 0), 9);
        }
    }
    bits.put(7, 3);
    bits.bytes.resize(bits.bytes.len().next_multiple_of(16), 0xFF);
    bits.bytes
}

/// A generator of noise.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9E37_79B9_7F4A_7C15);
        (self.0 ^ self.0 >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 16
    }
}

impl Synthetic {
    /// The input's height and width, before upscaling, if the registers leave it any.
    fn ifm_size(&self) -> Option<(usize, usize)> {
        let side = |outputs: u16, stride: u8, kernel: u16, before: u8, after: u8| {
            let size = (i64::from(outputs) - 1) * i64::from(stride) + i64::from(kernel)
                - i64::from(before)
                - i64::from(after);
            let stored = if self.upscale == Upscale::None { size } else { (size + 1) / 2 };
            usize::try_from(stored).ok().filter(|&stored| stored > 0)
        };
        if matches!(self.kind, Kind::Elementwise(_)) {
            return Some((self.ofm.0.into(), self.ofm.1.into()));
        }
        Some((
            side(self.ofm.0, self.stride.0, self.kernel.0, self.pad.0, self.pad.2)?,
            side(self.ofm.1, self.stride.1, self.kernel.1, self.pad.1, self.pad.3)?,
        ))
    }

    /// The operation as a program. `None` if it has no input, or the model doesn't decode it.
    pub(crate) fn fixture(&self) -> Option<Fixture> {
        let (height, width) = self.ifm_size()?;
        let conv = matches!(self.kind, Kind::Conv { .. });
        let reduce = matches!(self.kind, Kind::Pool(PoolMode::ReduceSum));
        let depth = usize::from(if conv || reduce { self.ifm_depth } else { self.ofm.2 });
        let (ofm_height, ofm_width, ofm_depth) =
            (usize::from(self.ofm.0), usize::from(self.ofm.1), usize::from(self.ofm.2));

        // All maps with room for tiles that begin somewhere inside the map's own bytes.
        let input = self.ifm_map.strides(width, depth);
        let output = self.ofm_map.strides(ofm_width, ofm_depth);
        let one = |broadcast: bool, size: usize| if broadcast { 1 } else { size };
        let second_width = one(self.broadcast.width, ofm_width);
        let second = self.ifm2_map.strides(second_width, one(self.broadcast.depth, ofm_depth));
        let bytes = |strides: (i64, i64, i64), height: usize| 2 * strides.0 as usize * (height + 1);
        let (input_bytes, output_bytes) = (bytes(input, height), bytes(output, ofm_height));
        let second_base = input_bytes;
        let first_region = input_bytes + bytes(second, one(self.broadcast.height, ofm_height));
        let (ofm_region, ofm_base, regions) = match self.overlap {
            None => (2, 0, vec![(1, Region::Writable(first_region)), (2, Region::Writable(output_bytes))]),
            Some(behind) => {
                let base = behind as usize % first_region;
                (1, base, vec![(1, Region::Writable(first_region.max(base + output_bytes)))])
            }
        };
        let mut noise = Noise(self.seed);
        let mut base = |start: usize, room: usize| {
            [(); 4].map(|()| start as u64 + noise.next() % room.max(1) as u64 / 16 * 16)
        };
        let bases = |tiles: (u16, u16, u16), (height, width): (usize, usize), start: usize, all: [u64; 4]| {
            let single = usize::from(tiles.0) >= width && usize::from(tiles.1) >= height;
            if single { [start as u64; 4] } else { all }
        };
        let ifm_bases = bases(self.ifm_map.tiles, (height, width), 0, base(0, input_bytes / 2));
        let ifm2_bases =
            bases(self.ifm2_map.tiles, (ofm_height, ofm_width), second_base, base(second_base, 64));
        let ofm_bases =
            bases(self.ofm_map.tiles, (ofm_height, ofm_width), ofm_base, base(ofm_base, output_bytes / 2));

        let mut commands = vec![
            Command::IfmRegion(1),
            Command::IfmBase0(ifm_bases[0]),
            Command::IfmBase1(ifm_bases[1]),
            Command::IfmBase2(ifm_bases[2]),
            Command::IfmBase3(ifm_bases[3]),
            Command::IfmStrideY(input.0),
            Command::IfmStrideX(input.1),
            Command::IfmStrideC(input.2),
            Command::IfmWidth0M1(self.ifm_map.tiles.0 - 1),
            Command::IfmHeight0M1(self.ifm_map.tiles.1 - 1),
            Command::IfmHeight1M1(self.ifm_map.tiles.2 - 1),
            Command::IfmDepthM1(depth as u16 - 1),
            Command::IfmZeroPoint(self.ifm_map.zero_point),
            Command::IfmPrecision(IfmPrecision {
                signed: self.ifm_map.signed,
                size: self.ifm_map.size,
                layout: self.ifm_map.layout,
                scale_mode: self.operand_scale.0,
                rounding: self.rounding,
            }),
            Command::IfmUpscale(self.upscale),
            Command::IfmPadTop(self.pad.0),
            Command::IfmPadLeft(self.pad.1),
            Command::IfmPadBottom(self.pad.2),
            Command::IfmPadRight(self.pad.3),
            Command::Ifm2Region(1),
            Command::Ifm2Base0(ifm2_bases[0]),
            Command::Ifm2Base1(ifm2_bases[1]),
            Command::Ifm2Base2(ifm2_bases[2]),
            Command::Ifm2Base3(ifm2_bases[3]),
            Command::Ifm2StrideY(second.0),
            Command::Ifm2StrideX(second.1),
            Command::Ifm2StrideC(second.2),
            Command::Ifm2Width0M1(self.ifm2_map.tiles.0 - 1),
            Command::Ifm2Height0M1(self.ifm2_map.tiles.1 - 1),
            Command::Ifm2Height1M1(self.ifm2_map.tiles.2 - 1),
            Command::Ifm2ZeroPoint(self.ifm2_map.zero_point),
            Command::Ifm2Precision(Ifm2Precision {
                signed: self.ifm2_map.signed,
                size: self.ifm2_map.size,
                layout: self.ifm2_map.layout,
            }),
            Command::Ifm2Broadcast(self.broadcast),
            Command::Ifm2Scalar(self.scalar),
            Command::OpaScale(self.operand_scale.1),
            Command::OpbScale(self.operand_scale.2),
            Command::OfmRegion(ofm_region),
            Command::OfmBase0(ofm_bases[0]),
            Command::OfmBase1(ofm_bases[1]),
            Command::OfmBase2(ofm_bases[2]),
            Command::OfmBase3(ofm_bases[3]),
            Command::OfmStrideY(output.0),
            Command::OfmStrideX(output.1),
            Command::OfmStrideC(output.2),
            Command::OfmWidth0M1(self.ofm_map.tiles.0 - 1),
            Command::OfmHeight0M1(self.ofm_map.tiles.1 - 1),
            Command::OfmHeight1M1(self.ofm_map.tiles.2 - 1),
            Command::OfmHeightM1(self.ofm.0 - 1),
            Command::OfmWidthM1(self.ofm.1 - 1),
            Command::OfmDepthM1(self.ofm.2 - 1),
            Command::OfmBlkHeightM1(7),
            Command::OfmBlkWidthM1(7),
            Command::OfmBlkDepthM1(15),
            Command::OfmZeroPoint(self.ofm_map.zero_point),
            Command::OfmPrecision(OfmPrecision {
                signed: self.ofm_map.signed,
                size: self.ofm_map.size,
                layout: self.ofm_map.layout,
                scale_mode: match self.kind {
                    Kind::Conv { .. } | Kind::Depthwise => OfmScaleMode::PerChannel,
                    Kind::Pool(_) if !self.global_scale => OfmScaleMode::PerChannel,
                    _ => OfmScaleMode::Global,
                },
                rounding: self.rounding,
            }),
            Command::OfmScale(self.scale),
            Command::Activation(Activation { function: ActivationFunction::None, clip: ClipRange::Ofm }),
            Command::ActivationMin(self.activation.0),
            Command::ActivationMax(self.activation.1),
            Command::KernelHeightM1(self.kernel.0 - 1),
            Command::KernelWidthM1(self.kernel.1 - 1),
            Command::KernelStride(KernelStride {
                stride_x: self.stride.1,
                stride_y: self.stride.0,
                part_kernel_first: matches!(self.kind, Kind::Conv { part_kernel_first: true }),
                dilation_x: self.dilation.1,
                dilation_y: self.dilation.0,
                decomposition: Decomposition::D8x8,
            }),
            Command::AccFormat(self.accumulators),
            Command::WeightRegion(0),
            Command::ScaleRegion(0),
        ];
        let operation = match self.kind {
            Kind::Conv { .. } => Command::Conv,
            Kind::Depthwise => Command::Depthwise,
            Kind::Pool(mode) => Command::Pool(mode),
            Kind::Elementwise(mode) => Command::Elementwise(mode),
        };
        let mut scales = Vec::new();
        for _ in 0..ofm_depth {
            let bias = (noise.next() as i64 % (1 << 12)) - (1 << 11);
            scales.extend_from_slice(&bias.to_le_bytes()[..5]);
            scales.extend_from_slice(&self.scale.scale.to_le_bytes());
            scales.push(self.scale.shift);
        }
        let mut weights = Vec::new();
        if matches!(self.kind, Kind::Conv { .. } | Kind::Depthwise) {
            let mut probe = commands.clone();
            probe.extend([
                Command::ScaleBase(0),
                Command::WeightBase(0),
                Command::WeightLength(0),
                operation,
            ]);
            probe.push(Command::Stop { mask: 0xFFFF });
            let program = Program::decode(&self.words(&probe)?, self.accelerator, &Limits::default()).ok()?;
            weights = uncompressed(&self.weights(&program, &mut noise)?);
        }
        let weight_base = scales.len().next_multiple_of(16);
        commands.extend([
            Command::ScaleBase(0),
            Command::ScaleLength(scales.len() as u32),
            Command::WeightBase(weight_base as u64),
            Command::WeightLength(weights.len() as u32),
            operation,
            Command::Stop { mask: 0xFFFF },
        ]);
        scales.resize(weight_base, 0);
        scales.extend(weights);
        let mut all = vec![(0, Region::Constant(scales))];
        all.extend(regions);
        Some(Fixture { accelerator: self.accelerator, stream: self.words(&commands)?, regions: all })
    }

    /// Weights in the order of their stream, zeros where it is padded.
    fn weights(&self, program: &Program, noise: &mut Noise) -> Option<Vec<i16>> {
        let Operation::Convolution(convolution) = &program.steps()[0].operation else { return None };
        let Kernel::Streams { streams, .. } = &convolution.kernel else { return None };
        let [stream] = streams.as_slice() else { return None };
        let span = 2 * u64::from(self.weight_range) + 1;
        let mut weights: Vec<i16> = (0..stream.order.elements())
            .map(|_| (noise.next() % span) as i16 - self.weight_range as i16)
            .collect();
        // Padding lies in runs: each error that follows at once on the last zeros doubles their number. A zero too many does no harm.
        let (mut end, mut run) = (0, 1);
        while let Err(fault) = stream.order.arrange(&weights, |_, _, _, _, _| {}) {
            let WeightFault::Padding { element, .. } = fault else { panic!("{fault}") };
            run = if element == end { 2 * run } else { 1 };
            end = (element + run).min(weights.len());
            weights[element..end].fill(0);
        }
        Some(weights)
    }

    fn words(&self, commands: &[Command]) -> Option<Vec<u8>> {
        let mut stream = Vec::new();
        for command in commands {
            let words = command.encode(self.accelerator.product()).ok()?;
            stream.extend(words.control.to_le_bytes());
            stream.extend(words.payload.iter().flat_map(|word| word.to_le_bytes()));
        }
        Some(stream)
    }
}
