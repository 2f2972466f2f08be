//! Inputs to compare with: drawn from several distributions, because each hides faults that another shows.
//!
//! Full-range noise reaches every code but drives a classifier's softmax into saturation, where nearly everything
//! compares equal. A narrow band around the zero point keeps activations alive; smooth inputs look like sensor data;
//! extremes mixed in reach the clamps.

use npub::DType;
use npukit_vela::npy::Array;
use serde::Serialize;

use crate::dtype;
use crate::splitmix::SplitMix64;
use crate::tensor::TensorSpec;

/// How the values of an input are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Distribution {
    /// Every code equally likely.
    FullRange,
    /// Codes near the zero point, within a 128th to an 8th of the range.
    NarrowBand,
    /// Neighbouring elements are alike, along every axis.
    Smooth,
    /// Full range, with the lowest and the highest code in three of ten places.
    Extremes,
}

impl Distribution {
    /// All of them, in the order in which samples take turns.
    pub const ALL: [Distribution; 4] =
        [Distribution::FullRange, Distribution::NarrowBand, Distribution::Smooth, Distribution::Extremes];
}

/// Beyond 20 bits plus sign the products inside 32-bit kernels overflow, which no reference defines.
const WIDE_LIMIT: i64 = 1 << 20;
/// Elements between two independent values of a smooth input.
const SMOOTH_STEP: usize = 6;

/// `count` sets of inputs. Sample `i` depends on the seed and on `i`, not on `count`.
pub fn inputs(specs: &[TensorSpec], count: usize, seed: u64) -> Vec<Vec<Array>> {
    (0..count).map(|index| sample(specs, index, seed)).collect()
}

/// The distribution that sample `index` is drawn from.
pub fn distribution(index: usize) -> Distribution {
    Distribution::ALL[index % Distribution::ALL.len()]
}

/// One set of inputs.
pub fn sample(specs: &[TensorSpec], index: usize, seed: u64) -> Vec<Array> {
    // One more turn of the generator keeps neighbouring seeds and samples apart.
    let mut random = SplitMix64::new(
        SplitMix64::new(seed).next_word() ^ (index as u64).wrapping_mul(0xD134_2543_DE82_EF95),
    );
    specs.iter().map(|spec| draw(spec, distribution(index), &mut random)).collect()
}

fn draw(spec: &TensorSpec, distribution: Distribution, random: &mut SplitMix64) -> Array {
    let (low, high) = range(spec);
    let elements = spec.elements();
    let values: Vec<i64> = match distribution {
        Distribution::FullRange => (0..elements).map(|_| random.between(low, high)).collect(),
        Distribution::NarrowBand => {
            let zero = i64::from(spec.zero_point.unwrap_or(0)).clamp(low, high);
            let reach = ((high - low + 1) >> random.between(3, 7)).max(1);
            let (low, high) = ((zero - reach).max(low), (zero + reach).min(high));
            (0..elements).map(|_| random.between(low, high)).collect()
        }
        Distribution::Smooth => smooth(&spec.shape, low, high, random),
        Distribution::Extremes => (0..elements)
            .map(|_| match random.between(1, 20) {
                1..=3 => low,
                4..=6 => high,
                _ => random.between(low, high),
            })
            .collect(),
    };
    let mut bytes = Vec::with_capacity(spec.bytes());
    for value in values {
        dtype::push(&mut bytes, spec.dtype, value);
    }
    let array = dtype::array_type(spec.dtype).expect("a network has no inputs of other types");
    Array::new(array, spec.shape.clone(), bytes).expect("one value for each element")
}

/// What a tensor's values may be. An integer that stands for no real number is most likely an index: only 0 and 1 are
/// sure to be one.
fn range(spec: &TensorSpec) -> (i64, i64) {
    let limits = dtype::limits(spec.dtype);
    match (spec.dtype, limits) {
        (DType::Bool, _) | (_, None) => (0, 1),
        (DType::Int32 | DType::UInt32 | DType::Int64, _) if spec.scale.is_none() => (0, 1),
        (_, Some((low, high))) => (low.max(-WIDE_LIMIT), high.min(WIDE_LIMIT)),
    }
}

/// Independent values on a coarse grid, with straight lines between them along each axis in turn. Integers only, so
/// that every machine draws the same.
fn smooth(shape: &[usize], low: i64, high: i64, random: &mut SplitMix64) -> Vec<i64> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let coarse = |axis: usize| if axis == 1 { 1 } else { (axis - 1) / SMOOTH_STEP + 2 };
    // Half of the samples stay in a part of the range, as a dark image or a quiet sound does.
    let (low, high) = if random.one_in(2) {
        let middle = random.between(low, high);
        let reach = ((high - low) / 8).max(1);
        ((middle - reach).max(low), (middle + reach).min(high))
    } else {
        (low, high)
    };
    let mut extents: Vec<usize> = shape.iter().map(|&axis| coarse(axis)).collect();
    let mut values: Vec<i64> = (0..extents.iter().product()).map(|_| random.between(low, high)).collect();
    for axis in 0..shape.len() {
        if shape[axis] != extents[axis] || shape[axis] > 1 {
            let inner: usize = extents[axis + 1..].iter().product();
            values = stretch(&values, extents[axis], shape[axis], inner);
            extents[axis] = shape[axis];
        }
    }
    values
}

/// Stretches one axis of `from` grid points to `to` elements.
fn stretch(values: &[i64], from: usize, to: usize, inner: usize) -> Vec<i64> {
    let step = SMOOTH_STEP as i64;
    let mut stretched = Vec::with_capacity(values.len() / from * to);
    for block in values.chunks_exact(from * inner) {
        for position in 0..to {
            let (point, part) = (position / SMOOTH_STEP, (position % SMOOTH_STEP) as i64);
            for offset in 0..inner {
                let left = block[point * inner + offset];
                let right = block[(point + 1).min(from - 1) * inner + offset];
                stretched.push((left * (step - part) + right * part).div_euclid(step));
            }
        }
    }
    stretched
}

#[cfg(test)]
mod tests {
    use npub::Quantisation;

    use super::*;

    fn spec(dtype: DType, shape: &[usize], zero_point: i32) -> TensorSpec {
        TensorSpec::new("x", dtype, shape.to_vec(), Some(Quantisation { scale: 0.1, zero_point }))
    }

    fn codes(array: &Array) -> Vec<i64> {
        array.to_f64().unwrap().into_iter().map(|value| value as i64).collect()
    }

    #[test]
    fn a_sample_depends_on_seed_and_index_alone() {
        let specs = [spec(DType::Int8, &[1, 5, 7, 3], 4), spec(DType::Int16, &[2, 9], 0)];
        let ten = inputs(&specs, 10, 42);
        assert_eq!(ten[..4], inputs(&specs, 4, 42)[..]);
        assert_ne!(ten, inputs(&specs, 10, 43));
        assert_ne!(ten[0], ten[4]);
    }

    #[test]
    fn each_distribution_is_what_its_name_says() {
        for (dtype, zero) in [(DType::Int8, 11), (DType::UInt8, 128), (DType::Int16, 0)] {
            let (low, high) = dtype::limits(dtype).unwrap();
            let specs = [spec(dtype, &[1, 24, 24, 8], zero)];
            for index in 0..16 {
                let values = codes(&sample(&specs, index, 3)[0]);
                let (least, most) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
                assert!(least >= low && most <= high);
                let at_limits = values.iter().filter(|&&value| value == low || value == high).count();
                match distribution(index) {
                    Distribution::FullRange => assert!(most - least > (high - low) * 9 / 10),
                    Distribution::NarrowBand => assert!(most - least <= (high - low + 1) / 4),
                    Distribution::Extremes => {
                        assert!(at_limits * 10 > values.len() * 2 && at_limits * 10 < values.len() * 4);
                    }
                    Distribution::Smooth => {
                        let jump = |stride: usize| {
                            values.iter().zip(&values[stride..]).map(|(a, b)| (a - b).abs()).sum::<i64>()
                                / (values.len() - stride) as i64
                        };
                        // Along rows and columns the steps are small against those of noise, a third of the range.
                        assert!(jump(8) < (high - low) / 8 && jump(24 * 8) < (high - low) / 8);
                    }
                }
            }
        }
    }

    #[test]
    fn odd_tensors_are_drawn_too() {
        let index = TensorSpec::new("index", DType::Int32, vec![3], None);
        assert!(
            (0..20)
                .flat_map(|i| codes(&sample(std::slice::from_ref(&index), i, 1)[0]))
                .all(|v| (0..2).contains(&v))
        );
        for shape in [&[][..], &[0, 3], &[1], &[1, 1, 1, 1], &[7]] {
            for i in 0..8 {
                let drawn = sample(&[spec(DType::Int8, shape, 0)], i, 9);
                assert_eq!(drawn[0].shape(), shape);
            }
        }
    }
}
