//! Single operators that are compiled wrong.

use npukit_vela::tflite::{DataType, Operator, Tensor};

use super::Family;
use super::graph::{Graph, axes};

/// An int32 product whose scales multiply it by this or more isn't shifted: Vela's scales have 31 bits.
const MUL_INT32_RIGHT: f64 = (1u64 << 30) as f64;

/// What the compiler gets wrong about an operator, whatever stands around it.
pub(super) fn family<'a>(graph: &Graph<'_, 'a>, operator: &Operator<'a>) -> Option<Family> {
    let tensor = |position| graph.input(operator, position);
    let input = tensor(0)?;
    let shape = &input.shape;
    let parameter = || graph.integers(operator, 1);
    match operator.name().as_ref() {
        "NEG" => Some(Family::Neg),
        "TRANSPOSE" if input.data_type == DataType::Uint8 => {
            let moved = |axis: &i64| usize::try_from(*axis).ok().and_then(|axis| shape.get(axis)) != Some(&1);
            let order: Vec<i64> = parameter()?.into_iter().filter(moved).collect();
            (!order.is_sorted()).then_some(Family::TransposeUint8)
        }
        "MIRROR_PAD" => {
            let paddings = parameter()?;
            let pads = |pairs: &[i64]| pairs.iter().any(|&pad| pad != 0);
            let (_, channels) = paddings.split_at(paddings.len().saturating_sub(2));
            let (before, _) = paddings.split_at(paddings.len().saturating_sub(6));
            if pads(channels) {
                Some(Family::MirrorPadChannels)
            } else {
                pads(before).then_some(Family::MirrorPadBatch)
            }
        }
        "SUM" => {
            let axes = axes(&parameter()?, shape.len());
            // Only the first of them is summed, which is right where the others have one element.
            axes.iter().skip(1).any(|&axis| shape[axis] > 1).then_some(Family::SumSeveralAxes)
        }
        name @ ("REDUCE_MAX" | "REDUCE_MIN" | "REDUCE_ANY" | "REDUCE_ALL") => {
            let keeps = operator.options.is_some_and(|options| options.flag(0));
            let wrong = !keeps && reduces_behind_a_kept_axis(&axes(&parameter()?, shape.len()), shape);
            let truth = matches!(name, "REDUCE_ANY" | "REDUCE_ALL");
            wrong.then_some(if truth {
                Family::TruthWithoutKeptDimensions
            } else {
                Family::ReduceWithoutKeptDimensions
            })
        }
        "MUL" if input.data_type == DataType::Int32 => {
            let scale = |tensor: &Tensor<'_>| Some(f64::from(tensor.quantisation.as_ref()?.scale()));
            // Without quantisation there is no shift.
            let rescale = scale(input)? * scale(tensor(1)?)? / scale(graph.output(operator)?)?;
            (rescale < MUL_INT32_RIGHT).then_some(Family::MulInt32)
        }
        // LiteRT compares the codes of int16, too, but for equality.
        "GREATER" | "GREATER_EQUAL" | "LESS" | "LESS_EQUAL" if input.data_type == DataType::Int16 => None,
        "EQUAL" | "NOT_EQUAL" | "GREATER" | "GREATER_EQUAL" | "LESS" | "LESS_EQUAL"
            if input.data_type != DataType::Int32 =>
        {
            let scale =
                |tensor: &Tensor<'_>| tensor.quantisation.as_ref().map(|quantisation| quantisation.scale());
            (scale(input) != scale(tensor(1)?)).then_some(Family::CompareScales)
        }
        "RESIZE_NEAREST_NEIGHBOR" => {
            let flags = operator.options.map(|options| (options.flag(0), options.flag(1)));
            nearest(shape, &graph.output(operator)?.shape, flags.unwrap_or_default())
        }
        "CONV_2D" | "DEPTHWISE_CONV_2D" | "FULLY_CONNECTED" if input.data_type == DataType::Int16 => {
            (tensor(2)?.data_type == DataType::Int32).then_some(Family::Int16Bias32)
        }
        // Its inputs are the output's shape, the weights, the map and the biases.
        "TRANSPOSE_CONV" if tensor(2)?.data_type == DataType::Int16 => {
            (tensor(3)?.data_type == DataType::Int32).then_some(Family::Int16Bias32)
        }
        "ARG_MAX" => {
            let output = graph.output(operator)?;
            let bytes = output.bytes()?;
            // The arena has room for the largest tensor at least, counting this one by 4 bytes an element.
            let others = graph.main().tensors.iter().filter(|&one| !graph.is_constant(one));
            let has_room =
                others.filter(|&one| !std::ptr::eq(one, output)).any(|one| one.bytes() >= Some(bytes));
            (output.data_type == DataType::Int64 && !has_room).then_some(Family::ArgMaxInt64)
        }
        "UNIDIRECTIONAL_SEQUENCE_LSTM" => {
            let time_major = operator.options.is_some_and(|options| options.flag(3));
            let &[steps, batches, units] = graph.output(operator)?.shape.as_slice() else { return None };
            (time_major && steps == 1 && confuses_time(batches, units)).then_some(Family::LstmOneStep)
        }
        _ => None,
    }
}

/// Whether an LSTM of one step confuses time and batch. Found by trying: 1 to 33 units, 1 to 17 batches.
fn confuses_time(batches: i32, units: i32) -> bool {
    batches > 1 && units < 8 && i64::from(units) * i64::from(batches) > 16
}

/// What goes wrong with a resize to the nearest neighbour, by the shapes and whether corners are aligned and centres are half
/// a pixel in.
fn nearest(from: &[i32], to: &[i32], (align, half): (bool, bool)) -> Option<Family> {
    let sides = |axis: usize| Some((i64::from(*from.get(axis)?), i64::from(*to.get(axis)?)));
    let both = [sides(1)?, sides(2)?];
    if both.iter().any(|&(from, to)| to > 0 && from >= 16 * to) {
        return Some(Family::ResizeNearestShrink);
    }
    // Vela takes no longer sides.
    if align || half || both.iter().any(|&(from, to)| from.max(to) > 1 << 16) {
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
    fn lstms_that_confuse_time() {
        for (units, batches, wrong) in [
            (1, 9, false),
            (1, 17, true),
            (2, 5, false),
            (2, 9, true),
            (4, 3, false),
            (4, 5, true),
            (7, 2, false),
            (7, 3, true),
            (8, 17, false),
            (7, 1, false),
        ] {
            assert_eq!(confuses_time(batches, units), wrong, "{units} units, {batches} batches");
        }
    }
}
