//! One block command as the clocks look at it: shapes, blocks and what it fetches.

use ethosu_isa::{Accelerator, Block, Product, Upscale};

use super::ClockError;
use super::rates::{Rates, allocation_unit};
use super::schedule::{Activation, Schedule};
use super::system::beat_bytes;
use crate::map::{Axes, Extent, FeatureMap, Flip};
use crate::memory::CHAIN_REGION;
use crate::operation::{
    ConvolutionScale, Function, Kernel, Operand, Operation, PoolFunction, Results, WeightEncoding, Window,
};
use crate::program::Step;

/// Rows and columns of the largest kernel that is computed in one go (Vela 5.2.0, `ethos_u55.cpp`).
pub(super) const SUB_KERNEL: usize = 8;

/// What an accelerator is made of, as far as the clocks need it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine {
    pub(super) accelerator: Accelerator,
    pub(super) product: Product,
    pub(super) macs: u32,
    pub(super) cores: u64,
    /// Weight streams that share a block's weights on U85; 1 on U55 and U65, whose cores work side by side.
    pub(super) streams: u64,
    pub(super) rates: Rates,
    /// Bytes of a beat.
    pub(super) beat: u64,
}

impl Machine {
    pub(super) fn new(accelerator: Accelerator) -> Self {
        let product = accelerator.product();
        Self {
            accelerator,
            product,
            macs: accelerator.macs(),
            cores: accelerator.cores().into(),
            streams: if product == Product::U85 { accelerator.weight_streams().into() } else { 1 },
            rates: Rates::of(accelerator),
            beat: beat_bytes(product).into(),
        }
    }
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Convolution,
    Depthwise,
    Pool(PoolFunction),
    Elementwise(Function),
    Resize,
}

impl Kind {
    /// Whether each output depends on all channels of the input.
    pub(super) fn is_deep(self) -> bool {
        matches!(self, Self::Convolution | Self::Pool(PoolFunction::ReduceSum))
    }

    /// Whether MACs compute it.
    pub(super) fn uses_macs(self) -> bool {
        !matches!(self, Self::Elementwise(_) | Self::Resize)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Convolution => "CONV",
            Self::Depthwise => "DEPTHWISE",
            Self::Resize => "RESIZE",
            Self::Pool(function) => match function {
                PoolFunction::Max => "MAX_POOL",
                PoolFunction::Min => "MIN_POOL",
                PoolFunction::Sum | PoolFunction::Mean => "AVERAGE_POOL",
                PoolFunction::ReduceSum => "REDUCE_SUM",
                PoolFunction::ArgmaxX => "ARGMAX",
            },
            Self::Elementwise(function) => match function {
                Function::Mul => "MUL",
                Function::Add => "ADD",
                Function::Sub => "SUB",
                Function::Min => "MIN",
                Function::Max => "MAX",
                Function::LeakyRelu => "LEAKY_RELU",
                Function::Abs => "ABS",
                Function::Clz => "CLZ",
                Function::Shr => "SHR",
                Function::Shl => "SHL",
                Function::Div => "DIV",
                Function::Compare(_) => "COMPARE",
                Function::And => "AND",
                Function::Or => "OR",
                Function::Not => "NOT",
                Function::AndNot => "AND_NOT",
            },
        }
    }
}

/// A map that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) map: FeatureMap,
    pub(super) extent: Extent,
}

impl Input {
    /// Whether it comes out of a chain buffer.
    pub(super) fn is_chained(&self) -> bool {
        self.map.region >= CHAIN_REGION
    }

    pub(super) fn bits(&self) -> u64 {
        8 * u64::from(self.map.element.bytes())
    }
}

/// The second operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    None,
    /// A register.
    Scalar,
    Map(Input),
}

impl Second {
    pub(super) fn map(&self) -> Option<&Input> {
        match self {
            Self::Map(input) => Some(input),
            _ => None,
        }
    }
}

/// A kernel on one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) taps: usize,
    pub(super) stride: usize,
    pub(super) dilation: usize,
    /// Padding before the first element.
    pub(super) pad: i64,
    /// Elements, after upscaling.
    pub(super) size: i64,
}

impl Axis {
    /// Elements from the first tap to the last.
    pub(super) fn dilated(&self) -> usize {
        (self.taps - 1) * self.dilation + 1
    }

    fn unit(size: usize) -> Self {
        Self { taps: 1, stride: 1, dilation: 1, pad: 0, size: size as i64 }
    }
}

/// Streams of constants in a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constants {
    pub(super) region: u8,
    /// First byte and length of each.
    pub(super) spans: Vec<(u64, u64)>,
}

impl Constants {
    fn new(region: u8, streams: &[(u64, u32)], count: u32) -> Self {
        let spans = streams.iter().take(count as usize).map(|&(base, length)| (base, length.into()));
        Self { region, spans: spans.filter(|&(_, length)| length > 0).collect() }
    }

    /// All their bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.spans.iter().map(|(_, length)| length).sum()
    }
}

/// A block command.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pass {
    pub(super) offset: usize,
    pub(super) kind: Kind,
    /// The first operand; `None` where it is a register.
    pub(super) ifm: Option<Input>,
    pub(super) ifm2: Second,
    pub(super) input_bits: u64,
    pub(super) ofm: FeatureMap,
    /// What is computed, before axes are exchanged.
    pub(super) extent: Extent,
    /// What is stored.
    pub(super) stored: Extent,
    pub(super) axes: Axes,
    pub(super) flip: Flip,
    pub(super) y: Axis,
    pub(super) x: Axis,
    pub(super) upscale: Upscale,
    /// The block of the output, not clipped.
    pub(super) block: Extent,
    /// The block of the input that feeds it, not clipped.
    pub(super) ifm_block: Extent,
    pub(super) microblock: Block,
    pub(super) wide_accumulators: bool,
    pub(super) part_kernel_first: bool,
    pub(super) sparse: bool,
    pub(super) fast_weights: bool,
    pub(super) activation: Activation,
    pub(super) weights: Option<Constants>,
    pub(super) scales: Option<Constants>,
}

impl Pass {
    /// What a step does, if it isn't a transfer.
    pub(super) fn new(machine: &Machine, step: &Step) -> Result<Option<Self>, ClockError> {
        let Some(results) = step.operation.results() else { return Ok(None) };
        let schedule = &step.schedule;
        let unset = |register| ClockError::NeverSet { offset: step.offset, register };
        let block =
            schedule.block.ok_or_else(|| unset("OFM_BLK_HEIGHT_M1, OFM_BLK_WIDTH_M1 or OFM_BLK_DEPTH_M1"))?;
        let microblock = match machine.accelerator.ofm_ublock() {
            Some(microblock) => microblock,
            // Operations without MACs leave the format as it was; no time depends on it then.
            None if matches!(step.operation, Operation::Elementwise(_) | Operation::Resize(_)) => {
                schedule.microblock.unwrap_or(Block { height: 1, width: 1, depth: 1 })
            }
            None => schedule.microblock.ok_or_else(|| unset("ACC_FORMAT"))?,
        };
        let mut pass = Self::bare(step.offset, results, schedule, block, microblock);
        match &step.operation {
            Operation::Convolution(convolution) => {
                pass.kind = if convolution.depthwise { Kind::Depthwise } else { Kind::Convolution };
                pass.place(&convolution.window);
                match &convolution.kernel {
                    Kernel::Streams { region, encoding, .. } => {
                        pass.fast_weights = matches!(encoding, WeightEncoding::Fast { .. });
                        // The fast format has all streams in the first one's bytes.
                        let streams =
                            if pass.fast_weights { 1 } else { machine.accelerator.weight_streams() };
                        pass.weights = Some(Constants::new(*region, &schedule.weight_streams, streams));
                    }
                    Kernel::Map(map) => {
                        let (width, depth) = (pass.extent.depth, convolution.window.ifm_extent.depth);
                        let extent = Extent { height: 1, width, depth };
                        pass.ifm2 = Second::Map(Input { map: *map, extent });
                    }
                }
                if let ConvolutionScale::PerChannel { region, .. } = &convolution.scale {
                    let streams = machine.accelerator.cores();
                    pass.scales = Some(Constants::new(*region, &schedule.scale_streams, streams));
                }
            }
            Operation::Pooling(pooling) => {
                pass.kind = Kind::Pool(pooling.function);
                pass.place(&pooling.window);
            }
            Operation::Elementwise(elementwise) => {
                pass.kind = Kind::Elementwise(elementwise.function);
                if elementwise.function.is_binary() {
                    pass.ifm2 = Second::Scalar;
                }
                for operand in [Some(elementwise.a), elementwise.b].into_iter().flatten() {
                    match operand {
                        Operand::Map { map, extent, name: "IFM" } => pass.ifm = Some(Input { map, extent }),
                        Operand::Map { map, extent, .. } => pass.ifm2 = Second::Map(Input { map, extent }),
                        Operand::Scalar(_) => {}
                    }
                }
            }
            Operation::Resize(resize) => {
                pass.kind = Kind::Resize;
                pass.ifm = Some(Input { map: resize.ifm, extent: resize.ifm_extent });
            }
            Operation::Dma(_) => return Ok(None),
        }
        pass.input_bits = pass.ifm.or(pass.ifm2.map().copied()).map_or(8, |input| input.bits());
        pass.ifm_block = pass.input_block(machine);
        Ok(Some(pass))
    }

    fn bare(offset: usize, results: &Results, schedule: &Schedule, block: Extent, microblock: Block) -> Self {
        let extent = results.extent;
        Self {
            offset,
            kind: Kind::Resize,
            ifm: None,
            ifm2: Second::None,
            input_bits: 8,
            ofm: results.ofm,
            extent,
            stored: results.stored_extent(),
            axes: results.axes,
            flip: results.flip,
            y: Axis::unit(extent.height),
            x: Axis::unit(extent.width),
            upscale: Upscale::None,
            block,
            ifm_block: block,
            microblock,
            wide_accumulators: schedule.wide_accumulators,
            part_kernel_first: schedule.part_kernel_first,
            sparse: schedule.sparse_weights,
            fast_weights: false,
            activation: schedule.activation,
            weights: None,
            scales: None,
        }
    }

    fn place(&mut self, window: &Window) {
        self.ifm = Some(Input { map: window.ifm, extent: window.ifm_extent });
        let axis = |taps, stride, dilation, pad, size| Axis { taps, stride, dilation, pad, size };
        self.y = axis(window.kernel.0, window.stride.0, window.dilation.0, window.pad.0, window.height);
        self.x = axis(window.kernel.1, window.stride.1, window.dilation.1, window.pad.1, window.width);
        self.upscale = window.upscale;
        // Only depth-first convolutions have another order to be walked in.
        self.part_kernel_first &= self.kind == Kind::Convolution;
    }

    /// The input block that feeds one output block (Vela 5.2.0, `ethos_u55.cpp` and `ethos_u85.cpp`).
    fn input_block(&self, machine: &Machine) -> Extent {
        let channels = self.ifm.map_or(self.extent.depth, |input| input.extent.depth);
        let is_85 = machine.product == Product::U85;
        if is_85 && !self.kind.uses_macs() {
            return self.block;
        }
        let bits = self.input_bits as usize;
        let (depth, unit) = if is_85 {
            let depth = match self.kind.is_deep() {
                true if self.part_kernel_first => 16,
                true if bits == 32
                    || (machine.macs <= 256 && self.microblock.depth == 16 && !self.sparse) =>
                {
                    32
                }
                true if self.sparse && bits == 8 => 128,
                true => 64,
                false => self.block.depth,
            };
            let unit = allocation_unit(machine.accelerator, self.microblock, depth, bits);
            (if self.kind.is_deep() { depth } else { depth.next_multiple_of(unit.depth) }, unit)
        } else {
            let depth = match (self.kind.is_deep(), bits) {
                (false, _) => self.block.depth,
                (true, 16) => channels.min(16).next_multiple_of(4),
                (true, _) => {
                    let depth = channels.min(if self.part_kernel_first { 16 } else { 32 });
                    depth.next_multiple_of(machine.accelerator.ifm_ublock().depth as usize)
                }
            };
            let Block { height, width, .. } = self.microblock;
            (depth, Extent { height: height as usize, width: width as usize, depth: 1 })
        };
        // Of the upscalings only the nearest neighbour looks one element further.
        let rounding = usize::from(self.upscale == Upscale::Nearest);
        let covered = |outputs: usize, axis: &Axis| {
            let kernel = axis.dilated().min(SUB_KERNEL);
            ((outputs - 1) * axis.stride + kernel + rounding).div_ceil(self.upscaling())
        };
        Extent {
            height: covered(self.block.height, &self.y).next_multiple_of(unit.height),
            width: covered(self.block.width, &self.x).next_multiple_of(unit.width),
            depth,
        }
    }

    /// Rows, and columns, of the kernel's input that stand for one that is stored.
    pub(super) fn upscaling(&self) -> usize {
        if self.upscale == Upscale::None { 1 } else { 2 }
    }

    /// The output block, clipped to the output.
    pub(super) fn clipped_block(&self) -> Extent {
        smaller(self.block, self.extent)
    }

    /// Whether it is one more piece of a transposition: U55 and U65 permute with average pools whose output's columns lie
    /// further apart than its rows.
    pub(super) fn permutes(&self) -> bool {
        let pool = matches!(self.kind, Kind::Pool(PoolFunction::Sum | PoolFunction::Mean));
        let nhwc = |map: &FeatureMap| map.layout == ethosu_isa::Layout::Nhwc;
        pool && (self.y.taps, self.x.taps) == (1, 1)
            && self.activation != Activation::Table
            && nhwc(&self.ofm)
            && self.ifm.is_some_and(|input| nhwc(&input.map))
            && self.ofm.stride_x > self.ofm.stride_y
    }
}

/// The extent that two have in common.
pub(super) fn smaller(a: Extent, b: Extent) -> Extent {
    Extent { height: a.height.min(b.height), width: a.width.min(b.width), depth: a.depth.min(b.depth) }
}
