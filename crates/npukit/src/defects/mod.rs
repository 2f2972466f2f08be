//! Operators that Vela 5.2.0 compiles to something else than they mean, recognised in the user's model.
//!
//! Each family was established by running the compiled command streams and predicting their output exactly, and its limits
//! by running its neighbours; what is wrong is wrong on a device too. Some are one operator's own, others come of two that
//! follow each other, because Vela makes one of them part of the other.

mod graph;
mod neighbours;
mod operator;

use std::fmt;

use ethosu_isa::Product;
use npukit_vela::compile::{BuildOptions, IoMode};
use npukit_vela::tflite::Model;
use serde::{Serialize, Serializer};

use graph::Graph;

/// What the compiler gets wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub enum Family {
    /// TRANSPOSE of uint8 that really moves elements.
    #[serde(rename = "TRANSPOSE uint8")]
    TransposeUint8,
    /// MIRROR_PAD that pads channels.
    #[serde(rename = "MIRROR_PAD on channels")]
    MirrorPadChannels,
    /// SUM over more than one axis.
    #[serde(rename = "SUM over several axes")]
    SumSeveralAxes,
    /// REDUCE_MAX or REDUCE_MIN that removes an axis behind one that stays.
    #[serde(rename = "REDUCE_MAX/REDUCE_MIN without kept dimensions")]
    ReduceWithoutKeptDimensions,
    /// REDUCE_ANY or REDUCE_ALL that does (U85).
    #[serde(rename = "REDUCE_ANY/REDUCE_ALL without kept dimensions")]
    TruthWithoutKeptDimensions,
    /// NEG.
    #[serde(rename = "NEG")]
    Neg,
    /// MUL of quantised int32.
    #[serde(rename = "MUL int32")]
    MulInt32,
    /// A comparison of inputs whose quantisation differs (U85).
    #[serde(rename = "comparison of different scales")]
    CompareScales,
    /// RESIZE_NEAREST_NEIGHBOR with neither corners aligned nor half-pixel centres, by other than whole factors (U85).
    #[serde(rename = "RESIZE_NEAREST_NEIGHBOR without half-pixel centres")]
    ResizeNearestCentres,
    /// RESIZE_NEAREST_NEIGHBOR that makes an axis 16 times smaller or more (U85).
    #[serde(rename = "RESIZE_NEAREST_NEIGHBOR shrinking 16 times")]
    ResizeNearestShrink,
    /// A convolution or fully connected layer of int16 activations with an int32 bias (U85).
    #[serde(rename = "int16 convolution with int32 bias")]
    Int16Bias32,
    /// ARG_MAX whose int64 output is the network's largest tensor (U65, inputs and outputs in the arena).
    #[serde(rename = "ARG_MAX int64")]
    ArgMaxInt64,
    /// UNIDIRECTIONAL_SEQUENCE_LSTM, time major, of one step and several batches.
    #[serde(rename = "LSTM of one step, time major")]
    LstmOneStep,
    /// STRIDED_SLICE with a stride along an axis in front of which the next layer pads.
    #[serde(rename = "STRIDED_SLICE before a padded kernel")]
    StridedSlicePadded,
    /// STRIDED_SLICE with a stride, its result one of two maps of an element-wise operator.
    #[serde(rename = "STRIDED_SLICE before an element-wise operator")]
    StridedSliceElementwise,
    /// A slice whose height or channels are reduced to the largest or smallest.
    #[serde(rename = "slice before REDUCE_MAX/REDUCE_MIN")]
    SliceReduced,
    /// BATCH_MATMUL whose first operand is a slice.
    #[serde(rename = "slice before BATCH_MATMUL")]
    SliceMultiplied,
    /// What RESIZE_BILINEAR with half-pixel centres makes, put behind other elements (U55, U65).
    #[serde(rename = "PAD or CONCATENATION behind RESIZE_BILINEAR")]
    ResizedPadded,
    /// PAD before a CONV_2D with a stride above 3, which the compiler fails on (U55, U65).
    #[serde(rename = "PAD before a long stride")]
    PadLongStride,
    /// MIRROR_PAD that pads an axis in front of the last three.
    #[serde(rename = "MIRROR_PAD in front of the height")]
    MirrorPadBatch,
    /// MIRROR_PAD that pads width, its result only reshaped.
    #[serde(rename = "MIRROR_PAD of width before RESHAPE")]
    MirrorPadReshaped,
    /// A slice that TRANSPOSE_CONV reads.
    #[serde(rename = "slice before TRANSPOSE_CONV")]
    SliceTransposed,
    /// What TRANSPOSE_CONV makes, put behind other rows or columns (U85).
    #[serde(rename = "PAD or CONCATENATION behind TRANSPOSE_CONV")]
    TransposedPadded,
    /// A slice of a map of four axes that PACK puts in front of its batch or height.
    #[serde(rename = "slice before PACK")]
    SlicePacked,
}

/// An operator of a model that the compiler is known to get wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct KnownDefect {
    /// What kind it is.
    pub family: Family,
    /// The operator: its position, kind and output.
    pub layer: String,
    /// What the compiled program computes in its place.
    pub effect: &'static str,
    /// The products whose programs have it, in order.
    #[serde(serialize_with = "names")]
    pub products: &'static [Product],
}

fn names<S: Serializer>(products: &[Product], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(products.iter().map(|product| product.name()))
}

/// Those that share a compiler back end.
const U55_U65: &[Product] = &[Product::U55, Product::U65];
const U85: &[Product] = &[Product::U85];

impl Family {
    /// All of them.
    pub const ALL: [Family; 24] = [
        Family::TransposeUint8,
        Family::MirrorPadChannels,
        Family::SumSeveralAxes,
        Family::ReduceWithoutKeptDimensions,
        Family::TruthWithoutKeptDimensions,
        Family::Neg,
        Family::MulInt32,
        Family::CompareScales,
        Family::ResizeNearestCentres,
        Family::ResizeNearestShrink,
        Family::Int16Bias32,
        Family::ArgMaxInt64,
        Family::LstmOneStep,
        Family::StridedSlicePadded,
        Family::StridedSliceElementwise,
        Family::SliceReduced,
        Family::SliceMultiplied,
        Family::ResizedPadded,
        Family::PadLongStride,
        Family::MirrorPadBatch,
        Family::MirrorPadReshaped,
        Family::SliceTransposed,
        Family::TransposedPadded,
        Family::SlicePacked,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Family::TransposeUint8 => "TRANSPOSE uint8",
            Family::MirrorPadChannels => "MIRROR_PAD on channels",
            Family::SumSeveralAxes => "SUM over several axes",
            Family::ReduceWithoutKeptDimensions => "REDUCE_MAX/REDUCE_MIN without kept dimensions",
            Family::Neg => "NEG",
            Family::MulInt32 => "MUL int32",
            Family::CompareScales => "comparison of different scales",
            Family::ResizeNearestCentres => "RESIZE_NEAREST_NEIGHBOR without half-pixel centres",
            Family::ResizeNearestShrink => "RESIZE_NEAREST_NEIGHBOR shrinking 16 times",
            Family::Int16Bias32 => "int16 convolution with int32 bias",
            Family::TruthWithoutKeptDimensions => "REDUCE_ANY/REDUCE_ALL without kept dimensions",
            Family::ArgMaxInt64 => "ARG_MAX int64",
            Family::LstmOneStep => "LSTM of one step, time major",
            Family::StridedSlicePadded => "STRIDED_SLICE before a padded kernel",
            Family::StridedSliceElementwise => "STRIDED_SLICE before an element-wise operator",
            Family::SliceReduced => "slice before REDUCE_MAX/REDUCE_MIN",
            Family::SliceMultiplied => "slice before BATCH_MATMUL",
            Family::ResizedPadded => "PAD or CONCATENATION behind RESIZE_BILINEAR",
            Family::PadLongStride => "PAD before a long stride",
            Family::MirrorPadBatch => "MIRROR_PAD in front of the height",
            Family::MirrorPadReshaped => "MIRROR_PAD of width before RESHAPE",
            Family::SliceTransposed => "slice before TRANSPOSE_CONV",
            Family::TransposedPadded => "PAD or CONCATENATION behind TRANSPOSE_CONV",
            Family::SlicePacked => "slice before PACK",
        }
    }

    /// The products that have it, of those that have the operator. Some cases of a family are right on one of them
    /// ([`KnownDefect::products`]).
    const fn products(self) -> &'static [Product] {
        match self {
            Family::MirrorPadChannels
            | Family::SumSeveralAxes
            | Family::ReduceWithoutKeptDimensions
            | Family::MulInt32
            | Family::Neg
            | Family::LstmOneStep
            | Family::StridedSlicePadded
            | Family::SliceReduced
            | Family::SliceMultiplied
            | Family::MirrorPadBatch
            | Family::MirrorPadReshaped
            | Family::SliceTransposed
            | Family::SlicePacked => &Product::ALL,
            Family::TransposeUint8
            | Family::StridedSliceElementwise
            | Family::ResizedPadded
            | Family::PadLongStride => U55_U65,
            Family::ArgMaxInt64 => &[Product::U65],
            Family::CompareScales
            | Family::ResizeNearestCentres
            | Family::ResizeNearestShrink
            | Family::Int16Bias32
            | Family::TruthWithoutKeptDimensions
            | Family::TransposedPadded => U85,
        }
    }

    /// What the compiled program computes in its place.
    pub const fn effect(self) -> &'static str {
        match self {
            Family::TransposeUint8 => {
                "the codes are taken for signed ones and clamped to 0..127: every code above 127 comes out as 0"
            }
            Family::MirrorPadChannels => {
                "only height and width are padded; the padded channels are never written and hold whatever was in memory"
            }
            Family::SumSeveralAxes => {
                "only one of the axes is summed: the output holds its sums at the first position of the other axes, and the \
                 sums at the other positions are written behind the output's end"
            }
            Family::ReduceWithoutKeptDimensions | Family::TruthWithoutKeptDimensions => {
                "the reduction runs as if the axes that stay stood where the removed ones were, so values of other rows and \
                 columns get into the result"
            }
            Family::Neg => {
                "computes zero_point_out - (x - zero_point_in) and saturates, where the reference kernel negates the raw code \
                 and wraps around"
            }
            Family::MulInt32 => {
                "the product is shifted right by 30 bits: a multiplication of 32-bit values uses its scale's shift only, and the \
                 multiplier that was to undo it has no effect"
            }
            Family::CompareScales => {
                "the raw codes are compared, less their zero points: the scales are ignored"
            }
            Family::ResizeNearestCentres => {
                "computes as if half-pixel centres had been asked for: x[floor((2o + 1) * in / (2 * out))] in place of \
                 x[floor(o * in / out)]"
            }
            Family::ResizeNearestShrink => {
                "the step of an axis has four bits, so 16 becomes 0: all output positions read about the same input"
            }
            Family::Int16Bias32 => {
                "scales lose their upper bits: the scale format has 15 and Vela writes the low 15 of 31, which gives unrelated \
                 values; with an int64 bias, or none, it's right"
            }
            Family::ArgMaxInt64 => {
                "with --io arena in the memory mode Dedicated_Sram, the default, the arena is too small for the output, which \
                 sticks out of its region: npukit refuses to pack it"
            }
            Family::LstmOneStep => {
                "time and batch are confused, and parts of it are read or written outside their regions"
            }
            Family::StridedSlicePadded => {
                "reading starts one element too late, and a map of one element gets a height or width of 0"
            }
            Family::StridedSliceElementwise => {
                "the other operand is repeated along the axis of the stride as if it had one element there"
            }
            Family::SliceReduced => {
                "the reduction reads on behind the slice: elements that the slice left out get into the result"
            }
            Family::SliceMultiplied => {
                "rows are read from the map that the slice was cut from, not from the slice"
            }
            Family::ResizedPadded => {
                "with half-pixel centres the resized map is written from the output's start, and what belongs in front of it \
                 over it"
            }
            Family::PadLongStride => {
                "Vela folds the padding into the convolution and then fails on it (\"Non-passthrough operation\"); there is no \
                 program"
            }
            Family::MirrorPadBatch => {
                "only the last three axes are padded as meant: what belongs to the other paddings comes out wrong"
            }
            Family::MirrorPadReshaped => {
                "the padded columns are written as if the reshaped map were the padded one, to other places than theirs"
            }
            Family::SliceTransposed => {
                "on U55 and U65 the kernel's padding is behind the map in place of in front; on U85 the map is read from its start, not \
                 from the slice's"
            }
            Family::TransposedPadded => {
                "the transposed convolution's result is written from the output's start, and what belongs in front of it over it"
            }
            Family::SlicePacked => {
                "the copy of the slice into its place has a kernel of height or width 0, which npukit refuses to run, or takes \
                 other elements"
            }
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for KnownDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.layer, self.family, self.effect)
    }
}

impl KnownDefect {
    /// Whether a program for this product can have it.
    pub fn is_on(&self, product: Product) -> bool {
        self.products.contains(&product)
    }

    /// Whether a program that is compiled like this has it.
    pub fn applies_to(&self, options: &BuildOptions) -> bool {
        let dedicated = options.memory_mode.as_deref().is_none_or(|mode| mode == "Dedicated_Sram");
        let has_room = self.family == Family::ArgMaxInt64 && !(options.io == IoMode::Arena && dedicated);
        self.is_on(options.accelerator.product()) && !has_room
    }
}

/// What Vela 5.2.0 is known to compile wrong in a model, for one product at least ([`KnownDefect::is_on`] says for which), in
/// the order of the operators.
pub fn find(model: &Model<'_>) -> Vec<KnownDefect> {
    let graph = Graph::new(model);
    let mut found = Vec::new();
    for operator in &graph.main().operators {
        if let Some(family) = operator::family(&graph, operator) {
            found.push(KnownDefect {
                family,
                layer: graph.describe(operator),
                effect: family.effect(),
                products: family.products(),
            });
        }
        for defect in neighbours::all(&graph, operator) {
            found.push(KnownDefect {
                family: defect.family,
                layer: format!("{} behind {}", graph.describe(operator), defect.behind),
                effect: defect.family.effect(),
                products: defect.products,
            });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_one_name_and_is_documented() {
        let documentation = include_str!("../../../../docs/cli.md");
        for family in Family::ALL {
            let name = family.name();
            assert_eq!(serde_json::to_value(family).unwrap(), name);
            assert!(documentation.contains(&format!("\n| {name} |")), "docs/cli.md lacks {name}");
        }
    }
}
