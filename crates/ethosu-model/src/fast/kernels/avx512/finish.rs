//! From sums to stored results.

use std::arch::x86_64::*;

use super::super::{Clamp, LANES, RequantBlock, Results};
use super::scaling::{Narrow, Scaling, Wide};

/// Sixteen sums in memory, where loads and stores don't cross cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Spilled([i32; LANES]);

impl Spilled {
    const ZERO: Self = Self([0; LANES]);

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(&mut self, sums: __m512i) {
        // SAFETY: sixteen 32-bit words are 64 bytes.
        unsafe { _mm512_storeu_si512(self.0.as_mut_ptr().cast(), sums) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(&self) -> __m512i {
        // SAFETY: sixteen 32-bit words are 64 bytes.
        unsafe { _mm512_loadu_si512(self.0.as_ptr().cast()) }
    }
}

/// Zero point and clamp of 32-bit values.
#[derive(Clone, Copy)]
struct Clamping {
    zero_point: __m512i,
    low: __m512i,
    high: __m512i,
}

impl Clamping {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(clamp: Clamp) -> Self {
        Self {
            zero_point: _mm512_set1_epi32(clamp.zero_point),
            low: _mm512_set1_epi32(clamp.low),
            high: _mm512_set1_epi32(clamp.high),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn apply(&self, values: __m512i) -> __m512i {
        let values = _mm512_add_epi32(values, self.zero_point);
        _mm512_min_epi32(_mm512_max_epi32(values, self.low), self.high)
    }
}

/// Zero point and clamp of values on their way to bytes, 64 at a time.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    zero_point: __m512i,
    low: __m512i,
    high: __m512i,
    signed: bool,
    order: __m512i,
}

/// After packing within 128-bit lanes: four channels of each pixel in a lane. This takes them to one pixel a lane.
const LANES_TO_PIXELS: [i32; LANES] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

impl Packing {
    /// `None` if the clamp isn't [one of bytes](Clamp::is_of_bytes).
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(clamp: Clamp) -> Option<Self> {
        if !clamp.is_of_bytes() {
            return None;
        }
        let signed = clamp.low < 0;
        // SAFETY: sixteen 32-bit words are 64 bytes.
        let order = unsafe { _mm512_loadu_si512(LANES_TO_PIXELS.as_ptr().cast()) };
        Some(Self {
            zero_point: _mm512_set1_epi16(clamp.zero_point as i16),
            low: _mm512_set1_epi8(clamp.low as i8),
            high: _mm512_set1_epi8(clamp.high as i8),
            signed,
            order,
        })
    }

    /// The bytes of four pixels, one a lane.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn pixels(&self, values: [__m512i; 4]) -> __m512i {
        _mm512_permutexvar_epi32(self.order, self.pack(values))
    }

    /// Each lane has the bytes of the first values' lane, then those of the second, third and last.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn pack(&self, values: [__m512i; 4]) -> __m512i {
        let front = _mm512_adds_epi16(_mm512_packs_epi32(values[0], values[1]), self.zero_point);
        let back = _mm512_adds_epi16(_mm512_packs_epi32(values[2], values[3]), self.zero_point);
        if self.signed {
            let bytes = _mm512_packs_epi16(front, back);
            _mm512_min_epi8(_mm512_max_epi8(bytes, self.low), self.high)
        } else {
            let bytes = _mm512_packus_epi16(front, back);
            _mm512_min_epu8(_mm512_max_epu8(bytes, self.low), self.high)
        }
    }
}

/// Where results go, as raw pointers: the callers have checked that there is room.
#[derive(Clone, Copy)]
enum Out {
    Bytes(*mut u8),
    Words(*mut i32),
}

/// Scales, clamps and stores.
pub(super) trait Finish: Copy {
    /// The results of `M` pixels in one block, at most eight, each from its element of `at` on.
    ///
    /// # Safety
    /// There must be sixteen elements from each on, and the machine must have AVX-512 F, BW, DQ and VL.
    unsafe fn store<const M: usize>(&self, block: &RequantBlock, sums: [__m512i; M], at: [usize; M]);
}

/// For bytes of narrow blocks: nearly everything there is.
#[derive(Clone, Copy)]
pub(super) struct FinishPacked {
    packing: Packing,
    out: *mut u8,
}

impl FinishPacked {
    /// `None` if the results aren't such.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new(clamp: Clamp, requant: &[RequantBlock], results: &mut Results<'_>) -> Option<Self> {
        let Results::Bytes(bytes) = results else { return None };
        if !requant.iter().all(|block| block.narrow) {
            return None;
        }
        Some(Self { packing: Packing::new(clamp)?, out: bytes.as_mut_ptr() })
    }
}

impl Finish for FinishPacked {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn store<const M: usize>(&self, block: &RequantBlock, sums: [__m512i; M], at: [usize; M]) {
        const { assert!(M <= 8) };
        // SAFETY: the caller's promise.
        unsafe {
            let scaling = Narrow::load(block);
            // Indices that the compiler knows keep the sums in registers.
            let value = |m: usize| if m < M { scaling.apply(sums[m]) } else { _mm512_setzero_si512() };
            let front = [value(0), value(1), value(2), value(3)];
            store_pixels(self.out, self.packing.pixels(front), at.get(..4).unwrap_or(&at));
            if M > 4 {
                let back = [value(4), value(5), value(6), value(7)];
                store_pixels(self.out, self.packing.pixels(back), &at[4..]);
            }
        }
    }
}

/// For all others.
#[derive(Clone, Copy)]
pub(super) struct FinishAny {
    clamp: Clamping,
    out: Out,
}

impl FinishAny {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(clamp: Clamp, results: &mut Results<'_>) -> Self {
        let out = match results {
            Results::Bytes(bytes) => Out::Bytes(bytes.as_mut_ptr()),
            Results::Words(words) => Out::Words(words.as_mut_ptr()),
        };
        Self { clamp: Clamping::new(clamp), out }
    }

    /// # Safety
    /// As [`Finish::store`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn store_scaled<const M: usize>(
        &self,
        scaling: impl Scaling,
        sums: &[Spilled; M],
        at: [usize; M],
    ) {
        for (sums, at) in sums.iter().zip(at) {
            // SAFETY: the caller's promise.
            unsafe {
                let values = self.clamp.apply(scaling.apply(sums.load()));
                match self.out {
                    Out::Bytes(out) => _mm_storeu_si128(out.add(at).cast(), _mm512_cvtepi32_epi8(values)),
                    Out::Words(out) => _mm512_storeu_si512(out.add(at).cast(), values),
                }
            }
        }
    }
}

impl Finish for FinishAny {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn store<const M: usize>(&self, block: &RequantBlock, sums: [__m512i; M], at: [usize; M]) {
        // The sums go through memory here, once: indexed by the loops below they would be kept there all along.
        let mut spilled = [Spilled::ZERO; M];
        for (spilled, &sum) in spilled.iter_mut().zip(&sums) {
            spilled.store(sum);
        }
        // SAFETY: the caller's promise.
        unsafe {
            if block.narrow {
                self.store_scaled(Narrow::load(block), &spilled, at);
            } else {
                self.store_scaled(Wide::load(block), &spilled, at);
            }
        }
    }
}

/// Stores as many of four pixels as there are places.
///
/// # Safety
/// There must be sixteen bytes from each place on.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_pixels(out: *mut u8, pixels: __m512i, at: &[usize]) {
    // SAFETY: the caller's promise.
    unsafe {
        let quarters = [
            _mm512_castsi512_si128(pixels),
            _mm512_extracti32x4_epi32::<1>(pixels),
            _mm512_extracti32x4_epi32::<2>(pixels),
            _mm512_extracti32x4_epi32::<3>(pixels),
        ];
        for (quarter, &at) in quarters.into_iter().zip(at) {
            _mm_storeu_si128(out.add(at).cast(), quarter);
        }
    }
}
