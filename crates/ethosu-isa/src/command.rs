//! Every command of the three products, in one table.

use crate::fields::*;
use crate::fields85::*;
use crate::operand::{
    Address, Codec, Either, Fault, FieldValue, Stride, Visitor, all, fields, old_new, one, param, payload,
    signed_param, signed_payload,
};
use crate::product::{Product, Products};

/// Set in the first word of a command that a payload word follows.
pub(crate) const PAYLOAD_FOLLOWS: u32 = 1 << 14;

/// How an operand came out.
pub(crate) enum Refusal {
    /// No product has this code.
    Unknown,
    /// Another product has it.
    NotOnProduct(&'static str),
    /// The operand of this command is wrong.
    Operand(&'static str, Fault),
}

/// Makes the enumeration and the functions that go through it from the table below.
macro_rules! commands {
    ($(
        $opcode:literal $products:ident $name:literal $doc:literal
        $variant:ident $(( $type:ty = $codec:expr ))? $({ $field:ident: $ftype:ty = $fcodec:expr })?;
    )*) => {
        /// One command of a stream: an operation, or a register that is set for the operations after it.
        ///
        /// Variants are named after the hardware's commands without `NPU_OP_` and `NPU_SET_`. Those that end in `85` are the
        /// U85's form of a command whose operand has other fields there; a U55 or U65 stream never gives one. A register
        /// whose name ends in `M1` holds the value minus one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Command {
            $(
                #[doc = concat!("`", $name, "`: ", $doc)]
                $variant $(($type))? $({
                    #[doc = "The operand."]
                    $field: $ftype
                })?,
            )*
        }

        impl Command {
            /// The name in Arm's register interface headers, such as `NPU_SET_IFM_PAD_TOP`.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(commands!(@pattern $variant $(($type))? $({ $field })?) => $name,)*
                }
            }

            /// The code in bits 15..0 of the first word; bit 14 is set where a payload word follows.
            pub const fn code(&self) -> u16 {
                match self {
                    $(commands!(@pattern $variant $(($type))? $({ $field })?) => $opcode,)*
                }
            }

            /// Whether `product` has this command in this form.
            pub const fn exists_on(&self, product: Product) -> bool {
                match self {
                    $(commands!(@pattern $variant $(($type))? $({ $field })?) => Products::$products.has(product),)*
                }
            }

            pub(crate) fn read(code: u32, bits: u64, product: Product) -> Result<Command, Refusal> {
                match code {
                    $($opcode if Products::$products.has(product) => {
                        commands!(@read $variant, bits, product, $name $(, $codec)? $(, $field: $fcodec)?)
                    })*
                    _ => Err(Command::refusal(code)),
                }
            }

            #[cold]
            fn refusal(code: u32) -> Refusal {
                let known: &[(u32, &'static str)] = &[$(($opcode, $name)),*];
                match known.iter().find(|(opcode, _)| *opcode == code) {
                    Some((_, name)) => Refusal::NotOnProduct(name),
                    None => Refusal::Unknown,
                }
            }

            pub(crate) fn write(&self, product: Product) -> Result<u64, Fault> {
                match *self {
                    $(commands!(@bind operand $variant $(($type))? $({ $field })?) => {
                        commands!(@write operand, product $(, $codec)? $(, $fcodec)?)
                    })*
                }
            }

            pub(crate) fn visit(&self, visitor: Visitor<'_>) {
                match *self {
                    $(commands!(@bind operand $variant $(($type))? $({ $field })?) => {
                        commands!(@visit operand, visitor $(, $codec)? $(, $fcodec)?)
                    })*
                }
            }
        }

        /// Every row of the table, for tests that must not forget one.
        #[cfg(test)]
        pub(crate) const ROWS: &[(u32, Products, &str)] = &[$(($opcode, Products::$products, $name)),*];
    };
    (@pattern $variant:ident) => { Command::$variant };
    (@pattern $variant:ident ($type:ty)) => { Command::$variant(_) };
    (@pattern $variant:ident { $field:ident }) => { Command::$variant { .. } };
    (@bind $name:ident $variant:ident) => { Command::$variant };
    (@bind $name:ident $variant:ident ($type:ty)) => { Command::$variant($name) };
    (@bind $name:ident $variant:ident { $field:ident }) => { Command::$variant { $field: $name } };
    (@read $variant:ident, $bits:ident, $product:ident, $name:literal) => {
        match $bits {
            0 => Ok(Command::$variant),
            extra => Err(Refusal::Operand($name, Fault::Reserved(extra))),
        }
    };
    (@read $variant:ident, $bits:ident, $product:ident, $name:literal, $field:ident: $codec:expr) => {
        match $codec.read($bits, $product) {
            Ok($field) => Ok(Command::$variant { $field }),
            Err(fault) => Err(Refusal::Operand($name, fault)),
        }
    };
    (@read $variant:ident, $bits:ident, $product:ident, $name:literal, $codec:expr) => {
        match $codec.read($bits, $product) {
            Ok(value) => Ok(Command::$variant(value)),
            Err(fault) => Err(Refusal::Operand($name, fault)),
        }
    };
    (@write $operand:ident, $product:ident) => { Ok(0) };
    (@write $operand:ident, $product:ident, $codec:expr) => { $codec.write($operand, $product) };
    (@visit $operand:ident, $visitor:ident) => { {} };
    (@visit $operand:ident, $visitor:ident, $codec:expr) => { $codec.visit($operand, $visitor) };
}

// Code, products, name, meaning, variant and operand. A code with bit 14 set (0x4000) has a payload word.
//
// Sources: `cmd0_opcode`, `cmd1_opcode` and the structs of Vela 5.2.0's `ethos_u65_interface.hpp` (U55 and U65) and
// `ethos_u85_interface.hpp`; which of the first exist on U55 is from `ethosu55_interface.h` of Arm's core driver. The two
// differ in three places: the core driver gives DMA_WAIT four bits on U55 and U65 and Vela one (the wider is taken);
// its IFM2_BROADCAST lacks the height and lies one bit lower (Vela's is what programs use); and it gives the region
// registers of U55 a bit 15 for custom DMA units, which no known program sets (refused as reserved).
commands! {
    0x0000 ALL "NPU_OP_STOP" "End of the program." Stop { mask: u16 = param("mask", all(16)) };
    0x0001 ALL "NPU_OP_IRQ" "Raise the interrupt and go on." Irq { mask: u16 = param("mask", all(16)) };
    0x0002 U55_U65 "NPU_OP_CONV" "Convolution." Conv;
    0x0002 U85 "NPU_OP_CONV" "Convolution or matrix product." Conv85(Conv85 = fields());
    0x0003 ALL "NPU_OP_DEPTHWISE" "Depthwise convolution." Depthwise;
    0x0005 U55_U65 "NPU_OP_POOL" "Pooling." Pool(PoolMode = one("mode", 3));
    0x0005 U85 "NPU_OP_POOL" "Pooling." Pool85(PoolMode85 = one("mode", 3));
    0x0006 U55_U65 "NPU_OP_ELEMENTWISE" "Element-wise operation." Elementwise(ElementwiseMode = one("mode", 6));
    0x0006 U85 "NPU_OP_ELEMENTWISE" "Element-wise operation." Elementwise85(ElementwiseMode85 = one("mode", 6));
    0x0007 U85 "NPU_OP_RESIZE" "Resize." Resize85(ResizeMode85 = one("mode", 2));
    0x0010 ALL "NPU_OP_DMA_START" "Start a memory-to-memory transfer." DmaStart;
    0x0011 ALL "NPU_OP_DMA_WAIT" "Wait until at most so many transfers are under way."
        DmaWait { outstanding: u8 = param("outstanding", old_new(4, 2)) };
    0x0012 ALL "NPU_OP_KERNEL_WAIT" "Wait until at most so many operations are under way."
        KernelWait { outstanding: u8 = param("outstanding", old_new(2, 1)) };
    0x0013 ALL "NPU_OP_PMU_MASK" "Switch the event counters on or off." PmuMask { enable: bool = one("enable", 1) };

    0x0100 ALL "NPU_SET_IFM_PAD_TOP" "Rows of padding above the input." IfmPadTop(u8 = param("pad", all(7)));
    0x0101 ALL "NPU_SET_IFM_PAD_LEFT" "Columns of padding left of the input." IfmPadLeft(u8 = param("pad", all(7)));
    0x0102 ALL "NPU_SET_IFM_PAD_RIGHT" "Columns of padding right of the input." IfmPadRight(u8 = param("pad", all(8)));
    0x0103 ALL "NPU_SET_IFM_PAD_BOTTOM" "Rows of padding below the input." IfmPadBottom(u8 = param("pad", all(8)));
    0x0104 ALL "NPU_SET_IFM_DEPTH_M1" "Channels of the input, minus one." IfmDepthM1(u16 = param("depth_m1", all(16)));
    0x0105 U55_U65 "NPU_SET_IFM_PRECISION" "Type and layout of the input." IfmPrecision(IfmPrecision = fields());
    0x0105 U85 "NPU_SET_IFM_PRECISION" "Type and layout of the input." IfmPrecision85(IfmPrecision85 = fields());
    0x0107 ALL "NPU_SET_IFM_UPSCALE" "Upscaling of the input." IfmUpscale(Upscale = one("mode", 2));
    0x0108 U85 "NPU_SET_IFM_BROADCAST" "Broadcasting of the input." IfmBroadcast85(Broadcast85 = fields());
    0x0109 ALL "NPU_SET_IFM_ZERO_POINT" "Zero point of the input; its 16 bits have the sign of the input's type."
        IfmZeroPoint(u16 = Either("zero_point"));
    0x010A ALL "NPU_SET_IFM_WIDTH0_M1" "Columns of tiles 0 and 2 of the input, minus one."
        IfmWidth0M1(u16 = param("width_m1", all(16)));
    0x010B ALL "NPU_SET_IFM_HEIGHT0_M1" "Rows of tile 0 of the input, minus one."
        IfmHeight0M1(u16 = param("height_m1", all(16)));
    0x010C ALL "NPU_SET_IFM_HEIGHT1_M1" "Rows of tile 1 of the input, minus one."
        IfmHeight1M1(u16 = param("height_m1", all(16)));
    0x010D U55_U65 "NPU_SET_IFM_IB_END" "First bank of shared RAM after the input buffer."
        IfmIbEnd(u8 = param("ib_end", all(6)));
    0x010F ALL "NPU_SET_IFM_REGION" "Base pointer of the input; on U85 the chain buffer of a chained one."
        IfmRegion(u8 = param("region", all(3)));
    0x0111 ALL "NPU_SET_OFM_WIDTH_M1" "Columns of the output, minus one." OfmWidthM1(u16 = param("width_m1", all(16)));
    0x0112 ALL "NPU_SET_OFM_HEIGHT_M1" "Rows of the output, minus one." OfmHeightM1(u16 = param("height_m1", all(16)));
    0x0113 ALL "NPU_SET_OFM_DEPTH_M1" "Channels of the output, minus one." OfmDepthM1(u16 = param("depth_m1", all(16)));
    0x0114 U55_U65 "NPU_SET_OFM_PRECISION" "Type and layout of the output." OfmPrecision(OfmPrecision = fields());
    0x0114 U85 "NPU_SET_OFM_PRECISION" "Type and layout of the output." OfmPrecision85(OfmPrecision85 = fields());
    0x0115 ALL "NPU_SET_OFM_BLK_WIDTH_M1" "Columns of an output block, minus one."
        OfmBlkWidthM1(u8 = param("width_m1", old_new(6, 7)));
    0x0116 ALL "NPU_SET_OFM_BLK_HEIGHT_M1" "Rows of an output block, minus one."
        OfmBlkHeightM1(u8 = param("height_m1", old_new(5, 7)));
    0x0117 ALL "NPU_SET_OFM_BLK_DEPTH_M1" "Channels of an output block, minus one."
        OfmBlkDepthM1(u16 = param("depth_m1", old_new(7, 10)));
    0x0118 ALL "NPU_SET_OFM_ZERO_POINT" "Zero point of the output; its 16 bits have the sign of the output's type."
        OfmZeroPoint(u16 = Either("zero_point"));
    0x011A ALL "NPU_SET_OFM_WIDTH0_M1" "Columns of tiles 0 and 2 of the output, minus one."
        OfmWidth0M1(u16 = param("width_m1", all(16)));
    0x011B ALL "NPU_SET_OFM_HEIGHT0_M1" "Rows of tile 0 of the output, minus one."
        OfmHeight0M1(u16 = param("height_m1", all(16)));
    0x011C ALL "NPU_SET_OFM_HEIGHT1_M1" "Rows of tile 1 of the output, minus one."
        OfmHeight1M1(u16 = param("height_m1", all(16)));
    0x011F ALL "NPU_SET_OFM_REGION" "Base pointer of the output; on U85 the chain buffer of a chained one."
        OfmRegion(u8 = param("region", all(3)));
    0x0120 ALL "NPU_SET_KERNEL_WIDTH_M1" "Columns of the dilated kernel, minus one."
        KernelWidthM1(u16 = param("width_m1", all(16)));
    0x0121 ALL "NPU_SET_KERNEL_HEIGHT_M1" "Rows of the dilated kernel, minus one."
        KernelHeightM1(u16 = param("height_m1", all(16)));
    0x0122 ALL "NPU_SET_KERNEL_STRIDE" "Strides, dilations and weight order of the kernel."
        KernelStride(KernelStride = fields());
    0x0123 U65 "NPU_SET_PARALLEL_MODE" "How two cores share the work." ParallelMode(ParallelMode = one("mode", 1));
    0x0124 U55_U65 "NPU_SET_ACC_FORMAT" "The accumulators' type." AccFormat(AccFormat = one("format", 2));
    0x0124 U85 "NPU_SET_ACC_FORMAT" "The accumulators' type, source and micro-block." AccFormat85(AccFormat85 = fields());
    0x0125 U55_U65 "NPU_SET_ACTIVATION" "What the output stage applies." Activation(Activation = fields());
    0x0125 U85 "NPU_SET_ACTIVATION" "What the output stage applies." Activation85(Activation85 = fields());
    0x0126 ALL "NPU_SET_ACTIVATION_MIN" "Lowest output; its 16 bits have the sign of the output's type."
        ActivationMin(u16 = Either("clip_boundary"));
    0x0127 ALL "NPU_SET_ACTIVATION_MAX" "Highest output; its 16 bits have the sign of the output's type."
        ActivationMax(u16 = Either("clip_boundary"));
    0x0128 ALL "NPU_SET_WEIGHT_REGION" "Base pointer of the weights." WeightRegion(u8 = param("region", all(3)));
    0x0129 ALL "NPU_SET_SCALE_REGION" "Base pointer of the scale stream." ScaleRegion(u8 = param("region", all(3)));
    0x012A U85 "NPU_SET_RESIZE_X_SCALE_N_M1" "Numerator of the horizontal scale, minus one."
        ResizeXScaleNM1(u16 = param("scale_n_m1", all(11)));
    0x012B U85 "NPU_SET_RESIZE_Y_SCALE_N_M1" "Numerator of the vertical scale, minus one."
        ResizeYScaleNM1(u16 = param("scale_n_m1", all(11)));
    0x012C U85 "NPU_SET_RESIZE_X_OFFSET" "Where the first column's source lies, in units of 1 / numerator."
        ResizeXOffset(i16 = signed_param("offset", 12));
    0x012D U55_U65 "NPU_SET_AB_START" "First bank of shared RAM of the accumulators."
        AbStart(u8 = param("ab_start", all(6)));
    0x012D U85 "NPU_SET_RESIZE_Y_OFFSET" "Where the first row's source lies, in units of 1 / numerator."
        ResizeYOffset(i16 = signed_param("offset", 12));
    0x012E U85 "NPU_SET_WEIGHT_FORMAT" "How the weights are encoded." WeightFormat85(WeightFormat85 = fields());
    0x012F ALL "NPU_SET_BLOCKDEP" "How many blocks an operation may run ahead of the one before."
        BlockDep(u8 = param("blockdep", old_new(2, 3)));
    0x0130 U55_U65 "NPU_SET_DMA0_SRC_REGION" "Where a transfer reads." Dma0SrcRegion(DmaRegion = fields());
    0x0130 U85 "NPU_SET_DMA0_SRC_REGION" "Where a transfer reads." Dma0SrcRegion85(DmaSource85 = fields());
    0x0131 U55_U65 "NPU_SET_DMA0_DST_REGION" "Where a transfer writes." Dma0DstRegion(DmaRegion = fields());
    0x0131 U85 "NPU_SET_DMA0_DST_REGION" "Where a transfer writes." Dma0DstRegion85(DmaDestination85 = fields());
    0x0132 ALL "NPU_SET_DMA0_SIZE0" "Rows of a 2D or 3D transfer." Dma0Size0(u16 = param("size", all(16)));
    0x0133 ALL "NPU_SET_DMA0_SIZE1" "Planes of a 3D transfer." Dma0Size1(u16 = param("size", all(16)));
    0x0134 U85 "NPU_SET_DMA0_IDX_REGION" "Base pointer of the index array." Dma0IdxRegion(u8 = param("region", all(3)));
    0x0180 U55_U65 "NPU_SET_IFM2_BROADCAST" "Broadcasting of the second input." Ifm2Broadcast(Ifm2Broadcast = fields());
    0x0180 U85 "NPU_SET_IFM2_BROADCAST" "Broadcasting of the second input." Ifm2Broadcast85(Broadcast85 = fields());
    0x0181 U55_U65 "NPU_SET_IFM2_SCALAR" "The second input where it is a scalar; its 16 bits have the sign of its type."
        Ifm2Scalar(u16 = Either("scalar"));
    0x0185 U55_U65 "NPU_SET_IFM2_PRECISION" "Type and layout of the second input." Ifm2Precision(Ifm2Precision = fields());
    0x0185 U85 "NPU_SET_IFM2_PRECISION" "Type and layout of the second input." Ifm2Precision85(IfmPrecision85 = fields());
    0x0189 ALL "NPU_SET_IFM2_ZERO_POINT" "Zero point of the second input; its 16 bits have the sign of its type."
        Ifm2ZeroPoint(u16 = Either("zero_point"));
    0x018A ALL "NPU_SET_IFM2_WIDTH0_M1" "Columns of tiles 0 and 2 of the second input, minus one."
        Ifm2Width0M1(u16 = param("width_m1", all(16)));
    0x018B ALL "NPU_SET_IFM2_HEIGHT0_M1" "Rows of tile 0 of the second input, minus one."
        Ifm2Height0M1(u16 = param("height_m1", all(16)));
    0x018C ALL "NPU_SET_IFM2_HEIGHT1_M1" "Rows of tile 1 of the second input, minus one."
        Ifm2Height1M1(u16 = param("height_m1", all(16)));
    0x018D U55_U65 "NPU_SET_IFM2_IB_START" "First bank of shared RAM of the second input's buffer."
        Ifm2IbStart(u8 = param("ib_start", all(6)));
    0x018F ALL "NPU_SET_IFM2_REGION" "Base pointer of the second input; on U85 the chain buffer of a chained one."
        Ifm2Region(u8 = param("region", all(3)));

    0x4000 ALL "NPU_SET_IFM_BASE0" "Address of tile 0 of the input." IfmBase0(u64 = Address("addr"));
    0x4001 ALL "NPU_SET_IFM_BASE1" "Address of tile 1 of the input." IfmBase1(u64 = Address("addr"));
    0x4002 ALL "NPU_SET_IFM_BASE2" "Address of tile 2 of the input." IfmBase2(u64 = Address("addr"));
    0x4003 ALL "NPU_SET_IFM_BASE3" "Address of tile 3 of the input." IfmBase3(u64 = Address("addr"));
    0x4004 ALL "NPU_SET_IFM_STRIDE_X" "Bytes between columns of the input." IfmStrideX(i64 = Stride("stride"));
    0x4005 ALL "NPU_SET_IFM_STRIDE_Y" "Bytes between rows of the input." IfmStrideY(i64 = Stride("stride"));
    0x4006 ALL "NPU_SET_IFM_STRIDE_C" "Bytes between bricks of the input." IfmStrideC(i64 = Stride("stride"));
    0x4010 ALL "NPU_SET_OFM_BASE0" "Address of tile 0 of the output." OfmBase0(u64 = Address("addr"));
    0x4011 ALL "NPU_SET_OFM_BASE1" "Address of tile 1 of the output." OfmBase1(u64 = Address("addr"));
    0x4012 ALL "NPU_SET_OFM_BASE2" "Address of tile 2 of the output." OfmBase2(u64 = Address("addr"));
    0x4013 ALL "NPU_SET_OFM_BASE3" "Address of tile 3 of the output." OfmBase3(u64 = Address("addr"));
    0x4014 ALL "NPU_SET_OFM_STRIDE_X" "Bytes between columns of the output." OfmStrideX(i64 = Stride("stride"));
    0x4015 ALL "NPU_SET_OFM_STRIDE_Y" "Bytes between rows of the output." OfmStrideY(i64 = Stride("stride"));
    0x4016 ALL "NPU_SET_OFM_STRIDE_C" "Bytes between bricks of the output." OfmStrideC(i64 = Stride("stride"));
    0x4020 ALL "NPU_SET_WEIGHT_BASE" "Address of the first weight stream." WeightBase(u64 = Address("addr"));
    0x4021 ALL "NPU_SET_WEIGHT_LENGTH" "Bytes of the first weight stream." WeightLength(u32 = payload("length", 32));
    0x4022 ALL "NPU_SET_SCALE_BASE" "Address of the first scale stream." ScaleBase(u64 = Address("addr"));
    0x4023 ALL "NPU_SET_SCALE_LENGTH" "Bytes of the first scale stream." ScaleLength(u32 = payload("length", 20));
    0x4024 U55_U65 "NPU_SET_OFM_SCALE" "Scale of the output." OfmScale(ScaleShift = fields());
    0x4024 U85 "NPU_SET_OFM_SCALE" "Scale and rounding of the output." OfmScale85(OfmScale85 = fields());
    0x4025 U55_U65 "NPU_SET_OPA_SCALE" "Scale of operand A, or of the one operand that is scaled with 32 bits."
        OpaScale(ScaleShift = fields());
    0x4025 U85 "NPU_SET_IFM_SCALE" "Scale and rounding of the input." IfmScale85(IfmScale85 = fields());
    0x4026 U55_U65 "NPU_SET_OPB_SCALE" "Scale of operand B." OpbScale(u16 = payload("scale", 16));
    0x4026 U85 "NPU_SET_IFM2_SCALE" "Scale and rounding of the second input." Ifm2Scale85(IfmScale85 = fields());
    0x4027 U85 "NPU_SET_OP_SCALAR" "The operand that is a scalar." OpScalar(i32 = signed_payload("scalar"));
    0x4030 ALL "NPU_SET_DMA0_SRC" "Address a transfer reads from." Dma0Src(u64 = Address("addr"));
    0x4031 ALL "NPU_SET_DMA0_DST" "Address a transfer writes to." Dma0Dst(u64 = Address("addr"));
    0x4032 ALL "NPU_SET_DMA0_LEN" "Bytes of a transfer, or of each of its rows." Dma0Len(u64 = Address("length"));
    0x4033 U65 "NPU_SET_DMA0_SKIP0" "Bytes skipped after each row." Dma0Skip0(i64 = Stride("skip"));
    0x4034 U65 "NPU_SET_DMA0_SKIP1" "Bytes skipped after each plane." Dma0Skip1(i64 = Stride("skip"));
    0x4033 U85 "NPU_SET_DMA0_SRC_STRIDE0" "Bytes between rows of the source." Dma0SrcStride0(i64 = Stride("stride"));
    0x4034 U85 "NPU_SET_DMA0_SRC_STRIDE1" "Bytes between planes of the source." Dma0SrcStride1(i64 = Stride("stride"));
    0x4035 U85 "NPU_SET_DMA0_DST_STRIDE0" "Bytes between rows of the destination."
        Dma0DstStride0(i64 = Stride("stride"));
    0x4036 U85 "NPU_SET_DMA0_DST_STRIDE1" "Bytes between planes of the destination."
        Dma0DstStride1(i64 = Stride("stride"));
    0x4037 U85 "NPU_SET_DMA0_IDX" "Address of the index array." Dma0Idx(u64 = Address("addr"));
    0x4038 U85 "NPU_SET_DMA0_IDX_MAX" "The largest index allowed." Dma0IdxMax(u32 = payload("idx_max", 31));
    0x4039 U85 "NPU_SET_DMA0_IDX_SKIP1" "Bytes skipped in the index array after each plane."
        Dma0IdxSkip1(i64 = Stride("skip"));
    0x4080 ALL "NPU_SET_IFM2_BASE0" "Address of tile 0 of the second input." Ifm2Base0(u64 = Address("addr"));
    0x4081 ALL "NPU_SET_IFM2_BASE1" "Address of tile 1 of the second input." Ifm2Base1(u64 = Address("addr"));
    0x4082 ALL "NPU_SET_IFM2_BASE2" "Address of tile 2 of the second input." Ifm2Base2(u64 = Address("addr"));
    0x4083 ALL "NPU_SET_IFM2_BASE3" "Address of tile 3 of the second input." Ifm2Base3(u64 = Address("addr"));
    0x4084 ALL "NPU_SET_IFM2_STRIDE_X" "Bytes between columns of the second input." Ifm2StrideX(i64 = Stride("stride"));
    0x4085 ALL "NPU_SET_IFM2_STRIDE_Y" "Bytes between rows of the second input." Ifm2StrideY(i64 = Stride("stride"));
    0x4086 ALL "NPU_SET_IFM2_STRIDE_C" "Bytes between bricks of the second input." Ifm2StrideC(i64 = Stride("stride"));
    0x4090 U65_U85 "NPU_SET_WEIGHT1_BASE" "Address of the second weight stream." Weight1Base(u64 = Address("addr"));
    0x4091 U65_U85 "NPU_SET_WEIGHT1_LENGTH" "Bytes of the second weight stream." Weight1Length(u32 = payload("length", 32));
    0x4092 U65 "NPU_SET_SCALE1_BASE" "Address of the second scale stream." Scale1Base(u64 = Address("addr"));
    0x4093 U65 "NPU_SET_SCALE1_LENGTH" "Bytes of the second scale stream." Scale1Length(u32 = payload("length", 20));
    0x4092 U85 "NPU_SET_WEIGHT2_BASE" "Address of the third weight stream." Weight2Base(u64 = Address("addr"));
    0x4093 U85 "NPU_SET_WEIGHT2_LENGTH" "Bytes of the third weight stream." Weight2Length(u32 = payload("length", 32));
    0x4094 U85 "NPU_SET_WEIGHT3_BASE" "Address of the fourth weight stream." Weight3Base(u64 = Address("addr"));
    0x4095 U85 "NPU_SET_WEIGHT3_LENGTH" "Bytes of the fourth weight stream." Weight3Length(u32 = payload("length", 32));
    0x4096 U85 "NPU_SET_RESIZE_X_STEP" "Horizontal steps of a resize." ResizeXStep(ResizeStep85 = fields());
    0x4097 U85 "NPU_SET_RESIZE_Y_STEP" "Vertical steps of a resize." ResizeYStep(ResizeStep85 = fields());
    0x40A0 U55 "NPU_SET_USER_DEFINED0" "Register 0 of a custom DMA unit." UserDefined0(u32 = payload("value", 32));
    0x40A1 U55 "NPU_SET_USER_DEFINED1" "Register 1 of a custom DMA unit." UserDefined1(u32 = payload("value", 32));
    0x40A2 U55 "NPU_SET_USER_DEFINED2" "Register 2 of a custom DMA unit." UserDefined2(u32 = payload("value", 32));
    0x40A3 U55 "NPU_SET_USER_DEFINED3" "Register 3 of a custom DMA unit." UserDefined3(u32 = payload("value", 32));
    0x40A4 U55 "NPU_SET_USER_DEFINED4" "Register 4 of a custom DMA unit." UserDefined4(u32 = payload("value", 32));
    0x40A5 U55 "NPU_SET_USER_DEFINED5" "Register 5 of a custom DMA unit." UserDefined5(u32 = payload("value", 32));
    0x40A6 U55 "NPU_SET_USER_DEFINED6" "Register 6 of a custom DMA unit." UserDefined6(u32 = payload("value", 32));
    0x40A7 U55 "NPU_SET_USER_DEFINED7" "Register 7 of a custom DMA unit." UserDefined7(u32 = payload("value", 32));
    0x4100 U85 "NPU_OP_BRANCH" "Go on elsewhere in the stream." Branch85(Branch85 = fields());
}

impl Command {
    /// Whether this starts work, as against setting a register for later.
    pub const fn is_operation(&self) -> bool {
        matches!(self.code(), 0..0x100) || matches!(self, Command::Branch85(_))
    }

    /// Calls `visit` with the name and value of each field, in the order of its bits.
    pub fn for_each_field(&self, mut visit: impl FnMut(&'static str, FieldValue)) {
        self.visit(&mut visit);
    }
}
