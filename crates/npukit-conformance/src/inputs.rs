//! What a case is fed with: values within the ranges that the generator gives, from several distributions.

use npub::DType;
use npukit::splitmix::SplitMix64;
use npukit::tensor::TensorSpec;
use npukit::{Array, Dtype};

/// How the values of a sample are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    /// Every code equally likely.
    FullRange,
    /// The lowest and the highest code in three of ten places.
    Extremes,
    /// Near the zero point, within a 64th of the range.
    NarrowBand,
    /// The last input nearly cancels the first in every element where the shapes allow it, which shows how scaled operands
    /// are rounded; else a ramp through the range.
    Cancelling,
}

const ALL: [Distribution; 4] =
    [Distribution::FullRange, Distribution::Extremes, Distribution::NarrowBand, Distribution::Cancelling];

/// `count` sets of inputs, which depend on the seed alone. `ranges` has the lowest and highest code of each input.
///
/// `None` when an input has elements of a type that the suite doesn't feed.
pub fn draw(specs: &[TensorSpec], ranges: &[(i64, i64)], count: usize, seed: u64) -> Option<Vec<Vec<Array>>> {
    (0..count)
        .map(|index| {
            let mut random = SplitMix64::new(
                SplitMix64::new(seed).next_word() ^ (index as u64).wrapping_mul(0xD134_2543_DE82_EF95),
            );
            sample(specs, ranges, ALL[index % ALL.len()], &mut random)
        })
        .collect()
}

fn sample(
    specs: &[TensorSpec],
    ranges: &[(i64, i64)],
    distribution: Distribution,
    random: &mut SplitMix64,
) -> Option<Vec<Array>> {
    let mut codes: Vec<Vec<i64>> = Vec::new();
    for (index, spec) in specs.iter().enumerate() {
        let range = *ranges.get(index)?;
        let cancelled = (distribution == Distribution::Cancelling && index > 0)
            .then(|| cancelling(&specs[0], &codes[0], spec, range, random))
            .flatten();
        codes.push(cancelled.unwrap_or_else(|| values(spec, range, distribution, random)));
    }
    specs.iter().zip(&codes).map(|(spec, codes)| array(spec, codes)).collect()
}

fn values(
    spec: &TensorSpec,
    (low, high): (i64, i64),
    distribution: Distribution,
    random: &mut SplitMix64,
) -> Vec<i64> {
    let elements = spec.elements();
    match distribution {
        Distribution::FullRange => (0..elements).map(|_| random.between(low, high)).collect(),
        Distribution::Extremes => (0..elements)
            .map(|_| match random.between(1, 20) {
                1..=3 => low,
                4..=6 => high,
                _ => random.between(low, high),
            })
            .collect(),
        Distribution::NarrowBand => {
            let zero = i64::from(spec.zero_point.unwrap_or(0)).clamp(low, high);
            let reach = ((high - low) / 64).max(1);
            let (low, high) = ((zero - reach).max(low), (zero + reach).min(high));
            (0..elements).map(|_| random.between(low, high)).collect()
        }
        Distribution::Cancelling => {
            // An odd step reaches every code of a small range before it repeats one.
            let span = (high - low).saturating_add(1);
            let (start, step) = (random.between(0, span - 1), (span / 37).max(1) | 1);
            (0..elements as i64)
                .map(|place| low + start.wrapping_add(place.wrapping_mul(step)).rem_euclid(span))
                .collect()
        }
    }
}

/// Codes whose real values are those of `first`, or their opposites, to within two codes.
fn cancelling(
    first: &TensorSpec,
    codes: &[i64],
    spec: &TensorSpec,
    (low, high): (i64, i64),
    random: &mut SplitMix64,
) -> Option<Vec<i64>> {
    if first.shape != spec.shape {
        return None;
    }
    let ratio = f64::from(first.scale?) / f64::from(spec.scale?);
    let (from, to) = (i64::from(first.zero_point?), i64::from(spec.zero_point?));
    // The half of the elements for SUB, the other for ADD.
    let code = |place: usize, code: i64, random: &mut SplitMix64| {
        let real = (code - from) as f64 * ratio;
        let real = if place.is_multiple_of(2) { real } else { -real };
        (real.round() as i64).saturating_add(to + random.between(-2, 2)).clamp(low, high)
    };
    Some(codes.iter().enumerate().map(|(place, &value)| code(place, value, random)).collect())
}

fn array(spec: &TensorSpec, codes: &[i64]) -> Option<Array> {
    let dtype = match spec.dtype {
        DType::Bool => Dtype::Bool,
        DType::Int8 => Dtype::Int8,
        DType::UInt8 => Dtype::Uint8,
        DType::Int16 => Dtype::Int16,
        DType::Int32 => Dtype::Int32,
        DType::Int64 => Dtype::Int64,
        _ => return None,
    };
    // The ranges are within the type, so the low bytes are the element.
    let bytes = codes.iter().flat_map(|code| code.to_le_bytes().into_iter().take(dtype.bytes())).collect();
    Array::new(dtype, spec.shape.clone(), bytes).ok()
}

#[cfg(test)]
mod tests {
    use npub::Quantisation;

    use super::*;

    fn spec(dtype: DType, shape: &[usize], scale: f32, zero_point: i32) -> TensorSpec {
        TensorSpec::new("x", dtype, shape.to_vec(), Some(Quantisation { scale, zero_point }))
    }

    #[test]
    fn values_stay_in_their_ranges_and_reach_them() {
        let specs = [spec(DType::Int8, &[1, 20, 20, 4], 0.1, 7), spec(DType::Int32, &[3, 50], 0.1, 0)];
        let ranges = [(-128, 127), (-1000, 999)];
        let all = draw(&specs, &ranges, 8, 5).unwrap();
        for (input, (low, high)) in ranges.into_iter().enumerate() {
            let values: Vec<f64> = all.iter().flat_map(|set| set[input].to_f64().unwrap()).collect();
            assert!(values.iter().all(|value| (low as f64..=high as f64).contains(value)));
            assert!(values.contains(&(low as f64)) && values.contains(&(high as f64)));
        }
        assert_eq!(all[..4], draw(&specs, &ranges, 4, 5).unwrap()[..]);
        assert_ne!(all, draw(&specs, &ranges, 8, 6).unwrap());
    }

    #[test]
    fn the_fourth_sample_cancels() {
        let specs = [spec(DType::Int16, &[64], 0.5, 0), spec(DType::Int16, &[64], 1.0, 0)];
        let all = draw(&specs, &[(-32768, 32767); 2], 4, 1).unwrap();
        let (first, last) = (all[3][0].to_f64().unwrap(), all[3][1].to_f64().unwrap());
        for (place, (a, b)) in first.iter().zip(&last).enumerate() {
            let sign = if place % 2 == 0 { -1.0 } else { 1.0 };
            assert!((0.5 * a + sign * b).abs() <= 2.5, "{a} {b}");
        }
    }
}
