//! Operations as values: what a command does, gathered from the registers it consults and checked.
//!
//! Both engines execute these; nothing here depends on data, so all that can be refused without it is refused here.

use ethosu_isa::{
    AccFormat, Accelerator, Decomposition, DmaStride, ElementSize, ElementwiseMode, OfmScaleMode,
    OperandScaleMode, PoolMode, Rounding, ScaleShift, Upscale,
};

use crate::map::{Extent, FeatureMap};
use crate::output::{OutputRegisters, OutputStage};
use crate::registers::Registers;
use crate::rounding::{DoublingShift, Scale};
use crate::stop::Cause;
use crate::weights::{Traversal, WeightOrder};

/// One step of a command stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// NPU_OP_CONV or NPU_OP_DEPTHWISE.
    Convolution(Convolution),
    /// NPU_OP_POOL.
    Pooling(Pooling),
    /// NPU_OP_ELEMENTWISE.
    Elementwise(Elementwise),
    /// NPU_OP_DMA_START.
    Dma(Dma),
}

/// What convolutions and pools have in common: a kernel moving over an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The input.
    pub ifm: FeatureMap,
    /// Its stored extent; depth is the channels read.
    pub ifm_extent: Extent,
    /// Rows after upscaling: positions outside are padding.
    pub height: i64,
    /// Columns after upscaling.
    pub width: i64,
    /// How stored rows and columns stand for more.
    pub upscale: Upscale,
    /// Kernel rows and columns, not counting dilation.
    pub kernel: (usize, usize),
    /// Vertical and horizontal stride.
    pub stride: (usize, usize),
    /// Vertical and horizontal dilation.
    pub dilation: (usize, usize),
    /// Rows of padding above, columns of padding to the left.
    pub pad: (i64, i64),
    /// Whether any side is padded.
    pub padded: bool,
    /// The output.
    pub ofm: FeatureMap,
    /// Its extent.
    pub ofm_extent: Extent,
    /// How scaled values are rounded.
    pub rounding: Rounding,
    /// What follows scaling.
    pub output: OutputStage,
    /// Bits of the accumulators: 32 or 40.
    pub accumulator_bits: u32,
}

/// One stream of compressed weights and the scales that go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The order of its weights.
    pub order: WeightOrder,
    /// First byte of the weights in the weight region.
    pub weight_base: u64,
    /// Bytes of weights.
    pub weight_length: u32,
    /// First byte of the scales in the scale region.
    pub scale_base: u64,
    /// WEIGHT or WEIGHT1.
    pub name: &'static str,
    /// SCALE or SCALE1.
    pub scale_name: &'static str,
}

/// A convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    /// Where the kernel goes.
    pub window: Window,
    /// Whether each channel has its own kernel.
    pub depthwise: bool,
    /// The region of the weights.
    pub weight_region: u8,
    /// The region of the scales.
    pub scale_region: u8,
    /// One stream for each core that has output channels; core `n` of `m` computes channels `n`, `n + m`, ...
    pub streams: Vec<Stream>,
    /// Cores of the accelerator.
    pub cores: usize,
}

/// A pooling operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Where the kernel goes.
    pub window: Window,
    /// What it computes.
    pub mode: PoolMode,
    /// OFM_SCALE; `None` if the scale mode is per-channel, where none applies.
    pub scale: Option<Scale>,
}

/// The second operand of an element-wise operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// One value, its zero point already subtracted.
    Scalar(i64),
    /// A map; an extent of 1 is broadcast.
    Map(FeatureMap, Extent),
}

/// How ADD and SUB scale their operands, A being IFM unless the operand order is reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandScaling {
    /// Both are multiplied.
    Both {
        /// A's 16-bit multiplier.
        a: i64,
        /// B's 16-bit multiplier.
        b: i64,
    },
    /// One is scaled, the other only shifted left.
    One {
        /// Whether it's A that is scaled.
        scale_a: bool,
        /// The scale.
        scale: Scale,
        /// Its rounding.
        rounding: Rounding,
        /// Bits the other operand is shifted left.
        left_shift: u32,
        /// Where double rounding rounds first.
        doubling: DoublingShift,
    },
}

/// An element-wise operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elementwise {
    /// What it computes.
    pub mode: ElementwiseMode,
    /// The first input, of the output's extent.
    pub ifm: FeatureMap,
    /// The second input, for modes that have one.
    pub ifm2: Option<Operand>,
    /// Whether the second input is operand A.
    pub reversed: bool,
    /// For ADD and SUB.
    pub operand_scaling: Option<OperandScaling>,
    /// The result's scale; unit where the mode has none.
    pub scale: Scale,
    /// How results are rounded.
    pub rounding: Rounding,
    /// The output.
    pub ofm: FeatureMap,
    /// Its extent.
    pub extent: Extent,
    /// What follows scaling.
    pub output: OutputStage,
}

/// A copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dma {
    /// The region read.
    pub source_region: u8,
    /// First byte read.
    pub source: u64,
    /// The region written; `None` is the NPU's internal memory.
    pub destination_region: Option<u8>,
    /// First byte written.
    pub destination: u64,
    /// Bytes copied.
    pub length: u64,
}

/// A value in the sign of the map it belongs to.
fn signed_16(value: u16, signed: bool) -> i64 {
    if signed { i64::from(value as i16) } else { i64::from(value) }
}

fn plus_one(value: u16) -> usize {
    usize::from(value) + 1
}

fn scale(register: ScaleShift) -> Scale {
    Scale { multiplier: register.scale, shift: register.shift }
}

fn ifm(registers: &Registers) -> Result<FeatureMap, Cause> {
    let precision = registers.ifm_precision.get()?;
    let map = FeatureMap {
        region: registers.ifm_region.get()?,
        bases: [
            registers.ifm_base0.get()?,
            registers.ifm_base1.get()?,
            registers.ifm_base2.get()?,
            registers.ifm_base3.get()?,
        ],
        width0: plus_one(registers.ifm_width0_m1.get()?),
        height0: plus_one(registers.ifm_height0_m1.get()?),
        height1: plus_one(registers.ifm_height1_m1.get()?),
        stride_y: registers.ifm_stride_y.get()?,
        stride_x: registers.ifm_stride_x.get()?,
        stride_c: registers.ifm_stride_c.get()?,
        element: precision.size,
        signed: precision.signed,
        layout: precision.layout,
        zero_point: signed_16(registers.ifm_zero_point.get()?, precision.signed),
    };
    input(map, "IFM_ZERO_POINT", "IFM_PRECISION size")
}

fn ifm2(registers: &Registers) -> Result<FeatureMap, Cause> {
    let precision = registers.ifm2_precision.get()?;
    let map = FeatureMap {
        region: registers.ifm2_region.get()?,
        bases: [
            registers.ifm2_base0.get()?,
            registers.ifm2_base1.get()?,
            registers.ifm2_base2.get()?,
            registers.ifm2_base3.get()?,
        ],
        width0: plus_one(registers.ifm2_width0_m1.get()?),
        height0: plus_one(registers.ifm2_height0_m1.get()?),
        height1: plus_one(registers.ifm2_height1_m1.get()?),
        stride_y: registers.ifm2_stride_y.get()?,
        stride_x: registers.ifm2_stride_x.get()?,
        stride_c: registers.ifm2_stride_c.get()?,
        element: precision.size,
        signed: precision.signed,
        layout: precision.layout,
        zero_point: signed_16(registers.ifm2_zero_point.get()?, precision.signed),
    };
    input(map, "IFM2_ZERO_POINT", "IFM2_PRECISION size")
}

fn input(map: FeatureMap, zero_point: &'static str, size: &'static str) -> Result<FeatureMap, Cause> {
    match map.element {
        ElementSize::Bits64 => Err(Cause::not_modelled(size, 64, "U55 and U65 read 8, 16 or 32 bits")),
        ElementSize::Bits32 if map.zero_point != 0 => {
            Err(Cause::not_modelled(zero_point, map.zero_point, "32-bit inputs are known with 0"))
        }
        _ => Ok(map),
    }
}

fn ofm(registers: &Registers) -> Result<(FeatureMap, Extent, OutputStage, Rounding), Cause> {
    let precision = registers.ofm_precision.get()?;
    let map = FeatureMap {
        region: registers.ofm_region.get()?,
        bases: [
            registers.ofm_base0.get()?,
            registers.ofm_base1.get()?,
            registers.ofm_base2.get()?,
            registers.ofm_base3.get()?,
        ],
        width0: plus_one(registers.ofm_width0_m1.get()?),
        height0: plus_one(registers.ofm_height0_m1.get()?),
        height1: plus_one(registers.ofm_height1_m1.get()?),
        stride_y: registers.ofm_stride_y.get()?,
        stride_x: registers.ofm_stride_x.get()?,
        stride_c: registers.ofm_stride_c.get()?,
        element: precision.size,
        signed: precision.signed,
        layout: precision.layout,
        zero_point: signed_16(registers.ofm_zero_point.get()?, precision.signed),
    };
    let extent = Extent {
        height: plus_one(registers.ofm_height_m1.get()?),
        width: plus_one(registers.ofm_width_m1.get()?),
        depth: plus_one(registers.ofm_depth_m1.get()?),
    };
    let output = OutputStage::new(OutputRegisters {
        element: precision.size,
        signed: precision.signed,
        zero_point: map.zero_point,
        activation: registers.activation.get()?,
        min: signed_16(registers.activation_min.get()?, precision.signed),
        max: signed_16(registers.activation_max.get()?, precision.signed),
    })?;
    if precision.rounding == Rounding::Truncate {
        return Err(Cause::not_modelled(
            "OFM_PRECISION rounding",
            1,
            "TRUNCATE has never been compared with a reference",
        ));
    }
    Ok((map, extent, output, precision.rounding))
}

/// Which channels an operation reads.
enum Channels {
    /// IFM_DEPTH.
    Input,
    /// As many as it writes.
    Output,
}

fn window(registers: &Registers, channels: Channels) -> Result<Window, Cause> {
    let (ofm, ofm_extent, output, rounding) = ofm(registers)?;
    let ifm = ifm(registers)?;
    let stride = registers.kernel_stride.get()?;
    if stride.decomposition != Decomposition::D8x8 {
        return Err(Cause::not_modelled(
            "KERNEL_STRIDE decomposition",
            1,
            "the 4x4 decomposition is never emitted",
        ));
    }
    for (field, value) in
        [("KERNEL_STRIDE stride_x", stride.stride_x), ("KERNEL_STRIDE stride_y", stride.stride_y)]
    {
        if value > 3 {
            return Err(Cause::not_modelled(field, value, "strides of 1 to 3 are known"));
        }
    }
    let dilated =
        (i64::from(registers.kernel_height_m1.get()?) + 1, i64::from(registers.kernel_width_m1.get()?) + 1);
    let dilation = (usize::from(stride.dilation_y), usize::from(stride.dilation_x));
    let kernel = ((dilated.0 as usize - 1) / dilation.0 + 1, (dilated.1 as usize - 1) / dilation.1 + 1);
    let stride = (usize::from(stride.stride_y), usize::from(stride.stride_x));
    let top = i64::from(registers.ifm_pad_top.get()?);
    let left = i64::from(registers.ifm_pad_left.get()?);
    let bottom = i64::from(registers.ifm_pad_bottom.get()?);
    let right = i64::from(registers.ifm_pad_right.get()?);
    let upscale = registers.ifm_upscale.get()?;
    // The size of the input has no register: it follows from what the kernel covers.
    let height = (ofm_extent.height as i64 - 1) * stride.0 as i64 + dilated.0 - top - bottom;
    let width = (ofm_extent.width as i64 - 1) * stride.1 as i64 + dilated.1 - left - right;
    for (field, value) in [
        ("the IFM height that output, kernel and padding give", height),
        ("the IFM width that output, kernel and padding give", width),
    ] {
        if value < 1 {
            return Err(Cause::not_modelled(field, value, "there must be at least one row and one column"));
        }
    }
    let stored = |size: i64| (if upscale == Upscale::None { size } else { (size + 1) / 2 }) as usize;
    let ifm_extent = Extent {
        height: stored(height),
        width: stored(width),
        depth: match channels {
            Channels::Input => plus_one(registers.ifm_depth_m1.get()?),
            Channels::Output => ofm_extent.depth,
        },
    };
    let accumulator_bits = match registers.acc_format.peek() {
        Some(AccFormat::Float16) => {
            return Err(Cause::not_modelled("ACC_FORMAT", 2, "integer accumulators only"));
        }
        Some(AccFormat::Int40) => 40,
        // Only an overflow could tell the formats apart, and the narrower one refuses it earlier.
        Some(AccFormat::Int32) | None => 32,
    };
    Ok(Window {
        ifm,
        ifm_extent,
        height,
        width,
        upscale,
        kernel,
        stride,
        dilation,
        pad: (top, left),
        padded: top != 0 || left != 0 || bottom != 0 || right != 0,
        ofm,
        ofm_extent,
        rounding,
        output,
        accumulator_bits,
    })
}

/// The multiply-accumulates or comparisons of a window.
fn window_work(window: &Window, inputs_per_output: usize) -> u64 {
    let taps = (window.kernel.0 as u64).saturating_mul(window.kernel.1 as u64);
    window.ofm_extent.elements().saturating_mul(taps).saturating_mul(inputs_per_output as u64)
}

impl Convolution {
    pub(crate) fn new(
        registers: &Registers,
        accelerator: Accelerator,
        depthwise: bool,
    ) -> Result<Self, Cause> {
        let window = window(registers, if depthwise { Channels::Output } else { Channels::Input })?;
        if registers.ofm_precision.get()?.scale_mode != OfmScaleMode::PerChannel {
            return Err(Cause::not_modelled(
                "OFM_PRECISION scale mode",
                1,
                "convolutions are known with the scale stream",
            ));
        }
        if window.ifm.element == ElementSize::Bits32 {
            return Err(Cause::not_modelled("IFM_PRECISION size", 32, "convolutions read 8 or 16 bits"));
        }
        let cores = accelerator.cores() as usize;
        let ofm_ublock_depth = match accelerator.ofm_ublock() {
            Some(block) => block.depth as usize,
            None => {
                return Err(Cause::not_modelled("the accelerator", 85, "this front end is U55's and U65's"));
            }
        };
        let block_depth = plus_one(registers.ofm_blk_depth_m1.get()?);
        let part_kernel_first = registers.kernel_stride.get()?.part_kernel_first;
        let traversal = match (depthwise, part_kernel_first) {
            (true, _) => Traversal::Depthwise,
            (false, true) => Traversal::PartKernelFirst,
            (false, false) => Traversal::DepthFirst,
        };
        let mut streams = Vec::with_capacity(cores);
        for core in 0..cores {
            // Cores take alternate channels.
            let share = |channels: usize| (channels + cores - 1 - core) / cores;
            let ofm_depth = share(window.ofm_extent.depth);
            if ofm_depth == 0 {
                continue;
            }
            if share(block_depth) == 0 {
                return Err(Cause::not_modelled("OFM_BLK_DEPTH_M1", 0, "a block has channels for each core"));
            }
            let order = WeightOrder {
                ofm_depth,
                ifm_depth: if depthwise { 1 } else { window.ifm_extent.depth },
                kernel_height: window.kernel.0,
                kernel_width: window.kernel.1,
                dilation_y: window.dilation.0,
                dilation_x: window.dilation.1,
                block_depth: share(block_depth),
                ofm_ublock_depth,
                wide_ifm: window.ifm.element == ElementSize::Bits16,
                traversal,
            };
            streams.push(if core == 0 {
                Stream {
                    order,
                    weight_base: registers.weight_base.get()?,
                    weight_length: registers.weight_length.get()?,
                    scale_base: registers.scale_base.get()?,
                    name: "WEIGHT",
                    scale_name: "SCALE",
                }
            } else {
                Stream {
                    order,
                    weight_base: registers.weight1_base.get()?,
                    weight_length: registers.weight1_length.get()?,
                    scale_base: registers.scale1_base.get()?,
                    name: "WEIGHT1",
                    scale_name: "SCALE1",
                }
            });
        }
        Ok(Self {
            window,
            depthwise,
            weight_region: registers.weight_region.get()?,
            scale_region: registers.scale_region.get()?,
            streams,
            cores,
        })
    }
}

impl Pooling {
    pub(crate) fn new(registers: &Registers, mode: PoolMode) -> Result<Self, Cause> {
        let channels = if mode == PoolMode::ReduceSum { Channels::Input } else { Channels::Output };
        let window = window(registers, channels)?;
        let scale = match registers.ofm_precision.get()?.scale_mode {
            OfmScaleMode::PerChannel => None,
            OfmScaleMode::Global => Some(scale(registers.ofm_scale.get()?)),
        };
        if mode == PoolMode::ReduceSum {
            for (field, value) in [
                ("OFM_DEPTH_M1", window.ofm_extent.depth),
                ("KERNEL_HEIGHT_M1", window.kernel.0),
                ("KERNEL_WIDTH_M1", window.kernel.1),
            ] {
                if value != 1 {
                    return Err(Cause::not_modelled(field, value as i64 - 1, "REDUCE_SUM is known with 0"));
                }
            }
            if scale.is_none() {
                return Err(Cause::not_modelled(
                    "OFM_PRECISION scale mode",
                    0,
                    "REDUCE_SUM is known with OFM_SCALE",
                ));
            }
            if window.upscale != Upscale::None {
                return Err(Cause::not_modelled(
                    "IFM_UPSCALE",
                    window.upscale as i64,
                    "REDUCE_SUM is known without",
                ));
            }
        }
        if window.upscale == Upscale::Zeros && (mode == PoolMode::Max || window.padded) {
            return Err(Cause::not_modelled(
                "IFM_UPSCALE",
                2,
                "zeros are known with convolutions and unpadded averages",
            ));
        }
        if mode == PoolMode::Average && window.padded && scale.is_some_and(|scale| scale != Scale::UNIT) {
            let found = scale.map_or(0, |scale| i64::from(scale.multiplier));
            return Err(Cause::not_modelled(
                "OFM_SCALE",
                found,
                "a padded average divides by itself and is known with (1, 0)",
            ));
        }
        Ok(Self { window, mode, scale })
    }
}

impl Elementwise {
    pub(crate) fn new(registers: &Registers, mode: ElementwiseMode) -> Result<Self, Cause> {
        use ElementwiseMode as Mode;
        let (ofm, extent, output, rounding) = ofm(registers)?;
        let ifm = ifm(registers)?;
        if registers.ifm_upscale.get()? != Upscale::None {
            return Err(Cause::not_modelled(
                "IFM_UPSCALE",
                registers.ifm_upscale.get()? as i64,
                "element-wise operations are known without",
            ));
        }
        let binary = !matches!(mode, Mode::LeakyRelu | Mode::Abs | Mode::Clz);
        let (mut operand, mut reversed) = (None, false);
        if binary {
            let broadcast = registers.ifm2_broadcast.get()?;
            reversed = broadcast.operand_order_reversed;
            operand = Some(if broadcast.scalar {
                let signed = registers.ifm2_precision.get()?.signed;
                let zero_point = signed_16(registers.ifm2_zero_point.get()?, signed);
                Operand::Scalar(signed_16(registers.ifm2_scalar.get()?, signed) - zero_point)
            } else {
                let one = |broadcast: bool, size: usize| if broadcast { 1 } else { size };
                Operand::Map(
                    ifm2(registers)?,
                    Extent {
                        height: one(broadcast.height, extent.height),
                        width: one(broadcast.width, extent.width),
                        depth: one(broadcast.depth, extent.depth),
                    },
                )
            });
        }
        let operand_scaling = match mode {
            Mode::Add | Mode::Sub => Some(Self::operand_scaling(registers, ifm.element)?),
            _ => None,
        };
        let scale = match mode {
            Mode::Min | Mode::Max | Mode::Clz | Mode::Shr | Mode::Shl => Scale::UNIT,
            Mode::Mul if ifm.element == ElementSize::Bits32 => {
                // The hardware's 32-bit multiplication has no second multiplier: only the shift counts.
                Scale { multiplier: 1, shift: registers.ofm_scale.get()?.shift }
            }
            _ => scale(registers.ofm_scale.get()?),
        };
        Ok(Self { mode, ifm, ifm2: operand, reversed, operand_scaling, scale, rounding, ofm, extent, output })
    }

    fn operand_scaling(registers: &Registers, element: ElementSize) -> Result<OperandScaling, Cause> {
        let precision = registers.ifm_precision.get()?;
        let a = registers.opa_scale.get()?;
        let b = registers.opb_scale.get()?;
        if element == ElementSize::Bits32 {
            if precision.scale_mode != OperandScaleMode::Both16 || (a.scale, a.shift, b) != (1, 0, 1) {
                return Err(Cause::not_modelled(
                    "OPA_SCALE",
                    a.scale,
                    "32-bit additions are known with unit scales",
                ));
            }
            return Ok(OperandScaling::Both { a: 1, b: 1 });
        }
        let scale_a = match precision.scale_mode {
            OperandScaleMode::Both16 => {
                if a.shift != 0 {
                    return Err(Cause::not_modelled(
                        "OPA_SCALE shift",
                        a.shift,
                        "two 16-bit scales are known with 0",
                    ));
                }
                return Ok(OperandScaling::Both { a: i64::from(a.scale & 0xFFFF), b: i64::from(b) });
            }
            OperandScaleMode::A32 => true,
            OperandScaleMode::B32 => false,
        };
        if precision.rounding == Rounding::Truncate {
            return Err(Cause::not_modelled(
                "IFM_PRECISION rounding",
                1,
                "TRUNCATE has never been compared with a reference",
            ));
        }
        let (left_shift, doubling) = match element {
            ElementSize::Bits8 => (19, DoublingShift::OPERAND_8),
            _ => (14, DoublingShift::OPERAND_16),
        };
        Ok(OperandScaling::One {
            scale_a,
            scale: scale(a),
            rounding: precision.rounding,
            left_shift,
            doubling,
        })
    }
}

impl Dma {
    pub(crate) fn new(registers: &Registers) -> Result<Self, Cause> {
        let source = registers.dma0_src_region.get()?;
        let destination = registers.dma0_dst_region.get()?;
        for (field, side) in
            [("DMA0_SRC_REGION stride mode", source), ("DMA0_DST_REGION stride mode", destination)]
        {
            if side.stride_mode != DmaStride::D1 {
                return Err(Cause::not_modelled(
                    field,
                    side.stride_mode as i64,
                    "one-dimensional transfers are known",
                ));
            }
        }
        if source.internal {
            return Err(Cause::not_modelled(
                "DMA0_SRC_REGION internal",
                1,
                "transfers from internal memory are never emitted",
            ));
        }
        Ok(Self {
            source_region: source.region,
            source: registers.dma0_src.get()?,
            destination_region: (!destination.internal).then_some(destination.region),
            destination: registers.dma0_dst.get()?,
            length: registers.dma0_len.get()?,
        })
    }
}

impl Operation {
    /// The command's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Convolution(convolution) if convolution.depthwise => "NPU_OP_DEPTHWISE",
            Self::Convolution(_) => "NPU_OP_CONV",
            Self::Pooling(_) => "NPU_OP_POOL",
            Self::Elementwise(_) => "NPU_OP_ELEMENTWISE",
            Self::Dma(_) => "NPU_OP_DMA_START",
        }
    }

    /// The work it takes: multiply-accumulates, elements or bytes, whichever the operation is made of.
    pub fn work(&self) -> u64 {
        match self {
            Self::Convolution(convolution) => {
                let window = &convolution.window;
                let inputs = if convolution.depthwise { 1 } else { window.ifm_extent.depth };
                window_work(window, inputs).saturating_add(window.ifm_extent.elements())
            }
            Self::Pooling(pooling) => {
                let window = &pooling.window;
                let inputs = if pooling.mode == PoolMode::ReduceSum { window.ifm_extent.depth } else { 1 };
                window_work(window, inputs).saturating_add(window.ifm_extent.elements())
            }
            Self::Elementwise(elementwise) => elementwise.extent.elements(),
            Self::Dma(dma) => dma.length,
        }
    }

    /// Elements of the largest map it touches.
    pub(crate) fn largest_map(&self) -> u64 {
        match self {
            Self::Convolution(Convolution { window, .. }) | Self::Pooling(Pooling { window, .. }) => {
                window.ifm_extent.elements().max(window.ofm_extent.elements())
            }
            Self::Elementwise(elementwise) => elementwise.extent.elements(),
            Self::Dma(_) => 0,
        }
    }
}
