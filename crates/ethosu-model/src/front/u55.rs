//! The front end of U55 and U65.

use ethosu_isa::{
    AccFormat, Accelerator, Command, DmaStride, ElementSize, ElementwiseMode, OfmScaleMode, OperandScaleMode,
    PoolMode, Upscale,
};

use super::registers55::Registers;
use super::{FrontEnd, Placement, feature_map, input, plus_one, signed_16};
use crate::clock::Schedule;
use crate::map::{Axes, Extent, FeatureMap, Flip};
use crate::operation::{
    Convolution, ConvolutionScale, Dma, Elementwise, Function, Kernel, Operand, Operation, PoolFunction,
    Pooling, Results, ScaleFormat, ScaleStream, Stream, Target, WeightEncoding, Window,
};
use crate::output::{OutputRegisters, OutputStage};
use crate::rounding::{Rounding, Scaling};
use crate::stop::Cause;
use crate::weights::{Order, Traversal, WeightOrder};

/// The registers, and what the accelerator adds.
pub(crate) struct FrontEnd55 {
    registers: Registers,
    cores: usize,
    ublock_depth: usize,
}

impl FrontEnd for FrontEnd55 {
    fn schedule(&self) -> Schedule {
        self.registers.schedule()
    }

    fn command(&mut self, command: &Command) -> Result<Option<Operation>, Cause> {
        Ok(Some(match *command {
            Command::Conv => Operation::Convolution(self.convolution(false)?),
            Command::Depthwise => Operation::Convolution(self.convolution(true)?),
            Command::Pool(mode) => Operation::Pooling(self.pooling(mode)?),
            Command::Elementwise(mode) => Operation::Elementwise(self.elementwise(mode)?),
            Command::DmaStart => Operation::Dma(self.dma()?),
            ref register => {
                if !register.is_operation() && !self.registers.apply(register) {
                    return Err(Cause::not_modelled(
                        "the register",
                        register.code(),
                        "no known operation consults it",
                    ));
                }
                return Ok(None);
            }
        }))
    }
}

/// Which channels an operation reads.
enum Channels {
    /// IFM_DEPTH.
    Input,
    /// As many as it writes.
    Output,
}

const TRUNCATE: &str = "TRUNCATE has never been compared with a reference";

impl FrontEnd55 {
    /// `None` for a product whose registers are others.
    pub(crate) fn new(accelerator: Accelerator) -> Option<Self> {
        Some(Self {
            registers: Registers::new(),
            cores: accelerator.cores() as usize,
            ublock_depth: accelerator.ofm_ublock()?.depth as usize,
        })
    }

    fn ifm(&self) -> Result<FeatureMap, Cause> {
        let precision = self.registers.ifm_precision.get()?;
        input(feature_map!(self.registers, ifm, precision), "IFM_ZERO_POINT", "IFM_PRECISION size")
    }

    fn ifm2(&self) -> Result<FeatureMap, Cause> {
        let precision = self.registers.ifm2_precision.get()?;
        input(feature_map!(self.registers, ifm2, precision), "IFM2_ZERO_POINT", "IFM2_PRECISION size")
    }

    fn results(&self) -> Result<Results, Cause> {
        let r = &self.registers;
        let precision = r.ofm_precision.get()?;
        let ofm = feature_map!(r, ofm, precision);
        Ok(Results {
            ofm,
            extent: Extent {
                height: plus_one(r.ofm_height_m1.get()?),
                width: plus_one(r.ofm_width_m1.get()?),
                depth: plus_one(r.ofm_depth_m1.get()?),
            },
            axes: Axes::Hwc,
            flip: Flip::None,
            output: OutputStage::new(&OutputRegisters {
                element: precision.size,
                signed: precision.signed,
                zero_point: ofm.zero_point,
                activation: r.activation.get()?,
                min: signed_16(r.activation_min.get()?, precision.signed),
                max: signed_16(r.activation_max.get()?, precision.signed),
            })?,
        })
    }

    fn rounding(&self) -> Result<Rounding, Cause> {
        Rounding::new(self.registers.ofm_precision.get()?.rounding)
            .ok_or_else(|| Cause::not_modelled("OFM_PRECISION rounding", 1, TRUNCATE))
    }

    /// OFM_SCALE with the output's rounding.
    fn ofm_scale(&self) -> Result<Scaling, Cause> {
        let register = self.registers.ofm_scale.get()?;
        Ok(Scaling {
            multiplier: register.scale,
            shift: register.shift,
            rounding: self.rounding()?,
            doubling: 0,
        })
    }

    fn window(&self, channels: Channels) -> Result<Window, Cause> {
        let r = &self.registers;
        let results = self.results()?;
        let ifm = self.ifm()?;
        let depth = match channels {
            Channels::Input => plus_one(r.ifm_depth_m1.get()?),
            Channels::Output => results.extent.depth,
        };
        let placement = Placement {
            dilated: (i64::from(r.kernel_height_m1.get()?) + 1, i64::from(r.kernel_width_m1.get()?) + 1),
            stride: r.kernel_stride.get()?,
            top: r.ifm_pad_top.get()?,
            left: r.ifm_pad_left.get()?,
            bottom: r.ifm_pad_bottom.get()?,
            right: r.ifm_pad_right.get()?,
            upscale: r.ifm_upscale.get()?,
            accumulator_bits: match r.acc_format.peek() {
                Some(AccFormat::Float16) => {
                    return Err(Cause::not_modelled("ACC_FORMAT", 2, "integer accumulators only"));
                }
                Some(AccFormat::Int40) => 40,
                // Only an overflow could tell the formats apart, and the narrower one refuses it earlier.
                Some(AccFormat::Int32) | None => 32,
            },
        };
        placement.window(ifm, depth, results)
    }

    fn convolution(&self, depthwise: bool) -> Result<Convolution, Cause> {
        let r = &self.registers;
        let window = self.window(if depthwise { Channels::Output } else { Channels::Input })?;
        if r.ofm_precision.get()?.scale_mode != OfmScaleMode::PerChannel {
            let known = "convolutions are known with the scale stream";
            return Err(Cause::not_modelled("OFM_PRECISION scale mode", 1, known));
        }
        if window.ifm.element == ElementSize::Bits32 {
            return Err(Cause::not_modelled("IFM_PRECISION size", 32, "convolutions read 8 or 16 bits"));
        }
        let block_depth = plus_one(r.ofm_blk_depth_m1.get()?);
        let traversal = match (depthwise, r.kernel_stride.get()?.part_kernel_first) {
            (true, _) => Traversal::Depthwise,
            (false, true) => Traversal::PartKernelFirst,
            (false, false) => Traversal::DepthFirst,
        };
        let cores = self.cores;
        let (mut streams, mut scales) = (Vec::with_capacity(cores), Vec::with_capacity(cores));
        for core in 0..cores {
            // Cores take alternate channels.
            let share = |channels: usize| (channels + cores - 1 - core) / cores;
            let ofm_depth = share(window.results.extent.depth);
            if ofm_depth == 0 {
                // No channel is left for this core; the stream of scales still counts in the rotation.
                scales.push(ScaleStream { base: 0, channels: 0, name: "SCALE1" });
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
                ofm_ublock_depth: self.ublock_depth,
                wide_ifm: window.ifm.element == ElementSize::Bits16,
                traversal,
            };
            let (base, length, name, scale_base, scale_name) = if core == 0 {
                (r.weight_base.get()?, r.weight_length.get()?, "WEIGHT", r.scale_base.get()?, "SCALE")
            } else {
                (r.weight1_base.get()?, r.weight1_length.get()?, "WEIGHT1", r.scale1_base.get()?, "SCALE1")
            };
            streams.push(Stream { order: Order::Cores { order, core, cores }, base, length, name });
            scales.push(ScaleStream { base: scale_base, channels: ofm_depth, name: scale_name });
        }
        Ok(Convolution {
            window,
            depthwise,
            kernel: Kernel::Streams {
                region: r.weight_region.get()?,
                encoding: WeightEncoding::Standard,
                streams,
            },
            scale: ConvolutionScale::PerChannel {
                region: r.scale_region.get()?,
                format: ScaleFormat::Bias40,
                rounding: self.rounding()?,
                streams: scales,
            },
        })
    }

    fn pooling(&self, mode: PoolMode) -> Result<Pooling, Cause> {
        let r = &self.registers;
        let reduce = mode == PoolMode::ReduceSum;
        let window = self.window(if reduce { Channels::Input } else { Channels::Output })?;
        // Without the global scale none applies.
        let scale = match r.ofm_precision.get()?.scale_mode {
            OfmScaleMode::PerChannel => None,
            OfmScaleMode::Global => Some(self.ofm_scale()?),
        };
        self.rounding()?;
        let upscale = window.upscale;
        if upscale == Upscale::Zeros && (mode == PoolMode::Max || window.padded) {
            return Err(Cause::not_modelled(
                "IFM_UPSCALE",
                2,
                "zeros are known with convolutions and unpadded averages",
            ));
        }
        let (function, scale) = match (mode, scale) {
            (PoolMode::Max, scale) => (PoolFunction::Max, scale.unwrap_or(Scaling::UNIT)),
            (PoolMode::Average, Some(scale)) if !window.padded => (PoolFunction::Sum, scale),
            // With padding, and without OFM_SCALE, the hardware divides by the elements that are really there.
            (PoolMode::Average, Some(scale)) if !scale.is_unit() => {
                let known = "a padded average divides by itself and is known with (1, 0)";
                return Err(Cause::not_modelled("OFM_SCALE", scale.multiplier, known));
            }
            (PoolMode::Average, _) => (PoolFunction::Mean, Scaling::UNIT),
            (PoolMode::ReduceSum, Some(scale)) => (PoolFunction::ReduceSum, scale),
            (PoolMode::ReduceSum, None) => {
                return Err(Cause::not_modelled(
                    "OFM_PRECISION scale mode",
                    0,
                    "REDUCE_SUM is known with OFM_SCALE",
                ));
            }
        };
        if reduce {
            check_reduce_sum(&window)?;
        }
        Ok(Pooling { window, function, scale })
    }

    fn elementwise(&self, mode: ElementwiseMode) -> Result<Elementwise, Cause> {
        use ElementwiseMode as Mode;
        let r = &self.registers;
        let results = self.results()?;
        let extent = results.extent;
        let ifm = self.ifm()?;
        let upscale = r.ifm_upscale.get()?;
        if upscale != Upscale::None {
            return Err(Cause::not_modelled(
                "IFM_UPSCALE",
                upscale as i64,
                "element-wise operations are known without",
            ));
        }
        self.rounding()?;
        let function = match mode {
            Mode::Mul => Function::Mul,
            Mode::Add => Function::Add,
            Mode::Sub => Function::Sub,
            Mode::Min => Function::Min,
            Mode::Max => Function::Max,
            Mode::LeakyRelu => Function::LeakyRelu,
            Mode::Abs => Function::Abs,
            Mode::Clz => Function::Clz,
            Mode::Shr => Function::Shr,
            Mode::Shl => Function::Shl,
        };
        let first = Operand::Map { map: ifm, extent, name: "IFM" };
        let (mut a, mut b) = (first, None);
        if function.is_binary() {
            let broadcast = r.ifm2_broadcast.get()?;
            let second = if broadcast.scalar {
                let signed = r.ifm2_precision.get()?.signed;
                let zero_point = signed_16(r.ifm2_zero_point.get()?, signed);
                Operand::Scalar(signed_16(r.ifm2_scalar.get()?, signed) - zero_point)
            } else {
                let one = |broadcast: bool, size: usize| if broadcast { 1 } else { size };
                Operand::Map {
                    map: self.ifm2()?,
                    extent: Extent {
                        height: one(broadcast.height, extent.height),
                        width: one(broadcast.width, extent.width),
                        depth: one(broadcast.depth, extent.depth),
                    },
                    name: "IFM2",
                }
            };
            (a, b) =
                if broadcast.operand_order_reversed { (second, Some(first)) } else { (first, Some(second)) };
        }
        let scales = match function {
            Function::Add | Function::Sub => self.operand_scales(ifm.element)?,
            Function::LeakyRelu => [Scaling::UNIT, self.ofm_scale()?],
            _ => [Scaling::UNIT; 2],
        };
        let scale = match function {
            Function::Mul if ifm.element == ElementSize::Bits32 => {
                // The hardware's 32-bit multiplication has no second multiplier: only the shift counts.
                Scaling { multiplier: 1, ..self.ofm_scale()? }
            }
            Function::Mul | Function::Add | Function::Sub | Function::Abs => self.ofm_scale()?,
            _ => Scaling::UNIT,
        };
        let narrow_operands =
            ifm.element == ElementSize::Bits32 && scales.iter().any(|scale| !scale.is_unit());
        Ok(Elementwise { function, a, b, scales, narrow_operands, scale, results })
    }

    /// How ADD and SUB scale A and B.
    fn operand_scales(&self, element: ElementSize) -> Result<[Scaling; 2], Cause> {
        let r = &self.registers;
        let precision = r.ifm_precision.get()?;
        let (a, b) = (r.opa_scale.get()?, r.opb_scale.get()?);
        if element == ElementSize::Bits32 && precision.scale_mode != OperandScaleMode::Both16 {
            let known = "32-bit additions are known with two 16-bit scales";
            return Err(Cause::not_modelled("IFM_PRECISION scale mode", precision.scale_mode as i64, known));
        }
        if precision.scale_mode == OperandScaleMode::Both16 {
            if a.shift != 0 {
                return Err(Cause::not_modelled(
                    "OPA_SCALE shift",
                    a.shift,
                    "two 16-bit scales are known with 0",
                ));
            }
            return Ok([Scaling::by(a.scale & 0xFFFF), Scaling::by(b.into())]);
        }
        let rounding = Rounding::new(precision.rounding)
            .ok_or_else(|| Cause::not_modelled("IFM_PRECISION rounding", 1, TRUNCATE))?;
        // One operand is scaled, the other only shifted left, and the first rounding moves with it.
        let (left_shift, doubling) = if element == ElementSize::Bits8 { (19, 20) } else { (14, 15) };
        let scaled = Scaling { multiplier: a.scale, shift: a.shift, rounding, doubling };
        let shifted = Scaling::by(1 << left_shift);
        Ok(if precision.scale_mode == OperandScaleMode::A32 { [scaled, shifted] } else { [shifted, scaled] })
    }

    fn dma(&self) -> Result<Dma, Cause> {
        let r = &self.registers;
        let source = r.dma0_src_region.get()?;
        let destination = r.dma0_dst_region.get()?;
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
            let known = "transfers from internal memory are never emitted";
            return Err(Cause::not_modelled("DMA0_SRC_REGION internal", 1, known));
        }
        let target = if destination.internal { Target::Internal } else { Target::Region(destination.region) };
        Ok(Dma::straight(source.region, r.dma0_src.get()?, target, r.dma0_dst.get()?, r.dma0_len.get()?))
    }
}

/// The form of REDUCE_SUM that is known on all products.
pub(super) fn check_reduce_sum(window: &Window) -> Result<(), Cause> {
    for (field, value) in [
        ("OFM_DEPTH_M1", window.results.extent.depth),
        ("KERNEL_HEIGHT_M1", window.kernel.0),
        ("KERNEL_WIDTH_M1", window.kernel.1),
    ] {
        if value != 1 {
            return Err(Cause::not_modelled(field, value as i64 - 1, "REDUCE_SUM is known with 0"));
        }
    }
    if window.upscale != Upscale::None {
        return Err(Cause::not_modelled("IFM_UPSCALE", window.upscale as i64, "REDUCE_SUM is known without"));
    }
    Ok(())
}
