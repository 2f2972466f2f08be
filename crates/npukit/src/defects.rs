//! Operators that Vela 5.2.0 compiles to something else than they mean, recognised in the user's model.
//!
//! Each family was established by running the compiled command streams and predicting their output exactly; what is
//! wrong is wrong on a device too.

use std::fmt;

use ethosu_isa::Product;
use npukit_vela::tflite::{DataType, Model, Operator, Subgraph, Tensor};
use serde::Serialize;

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
    /// NEG.
    #[serde(rename = "NEG")]
    Neg,
    /// MUL of int32.
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
    /// REDUCE_ALL, which makes the compiler crash (U85).
    #[serde(rename = "REDUCE_ALL")]
    ReduceAll,
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
}

impl Family {
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
            Family::ReduceAll => "REDUCE_ALL",
        }
    }

    /// Whether programs for a product have it.
    pub fn is_on(self, product: Product) -> bool {
        match self {
            Family::TransposeUint8 => product != Product::U85,
            Family::MirrorPadChannels
            | Family::SumSeveralAxes
            | Family::ReduceWithoutKeptDimensions
            | Family::MulInt32
            | Family::Neg => true,
            Family::CompareScales
            | Family::ResizeNearestCentres
            | Family::ResizeNearestShrink
            | Family::Int16Bias32
            | Family::ReduceAll => product == Product::U85,
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
            Family::ReduceWithoutKeptDimensions => {
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
            Family::ReduceAll => "Vela dies by a signal; there is no program",
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

/// The operators of a model that Vela 5.2.0 is known to compile wrong, for one product at least ([`Family::is_on`] says for
/// which).
pub fn find(model: &Model<'_>) -> Vec<KnownDefect> {
    let graph = model.main();
    let defect = |operator: &Operator<'_>| {
        let family = family(model, graph, operator)?;
        let output = operator.outputs.first().map(|&tensor| graph.describe(tensor)).unwrap_or_default();
        Some(KnownDefect { family, layer: format!("{operator} (output {output})"), effect: family.effect() })
    };
    graph.operators.iter().filter_map(defect).collect()
}

fn family(model: &Model<'_>, graph: &Subgraph<'_>, operator: &Operator<'_>) -> Option<Family> {
    let tensor = |input: usize| graph.tensors.get((*operator.inputs.get(input)?)?);
    let input = tensor(0)?;
    let shape = &input.shape;
    // Axes, permutations and paddings: constants in every network that Vela compiles.
    let parameter = || tensor(1).and_then(|second| integers(second.data_type, model.data(second)?));
    match operator.name().as_ref() {
        "NEG" => Some(Family::Neg),
        "TRANSPOSE" if input.data_type == DataType::Uint8 => {
            let moved = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| shape.get(axis)) != Some(&1);
            let order: Vec<i64> = parameter()?.into_iter().filter(moved).collect();
            (!order.is_sorted()).then_some(Family::TransposeUint8)
        }
        "MIRROR_PAD" => {
            let paddings = parameter()?;
            paddings[paddings.len().saturating_sub(2)..]
                .iter()
                .any(|&pad| pad != 0)
                .then_some(Family::MirrorPadChannels)
        }
        "SUM" => {
            let axes = axes(&parameter()?, shape.len());
            // Only the first of them is summed, which is right where the others have one element.
            axes.iter().skip(1).any(|&axis| shape[axis] > 1).then_some(Family::SumSeveralAxes)
        }
        "REDUCE_MAX" | "REDUCE_MIN" => {
            let keeps = operator.options.is_some_and(|options| options.flag(0));
            let wrong = !keeps && reduces_behind_a_kept_axis(&axes(&parameter()?, shape.len()), shape);
            wrong.then_some(Family::ReduceWithoutKeptDimensions)
        }
        "MUL" if input.data_type == DataType::Int32 => Some(Family::MulInt32),
        "EQUAL" | "NOT_EQUAL" | "GREATER" | "GREATER_EQUAL" | "LESS" | "LESS_EQUAL"
            if input.data_type != DataType::Int32 =>
        {
            let scale =
                |tensor: &Tensor<'_>| tensor.quantisation.as_ref().map(|quantisation| quantisation.scale());
            (scale(input) != scale(tensor(1)?)).then_some(Family::CompareScales)
        }
        "RESIZE_NEAREST_NEIGHBOR" => {
            let flags = operator.options.map(|options| (options.flag(0), options.flag(1)));
            let output = graph.tensors.get(*operator.outputs.first()?)?;
            nearest(shape, &output.shape, flags.unwrap_or_default())
        }
        "CONV_2D" | "DEPTHWISE_CONV_2D" | "FULLY_CONNECTED" | "TRANSPOSE_CONV"
            if input.data_type == DataType::Int16 =>
        {
            (tensor(2)?.data_type == DataType::Int32).then_some(Family::Int16Bias32)
        }
        "REDUCE_ALL" => Some(Family::ReduceAll),
        _ => None,
    }
}

/// What goes wrong with a resize to the nearest neighbour, by the shapes and whether corners are aligned and centres are half
/// a pixel in.
fn nearest(from: &[i32], to: &[i32], (align, half): (bool, bool)) -> Option<Family> {
    let sides = |axis: usize| Some((i64::from(*from.get(axis)?), i64::from(*to.get(axis)?)));
    let both = [sides(1)?, sides(2)?];
    if both.iter().any(|&(from, to)| to > 0 && from >= 16 * to) {
        return Some(Family::ResizeNearestShrink);
    }
    if align || half {
        return None;
    }
    let differs = |&(from, to): &(i64, i64)| (0..to).any(|o| (2 * o + 1) * from / (2 * to) != o * from / to);
    both.iter().any(differs).then_some(Family::ResizeNearestCentres)
}

/// Whether an axis of more than one element stays in front of a removed one. Found by trying shapes and axes; of the
/// last axis behind one of a single element the compiler makes no mistake.
fn reduces_behind_a_kept_axis(axes: &[usize], shape: &[i32]) -> bool {
    let Some(&last) = axes.last() else { return false };
    let kept = (0..last).any(|axis| !axes.contains(&axis) && shape[axis] > 1);
    let harmless = axes == [shape.len() - 1] && last > 0 && shape[last - 1] == 1;
    kept && !harmless
}

/// Axes counted from the front, each once, in order.
fn axes(parameter: &[i64], rank: usize) -> Vec<usize> {
    let rank = rank as i64;
    let front = |&axis: &i64| if axis < 0 { axis + rank } else { axis };
    let mut all: Vec<usize> = parameter
        .iter()
        .map(front)
        .filter(|axis| (0..rank).contains(axis))
        .map(|axis| axis as usize)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn integers(data_type: DataType, bytes: &[u8]) -> Option<Vec<i64>> {
    match data_type {
        DataType::Int32 => Some(bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect()),
        DataType::Int64 => Some(bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Vela 5.2.0's programs were found to get wrong, and right.
    #[test]
    fn reductions_that_go_wrong() {
        for (shape, axes, wrong) in [
            (&[1, 4, 6, 8][..], &[3][..], true),
            (&[1, 4, 6, 8], &[2], true),
            (&[1, 4, 6, 8], &[1], false),
            (&[1, 4, 6, 8], &[1, 2], false),
            (&[1, 4, 6, 8], &[1, 3], true),
            (&[1, 4, 6, 8], &[2, 3], true),
            (&[1, 4, 6, 8], &[1, 2, 3], false),
            (&[1, 3, 3, 1], &[2, 3], true),
            (&[1, 3, 1, 8], &[2, 3], true),
            (&[1, 3, 1, 8], &[3], false),
            (&[1, 1, 3, 8], &[3], true),
            (&[1, 1, 3, 8], &[2], false),
            (&[1, 1, 3, 8], &[2, 3], false),
            (&[1, 3, 1, 8], &[1, 3], false),
            (&[2, 4, 6, 8], &[1], true),
            (&[1, 6, 8], &[2], true),
            (&[3, 6, 8], &[0], false),
            (&[3, 6, 8], &[1], true),
            (&[3, 1, 8], &[2], false),
            (&[4, 10], &[1], true),
            (&[1, 10], &[1], false),
        ] {
            assert_eq!(reduces_behind_a_kept_axis(axes, shape), wrong, "{shape:?} {axes:?}");
        }
    }

    #[test]
    fn nearest_neighbours_that_go_wrong() {
        let nearest = |from: [i32; 2], to: [i32; 2], flags| {
            nearest(&[1, from[0], from[1], 3], &[1, to[0], to[1], 3], flags)
        };
        let neither = (false, false);
        assert_eq!(nearest([4, 4], [8, 12], neither), None);
        assert_eq!(nearest([4, 4], [4, 4], neither), None);
        assert_eq!(nearest([4, 4], [6, 4], neither), Some(Family::ResizeNearestCentres));
        assert_eq!(nearest([4, 4], [2, 4], neither), Some(Family::ResizeNearestCentres));
        assert_eq!(nearest([4, 4], [6, 4], (false, true)), None);
        assert_eq!(nearest([4, 4], [7, 4], (true, false)), None);
        assert_eq!(nearest([4, 32], [4, 2], (false, true)), Some(Family::ResizeNearestShrink));
        assert_eq!(nearest([4, 30], [4, 2], (false, true)), None);
    }

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!(axes(&[-1, 1, 3, -3], 4), [1, 3]);
        assert!(axes(&[4, -5], 4).is_empty());
    }
}
