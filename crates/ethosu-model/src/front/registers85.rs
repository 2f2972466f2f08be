//! The registers of U85 that an operation consults.

use ethosu_isa::{
    AccFormat85, Accelerator, Accumulator85, Activation85, Broadcast85, Command, DmaDestination85,
    DmaSource85, IfmPrecision85, IfmScale85, KernelStride, OfmPrecision85, OfmScale85, ResizeStep85, Upscale,
    WeightFormat85,
};

use super::plus_one;
use super::registers::{Register, registers, stream};
use crate::clock::Schedule;
use crate::map::Extent;

registers! {
    ifm_pad_top: u8 = IfmPadTop, "IFM_PAD_TOP";
    ifm_pad_left: u8 = IfmPadLeft, "IFM_PAD_LEFT";
    ifm_pad_right: u8 = IfmPadRight, "IFM_PAD_RIGHT";
    ifm_pad_bottom: u8 = IfmPadBottom, "IFM_PAD_BOTTOM";
    ifm_depth_m1: u16 = IfmDepthM1, "IFM_DEPTH_M1";
    ifm_precision: IfmPrecision85 = IfmPrecision85, "IFM_PRECISION";
    ifm_upscale: Upscale = IfmUpscale, "IFM_UPSCALE";
    ifm_broadcast: Broadcast85 = IfmBroadcast85, "IFM_BROADCAST";
    ifm_zero_point: u16 = IfmZeroPoint, "IFM_ZERO_POINT";
    ifm_width0_m1: u16 = IfmWidth0M1, "IFM_WIDTH0_M1";
    ifm_height0_m1: u16 = IfmHeight0M1, "IFM_HEIGHT0_M1";
    ifm_height1_m1: u16 = IfmHeight1M1, "IFM_HEIGHT1_M1";
    ifm_region: u8 = IfmRegion, "IFM_REGION";
    ofm_width_m1: u16 = OfmWidthM1, "OFM_WIDTH_M1";
    ofm_height_m1: u16 = OfmHeightM1, "OFM_HEIGHT_M1";
    ofm_depth_m1: u16 = OfmDepthM1, "OFM_DEPTH_M1";
    ofm_precision: OfmPrecision85 = OfmPrecision85, "OFM_PRECISION";
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
    acc_format: AccFormat85 = AccFormat85, "ACC_FORMAT";
    activation: Activation85 = Activation85, "ACTIVATION";
    activation_min: u16 = ActivationMin, "ACTIVATION_MIN";
    activation_max: u16 = ActivationMax, "ACTIVATION_MAX";
    weight_region: u8 = WeightRegion, "WEIGHT_REGION";
    scale_region: u8 = ScaleRegion, "SCALE_REGION";
    resize_x_scale_n_m1: u16 = ResizeXScaleNM1, "RESIZE_X_SCALE_N_M1";
    resize_y_scale_n_m1: u16 = ResizeYScaleNM1, "RESIZE_Y_SCALE_N_M1";
    resize_x_offset: i16 = ResizeXOffset, "RESIZE_X_OFFSET";
    resize_y_offset: i16 = ResizeYOffset, "RESIZE_Y_OFFSET";
    resize_x_step: ResizeStep85 = ResizeXStep, "RESIZE_X_STEP";
    resize_y_step: ResizeStep85 = ResizeYStep, "RESIZE_Y_STEP";
    weight_format: WeightFormat85 = WeightFormat85, "WEIGHT_FORMAT";
    blockdep: u8 = BlockDep, "BLOCKDEP";
    dma0_src_region: DmaSource85 = Dma0SrcRegion85, "DMA0_SRC_REGION";
    dma0_dst_region: DmaDestination85 = Dma0DstRegion85, "DMA0_DST_REGION";
    dma0_size0: u16 = Dma0Size0, "DMA0_SIZE0";
    dma0_size1: u16 = Dma0Size1, "DMA0_SIZE1";
    dma0_idx_region: u8 = Dma0IdxRegion, "DMA0_IDX_REGION";
    ifm2_broadcast: Broadcast85 = Ifm2Broadcast85, "IFM2_BROADCAST";
    ifm2_precision: IfmPrecision85 = Ifm2Precision85, "IFM2_PRECISION";
    ifm2_zero_point: u16 = Ifm2ZeroPoint, "IFM2_ZERO_POINT";
    ifm2_width0_m1: u16 = Ifm2Width0M1, "IFM2_WIDTH0_M1";
    ifm2_height0_m1: u16 = Ifm2Height0M1, "IFM2_HEIGHT0_M1";
    ifm2_height1_m1: u16 = Ifm2Height1M1, "IFM2_HEIGHT1_M1";
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
    weight1_base: u64 = Weight1Base, "WEIGHT1_BASE";
    weight1_length: u32 = Weight1Length, "WEIGHT1_LENGTH";
    weight2_base: u64 = Weight2Base, "WEIGHT2_BASE";
    weight2_length: u32 = Weight2Length, "WEIGHT2_LENGTH";
    weight3_base: u64 = Weight3Base, "WEIGHT3_BASE";
    weight3_length: u32 = Weight3Length, "WEIGHT3_LENGTH";
    scale_base: u64 = ScaleBase, "SCALE_BASE";
    scale_length: u32 = ScaleLength, "SCALE_LENGTH";
    ofm_scale: OfmScale85 = OfmScale85, "OFM_SCALE";
    ifm_scale: IfmScale85 = IfmScale85, "IFM_SCALE";
    ifm2_scale: IfmScale85 = Ifm2Scale85, "IFM2_SCALE";
    op_scalar: i32 = OpScalar, "OP_SCALAR";
    dma0_src: u64 = Dma0Src, "DMA0_SRC";
    dma0_dst: u64 = Dma0Dst, "DMA0_DST";
    dma0_len: u64 = Dma0Len, "DMA0_LEN";
    dma0_src_stride0: i64 = Dma0SrcStride0, "DMA0_SRC_STRIDE0";
    dma0_src_stride1: i64 = Dma0SrcStride1, "DMA0_SRC_STRIDE1";
    dma0_dst_stride0: i64 = Dma0DstStride0, "DMA0_DST_STRIDE0";
    dma0_dst_stride1: i64 = Dma0DstStride1, "DMA0_DST_STRIDE1";
    dma0_idx: u64 = Dma0Idx, "DMA0_IDX";
    dma0_idx_max: u32 = Dma0IdxMax, "DMA0_IDX_MAX";
    dma0_idx_skip1: i64 = Dma0IdxSkip1, "DMA0_IDX_SKIP1";
    ifm2_base0: u64 = Ifm2Base0, "IFM2_BASE0";
    ifm2_base1: u64 = Ifm2Base1, "IFM2_BASE1";
    ifm2_base2: u64 = Ifm2Base2, "IFM2_BASE2";
    ifm2_base3: u64 = Ifm2Base3, "IFM2_BASE3";
    ifm2_stride_x: i64 = Ifm2StrideX, "IFM2_STRIDE_X";
    ifm2_stride_y: i64 = Ifm2StrideY, "IFM2_STRIDE_Y";
    ifm2_stride_c: i64 = Ifm2StrideC, "IFM2_STRIDE_C";
}

impl Registers {
    /// How the operation that they describe is carried out.
    pub(super) fn schedule(&self, accelerator: Accelerator) -> Schedule {
        let accumulators = self.acc_format.peek();
        Schedule {
            block: self.block(),
            microblock: accumulators.and_then(|format| accelerator.ofm_ublock_for(format.microblock)),
            wide_accumulators: accumulators.is_some_and(|format| format.format == Accumulator85::Int48),
            part_kernel_first: self.kernel_stride.peek().is_some_and(|stride| stride.part_kernel_first),
            sparse_weights: self.weight_format.peek().is_some_and(|format| format.sparse),
            weight_streams: [
                stream(&self.weight_base, &self.weight_length),
                stream(&self.weight1_base, &self.weight1_length),
                stream(&self.weight2_base, &self.weight2_length),
                stream(&self.weight3_base, &self.weight3_length),
            ],
            scale_streams: [stream(&self.scale_base, &self.scale_length), (0, 0)],
            block_dependency: self.blockdep.peek(),
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
}
