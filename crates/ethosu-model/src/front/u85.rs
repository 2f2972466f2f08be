//! The front end of U85.

use ethosu_isa::{
    AccInput85, Accelerator, Accumulator85, Broadcast85, Command, DmaStride, ElementSize, ElementwiseMode85,
    IfmRounding85, IfmScale85, OfmRounding85, OfmScaleMode, PoolMode85, ResizeMode85, Reverse85, Storage85,
    Transpose85, Upscale, WeightEncoding85,
};

use super::registers85::Registers;
use super::u55::check_reduce_sum;
use super::{FrontEnd, Placement, feature_map, input, plus_one, signed_16};
use crate::clock::Schedule;
use crate::map::{Axes, Extent, FeatureMap, Flip};
use crate::memory::CHAIN_REGION;
use crate::operation::{
    Axis, Comparison, Convolution, ConvolutionScale, Dma, Elementwise, Function, Indexed, Interpolation,
    Kernel, Operand, Operation, PoolFunction, Pooling, Resize, Results, ScaleFormat, ScaleStream, Stream,
    Target, WeightEncoding, Window,
};
use crate::output::{OutputRegisters, OutputStage};
use crate::rounding::{Rounding, Scaling};
use crate::stop::Cause;
use crate::weights::{Order, Traversal, WeightOrder85};

/// What an operation has left in a chain buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Chained {
    extent: Extent,
    element: ElementSize,
}

/// The registers, and what the accelerator adds.
pub(crate) struct FrontEnd85 {
    registers: Registers,
    accelerator: Accelerator,
    chained: [Option<Chained>; 8],
    chain_bytes: [usize; 8],
}

/// Which of the two inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ifm,
    Ifm2,
}

impl FrontEnd for FrontEnd85 {
    fn schedule(&self) -> Schedule {
        self.registers.schedule(self.accelerator)
    }

    fn command(&mut self, command: &Command) -> Result<Option<Operation>, Cause> {
        let operation = match *command {
            Command::Conv85(conv) => Operation::Convolution(self.convolution(false, conv.weights_from_ifm2)?),
            Command::Depthwise => Operation::Convolution(self.convolution(true, false)?),
            Command::Pool85(mode) => Operation::Pooling(self.pooling(mode)?),
            Command::Elementwise85(mode) => Operation::Elementwise(self.elementwise(mode)?),
            Command::Resize85(mode) => Operation::Resize(self.resize(mode)?),
            Command::DmaStart => Operation::Dma(self.dma()?),
            Command::Branch85(_) => {
                return Err(Cause::not_modelled(
                    "NPU_OP_BRANCH",
                    0,
                    "no stream from TensorFlow Lite branches",
                ));
            }
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
        };
        if let Some(results) = operation.results()
            && let Some(buffer) = results.ofm.region.checked_sub(CHAIN_REGION)
        {
            let chained = Chained { extent: results.extent, element: results.ofm.element };
            let bytes = usize::try_from(results.extent.elements()).unwrap_or(usize::MAX);
            let bytes = bytes.saturating_mul(results.ofm.element_bytes());
            self.chained[usize::from(buffer)] = Some(chained);
            self.chain_bytes[usize::from(buffer)] = self.chain_bytes[usize::from(buffer)].max(bytes);
        }
        Ok(Some(operation))
    }

    fn chain_bytes(&self) -> [usize; 8] {
        self.chain_bytes
    }
}

fn ofm_rounding(rounding: OfmRounding85) -> Result<Rounding, Cause> {
    match rounding {
        OfmRounding85::Double => Ok(Rounding::Double),
        OfmRounding85::Natural => Ok(Rounding::Natural),
        OfmRounding85::Symmetric => Ok(Rounding::Symmetric),
        OfmRounding85::TruncateToLower => Ok(Rounding::Floor),
        OfmRounding85::DoubleAsymmetric | OfmRounding85::TruncateToZero => Err(Cause::not_modelled(
            "OFM_SCALE rounding",
            if rounding == OfmRounding85::DoubleAsymmetric { 2 } else { 4 },
            "DOUBLE_ASYMMETRIC and TRUNCATE have never been compared with a reference",
        )),
    }
}

fn doubling(value: u8) -> Result<u8, Cause> {
    if value > 30 {
        return Err(Cause::not_modelled("the double-rounding shift", value, "0, 15 and 20 are emitted"));
    }
    Ok(value)
}

fn operand_scaling(register: IfmScale85) -> Result<Scaling, Cause> {
    Ok(Scaling {
        multiplier: register.scale,
        shift: register.shift,
        rounding: match register.rounding {
            IfmRounding85::Double => Rounding::Double,
            IfmRounding85::Natural => Rounding::Natural,
        },
        doubling: doubling(register.double_round)?,
    })
}

/// A map in a chain buffer: as if it had been stored without gaps.
fn chained_map(
    buffer: u8,
    extent: Extent,
    element: ElementSize,
    signed: bool,
    zero_point: i64,
) -> FeatureMap {
    let bytes = i64::from(element.bytes());
    let stride_x = extent.depth as i64 * bytes;
    FeatureMap {
        region: CHAIN_REGION + buffer,
        bases: [0; 4],
        width0: extent.width,
        height0: extent.height,
        height1: extent.height,
        stride_y: extent.width as i64 * stride_x,
        stride_x,
        stride_c: 0,
        element,
        signed,
        layout: ethosu_isa::Layout::Nhwc,
        zero_point,
    }
}

/// Which channels an operation reads.
enum Channels {
    /// IFM_DEPTH.
    Input,
    /// As many as it writes.
    Output,
}

impl FrontEnd85 {
    /// `None` for a product whose registers are others.
    pub(crate) fn new(accelerator: Accelerator) -> Option<Self> {
        (accelerator.product() == ethosu_isa::Product::U85).then(|| Self {
            registers: Registers::new(),
            accelerator,
            chained: [None; 8],
            chain_bytes: [0; 8],
        })
    }

    /// An input of a known extent.
    fn input(&self, which: Input, extent: Extent) -> Result<FeatureMap, Cause> {
        let r = &self.registers;
        let (precision, region, zero_point) = match which {
            Input::Ifm => (r.ifm_precision.get()?, r.ifm_region.get()?, r.ifm_zero_point.get()?),
            Input::Ifm2 => (r.ifm2_precision.get()?, r.ifm2_region.get()?, r.ifm2_zero_point.get()?),
        };
        let map = match precision.storage {
            Storage85::Tile2x2 if which == Input::Ifm => feature_map!(r, ifm, precision),
            Storage85::Tile2x2 => feature_map!(r, ifm2, precision),
            Storage85::Chained => {
                let wanted = Chained { extent, element: precision.size };
                if self.chained[usize::from(region)] != Some(wanted) {
                    let known = "a chain buffer is read in the shape and type that was written";
                    return Err(Cause::not_modelled("the chain buffer", region, known));
                }
                let zero_point = signed_16(zero_point, precision.signed);
                chained_map(region, extent, precision.size, precision.signed, zero_point)
            }
            Storage85::Tile3x1 => {
                return Err(Cause::not_modelled("IFM_PRECISION storage", 1, "TILE3X1 is never emitted"));
            }
            Storage85::None => {
                return Err(Cause::not_modelled("IFM_PRECISION storage", 3, "only scalars have no storage"));
            }
        };
        input(map, "IFM_ZERO_POINT", "IFM_PRECISION size")
    }

    fn results(&self) -> Result<Results, Cause> {
        let r = &self.registers;
        let precision = r.ofm_precision.get()?;
        let extent = Extent {
            height: plus_one(r.ofm_height_m1.get()?),
            width: plus_one(r.ofm_width_m1.get()?),
            depth: plus_one(r.ofm_depth_m1.get()?),
        };
        let axes = match precision.transpose {
            Transpose85::Hwc => Axes::Hwc,
            Transpose85::Whc => Axes::Whc,
            Transpose85::Hcw => Axes::Hcw,
            Transpose85::Wch => Axes::Wch,
            Transpose85::Chw => Axes::Chw,
            Transpose85::Cwh => Axes::Cwh,
        };
        let flip = match precision.reverse {
            Reverse85::None => Flip::None,
            Reverse85::H => Flip::Height,
            Reverse85::W => Flip::Width,
            Reverse85::C => Flip::Depth,
        };
        let ofm = match precision.storage {
            Storage85::Tile2x2 => feature_map!(r, ofm, precision),
            Storage85::Chained if axes == Axes::Hwc && flip == Flip::None => {
                let zero_point = signed_16(r.ofm_zero_point.get()?, precision.signed);
                chained_map(r.ofm_region.get()?, extent, precision.size, precision.signed, zero_point)
            }
            storage => {
                let known = "outputs go to tiles or, without another order of axes, to a chain buffer";
                return Err(Cause::not_modelled("OFM_PRECISION storage", storage as i64, known));
            }
        };
        if axes != Axes::Hwc && flip != Flip::None {
            return Err(Cause::not_modelled(
                "OFM_PRECISION reverse",
                flip as i64,
                "it is never used together with transpose",
            ));
        }
        Ok(Results {
            ofm,
            extent,
            axes,
            flip,
            output: OutputStage::new85(&OutputRegisters {
                element: precision.size,
                signed: precision.signed,
                zero_point: ofm.zero_point,
                activation: r.activation.get()?,
                min: signed_16(r.activation_min.get()?, precision.signed),
                max: signed_16(r.activation_max.get()?, precision.signed),
            })?,
        })
    }

    fn ofm_scale(&self) -> Result<Scaling, Cause> {
        let register = self.registers.ofm_scale.get()?;
        Ok(Scaling {
            multiplier: register.scale,
            shift: register.shift,
            rounding: ofm_rounding(register.rounding)?,
            doubling: doubling(register.double_round)?,
        })
    }

    fn is_global(&self) -> Result<bool, Cause> {
        Ok(self.registers.ofm_precision.get()?.scale_mode == OfmScaleMode::Global)
    }

    fn placement(&self) -> Result<Placement, Cause> {
        let r = &self.registers;
        let upscale = r.ifm_upscale.get()?;
        if upscale != Upscale::None {
            return Err(Cause::not_modelled("IFM_UPSCALE", upscale as i64, "it is never used on U85"));
        }
        let accumulator = r.acc_format.get()?;
        if accumulator.output_disabled {
            return Err(Cause::not_modelled("ACC_FORMAT output disable", 1, "it is never emitted"));
        }
        Ok(Placement {
            dilated: (i64::from(r.kernel_height_m1.get()?) + 1, i64::from(r.kernel_width_m1.get()?) + 1),
            stride: r.kernel_stride.get()?,
            top: r.ifm_pad_top.get()?,
            left: r.ifm_pad_left.get()?,
            bottom: r.ifm_pad_bottom.get()?,
            right: r.ifm_pad_right.get()?,
            upscale,
            accumulator_bits: match accumulator.format {
                Accumulator85::Int32 => 32,
                Accumulator85::Int48 => 48,
            },
        })
    }

    fn check_accumulator_input(&self, wanted: AccInput85) -> Result<(), Cause> {
        let found = self.registers.acc_format.get()?.input;
        if found != wanted {
            let known = "accumulators start from zero, and from the second input with POOL NONE";
            return Err(Cause::not_modelled("ACC_FORMAT input", found as i64, known));
        }
        Ok(())
    }

    /// A window over one of the inputs.
    fn window(&self, which: Input, channels: Channels) -> Result<Window, Cause> {
        let results = self.results()?;
        let depth = match channels {
            Channels::Input => plus_one(self.registers.ifm_depth_m1.get()?),
            Channels::Output => results.extent.depth,
        };
        let placement = self.placement()?;
        // The extent follows from everything else, and a chained input's place from the extent.
        let mut window = placement.window(results.ofm, depth, results)?;
        window.ifm = self.input(which, window.ifm_extent)?;
        Ok(window)
    }

    fn convolution(&self, depthwise: bool, matrix: bool) -> Result<Convolution, Cause> {
        let r = &self.registers;
        self.check_accumulator_input(AccInput85::Reset)?;
        let window = self.window(Input::Ifm, if depthwise { Channels::Output } else { Channels::Input })?;
        if matrix != self.is_global()? {
            let known = "matrix products are known with OFM_SCALE and convolutions with the scale stream";
            return Err(Cause::not_modelled("OFM_PRECISION scale mode", i64::from(!matrix), known));
        }
        if matrix {
            if window.kernel != (1, 1) {
                return Err(Cause::not_modelled(
                    "KERNEL_HEIGHT_M1",
                    window.kernel.0 as i64 - 1,
                    "matrix products are known with a 1x1 kernel",
                ));
            }
            let extent =
                Extent { height: 1, width: window.results.extent.depth, depth: window.ifm_extent.depth };
            let kernel = Kernel::Map(self.input(Input::Ifm2, extent)?);
            return Ok(Convolution {
                window,
                depthwise,
                kernel,
                scale: ConvolutionScale::Global(self.ofm_scale()?),
            });
        }
        if window.ifm.element == ElementSize::Bits32 {
            return Err(Cause::not_modelled("IFM_PRECISION size", 32, "convolutions read 8 or 16 bits"));
        }
        let accumulator = r.acc_format.get()?;
        Ok(Convolution {
            kernel: self.streams(&window, depthwise)?,
            scale: ConvolutionScale::PerChannel {
                region: r.scale_region.get()?,
                format: match accumulator.format {
                    Accumulator85::Int32 => ScaleFormat::Bias32,
                    Accumulator85::Int48 => ScaleFormat::Bias48,
                },
                rounding: ofm_rounding(r.ofm_scale.get()?.rounding)?,
                streams: vec![ScaleStream {
                    base: r.scale_base.get()?,
                    channels: window.results.extent.depth,
                    name: "SCALE",
                }],
            },
            window,
            depthwise,
        })
    }

    fn streams(&self, window: &Window, depthwise: bool) -> Result<Kernel, Cause> {
        let r = &self.registers;
        let format = r.weight_format.get()?;
        let fast = format.encoding == WeightEncoding85::Fast;
        let streams = self.accelerator.weight_streams() as usize;
        let microblock = r.acc_format.get()?.microblock;
        let Some(ublock) = self.accelerator.ofm_ublock_for(microblock) else {
            return Err(Cause::not_modelled(
                "ACC_FORMAT microblock",
                microblock as i64,
                "this accelerator doesn't offer it",
            ));
        };
        let block_depth = plus_one(r.ofm_blk_depth_m1.get()?);
        let part_kernel_first = r.kernel_stride.get()?.part_kernel_first;
        let order = |stream| WeightOrder85 {
            ofm_depth: window.results.extent.depth,
            ifm_depth: if depthwise { 1 } else { window.ifm_extent.depth },
            kernel_height: window.kernel.0,
            kernel_width: window.kernel.1,
            stride: window.stride,
            dilation: window.dilation,
            block_depth,
            ublock_depth: ublock.depth as usize,
            macs: self.accelerator.macs() as usize,
            ifm_bits: 8 * window.ifm.element.bytes(),
            sparse: format.sparse,
            traversal: match (depthwise, part_kernel_first) {
                (true, _) => Traversal::Depthwise,
                (false, true) => Traversal::PartKernelFirst,
                (false, false) => Traversal::DepthFirst,
            },
            stream,
            streams,
        };
        let registers = [
            (&r.weight_base, &r.weight_length, "WEIGHT"),
            (&r.weight1_base, &r.weight1_length, "WEIGHT1"),
            (&r.weight2_base, &r.weight2_length, "WEIGHT2"),
            (&r.weight3_base, &r.weight3_length, "WEIGHT3"),
        ];
        let mut found = Vec::with_capacity(streams);
        for (stream, (base, length, name)) in registers.into_iter().take(streams).enumerate() {
            let order = order(stream);
            // The fast format has all streams in the first one's bytes.
            let (base, length) = if fast && stream > 0 { (0, 0) } else { (base.get()?, length.get()?) };
            if !fast && order.ofm_depth <= 4 * stream {
                // The streams take four channels each in turn: none is left for this one. In the fast format its padding
                // still takes its turn.
                continue;
            }
            found.push(Stream { order: Order::Interleaved(order), base, length, name });
        }
        let encoding = if fast {
            WeightEncoding::Fast { block: order(0).fast_block() }
        } else {
            WeightEncoding::Standard
        };
        Ok(Kernel::Streams { region: r.weight_region.get()?, encoding, streams: found })
    }

    fn pooling(&self, mode: PoolMode85) -> Result<Pooling, Cause> {
        if !self.is_global()? {
            return Err(Cause::not_modelled("OFM_PRECISION scale mode", 0, "pools are known with OFM_SCALE"));
        }
        let scale = self.ofm_scale()?;
        if mode == PoolMode85::None {
            self.check_accumulator_input(AccInput85::Ifm2)?;
            let window = self.window(Input::Ifm2, Channels::Output)?;
            if !window.is_pointwise() {
                return Err(Cause::not_modelled(
                    "KERNEL_HEIGHT_M1",
                    window.kernel.0 as i64 - 1,
                    "POOL NONE is known with a 1x1 kernel",
                ));
            }
            if window.ifm.zero_point != 0 {
                return Err(Cause::not_modelled(
                    "IFM2_ZERO_POINT",
                    window.ifm.zero_point,
                    "POOL NONE is known with 0",
                ));
            }
            return Ok(Pooling { window, function: PoolFunction::Sum, scale });
        }
        self.check_accumulator_input(AccInput85::Reset)?;
        let channels = if mode == PoolMode85::ReduceSum { Channels::Input } else { Channels::Output };
        let window = self.window(Input::Ifm, channels)?;
        let (function, scale) = match mode {
            PoolMode85::Max => (PoolFunction::Max, scale),
            PoolMode85::Min => (PoolFunction::Min, scale),
            PoolMode85::Sum => (PoolFunction::Sum, scale),
            PoolMode85::ReduceSum => {
                check_reduce_sum(&window)?;
                (PoolFunction::ReduceSum, scale)
            }
            PoolMode85::Average => {
                if u64::from(scale.multiplier) != 1 << scale.shift {
                    let known = "an average divides by itself and is known with a scale of 1";
                    return Err(Cause::not_modelled("OFM_SCALE", scale.multiplier, known));
                }
                (PoolFunction::Mean, Scaling::UNIT)
            }
            PoolMode85::ArgmaxX => {
                if (scale.multiplier, scale.shift, scale.rounding) != (1, 16, Rounding::Floor)
                    || window.padded
                {
                    let known = "ARGMAX is known with (1, 16), rounded down, without padding";
                    return Err(Cause::not_modelled("OFM_SCALE", scale.multiplier, known));
                }
                (PoolFunction::ArgmaxX, Scaling::UNIT)
            }
            PoolMode85::ArgmaxY | PoolMode85::None => {
                return Err(Cause::not_modelled("NPU_OP_POOL mode", 7, "ARGMAX_Y is never emitted"));
            }
        };
        Ok(Pooling { window, function, scale })
    }

    /// One operand of an element-wise operation.
    fn operand(&self, which: Input, extent: Extent) -> Result<Operand, Cause> {
        let r = &self.registers;
        let (broadcast, precision, zero_point, name) = match which {
            Input::Ifm => (r.ifm_broadcast.get()?, r.ifm_precision.get()?, r.ifm_zero_point.get()?, "IFM"),
            Input::Ifm2 => {
                (r.ifm2_broadcast.get()?, r.ifm2_precision.get()?, r.ifm2_zero_point.get()?, "IFM2")
            }
        };
        if broadcast.scalar || precision.storage == Storage85::None {
            let zero_point = signed_16(zero_point, precision.signed);
            return Ok(Operand::Scalar(i64::from(r.op_scalar.get()?) - zero_point));
        }
        let Broadcast85 { height, width, depth, .. } = broadcast;
        let one = |broadcast: bool, size: usize| if broadcast { 1 } else { size };
        let extent = Extent {
            height: one(height, extent.height),
            width: one(width, extent.width),
            depth: one(depth, extent.depth),
        };
        Ok(Operand::Map { map: self.input(which, extent)?, extent, name })
    }

    fn elementwise(&self, mode: ElementwiseMode85) -> Result<Elementwise, Cause> {
        use ElementwiseMode85 as Mode;
        let r = &self.registers;
        let results = self.results()?;
        let upscale = r.ifm_upscale.get()?;
        if upscale != Upscale::None {
            return Err(Cause::not_modelled("IFM_UPSCALE", upscale as i64, "it is never used on U85"));
        }
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
            Mode::Div => Function::Div,
            Mode::CompareEqual => Function::Compare(Comparison::Equal),
            Mode::CompareNotEqual => Function::Compare(Comparison::NotEqual),
            Mode::CompareGreaterEqual => Function::Compare(Comparison::GreaterEqual),
            Mode::CompareGreater => Function::Compare(Comparison::Greater),
            Mode::And => Function::And,
            Mode::Or => Function::Or,
            Mode::Not => Function::Not,
            Mode::AndNot => Function::AndNot,
            Mode::Lsr | Mode::Xor => {
                let code = if mode == Mode::Lsr { 10 } else { 35 };
                return Err(Cause::not_modelled(
                    "NPU_OP_ELEMENTWISE mode",
                    code,
                    "LSR and XOR are never emitted",
                ));
            }
        };
        let a = self.operand(Input::Ifm, results.extent)?;
        let b = if function.is_binary() { Some(self.operand(Input::Ifm2, results.extent)?) } else { None };
        let scales = [
            operand_scaling(r.ifm_scale.get()?)?,
            if function.is_binary() || function == Function::LeakyRelu {
                operand_scaling(r.ifm2_scale.get()?)?
            } else {
                Scaling::UNIT
            },
        ];
        let scaled =
            matches!(function, Function::Add | Function::Sub | Function::LeakyRelu | Function::Compare(_));
        if let (false, Some(scale)) = (scaled, scales.iter().find(|scale| !scale.is_unit())) {
            let known = "operands are scaled in ADD, SUB, LRELU and comparisons";
            return Err(Cause::not_modelled("IFM_SCALE", scale.multiplier, known));
        }
        let scale = self.ofm_scale()?;
        let scale = match function {
            Function::Shr => {
                if !matches!(scale.rounding, Rounding::Natural | Rounding::Double) {
                    return Err(Cause::not_modelled("OFM_SCALE rounding", 3, "SHR is known with NATURAL"));
                }
                Scaling::UNIT
            }
            Function::Mul if r.ifm_precision.get()?.size == ElementSize::Bits32 => {
                // The hardware's 32-bit multiplication has no second multiplier: only the shift counts.
                Scaling { multiplier: 1, ..scale }
            }
            Function::LeakyRelu if !scale.is_unit() => {
                return Err(Cause::not_modelled("OFM_SCALE", scale.multiplier, "LRELU is known with (1, 0)"));
            }
            _ => scale,
        };
        Ok(Elementwise { function, a, b, scales, narrow_operands: false, scale, results })
    }

    fn resize(&self, mode: ResizeMode85) -> Result<Resize, Cause> {
        let r = &self.registers;
        let results = self.results()?;
        let ifm_extent = Extent {
            height: plus_one(r.kernel_height_m1.get()?),
            width: plus_one(r.kernel_width_m1.get()?),
            depth: results.extent.depth,
        };
        let ifm = self.input(Input::Ifm, ifm_extent)?;
        let interpolation = match mode {
            ResizeMode85::Bilinear => Interpolation::Bilinear,
            ResizeMode85::Nearest => Interpolation::Nearest,
            ResizeMode85::Replicate => {
                return Err(Cause::not_modelled("NPU_OP_RESIZE mode", 1, "REPLICATE is never emitted"));
            }
        };
        for (field, map) in [("IFM_ZERO_POINT", &ifm), ("OFM_ZERO_POINT", &results.ofm)] {
            if map.zero_point != 0 {
                return Err(Cause::not_modelled(field, map.zero_point, "RESIZE is known with 0"));
            }
        }
        let axis = |numerator: u16, step: ethosu_isa::ResizeStep85, offset: i16| {
            let numerator = i64::from(numerator) + 1;
            Axis {
                numerator,
                step: i64::from(step.one_step_int) * numerator + i64::from(step.one_step_mod),
                offset: offset.into(),
            }
        };
        Ok(Resize {
            ifm,
            ifm_extent,
            interpolation,
            y: axis(r.resize_y_scale_n_m1.get()?, r.resize_y_step.get()?, r.resize_y_offset.get()?),
            x: axis(r.resize_x_scale_n_m1.get()?, r.resize_x_step.get()?, r.resize_x_offset.get()?),
            scale: self.ofm_scale()?,
            results,
        })
    }

    fn dma(&self) -> Result<Dma, Cause> {
        let r = &self.registers;
        let source = r.dma0_src_region.get()?;
        let destination = r.dma0_dst_region.get()?;
        if source.internal {
            let known = "transfers from internal memory are never emitted";
            return Err(Cause::not_modelled("DMA0_SRC_REGION internal", 1, known));
        }
        let target = if destination.internal { Target::Internal } else { Target::Region(destination.region) };
        let length = r.dma0_len.get()?;
        let mut dma = Dma::straight(source.region, r.dma0_src.get()?, target, r.dma0_dst.get()?, length);
        let is_indexed = source.indexed || destination.indexed;
        let mode = source.stride_mode;
        if source.indexed && destination.indexed {
            return Err(Cause::not_modelled("DMA0_DST_REGION indexed", 1, "one side is indexed at a time"));
        }
        if !is_indexed {
            if mode != DmaStride::D1 {
                let known = "transfers of several rows are known with an index array";
                return Err(Cause::not_modelled("DMA0_SRC_REGION stride mode", mode as i64, known));
            }
            return Ok(dma);
        }
        if target == Target::Internal {
            return Err(Cause::not_modelled(
                "DMA0_DST_REGION internal",
                1,
                "indexed transfers go to regions",
            ));
        }
        // Of a single row only the indexed side's stride matters, and Vela doesn't set the other one.
        let rows_follow = mode != DmaStride::D1;
        let unused = i64::try_from(length).unwrap_or(i64::MAX);
        dma.row_strides = (
            if rows_follow || source.indexed { r.dma0_src_stride0.get()? } else { unused },
            if rows_follow || destination.indexed { r.dma0_dst_stride0.get()? } else { unused },
        );
        let mut skip = 0;
        if rows_follow {
            dma.rows = r.dma0_size0.get()?.into();
        }
        if mode == DmaStride::D3 {
            dma.planes = r.dma0_size1.get()?.into();
            dma.plane_strides = (r.dma0_src_stride1.get()?, r.dma0_dst_stride1.get()?);
            skip = r.dma0_idx_skip1.get()?;
        }
        for (field, stride) in
            [("DMA0_SRC_STRIDE0", dma.row_strides.0), ("DMA0_DST_STRIDE0", dma.row_strides.1)]
        {
            if u64::try_from(stride) != Ok(length) {
                return Err(Cause::not_modelled(field, stride, "rows are known to lie without gaps"));
            }
        }
        dma.indexed = Some(Indexed {
            source: source.indexed,
            region: r.dma0_idx_region.get()?,
            base: r.dma0_idx.get()?,
            max: r.dma0_idx_max.get()?,
            skip,
        });
        Ok(dma)
    }
}
