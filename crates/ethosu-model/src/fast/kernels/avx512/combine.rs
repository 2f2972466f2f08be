//! Element-wise operations on bytes.

use std::arch::x86_64::*;

use super::super::{Combination, Combine, LANES, Operand, Prepare, Results};
use super::finish::{Finish, Spilled};
use super::scaling::{Scaling, Wide};

/// Bytes that are combined at a time.
const STEP: usize = 4 * LANES;

/// An operand, in registers.
#[derive(Clone, Copy)]
struct Preparation {
    signed: bool,
    zero: __m512i,
    multiply: __m512i,
    scaling: Option<Wide>,
}

impl Preparation {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(operand: &Operand<'_>) -> Self {
        let (multiply, scaling) = match operand.prepare {
            Prepare::Multiply(by) => (by, None),
            // SAFETY: this function's own target feature.
            Prepare::Scale(block) => (1, Some(unsafe { Wide::load(block) })),
        };
        Self {
            signed: operand.signed,
            zero: _mm512_set1_epi32(operand.zero),
            multiply: _mm512_set1_epi32(multiply),
            scaling,
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn apply(&self, bytes: &[u8; LANES]) -> __m512i {
        // SAFETY: sixteen bytes.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        let values = if self.signed { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) };
        let values = _mm512_sub_epi32(values, self.zero);
        match &self.scaling {
            // SAFETY: this function's own target features.
            Some(scaling) => unsafe { scaling.apply(values) },
            None => _mm512_mullo_epi32(values, self.multiply),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn combine_all(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    let operands = [Preparation::new(&work.operands[0]), Preparation::new(&work.operands[1])];
    let (steps_a, rest_a) = a.as_chunks::<STEP>();
    let (steps_b, rest_b) = b.as_chunks::<STEP>();
    let (steps, rest) = results.as_chunks_mut::<STEP>();
    for ((results, a), b) in steps.iter_mut().zip(steps_a).zip(steps_b) {
        combine_step(work, &operands, a, b, results);
    }
    if !rest.is_empty() {
        let padded = |bytes: &[u8]| {
            let mut padded = [0; STEP];
            padded[..bytes.len()].copy_from_slice(bytes);
            padded
        };
        let mut results = [0; STEP];
        combine_step(work, &operands, &padded(rest_a), &padded(rest_b), &mut results);
        rest.copy_from_slice(&results[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn combine_step(
    work: &Combine<'_>,
    operands: &[Preparation; 2],
    a: &[u8; STEP],
    b: &[u8; STEP],
    results: &mut [u8; STEP],
) {
    let mut combined = [Spilled::ZERO; 4];
    for ((combined, a), b) in combined.iter_mut().zip(a.as_chunks().0).zip(b.as_chunks().0) {
        let (a, b) = (operands[0].apply(a), operands[1].apply(b));
        combined.store(match work.mode {
            Combination::Sum => _mm512_add_epi32(a, b),
            Combination::Difference => _mm512_sub_epi32(a, b),
            Combination::Product => _mm512_mullo_epi32(a, b),
        });
    }
    let finish = Finish::new(work.clamp, &mut Results::Bytes(results));
    // SAFETY: four times sixteen bytes, and this function's own target features.
    unsafe { finish.store(work.scale, &combined, [0, LANES, 2 * LANES, 3 * LANES]) };
}
