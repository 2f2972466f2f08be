//! Element-wise operations on bytes.

use std::arch::x86_64::*;

use super::super::{Combination, Combine, Planes};
use super::finish::Packing;
use super::scaling::{Narrow, Scaling, Wide};

/// Bytes that are combined at a time.
const STEP: usize = 64;

/// # Safety
/// The machine must have the instruction set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(super) unsafe fn combine_all(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    // SAFETY: the caller's promise.
    unsafe {
        if work.scale.narrow {
            combine_scaled(work, Narrow::load(work.scale), a, b, results);
        } else {
            combine_scaled(work, Wide::load(work.scale), a, b, results);
        }
    }
}

/// # Safety
/// As [`combine_all`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
unsafe fn combine_scaled(work: &Combine<'_>, scaling: impl Scaling, a: &[u8], b: &[u8], results: &mut [u8]) {
    let packing = Packing::new(work.clamp).expect("`combine` has seen that the clamp is one of bytes");
    let step = |a: &[u8; STEP], b: &[u8; STEP]| {
        let (a, b) = (look_up(work.operands[0].planes, a), look_up(work.operands[1].planes, b));
        let mut values = [_mm512_setzero_si512(); 4];
        for (value, (a, b)) in values.iter_mut().zip(a.into_iter().zip(b)) {
            let combined = match work.mode {
                Combination::Sum => _mm512_add_epi32(a, b),
                Combination::Difference => _mm512_sub_epi32(a, b),
                Combination::Product => _mm512_mullo_epi32(a, b),
            };
            // SAFETY: the caller's promise.
            *value = unsafe { scaling.apply(combined) };
        }
        // Packing undoes the order in which `look_up` gives the values.
        packing.pack(values)
    };
    let (steps_a, rest_a) = a.as_chunks();
    let (steps_b, rest_b) = b.as_chunks();
    let (steps, rest) = results.as_chunks_mut();
    for ((results, a), b) in steps.iter_mut().zip(steps_a).zip(steps_b) {
        store(results, step(a, b));
    }
    if !rest.is_empty() {
        let padded = |bytes: &[u8]| {
            let mut padded = [0; STEP];
            padded[..bytes.len()].copy_from_slice(bytes);
            padded
        };
        let mut results = [0; STEP];
        store(&mut results, step(&padded(rest_a), &padded(rest_b)));
        rest.copy_from_slice(&results[..rest.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(results: &mut [u8; STEP], bytes: __m512i) {
    // SAFETY: 64 bytes.
    unsafe { _mm512_storeu_si512(results.as_mut_ptr().cast(), bytes) }
}

/// The prepared values of 64 bytes. Number `k` has, in each of its 128-bit lanes, the values of four bytes from byte `4 * k` of the
/// same lane on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn look_up(planes: &Planes, bytes: &[u8; STEP]) -> [__m512i; 4] {
    // SAFETY: 64 bytes.
    let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let upper = _mm512_movepi8_mask(bytes);
    let plane = |plane: &[u8; 256]| {
        // SAFETY: a quarter of a plane is 64 bytes.
        let quarter = |number: usize| unsafe { _mm512_loadu_si512(plane.as_ptr().add(64 * number).cast()) };
        let low = _mm512_permutex2var_epi8(quarter(0), bytes, quarter(1));
        let high = _mm512_permutex2var_epi8(quarter(2), bytes, quarter(3));
        _mm512_mask_blend_epi8(upper, low, high)
    };
    let [a, b, c, d] = [0, 1, 2, 3].map(|number| plane(&planes.0[number]));
    let (low, low_upper) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
    let (high, high_upper) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_unpacklo_epi16(low, low_upper),
        _mm512_unpackhi_epi16(low, low_upper),
        _mm512_unpacklo_epi16(high, high_upper),
        _mm512_unpackhi_epi16(high, high_upper),
    ]
}
