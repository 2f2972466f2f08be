//! The registers of U55 and U65 that an operation consults.

use ethosu_isa::{
    AccFormat, Activation, ActivationFunction, Command, DmaRegion, ElementSize, Ifm2Broadcast, Ifm2Precision,
    IfmPrecision, KernelStride, OfmPrecision, ParallelMode, ScaleShift, Upscale,
};

use super::plus_one;
use super::registers::{Register, registers, stream};
use super::signed_16;
use crate::clock::{self, Schedule};
use crate::map::Extent;

registers! {
    ifm_pad_top: u8 = IfmPadTop, "IFM_PAD_TOP";
    ifm_pad_left: u8 = IfmPadLeft, "IFM_PAD_LEFT";
    ifm_pad_right: u8 = IfmPadRight, "IFM_PAD_RIGHT";
    ifm_pad_bottom: u8 = IfmPadBottom, "IFM_PAD_BOTTOM";
    ifm_depth_m1: u16 = IfmDepthM1, "IFM_DEPTH_M1";
    ifm_precision: IfmPrecision = IfmPrecision, "IFM_PRECISION";
    ifm_upscale: Upscale = IfmUpscale, "IFM_UPSCALE";
    ifm_zero_point: u16 = IfmZeroPoint, "IFM_ZERO_POINT";
    ifm_width0_m1: u16 = IfmWidth0M1, "IFM_WIDTH0_M1";
    ifm_height0_m1: u16 = IfmHeight0M1, "IFM_HEIGHT0_M1";
    ifm_height1_m1: u16 = IfmHeight1M1, "IFM_HEIGHT1_M1";
    ifm_ib_end: u8 = IfmIbEnd, "IFM_IB_END";
    ifm_region: u8 = IfmRegion, "IFM_REGION";
    ofm_width_m1: u16 = OfmWidthM1, "OFM_WIDTH_M1";
    ofm_height_m1: u16 = OfmHeightM1, "OFM_HEIGHT_M1";
    ofm_depth_m1: u16 = OfmDepthM1, "OFM_DEPTH_M1";
    ofm_precision: OfmPrecision = OfmPrecision, "OFM_PRECISION";
    ofm_blk_width_m1: u8 = OfmBlkWidthM1, "OFM_BLK_WIDTH_M1";
    ofm_blk_height_m1: u8 = OfmBlkHeightM1, "OFM_BLK_HEIGHT_M1";
    ofm_blk_depth_m1: u16 = OfmBlkDepthM1, "OFM_BLK_DEPTH_M1";
    ofm_zero_point: u16 = OfmZeroPoint, "OFM_ZERO_POINT";
    ofm_width0_m1: u16 = OfmWidth0M1, "OFM_WIDTH0_M1";
    ofm_height0_m1: u16 = OfmHeight0M1, "OFM_HEIGHT0_M1";
    ofm_height1_m1: u16 = OfmHeight1M1, "OFM_HEIGHT1_M1";
    ofm_region: u8 = OfmRegion, "OFM_REGION";
    kernel_width_m1: u16 = KernelWidthM1, "KERNEL_WIDTH_M1";
    kernel_height_m1: u16 = KernelHeightM1, "KERNEL_HEIGHT_M1";
    kernel_stride: KernelStride = KernelStride, "KERNEL_STRIDE";
    parallel_mode: ParallelMode = ParallelMode, "PARALLEL_MODE";
    acc_format: AccFormat = AccFormat, "ACC_FORMAT";
    activation: Activation = Activation, "ACTIVATION";
    activation_min: u16 = ActivationMin, "ACTIVATION_MIN";
    activation_max: u16 = ActivationMax, "ACTIVATION_MAX";
    weight_region: u8 = WeightRegion, "WEIGHT_REGION";
    scale_region: u8 = ScaleRegion, "SCALE_REGION";
    ab_start: u8 = AbStart, "AB_START";
    blockdep: u8 = BlockDep, "BLOCKDEP";
    dma0_src_region: DmaRegion = Dma0SrcRegion, "DMA0_SRC_REGION";
    dma0_dst_region: DmaRegion = Dma0DstRegion, "DMA0_DST_REGION";
    dma0_size0: u16 = Dma0Size0, "DMA0_SIZE0";
    dma0_size1: u16 = Dma0Size1, "DMA0_SIZE1";
    ifm2_broadcast: Ifm2Broadcast = Ifm2Broadcast, "IFM2_BROADCAST";
    ifm2_scalar: u16 = Ifm2Scalar, "IFM2_SCALAR";
    ifm2_precision: Ifm2Precision = Ifm2Precision, "IFM2_PRECISION";
    ifm2_zero_point: u16 = Ifm2ZeroPoint, "IFM2_ZERO_POINT";
    ifm2_width0_m1: u16 = Ifm2Width0M1, "IFM2_WIDTH0_M1";
    ifm2_height0_m1: u16 = Ifm2Height0M1, "IFM2_HEIGHT0_M1";
    ifm2_height1_m1: u16 = Ifm2Height1M1, "IFM2_HEIGHT1_M1";
    ifm2_ib_start: u8 = Ifm2IbStart, "IFM2_IB_START";
    ifm2_region: u8 = Ifm2Region, "IFM2_REGION";
    ifm_base0: u64 = IfmBase0, "IFM_BASE0";
    ifm_base1: u64 = IfmBase1, "IFM_BASE1";
    ifm_base2: u64 = IfmBase2, "IFM_BASE2";
    ifm_base3: u64 = IfmBase3, "IFM_BASE3";
    ifm_stride_x: i64 = IfmStrideX, "IFM_STRIDE_X";
    ifm_stride_y: i64 = IfmStrideY, "IFM_STRIDE_Y";
    ifm_stride_c: i64 = IfmStrideC, "IFM_STRIDE_C";
    ofm_base0: u64 = OfmBase0, "OFM_BASE0";
    ofm_base1: u64 = OfmBase1, "OFM_BASE1";
    ofm_base2: u64 = OfmBase2, "OFM_BASE2";
    ofm_base3: u64 = OfmBase3, "OFM_BASE3";
    ofm_stride_x: i64 = OfmStrideX, "OFM_STRIDE_X";
    ofm_stride_y: i64 = OfmStrideY, "OFM_STRIDE_Y";
    ofm_stride_c: i64 = OfmStrideC, "OFM_STRIDE_C";
    weight_base: u64 = WeightBase, "WEIGHT_BASE";
    weight_length: u32 = WeightLength, "WEIGHT_LENGTH";
    scale_base: u64 = ScaleBase, "SCALE_BASE";
    scale_length: u32 = ScaleLength, "SCALE_LENGTH";
    ofm_scale: ScaleShift = OfmScale, "OFM_SCALE";
    opa_scale: ScaleShift = OpaScale, "OPA_SCALE";
    opb_scale: u16 = OpbScale, "OPB_SCALE";
    dma0_src: u64 = Dma0Src, "DMA0_SRC";
    dma0_dst: u64 = Dma0Dst, "DMA0_DST";
    dma0_len: u64 = Dma0Len, "DMA0_LEN";
    dma0_skip0: i64 = Dma0Skip0, "DMA0_SKIP0";
    dma0_skip1: i64 = Dma0Skip1, "DMA0_SKIP1";
    ifm2_base0: u64 = Ifm2Base0, "IFM2_BASE0";
    ifm2_base1: u64 = Ifm2Base1, "IFM2_BASE1";
    ifm2_base2: u64 = Ifm2Base2, "IFM2_BASE2";
    ifm2_base3: u64 = Ifm2Base3, "IFM2_BASE3";
    ifm2_stride_x: i64 = Ifm2StrideX, "IFM2_STRIDE_X";
    ifm2_stride_y: i64 = Ifm2StrideY, "IFM2_STRIDE_Y";
    ifm2_stride_c: i64 = Ifm2StrideC, "IFM2_STRIDE_C";
    weight1_base: u64 = Weight1Base, "WEIGHT1_BASE";
    weight1_length: u32 = Weight1Length, "WEIGHT1_LENGTH";
    scale1_base: u64 = Scale1Base, "SCALE1_BASE";
    scale1_length: u32 = Scale1Length, "SCALE1_LENGTH";
}

impl Registers {
    /// How the operation that they describe is carried out.
    pub(super) fn schedule(&self) -> Schedule {
        Schedule {
            block: self.block(),
            microblock: None,
            wide_accumulators: self.acc_format.peek() == Some(AccFormat::Int40),
            part_kernel_first: self.kernel_stride.peek().is_some_and(|stride| stride.part_kernel_first),
            sparse_weights: false,
            activation: self.activation_class(),
            weight_streams: [
                stream(&self.weight_base, &self.weight_length),
                stream(&self.weight1_base, &self.weight1_length),
                (0, 0),
                (0, 0),
            ],
            scale_streams: [
                stream(&self.scale_base, &self.scale_length),
                stream(&self.scale1_base, &self.scale1_length),
            ],
            banks: [&self.ifm_ib_end, &self.ifm2_ib_start, &self.ab_start].map(Register::peek),
            block_dependency: self.blockdep.peek(),
            parallel: self.parallel_mode.peek() == Some(ParallelMode::DualCoreDepth),
            ..Schedule::default()
        }
    }

    fn block(&self) -> Option<Extent> {
        Some(Extent {
            height: usize::from(self.ofm_blk_height_m1.peek()?) + 1,
            width: usize::from(self.ofm_blk_width_m1.peek()?) + 1,
            depth: plus_one(self.ofm_blk_depth_m1.peek()?),
        })
    }

    fn activation_class(&self) -> clock::Activation {
        let (Some(activation), Some(precision)) = (self.activation.peek(), self.ofm_precision.peek()) else {
            return clock::Activation::None;
        };
        if activation.function != ActivationFunction::None {
            return clock::Activation::Table;
        }
        let (Some(low), Some(high)) = (self.activation_min.peek(), self.activation_max.peek()) else {
            return clock::Activation::None;
        };
        let bits = match precision.size {
            ElementSize::Bits8 => 8,
            ElementSize::Bits16 => 16,
            // Wider values aren't clamped.
            ElementSize::Bits32 | ElementSize::Bits64 => return clock::Activation::None,
        };
        let lowest = if precision.signed { -(1i64 << (bits - 1)) } else { 0 };
        let bounds = (signed_16(low, precision.signed), signed_16(high, precision.signed));
        if bounds == (lowest, lowest + (1 << bits) - 1) {
            clock::Activation::None
        } else {
            clock::Activation::Clamp
        }
    }
}
