//! The operands that only the U85 knows. Source: Vela 5.2.0's `ethos_u85_interface.hpp`, which agrees bit for bit with Arm's
//! core driver's `ethosu85_interface.h`.
//!
//! Bit positions are those of the parameter (0..15) and, above it, of the payload (16..47).

use crate::fields::{DmaStride, ElementSize, Layout, OfmScaleMode};
use crate::operand::{Fault, named, packed, packed_impl};
use crate::product::Product;

named! {
    /// Where a feature map lives on U85.
    pub enum Storage85 {
        /// In memory, in up to two by two tiles.
        Tile2x2 = 0 "tile-2x2",
        /// In memory, in up to three tiles one above the other.
        Tile3x1 = 1 "tile-3x1",
        /// In a chain buffer: it goes from one operation straight to the next.
        Chained = 2 "chained",
        /// Nowhere: a scalar.
        None = 3 "none",
    }
}

packed! {
    /// `NPU_SET_IFM_PRECISION` and `NPU_SET_IFM2_PRECISION` on U85.
    pub struct IfmPrecision85 {
        /// Elements are two's complement.
        signed: bool = 0, 1;
        /// Bits in an element.
        size: ElementSize = 2, 2;
        /// How it lies in memory.
        layout: Layout = 6, 2;
        /// Where it lives.
        storage: Storage85 = 14, 2;
    }
}

named! {
    /// An axis along which the output is flipped (U85).
    pub enum Reverse85 {
        /// No axis.
        None = 0 "none",
        /// Rows.
        H = 1 "H",
        /// Columns.
        W = 2 "W",
        /// Channels.
        C = 3 "C",
    }
}

named! {
    /// The order in which the output's axes are stored (U85).
    pub enum Transpose85 {
        /// As computed.
        Hwc = 0 "HWC",
        /// Columns, rows, channels.
        Whc = 1 "WHC",
        /// Rows, channels, columns.
        Hcw = 2 "HCW",
        /// Columns, channels, rows.
        Wch = 3 "WCH",
        /// Channels, rows, columns.
        Chw = 6 "CHW",
        /// Channels, columns, rows.
        Cwh = 7 "CWH",
    }
}

packed! {
    /// `NPU_SET_OFM_PRECISION` on U85.
    pub struct OfmPrecision85 {
        /// Elements are two's complement.
        signed: bool = 0, 1;
        /// Bits in an element.
        size: ElementSize = 1, 2;
        /// How it lies in memory.
        layout: Layout = 6, 2;
        /// Where the scale comes from.
        scale_mode: OfmScaleMode = 8, 1;
        /// The axis that is flipped.
        reverse: Reverse85 = 9, 2;
        /// The order of the axes in memory.
        transpose: Transpose85 = 11, 3;
        /// Where it lives.
        storage: Storage85 = 14, 2;
    }
}

named! {
    /// How the output's scaled value is rounded on U85. The numbering isn't that of U55 and U65.
    pub enum OfmRounding85 {
        /// Twice, as TensorFlow Lite's reference kernels do.
        Double = 0 "double",
        /// Once, ties towards positive infinity.
        Natural = 1 "natural",
        /// Twice, the first time always upwards.
        DoubleAsymmetric = 2 "double-asymmetric",
        /// Once, ties away from zero.
        Symmetric = 3 "symmetric",
        /// Towards zero.
        TruncateToZero = 4 "truncate-to-zero",
        /// Towards negative infinity.
        TruncateToLower = 5 "truncate-to-lower",
    }
}

named! {
    /// How an operand's scaled value is rounded on U85.
    pub enum IfmRounding85 {
        /// Twice, as TensorFlow Lite's reference kernels do.
        Double = 0 "double",
        /// Once, ties towards positive infinity.
        Natural = 1 "natural",
    }
}

packed! {
    /// `NPU_SET_OFM_SCALE` on U85. The rounding counts also where the scale comes from the scale stream.
    pub struct OfmScale85 {
        /// The multiplier, 31 bits.
        scale: u32 = 16, 31;
        /// Bits to shift right by, 0 to 63.
        shift: u8 = 0, 6;
        /// How far above its usual place the first of two roundings happens.
        double_round: u8 = 6, 5;
        /// How it is rounded.
        rounding: OfmRounding85 = 13, 3;
    }
}

packed! {
    /// `NPU_SET_IFM_SCALE` and `NPU_SET_IFM2_SCALE` (U85).
    pub struct IfmScale85 {
        /// The multiplier, 31 bits.
        scale: u32 = 16, 31;
        /// Bits to shift right by, 0 to 63.
        shift: u8 = 0, 6;
        /// How far above its usual place the first of two roundings happens.
        double_round: u8 = 6, 5;
        /// How it is rounded.
        rounding: IfmRounding85 = 13, 1;
    }
}

named! {
    /// The accumulators of the U85.
    pub enum Accumulator85 {
        /// 32-bit integers; the scale stream has 32-bit biases and 31-bit scales.
        Int32 = 0 "int32",
        /// 48-bit integers; the scale stream has 48-bit biases and 15-bit scales.
        Int48 = 1 "int48",
    }
}

named! {
    /// What the accumulators start from (U85).
    pub enum AccInput85 {
        /// Zero.
        Reset = 0 "reset",
        /// What the operation before left there.
        Keep = 1 "keep",
        /// The second input.
        Ifm2 = 2 "IFM2",
    }
}

named! {
    /// The micro-block of the output that the MACs compute at once, rows by columns (U85). The depth follows from the
    /// number of MACs.
    pub enum Microblock {
        /// One by one.
        U1x1 = 0 "1x1",
        /// One by two.
        U1x2 = 1 "1x2",
        /// One by four.
        U1x4 = 2 "1x4",
        /// Two by two.
        U2x2 = 3 "2x2",
        /// Two by four.
        U2x4 = 4 "2x4",
        /// Four by four.
        U4x4 = 5 "4x4",
    }
}

impl Microblock {
    /// Rows.
    pub const fn height(self) -> u32 {
        match self {
            Microblock::U1x1 | Microblock::U1x2 | Microblock::U1x4 => 1,
            Microblock::U2x2 | Microblock::U2x4 => 2,
            Microblock::U4x4 => 4,
        }
    }

    /// Columns.
    pub const fn width(self) -> u32 {
        match self {
            Microblock::U1x1 => 1,
            Microblock::U1x2 | Microblock::U2x2 => 2,
            Microblock::U1x4 | Microblock::U2x4 | Microblock::U4x4 => 4,
        }
    }
}

packed! {
    /// `NPU_SET_ACC_FORMAT` on U85.
    pub struct AccFormat85 {
        /// The accumulators' type.
        format: Accumulator85 = 0, 2;
        /// What they start from.
        input: AccInput85 = 4, 2;
        /// The operation leaves its result in the accumulators and writes no output.
        output_disabled: bool = 6, 1;
        /// The micro-block, which also decides the weight order.
        microblock: Microblock = 8, 3;
    }
}

named! {
    /// What the output stage of the U85 does after scaling. Table kinds are named after the types they map.
    pub enum ActivationFunction85 {
        /// Nothing beyond the clamp.
        None = 0 "none",
        /// A table from uint8 to uint8.
        LutU8U8 = 1 "LUT-U8-U8",
        /// A table from int8 to int8.
        LutS8S8 = 4 "LUT-S8-S8",
        /// A table from int8 to int16.
        LutS8S16 = 5 "LUT-S8-S16",
        /// A table from int8 to int32.
        LutS8S32 = 7 "LUT-S8-S32",
        /// An interpolated table from int16 to int16.
        LutS16S16 = 8 "LUT-S16-S16",
        /// An interpolated table from int16 to int32.
        LutS16S32 = 9 "LUT-S16-S32",
        /// Hyperbolic tangent by a table that the stream loads.
        Tanh = 10 "LUT-TANH",
        /// Logistic function by a table that the stream loads.
        Sigmoid = 11 "LUT-SIGMOID",
    }
}

named! {
    /// Whether the U85 clamps the output.
    pub enum ClipRange85 {
        /// To `ACTIVATION_MIN` and `ACTIVATION_MAX`.
        MinMax = 0 "min-max",
        /// Not at all.
        None = 1 "none",
    }
}

packed! {
    /// `NPU_SET_ACTIVATION` on U85.
    pub struct Activation85 {
        /// What is applied.
        function: ActivationFunction85 = 0, 5;
        /// The table it uses, counted in tables of its own size.
        table: u8 = 5, 3;
        /// What the value is clamped to.
        clip: ClipRange85 = 12, 1;
    }
}

packed! {
    /// `NPU_SET_IFM_BROADCAST` and `NPU_SET_IFM2_BROADCAST` on U85: where that input is smaller than the output.
    pub struct Broadcast85 {
        /// It has one row.
        height: bool = 0, 1;
        /// It has one column.
        width: bool = 1, 1;
        /// It has one channel.
        depth: bool = 2, 1;
        /// It is the register `OP_SCALAR`; excludes the others.
        scalar: bool = 3, 1;
    }
}

fn scalar_stands_alone(value: &Broadcast85, _product: Product) -> Result<(), Fault> {
    if value.scalar && (value.height || value.width || value.depth) {
        return Err(Fault::Field { field: "scalar", value: value.pack_fields()? });
    }
    Ok(())
}

named! {
    /// How the weights are encoded (U85).
    pub enum WeightEncoding85 {
        /// The entropy-coded stream of U55 and U65.
        Standard = 0 "standard",
        /// Fixed-size palette indices or raw bytes.
        Fast = 1 "fast",
    }
}

packed! {
    /// `NPU_SET_WEIGHT_FORMAT` (U85).
    pub struct WeightFormat85 {
        /// How the weights are encoded.
        encoding: WeightEncoding85 = 0, 1;
        /// Two of every four weights are zero, and ordered for it.
        sparse: bool = 4, 1;
    }
}

packed! {
    /// `NPU_OP_CONV` on U85.
    pub struct Conv85 {
        /// The second input holds the weights: a matrix product of two feature maps.
        weights_from_ifm2: bool = 0, 1;
    }
}

named! {
    /// What a pooling operation of the U85 computes.
    pub enum PoolMode85 {
        /// The largest element under the kernel.
        Max = 0 "max",
        /// The mean under the kernel, divided by the number of elements that aren't padding.
        Average = 1 "average",
        /// The sum over the channels.
        ReduceSum = 2 "reduce-sum",
        /// The sum under the kernel; with a 1x1 kernel Vela's way to copy and rescale.
        Sum = 3 "sum",
        /// A copy of the second input.
        None = 4 "none",
        /// The smallest element under the kernel.
        Min = 5 "min",
        /// The column of the largest element.
        ArgmaxX = 6 "argmax-x",
        /// The row of the largest element.
        ArgmaxY = 7 "argmax-y",
    }
}

named! {
    /// What an element-wise operation of the U85 computes.
    pub enum ElementwiseMode85 {
        /// A times B.
        Mul = 0 "mul",
        /// A plus B.
        Add = 1 "add",
        /// A minus B.
        Sub = 2 "sub",
        /// The smaller one.
        Min = 3 "min",
        /// The larger one.
        Max = 4 "max",
        /// A with one scale where it is positive and another where it is not.
        LeakyRelu = 5 "leaky-relu",
        /// The absolute value of A.
        Abs = 6 "abs",
        /// The number of leading zeros of A.
        Clz = 7 "clz",
        /// A shifted right by B with rounding.
        Shr = 8 "shr",
        /// A shifted left by B.
        Shl = 9 "shl",
        /// A shifted right by B, filling with zeros.
        Lsr = 10 "lsr",
        /// A divided by B.
        Div = 11 "div",
        /// All ones where A equals B.
        CompareEqual = 16 "cmp-eq",
        /// All ones where A differs from B.
        CompareNotEqual = 17 "cmp-ne",
        /// All ones where A is at least B.
        CompareGreaterEqual = 18 "cmp-ge",
        /// All ones where A is more than B.
        CompareGreater = 19 "cmp-gt",
        /// Bitwise A and B.
        And = 33 "and",
        /// Bitwise A or B.
        Or = 34 "or",
        /// Bitwise A exclusive-or B.
        Xor = 35 "xor",
        /// Bitwise not A.
        Not = 36 "not",
        /// Bitwise A and not B.
        AndNot = 42 "and-not",
    }
}

named! {
    /// How a resize operation interpolates (U85).
    pub enum ResizeMode85 {
        /// Between the four neighbours.
        Bilinear = 0 "bilinear",
        /// By repetition.
        Replicate = 1 "replicate",
        /// The nearest neighbour.
        Nearest = 2 "nearest",
    }
}

packed! {
    /// `NPU_SET_RESIZE_X_STEP` and `NPU_SET_RESIZE_Y_STEP` (U85): how far the source moves for one output element and for one
    /// block, each as whole elements and as a remainder in units of 1 / `RESIZE_*_SCALE_N`.
    pub struct ResizeStep85 {
        /// Whole source elements in one output element.
        one_step_int: u8 = 0, 4;
        /// Whole source elements in one block.
        blk_step_int: u16 = 4, 11;
        /// Remainder of one output element.
        one_step_mod: u16 = 16, 11;
        /// Remainder of one block.
        blk_step_mod: u16 = 32, 11;
    }
}

packed! {
    /// `NPU_SET_DMA0_SRC_REGION` on U85.
    pub struct DmaSource85 {
        /// The base pointer that the address counts from; without meaning for internal memory.
        region: u8 = 0, 3;
        /// The NPU's own memory instead of a region.
        internal: bool = 8, 1;
        /// Dimensions of the transfer, for both sides.
        stride_mode: DmaStride = 9, 2;
        /// Rows are picked by the index array.
        indexed: bool = 11, 1;
    }
}

packed! {
    /// `NPU_SET_DMA0_DST_REGION` on U85.
    pub struct DmaDestination85 {
        /// The base pointer that the address counts from; without meaning for internal memory.
        region: u8 = 0, 3;
        /// The NPU's own memory, where look-up tables live, instead of a region.
        internal: bool = 8, 1;
        /// Rows are placed by the index array.
        indexed: bool = 11, 1;
    }
}

named! {
    /// When a branch is taken (U85).
    pub enum BranchCondition85 {
        /// Always.
        Always = 0 "always",
        /// When the result flag is true.
        ResultTrue = 1 "RF-true",
    }
}

packed! {
    /// `NPU_OP_BRANCH` (U85).
    pub struct Branch85 {
        /// When it is taken.
        condition: BranchCondition85 = 0, 1;
        /// Where it goes, in bytes from the start of the stream.
        target: u32 = 16, 32;
    }
}

packed_impl! {
    IfmPrecision85;
    OfmPrecision85;
    OfmScale85;
    IfmScale85;
    AccFormat85;
    Activation85;
    Broadcast85 if scalar_stands_alone;
    WeightFormat85;
    Conv85;
    ResizeStep85;
    DmaSource85;
    DmaDestination85;
    Branch85;
}
