//! Why two interpreters differ by one: a fully connected layer's result, rounded once and rounded twice.
//!
//! The scaling of a quantised layer is `accumulator * multiplier / 2^(31 - shift)`. TFLM (and the NPU, as Vela programs
//! it) rounds it twice: the doubling high multiply to the nearest, then the remaining right shift half away from zero.
//! LiteRT is built to round once, half up. Sources: the TensorFlow Lite kernels' `kernel_util.cc` and `quantization_util.cc`
//! (scales to multiplier and shift) and `common.cc` (both ways to multiply).

use std::fmt;

use crate::npy::{Array, Dtype};
use crate::tflite::{BuiltinOperator, DataType, Model, Operator, Tensor};

/// A layer's result at one place, computed both ways.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RoundingExplanation {
    /// Sum of products and bias.
    pub accumulator: i64,
    /// The accumulator scaled, before any rounding, without the zero point.
    pub scaled: f64,
    /// The result rounded once, with zero point and limits.
    pub rounded_once: i64,
    /// The result rounded twice, with zero point and limits.
    pub rounded_twice: i64,
}

/// "the exact result is -145.485 before rounding: rounded once it gives -145, rounded twice -146".
impl fmt::Display for RoundingExplanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the accumulator {} scales to {:.6}; rounded once (LiteRT) the output is {}, rounded twice (TFLM and the NPU) {}",
            self.accumulator, self.scaled, self.rounded_once, self.rounded_twice
        )
    }
}

/// Computes a fully connected layer's result at `coordinate` of its output, if that is what `operator` is.
///
/// `input` is the layer's input as the interpreters computed it.
pub(super) fn explain(
    model: &Model<'_>,
    operator: &Operator<'_>,
    input: &Array,
    coordinate: &[usize],
) -> Option<RoundingExplanation> {
    if operator.code != BuiltinOperator::FULLY_CONNECTED {
        return None;
    }
    let tensors = &model.main().tensors;
    let input_tensor = &tensors[operator.inputs.first().copied().flatten()?];
    let filter = &tensors[operator.inputs.get(1).copied().flatten()?];
    let bias = operator.inputs.get(2).copied().flatten().map(|index| &tensors[index]);
    let output = &tensors[*operator.outputs.first()?];
    if input.dtype() != Dtype::Int8
        || filter.data_type != DataType::Int8
        || output.data_type != DataType::Int8
    {
        return None;
    }
    let (depth, rows) = match filter.shape.as_slice() {
        [rows, depth] => (usize::try_from(*depth).ok()?, usize::try_from(*rows).ok()?),
        _ => return None,
    };
    let channel = *coordinate.last()?;
    let batch = flat(&output.shape, coordinate)? / rows.max(1);
    let weights = model.data(filter)?.get(channel.checked_mul(depth)?..)?.get(..depth)?;
    let values = input.data().get(batch.checked_mul(depth)?..)?.get(..depth)?;
    let input_zero = input_tensor.quantisation.as_ref()?.zero_point();
    let quantisation = filter.quantisation.as_ref()?;
    let weight_zero = quantisation.zero_points.get(channel).unwrap_or(quantisation.zero_point());
    let mut accumulator: i64 = values
        .iter()
        .zip(weights)
        .map(|(&x, &w)| {
            (i64::from(x.cast_signed()) - input_zero) * (i64::from(w.cast_signed()) - weight_zero)
        })
        .sum();
    if let Some(bias) = bias {
        let bytes = model.data(bias)?.as_chunks::<4>().0.get(channel)?;
        accumulator += i64::from(i32::from_le_bytes(*bytes));
    }

    let input_scale = input_tensor.quantisation.as_ref()?.scale();
    let output_quantisation = output.quantisation.as_ref()?;
    let output_scale = f64::from(output_quantisation.scale());
    let ratio = if quantisation.is_per_axis() {
        f64::from(input_scale) * f64::from(quantisation.scales.get(channel)?) / output_scale
    } else {
        // For a layer with one scale the kernels multiply the two as 32-bit floats.
        f64::from(input_scale * quantisation.scale()) / output_scale
    };
    let (multiplier, shift) = quantise(ratio)?;
    let (low, high) = limits(operator, output)?;
    let finish = |value: i64| (value + output_quantisation.zero_point()).clamp(low, high);
    Some(RoundingExplanation {
        accumulator,
        scaled: accumulator as f64 * f64::from(multiplier) * f64::from(shift - 31).exp2(),
        rounded_once: finish(once(accumulator, multiplier, shift)?),
        rounded_twice: finish(twice(accumulator, multiplier, shift)?),
    })
}

fn flat(shape: &[i32], coordinate: &[usize]) -> Option<usize> {
    if shape.len() != coordinate.len() {
        return None;
    }
    let axes = shape.iter().zip(coordinate);
    axes.into_iter().try_fold(0usize, |at, (&axis, &index)| {
        at.checked_mul(usize::try_from(axis).ok()?)?.checked_add(index)
    })
}

/// A scale as a 31-bit multiplier and a left shift.
fn quantise(scale: f64) -> Option<(i32, i32)> {
    if !(scale.is_finite() && scale > 0.0) {
        return None;
    }
    // frexp: the exponent that leaves a significand in [0.5, 1).
    let mut shift = scale.log2().floor() as i32 + 1;
    let mut significand = scale / f64::from(shift).exp2();
    if significand >= 1.0 {
        significand /= 2.0;
        shift += 1;
    } else if significand < 0.5 {
        significand *= 2.0;
        shift -= 1;
    }
    let mut multiplier = (significand * f64::from(1u32 << 31)).round() as i64;
    if multiplier == 1 << 31 {
        multiplier /= 2;
        shift += 1;
    }
    (-31..=30).contains(&shift).then_some((i32::try_from(multiplier).ok()?, shift))
}

/// Half up, in one step.
fn once(accumulator: i64, multiplier: i32, shift: i32) -> Option<i64> {
    let total = u32::try_from(31 - shift).ok().filter(|total| (1..=62).contains(total))?;
    let product = i128::from(accumulator) * i128::from(multiplier);
    i64::try_from((product + (1 << (total - 1))) >> total).ok()
}

/// To the nearest at bit 31, then half away from zero.
fn twice(accumulator: i64, multiplier: i32, shift: i32) -> Option<i64> {
    let shifted = i32::try_from(accumulator << shift.max(0)).ok()?;
    let product = i64::from(shifted) * i64::from(multiplier);
    let nudge = if product >= 0 { 1 << 30 } else { 1 - (1 << 30) };
    // The kernel divides, which rounds towards zero.
    let high = (product + nudge) / (1 << 31);
    let exponent = (-shift).max(0);
    let mask = (1i64 << exponent) - 1;
    let threshold = (mask >> 1) + i64::from(high < 0);
    Some((high >> exponent) + i64::from((high & mask) > threshold))
}

/// The least and the greatest output that the layer's activation leaves.
fn limits(operator: &Operator<'_>, output: &Tensor<'_>) -> Option<(i64, i64)> {
    let (low, high) = (i64::from(i8::MIN), i64::from(i8::MAX));
    let quantisation = output.quantisation.as_ref()?;
    let zero = quantisation.zero_point();
    let at = |real: f32| zero + (real / quantisation.scale()).round() as i64;
    // schema.fbs: FullyConnectedOptions begins with the activation; ActivationFunctionType numbers it.
    match operator.options.map_or(0, |options| options.number::<u8>(0, 0)) {
        0 => Some((low, high)),
        1 => Some((low.max(at(0.0)), high)),
        2 => Some((low.max(at(-1.0)), high.min(at(1.0)))),
        3 => Some((low.max(at(0.0)), high.min(at(6.0)))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_ways_differ_just_below_a_half() {
        // Scaling by 2^-4: 7.5/16 = 0.46875 is nearest 0, but rounds to 8/16 first when the last bits are dropped in two steps.
        let (multiplier, shift) = quantise(1.0 / 16.0).unwrap();
        assert_eq!((multiplier, shift), (1 << 30, -3));
        assert_eq!(once(15, multiplier, shift), Some(1));
        assert_eq!(once(7, multiplier, shift), Some(0));
        assert_eq!(twice(7, multiplier, shift), Some(1));
        assert_eq!((once(-8, multiplier, shift), twice(-8, multiplier, shift)), (Some(0), Some(-1)));
    }

    #[test]
    fn scales_become_multipliers() {
        assert_eq!(quantise(1.0), Some((1 << 30, 1)));
        assert_eq!(quantise(0.75), Some((3 << 29, 0)));
        assert_eq!(quantise(0.0), None);
        assert_eq!(quantise(f64::NAN), None);
        // Just below a power of two the significand rounds up to one.
        assert_eq!(quantise(1.0 - 1e-16), Some((1 << 30, 1)));
    }
}
