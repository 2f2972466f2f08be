//! The operands that U55 and U65 know, and those that all three products share.
//!
//! Bit positions are those of the parameter (0..15) and, above it, of the payload (16..47). Sources: Vela 5.2.0's
//! `ethos_u65_interface.hpp`, which U55 and U65 share, and Arm's core driver's `ethosu55_interface.h`.

use crate::operand::{
    Fault, Field, FieldValue, Packed, Visitor, check_reserved, named, packed, packed_impl, put, take,
};
use crate::product::Product;

named! {
    /// Bits in one element of a feature map.
    pub enum ElementSize {
        /// One byte.
        Bits8 = 0 "8",
        /// Two bytes.
        Bits16 = 1 "16",
        /// Four bytes.
        Bits32 = 2 "32",
        /// Eight bytes.
        Bits64 = 3 "64",
    }
}

impl ElementSize {
    /// Bytes in one element.
    pub const fn bytes(self) -> u32 {
        match self {
            ElementSize::Bits8 => 1,
            ElementSize::Bits16 => 2,
            ElementSize::Bits32 => 4,
            ElementSize::Bits64 => 8,
        }
    }
}

named! {
    /// How a feature map lies in memory.
    pub enum Layout {
        /// Row by row, the channels of an element together.
        Nhwc = 0 "NHWC",
        /// In bricks of 16 channels.
        Nhcwb16 = 1 "NHCWB16",
    }
}

named! {
    /// Which operand of an addition or subtraction is scaled before it (U55, U65).
    pub enum OperandScaleMode {
        /// Both, with the 16-bit scales of `OPA_SCALE` and `OPB_SCALE`.
        Both16 = 0 "both-16",
        /// Operand A, with the 32-bit `OPA_SCALE`.
        A32 = 1 "A-32",
        /// Operand B, with the 32-bit `OPA_SCALE`.
        B32 = 2 "B-32",
    }
}

named! {
    /// Where the output's scale comes from.
    pub enum OfmScaleMode {
        /// The scale stream, one scale for each channel.
        PerChannel = 0 "per-channel",
        /// The register `OFM_SCALE`.
        Global = 1 "global",
    }
}

named! {
    /// How a scaled value is rounded (U55, U65).
    pub enum Rounding {
        /// Twice, as TensorFlow Lite's reference kernels do.
        Double = 0 "double",
        /// Towards zero.
        Truncate = 1 "truncate",
        /// Once, ties towards positive infinity.
        Natural = 2 "natural",
    }
}

packed! {
    /// `NPU_SET_IFM_PRECISION` on U55 and U65.
    pub struct IfmPrecision {
        /// Elements are two's complement.
        signed: bool = 0, 1;
        /// Bits in an element.
        size: ElementSize = 2, 2;
        /// How it lies in memory.
        layout: Layout = 6, 2;
        /// The operand that an addition or subtraction scales.
        scale_mode: OperandScaleMode = 8, 2;
        /// How that operand is rounded.
        rounding: Rounding = 14, 2;
    }
}

packed! {
    /// `NPU_SET_IFM2_PRECISION` on U55 and U65.
    pub struct Ifm2Precision {
        /// Elements are two's complement.
        signed: bool = 0, 1;
        /// Bits in an element.
        size: ElementSize = 2, 2;
        /// How it lies in memory.
        layout: Layout = 6, 2;
    }
}

packed! {
    /// `NPU_SET_OFM_PRECISION` on U55 and U65.
    pub struct OfmPrecision {
        /// Elements are two's complement.
        signed: bool = 0, 1;
        /// Bits in an element.
        size: ElementSize = 1, 2;
        /// How it lies in memory.
        layout: Layout = 6, 2;
        /// Where the scale comes from.
        scale_mode: OfmScaleMode = 8, 1;
        /// How the scaled value is rounded.
        rounding: Rounding = 14, 2;
    }
}

named! {
    /// Doubling of the input's rows and columns before use.
    pub enum Upscale {
        /// The input is used as it is.
        None = 0 "none",
        /// Each element stands for two by two.
        Nearest = 1 "nearest",
        /// Zeros stand between the elements.
        Zeros = 2 "zeros",
    }
}

named! {
    /// The largest sub-kernel a convolution is cut into.
    pub enum Decomposition {
        /// Eight by eight.
        D8x8 = 0 "8x8",
        /// Four by four.
        D4x4 = 1 "4x4",
    }
}

/// `NPU_SET_KERNEL_STRIDE`: strides and dilations as they are used, 1 for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelStride {
    /// Columns from one output element to the next, 1 to 4.
    pub stride_x: u8,
    /// Rows from one output element to the next, 1 to 4.
    pub stride_y: u8,
    /// Weights are ordered part kernel first, not depth first.
    pub part_kernel_first: bool,
    /// Columns from one kernel element to the next, 1 or 2.
    pub dilation_x: u8,
    /// Rows from one kernel element to the next, 1 or 2.
    pub dilation_y: u8,
    /// The largest sub-kernel.
    pub decomposition: Decomposition,
}

impl Packed for KernelStride {
    fn unpack(bits: u64) -> Result<KernelStride, Fault> {
        check_reserved(bits, 0b10_0111_1111)?;
        let bit = |place: u32| ((bits >> place) & 1) as u8;
        Ok(KernelStride {
            // The high bit of each stride came later and lies apart from the low one.
            stride_x: 1 + bit(0) + 2 * bit(6),
            stride_y: 1 + bit(1) + 2 * bit(9),
            part_kernel_first: bit(2) != 0,
            dilation_x: 1 + bit(3),
            dilation_y: 1 + bit(4),
            decomposition: take(bits, "decomposition", 5, 1)?,
        })
    }

    fn pack(self) -> Result<u64, Fault> {
        let minus_one = |field, value: u8, most: u8| {
            if (1..=most).contains(&value) {
                Ok(u64::from(value - 1))
            } else {
                Err(Fault::Field { field, value: value.into() })
            }
        };
        let stride_x = minus_one("stride_x", self.stride_x, 4)?;
        let stride_y = minus_one("stride_y", self.stride_y, 4)?;
        let dilation_x = minus_one("dilation_x", self.dilation_x, 2)?;
        let dilation_y = minus_one("dilation_y", self.dilation_y, 2)?;
        Ok((stride_x & 1)
            | (stride_x >> 1) << 6
            | (stride_y & 1) << 1
            | (stride_y >> 1) << 9
            | u64::from(self.part_kernel_first) << 2
            | dilation_x << 3
            | dilation_y << 4
            | put(self.decomposition, "decomposition", 5, 1)?)
    }

    fn visit(self, visitor: Visitor<'_>) {
        visitor("stride_x", self.stride_x.shown());
        visitor("stride_y", self.stride_y.shown());
        visitor("part_kernel_first", self.part_kernel_first.shown());
        visitor("dilation_x", self.dilation_x.shown());
        visitor("dilation_y", self.dilation_y.shown());
        visitor("decomposition", self.decomposition.shown());
    }
}

named! {
    /// How the cores of a U65 share the work.
    pub enum ParallelMode {
        /// One core does all of it.
        SingleCore = 0 "single-core",
        /// Two cores take alternate output channels.
        DualCoreDepth = 1 "dual-core-depth",
    }
}

named! {
    /// The accumulators of U55 and U65.
    pub enum AccFormat {
        /// 32-bit integers.
        Int32 = 0 "int32",
        /// 40-bit integers.
        Int40 = 1 "int40",
        /// Half-precision floating point.
        Float16 = 2 "float16",
    }
}

/// What the output stage of U55 and U65 does after scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivationFunction {
    /// Nothing beyond the clamp to `ACTIVATION_MIN` and `_MAX`.
    None,
    /// The built-in hyperbolic tangent.
    Tanh,
    /// The built-in logistic function.
    Sigmoid,
    /// A look-up table, 0 to 7.
    Table(u8),
}

/// Code of look-up table 0; the other seven follow.
const TABLE_0: u64 = 16;
const TABLES: u64 = 8;

impl Field for ActivationFunction {
    fn from_bits(bits: u64) -> Option<ActivationFunction> {
        match bits {
            0 => Some(ActivationFunction::None),
            3 => Some(ActivationFunction::Tanh),
            4 => Some(ActivationFunction::Sigmoid),
            _ => match bits.checked_sub(TABLE_0) {
                Some(table) if table < TABLES => Some(ActivationFunction::Table(table as u8)),
                _ => None,
            },
        }
    }

    fn to_bits(self) -> u64 {
        match self {
            ActivationFunction::None => 0,
            ActivationFunction::Tanh => 3,
            ActivationFunction::Sigmoid => 4,
            // A table beyond the seventh gives a value wider than the field, which the writer refuses.
            ActivationFunction::Table(table) if u64::from(table) < TABLES => TABLE_0 + u64::from(table),
            ActivationFunction::Table(table) => u64::from(table) << 8 | 0xFF,
        }
    }

    fn shown(self) -> FieldValue {
        FieldValue::Name(match self {
            ActivationFunction::None => "none",
            ActivationFunction::Tanh => "tanh",
            ActivationFunction::Sigmoid => "sigmoid",
            ActivationFunction::Table(0) => "table-0",
            ActivationFunction::Table(1) => "table-1",
            ActivationFunction::Table(2) => "table-2",
            ActivationFunction::Table(3) => "table-3",
            ActivationFunction::Table(4) => "table-4",
            ActivationFunction::Table(5) => "table-5",
            ActivationFunction::Table(6) => "table-6",
            ActivationFunction::Table(7) => "table-7",
            ActivationFunction::Table(_) => "no such table",
        })
    }
}

named! {
    /// The type to which a value is clamped before it leaves or enters a table (U55, U65).
    pub enum ClipRange {
        /// The output's own.
        Ofm = 0 "OFM",
        /// Unsigned 8-bit.
        U8 = 2 "uint8",
        /// Signed 8-bit.
        I8 = 3 "int8",
        /// Signed 16-bit.
        I16 = 5 "int16",
    }
}

packed! {
    /// `NPU_SET_ACTIVATION` on U55 and U65.
    pub struct Activation {
        /// What is applied.
        function: ActivationFunction = 0, 5;
        /// What the value is clamped to.
        clip: ClipRange = 12, 3;
    }
}

packed! {
    /// A multiplier and the right shift after it (U55, U65).
    pub struct ScaleShift {
        /// The multiplier, unsigned.
        scale: u32 = 16, 32;
        /// Bits to shift right by, 0 to 63.
        shift: u8 = 0, 6;
    }
}

named! {
    /// Dimensions of a memory-to-memory transfer.
    pub enum DmaStride {
        /// One run of bytes.
        D1 = 0 "1D",
        /// Rows with a stride.
        D2 = 1 "2D",
        /// Planes of rows.
        D3 = 2 "3D",
    }
}

packed! {
    /// One side of a memory-to-memory transfer on U55 and U65.
    pub struct DmaRegion {
        /// The base pointer that the address counts from; without meaning for internal memory.
        region: u8 = 0, 3;
        /// The NPU's own memory, where look-up tables live, instead of a region.
        internal: bool = 8, 1;
        /// Dimensions; the U55 knows only one.
        stride_mode: DmaStride = 9, 2;
    }
}

/// `ethosu55_interface.h` lists D1 as the U55's only stride mode.
fn u55_copies_in_one_dimension(value: &DmaRegion, product: Product) -> Result<(), Fault> {
    match (product, value.stride_mode) {
        (Product::U55, DmaStride::D2 | DmaStride::D3) => {
            Err(Fault::Field { field: "stride_mode", value: value.stride_mode.to_bits() })
        }
        _ => Ok(()),
    }
}

packed! {
    /// `NPU_SET_IFM2_BROADCAST` on U55 and U65: where the second input is smaller than the output.
    pub struct Ifm2Broadcast {
        /// It has one row.
        height: bool = 0, 1;
        /// It has one column.
        width: bool = 1, 1;
        /// It has one channel.
        depth: bool = 2, 1;
        /// The second input is operand A.
        operand_order_reversed: bool = 6, 1;
        /// The second input is the register `IFM2_SCALAR`.
        scalar: bool = 7, 1;
    }
}

named! {
    /// What a pooling operation of U55 and U65 computes.
    pub enum PoolMode {
        /// The largest element under the kernel.
        Max = 0 "max",
        /// The mean under the kernel; with a 1x1 kernel Vela's way to copy and rescale.
        Average = 1 "average",
        /// The sum over the channels.
        ReduceSum = 2 "reduce-sum",
    }
}

named! {
    /// What an element-wise operation of U55 and U65 computes.
    pub enum ElementwiseMode {
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
        /// A where it is positive, else A scaled.
        LeakyRelu = 5 "leaky-relu",
        /// The absolute value of A.
        Abs = 6 "abs",
        /// The number of leading zeros of A.
        Clz = 7 "clz",
        /// A shifted right by B with rounding.
        Shr = 8 "shr",
        /// A shifted left by B.
        Shl = 9 "shl",
    }
}

packed_impl! {
    IfmPrecision;
    Ifm2Precision;
    OfmPrecision;
    Activation;
    ScaleShift;
    DmaRegion if u55_copies_in_one_dimension;
    Ifm2Broadcast;
}
