//! The scaling of sixteen channels, in registers.

use std::arch::x86_64::*;

use super::super::{LANES, RequantBlock};

/// [`RequantBlock::apply`] on sixteen lanes.
pub(super) trait Scaling: Copy {
    /// Takes a block's constants into registers.
    ///
    /// # Safety
    /// The machine must have AVX-512 F.
    unsafe fn load(block: &RequantBlock) -> Self;

    /// Scales sixteen values.
    ///
    /// # Safety
    /// The machine must have AVX-512 F and DQ.
    unsafe fn apply(&self, values: __m512i) -> __m512i;
}

#[inline]
#[target_feature(enable = "avx512f")]
fn words(words: &[i32; LANES]) -> __m512i {
    // SAFETY: sixteen 32-bit words are 64 bytes.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn longs(longs: &[i64; LANES / 2]) -> __m512i {
    // SAFETY: eight 64-bit words are 64 bytes.
    unsafe { _mm512_loadu_si512(longs.as_ptr().cast()) }
}

/// Any block.
#[derive(Clone, Copy)]
pub(super) struct Wide {
    scale: __m512i,
    scale_odd: __m512i,
    positive: [__m512i; 2],
    negative: [__m512i; 2],
    shift: [__m512i; 2],
}

impl Scaling for Wide {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(block: &RequantBlock) -> Self {
        Self {
            scale: words(&block.scale),
            scale_odd: words(&block.scale_odd),
            positive: [longs(&block.positive[0]), longs(&block.positive[1])],
            negative: [longs(&block.negative[0]), longs(&block.negative[1])],
            shift: [longs(&block.shift[0]), longs(&block.shift[1])],
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn apply(&self, values: __m512i) -> __m512i {
        let half = |product: __m512i, odd: usize| {
            // The multiplier isn't negative, so the product has the value's sign (or is 0, where either term gives 0 alike).
            let negative = _mm512_movepi64_mask(product);
            let term = _mm512_mask_blend_epi64(negative, self.positive[odd], self.negative[odd]);
            _mm512_srav_epi64(_mm512_add_epi64(product, term), self.shift[odd])
        };
        let even = half(_mm512_mul_epi32(values, self.scale), 0);
        let odd = half(_mm512_mul_epi32(_mm512_srli_epi64::<32>(values), self.scale_odd), 1);
        _mm512_mask_shuffle_epi32::<_MM_PERM_CCAA>(even, 0xAAAA, odd)
    }
}

/// A [narrow](RequantBlock::narrow) block.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    scale: __m512i,
    scale_odd: __m512i,
    twice_positive: [__m512i; 2],
    sign_shift: __m512i,
    high_shift: __m512i,
}

impl Scaling for Narrow {
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn load(block: &RequantBlock) -> Self {
        Self {
            scale: words(&block.scale),
            scale_odd: words(&block.scale_odd),
            twice_positive: [longs(&block.twice_positive[0]), longs(&block.twice_positive[1])],
            sign_shift: words(&block.sign_shift),
            high_shift: words(&block.high_shift),
        }
    }

    /// As [`RequantBlock::apply_narrow`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    unsafe fn apply(&self, values: __m512i) -> __m512i {
        let twice = _mm512_add_epi32(values, values);
        let even = _mm512_add_epi64(_mm512_mul_epi32(twice, self.scale), self.twice_positive[0]);
        let odd = _mm512_mul_epi32(_mm512_srli_epi64::<32>(twice), self.scale_odd);
        let odd = _mm512_add_epi64(odd, self.twice_positive[1]);
        let high = _mm512_mask_shuffle_epi32::<_MM_PERM_DDBB>(odd, 0x5555, even);
        let nudge = _mm512_srlv_epi32(values, self.sign_shift);
        _mm512_srav_epi32(_mm512_sub_epi32(high, nudge), self.high_shift)
    }
}
