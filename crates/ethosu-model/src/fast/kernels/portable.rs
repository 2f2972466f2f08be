//! The kernels without any particular instruction set: what the others must equal.

use super::{
    BLOCKS_TOGETHER, Combination, Combine, Convolve, Depthwise, Element, Fold, Folding, LANES, RequantBlock,
    Results,
};
use crate::fast::kernels::Clamp;

/// Adds the products of a group: `inputs` for every lane, or its own for each.
fn finish(sums: &[i32; LANES], block: &RequantBlock, clamp: Clamp, results: &mut Results<'_>, at: usize) {
    let mut values = [0; LANES];
    for lane in 0..LANES {
        values[lane] = clamp.apply(block.apply(lane, sums[lane]));
    }
    match results {
        Results::Bytes(bytes) => {
            for (byte, value) in bytes[at..at + LANES].iter_mut().zip(values) {
                *byte = value as u8;
            }
        }
        Results::Words(words) => words[at..at + LANES].copy_from_slice(&values),
    }
}

pub(super) fn convolve<T>(mut work: Convolve<'_, T, T::Weight>)
where
    T: Element + Into<i32>,
    T::Weight: Into<i32>,
{
    let blocks = work.requant.len();
    let groups: usize = work.segments.iter().map(|segment| segment.groups).sum();
    let lane_weights = LANES * T::GROUP;
    for pixel in work.pixels {
        for block in 0..blocks {
            let together = block / BLOCKS_TOGETHER * BLOCKS_TOGETHER;
            let width = BLOCKS_TOGETHER.min(blocks - together);
            let weights = &work.weights[together * groups * lane_weights..];
            let mut sums = work.requant[block].bias;
            let mut group = 0;
            for segment in work.segments {
                let inputs = &work.staged[pixel.window + segment.offset..][..segment.groups * T::GROUP];
                for inputs in inputs.chunks_exact(T::GROUP) {
                    let at = (group * width + block - together) * lane_weights;
                    let weights = &weights[at..at + lane_weights];
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        for (part, &input) in inputs.iter().enumerate() {
                            let product = input.into() * weights[lane * T::GROUP + part].into();
                            *sum = sum.wrapping_add(product);
                        }
                    }
                    group += 1;
                }
            }
            finish(
                &sums,
                &work.requant[block],
                work.clamp,
                &mut work.results,
                pixel.result + block * work.block_step,
            );
        }
    }
}

pub(super) fn depthwise<T>(mut work: Depthwise<'_, T, T::Weight>)
where
    T: Element + Into<i32>,
    T::Weight: Into<i32>,
{
    let brick_weights = work.offsets.len() * LANES * T::GROUP;
    for (brick, requant) in work.requant.iter().enumerate() {
        let weights = &work.weights[brick * brick_weights..(brick + 1) * brick_weights];
        for pixel in work.pixels {
            let mut sums = requant.bias;
            for (&offset, weights) in work.offsets.iter().zip(weights.chunks_exact(LANES * T::GROUP)) {
                let inputs = &work.staged[pixel.window + brick * work.brick + offset..][..LANES * T::GROUP];
                for part in 0..T::GROUP {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        let product =
                            inputs[part * LANES + lane].into() * weights[lane * T::GROUP + part].into();
                        *sum = sum.wrapping_add(product);
                    }
                }
            }
            finish(&sums, requant, work.clamp, &mut work.results, pixel.result + brick * work.block_step);
        }
    }
}

/// Compiled once more for each instruction set that has vectors for it.
#[inline(always)]
pub(super) fn fold<T: Copy + Into<i32>>(work: Fold<'_, T>, results: &mut [i32]) {
    match work.folding {
        Folding::Largest => fold_with(work, results, i32::MIN, |a, b| a.max(b)),
        Folding::Smallest => fold_with(work, results, i32::MAX, |a, b| a.min(b)),
        Folding::Sum => fold_with(work, results, 0, |a, b| a + b),
    }
}

#[inline(always)]
fn fold_with<T: Copy + Into<i32>>(
    work: Fold<'_, T>,
    results: &mut [i32],
    first: i32,
    with: impl Fn(i32, i32) -> i32,
) {
    for (block, results) in results.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut values = [first; LANES];
        for row in 0..work.kernel.0 {
            let mut row = &work.staged[row * work.steps.0 + block * LANES..];
            for column in 0..work.kernel.1 {
                if column > 0 {
                    row = &row[work.steps.1..];
                }
                let inputs = row.first_chunk::<LANES>().expect("a block");
                for (value, &input) in values.iter_mut().zip(inputs) {
                    *value = with(*value, input.into());
                }
            }
        }
        *results = values;
    }
}

pub(super) fn scale(values: &mut [i32], block: &RequantBlock) {
    for values in values.chunks_exact_mut(LANES) {
        for (lane, value) in values.iter_mut().enumerate() {
            *value = block.apply(lane, *value);
        }
    }
}

pub(super) fn combine(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    for ((result, &a), &b) in results.iter_mut().zip(a).zip(b) {
        let (a, b) = (work.operands[0].planes.value(a), work.operands[1].planes.value(b));
        let combined = match work.mode {
            Combination::Sum => a.wrapping_add(b),
            Combination::Difference => a.wrapping_sub(b),
            Combination::Product => a.wrapping_mul(b),
        };
        *result = work.clamp.apply(work.scale.apply(0, combined)) as u8;
    }
}
