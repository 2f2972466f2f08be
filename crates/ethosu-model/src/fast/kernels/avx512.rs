//! AVX-512: VNNI dot products, VBMI byte permutes.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{
    BLOCKS_TOGETHER, Clamp, Combination, Combine, Convolve, Depthwise, LANES, Operand, Prepare, RequantBlock,
    Results, Segment,
};

pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vnni")
}

/// The scaling of sixteen channels, in registers.
#[derive(Clone, Copy)]
struct Scaling {
    scale: __m512i,
    scale_odd: __m512i,
    positive: [__m512i; 2],
    negative: [__m512i; 2],
    shift: [__m512i; 2],
}

impl Scaling {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(block: &RequantBlock) -> Self {
        let words = |words: &[i32; LANES]| {
            // SAFETY: sixteen 32-bit words are 64 bytes.
            unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
        };
        let longs = |longs: &[i64; LANES / 2]| {
            // SAFETY: eight 64-bit words are 64 bytes.
            unsafe { _mm512_loadu_si512(longs.as_ptr().cast()) }
        };
        Self {
            scale: words(&block.scale),
            scale_odd: words(&block.scale_odd),
            positive: [longs(&block.positive[0]), longs(&block.positive[1])],
            negative: [longs(&block.negative[0]), longs(&block.negative[1])],
            shift: [longs(&block.shift[0]), longs(&block.shift[1])],
        }
    }

    /// [`RequantBlock::apply`] on sixteen lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    fn apply(&self, value: __m512i) -> __m512i {
        let half = |product: __m512i, odd: usize| {
            // The multiplier isn't negative, so the product has the value's sign (or is 0, where either term gives 0 alike).
            let negative = _mm512_movepi64_mask(product);
            let term = _mm512_mask_blend_epi64(negative, self.positive[odd], self.negative[odd]);
            _mm512_srav_epi64(_mm512_add_epi64(product, term), self.shift[odd])
        };
        let even = half(_mm512_mul_epi32(value, self.scale), 0);
        let odd = half(_mm512_mul_epi32(_mm512_srli_epi64::<32>(value), self.scale_odd), 1);
        _mm512_mask_shuffle_epi32::<_MM_PERM_CCAA>(even, 0xAAAA, odd)
    }
}

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
    fn apply(&self, value: __m512i) -> __m512i {
        let value = _mm512_add_epi32(value, self.zero_point);
        _mm512_min_epi32(_mm512_max_epi32(value, self.low), self.high)
    }
}

/// Where results go, as raw pointers: the callers have checked that there is room.
#[derive(Clone, Copy)]
enum Out {
    Bytes(*mut u8),
    Words(*mut i32),
}

impl Out {
    fn new(results: &mut Results<'_>) -> Self {
        match results {
            Results::Bytes(bytes) => Self::Bytes(bytes.as_mut_ptr()),
            Results::Words(words) => Self::Words(words.as_mut_ptr()),
        }
    }

    /// Stores sixteen values from element `at` on.
    ///
    /// # Safety
    /// There must be sixteen elements from `at` on.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn store(self, at: usize, values: __m512i) {
        match self {
            // SAFETY: the caller's promise.
            Self::Bytes(out) => unsafe { _mm_storeu_si128(out.add(at).cast(), _mm512_cvtepi32_epi8(values)) },
            // SAFETY: the caller's promise.
            Self::Words(out) => unsafe { _mm512_storeu_si512(out.add(at).cast(), values) },
        }
    }
}

/// What a lane multiplies: four bytes or two 16-bit values.
trait Dot: Copy {
    const GROUP: usize;
    /// The byte order that turns pixels into groups.
    const TAPS_TO_GROUPS: &'static [u8; 64];
    type Weight;

    /// Adds the dot product of each lane.
    ///
    /// # Safety
    /// The machine must have AVX-512 VNNI.
    unsafe fn dot(sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i;
}

impl Dot for u8 {
    const GROUP: usize = 4;
    const TAPS_TO_GROUPS: &'static [u8; 64] = &taps_to_groups(1);
    type Weight = i8;

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
        _mm512_dpbusd_epi32(sums, inputs, weights)
    }
}

impl Dot for i16 {
    const GROUP: usize = 2;
    const TAPS_TO_GROUPS: &'static [u8; 64] = &taps_to_groups(2);
    type Weight = i16;

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    unsafe fn dot(sums: __m512i, inputs: __m512i, weights: __m512i) -> __m512i {
        _mm512_dpwssd_epi32(sums, inputs, weights)
    }
}

pub(super) fn convolve_bytes(work: Convolve<'_, u8, i8>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Convolve::check` has passed.
    unsafe { convolve(work) }
}

pub(super) fn convolve_words(work: Convolve<'_, i16, i16>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Convolve::check` has passed.
    unsafe { convolve(work) }
}

/// # Safety
/// `Convolve::check` must have passed.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn convolve<T: Dot>(mut work: Convolve<'_, T, T::Weight>) {
    let blocks = work.requant.len();
    let groups: usize = work.segments.iter().map(|segment| segment.groups).sum();
    let out = Out::new(&mut work.results);
    let clamp = Clamping::new(work.clamp);
    let mut first = 0;
    while first < blocks {
        let width = BLOCKS_TOGETHER.min(blocks - first);
        let weights = &work.weights[first * groups * LANES * T::GROUP..];
        let requant = &work.requant[first..first + width];
        let strip = Strip {
            staged: work.staged,
            segments: work.segments,
            weights,
            requant,
            clamp,
            out,
            pixels: work.pixels.len(),
            first,
        };
        // SAFETY: the caller's promise; `width` is the strip's number of blocks.
        unsafe {
            match width {
                1 => strip.run::<1, 8>(work.pixels),
                2 => strip.run::<2, 8>(work.pixels),
                3 => strip.run::<3, 8>(work.pixels),
                _ => strip.run::<4, 6>(work.pixels),
            }
        }
        first += width;
    }
}

/// Up to four blocks of output channels.
#[derive(Clone, Copy)]
struct Strip<'a, T: Dot> {
    staged: &'a [T],
    segments: &'a [Segment],
    weights: &'a [T::Weight],
    requant: &'a [RequantBlock],
    clamp: Clamping,
    out: Out,
    /// Pixels in all.
    pixels: usize,
    first: usize,
}

impl<T: Dot> Strip<'_, T> {
    /// # Safety
    /// As [`convolve`]; `N` is `requant.len()`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn run<const N: usize, const M: usize>(&self, pixels: &[usize]) {
        let mut tiles = pixels.chunks_exact(M);
        let mut pixel = 0;
        for tile in &mut tiles {
            let tile: &[usize; M] = tile.try_into().expect("M pixels");
            // SAFETY: the caller's promise.
            unsafe { self.tile::<N, M>(tile, pixel) };
            pixel += M;
        }
        let rest = tiles.remainder();
        macro_rules! rest {
            ($($m:literal)*) => {
                match rest.len() {
                    $($m => {
                        let tile: &[usize; $m] = rest.try_into().expect("as many pixels");
                        // SAFETY: the caller's promise.
                        unsafe { self.tile::<N, $m>(tile, pixel) }
                    })*
                    _ => {}
                }
            };
        }
        rest!(1 2 3 4 5 6 7);
    }

    /// `M` pixels, the first of them number `pixel`, of `N` blocks.
    ///
    /// # Safety
    /// As [`convolve`]; `N` is `requant.len()`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn tile<const N: usize, const M: usize>(&self, bases: &[usize; M], pixel: usize) {
        let mut sums = [[_mm512_setzero_si512(); N]; M];
        for n in 0..N {
            // SAFETY: a bias is sixteen 32-bit words, and there are N blocks.
            let bias = unsafe { _mm512_loadu_si512(self.requant.get_unchecked(n).bias.as_ptr().cast()) };
            for row in &mut sums {
                row[n] = bias;
            }
        }
        let mut weights = self.weights.as_ptr();
        for segment in self.segments {
            // SAFETY: `Convolve::check` has found all groups of all pixels inside `staged`, and as many weights as groups.
            unsafe {
                let mut inputs = bases.map(|base| self.staged.as_ptr().add(base + segment.offset));
                for _ in 0..segment.groups {
                    let mut row = [_mm512_setzero_si512(); N];
                    for (n, row) in row.iter_mut().enumerate() {
                        *row = _mm512_loadu_si512(weights.add(n * LANES * T::GROUP).cast());
                    }
                    weights = weights.add(N * LANES * T::GROUP);
                    for m in 0..M {
                        let group = _mm512_set1_epi32(inputs[m].cast::<i32>().read_unaligned());
                        inputs[m] = inputs[m].add(T::GROUP);
                        for n in 0..N {
                            sums[m][n] = T::dot(sums[m][n], group, row[n]);
                        }
                    }
                }
            }
        }
        // The sums go through memory here, once: indexed by the loops below they would be kept there all along.
        let mut spilled = [[Spilled([0; LANES]); N]; M];
        for m in 0..M {
            for n in 0..N {
                // SAFETY: sixteen 32-bit words are 64 bytes.
                unsafe { _mm512_storeu_si512(spilled[m][n].0.as_mut_ptr().cast(), sums[m][n]) };
            }
        }
        for n in 0..N {
            let scaling = Scaling::load(&self.requant[n]);
            for (m, row) in spilled.iter().enumerate() {
                let at = ((self.first + n) * self.pixels + pixel + m) * LANES;
                // SAFETY: sixteen 32-bit words are 64 bytes; `Convolve::check` has found room for every pixel's blocks.
                unsafe {
                    let sums = _mm512_loadu_si512(row[n].0.as_ptr().cast());
                    self.out.store(at, self.clamp.apply(scaling.apply(sums)));
                }
            }
        }
    }
}

/// Sixteen sums in memory, where loads and stores don't cross cache lines.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Spilled([i32; LANES]);

/// Where the bytes of sixteen groups come from in a run of pixels of sixteen channels, each channel `size` bytes: pixel `tap` of a
/// group's lane is its element `tap`.
const fn taps_to_groups(size: usize) -> [u8; 64] {
    let mut order = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (lane, tap, byte) = (at / 4, at % 4 / size, at % size);
        order[at] = ((tap * LANES + lane) * size + byte) as u8;
        at += 1;
    }
    order
}

pub(super) fn depthwise_bytes(work: Depthwise<'_, u8, i8>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Depthwise::check` has passed.
    unsafe {
        match work.offsets.len() {
            3 => depthwise::<u8, 3>(work),
            _ => depthwise::<u8, 0>(work),
        }
    }
}

pub(super) fn depthwise_words(work: Depthwise<'_, i16, i16>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Depthwise::check` has passed.
    unsafe {
        match work.offsets.len() {
            6 => depthwise::<i16, 6>(work),
            _ => depthwise::<i16, 0>(work),
        }
    }
}

/// `K` is the number of groups, or 0 if it isn't known at compile time.
///
/// # Safety
/// `Depthwise::check` must have passed.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
unsafe fn depthwise<T: Dot, const K: usize>(mut work: Depthwise<'_, T, T::Weight>) {
    let out = Out::new(&mut work.results);
    let clamp = Clamping::new(work.clamp);
    let groups = if K > 0 { K } else { work.offsets.len() };
    for (brick, requant) in work.requant.iter().enumerate() {
        let weights = &work.weights[brick * groups * LANES * T::GROUP..];
        let staged = &work.staged[brick * work.brick..];
        let offsets = &work.offsets[..groups];
        let strip = Taps { staged, offsets, weights, requant, clamp, out, first: brick * work.pixels.len() };
        // SAFETY: the caller's promise.
        unsafe {
            let mut pixel = 0;
            let mut tiles = work.pixels.chunks_exact(8);
            for tile in &mut tiles {
                strip.tile::<8>(tile.try_into().expect("eight pixels"), pixel);
                pixel += 8;
            }
            let mut tiles = tiles.remainder().chunks_exact(4);
            for tile in &mut tiles {
                strip.tile::<4>(tile.try_into().expect("four pixels"), pixel);
                pixel += 4;
            }
            for &base in tiles.remainder() {
                strip.tile::<1>(&[base], pixel);
                pixel += 1;
            }
        }
    }
}

/// One brick of a depthwise convolution.
struct Taps<'a, T: Dot> {
    staged: &'a [T],
    offsets: &'a [usize],
    weights: &'a [T::Weight],
    requant: &'a RequantBlock,
    clamp: Clamping,
    out: Out,
    /// Results before the brick's, in pixels.
    first: usize,
}

impl<T: Dot> Taps<'_, T> {
    /// `M` pixels, the first of them number `pixel`.
    ///
    /// # Safety
    /// As [`depthwise`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
    unsafe fn tile<const M: usize>(&self, bases: &[usize; M], pixel: usize) {
        // SAFETY: 64 bytes, and sixteen 32-bit words.
        let (order, bias) = unsafe {
            (
                _mm512_loadu_si512(T::TAPS_TO_GROUPS.as_ptr().cast()),
                _mm512_loadu_si512(self.requant.bias.as_ptr().cast()),
            )
        };
        let mut sums = [bias; M];
        for (group, &offset) in self.offsets.iter().enumerate() {
            // SAFETY: `Depthwise::check` has found the windows of all pixels inside `staged`, and the weights.
            unsafe {
                let weights = _mm512_loadu_si512(self.weights.as_ptr().add(group * LANES * T::GROUP).cast());
                for (sum, base) in sums.iter_mut().zip(bases) {
                    let taps = _mm512_loadu_si512(self.staged.as_ptr().add(base + offset).cast());
                    *sum = T::dot(*sum, _mm512_permutexvar_epi8(order, taps), weights);
                }
            }
        }
        let mut spilled = [Spilled([0; LANES]); M];
        for (spilled, &sum) in spilled.iter_mut().zip(&sums) {
            // SAFETY: sixteen 32-bit words are 64 bytes.
            unsafe { _mm512_storeu_si512(spilled.0.as_mut_ptr().cast(), sum) };
        }
        let scaling = Scaling::load(self.requant);
        for (m, spilled) in spilled.iter().enumerate() {
            // SAFETY: sixteen 32-bit words are 64 bytes; `Depthwise::check` has found room for every pixel.
            unsafe {
                let sum = _mm512_loadu_si512(spilled.0.as_ptr().cast());
                self.out.store((self.first + pixel + m) * LANES, self.clamp.apply(scaling.apply(sum)));
            }
        }
    }
}

pub(super) fn scale(values: &mut [i32], block: &RequantBlock) {
    assert!(available());
    // SAFETY: the instruction set is there.
    unsafe { scale_all(values, block) }
}

#[target_feature(enable = "avx512f,avx512dq")]
fn scale_all(values: &mut [i32], block: &RequantBlock) {
    let scaling = Scaling::load(block);
    for values in values.chunks_exact_mut(LANES) {
        // SAFETY: a chunk is sixteen 32-bit words.
        unsafe {
            let scaled = scaling.apply(_mm512_loadu_si512(values.as_ptr().cast()));
            _mm512_storeu_si512(values.as_mut_ptr().cast(), scaled);
        }
    }
}

pub(super) fn combine(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    assert!(available());
    // SAFETY: the instruction set is there.
    unsafe { combine_all(work, a, b, results) }
}

/// An operand of [`Combine`], in registers.
#[derive(Clone, Copy)]
struct Preparation {
    signed: bool,
    zero: __m512i,
    multiply: __m512i,
    scaling: Option<Scaling>,
}

impl Preparation {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(operand: &Operand<'_>) -> Self {
        let (multiply, scaling) = match operand.prepare {
            Prepare::Multiply(by) => (by, None),
            Prepare::Scale(block) => (1, Some(Scaling::load(block))),
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
    fn apply(&self, bytes: __m128i) -> __m512i {
        let value = if self.signed { _mm512_cvtepi8_epi32(bytes) } else { _mm512_cvtepu8_epi32(bytes) };
        let value = _mm512_sub_epi32(value, self.zero);
        match &self.scaling {
            Some(scaling) => scaling.apply(value),
            None => _mm512_mullo_epi32(value, self.multiply),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn combine_all(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    let operands = [Preparation::new(&work.operands[0]), Preparation::new(&work.operands[1])];
    let scaling = Scaling::load(work.scale);
    let clamp = Clamping::new(work.clamp);
    let sixteen = |a: __m128i, b: __m128i| {
        let (a, b) = (operands[0].apply(a), operands[1].apply(b));
        let combined = match work.mode {
            Combination::Sum => _mm512_add_epi32(a, b),
            Combination::Difference => _mm512_sub_epi32(a, b),
            Combination::Product => _mm512_mullo_epi32(a, b),
        };
        _mm512_cvtepi32_epi8(clamp.apply(scaling.apply(combined)))
    };
    let mut lines = results.chunks_exact_mut(LANES);
    for ((results, a), b) in (&mut lines).zip(a.chunks_exact(LANES)).zip(b.chunks_exact(LANES)) {
        // SAFETY: chunks are sixteen bytes.
        unsafe {
            let result = sixteen(_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast()));
            _mm_storeu_si128(results.as_mut_ptr().cast(), result);
        }
    }
    let rest = lines.into_remainder();
    let from = a.len() - rest.len();
    let mut last = [[0; LANES]; 2];
    last[0][..rest.len()].copy_from_slice(&a[from..]);
    last[1][..rest.len()].copy_from_slice(&b[from..]);
    let mut result = [0; LANES];
    // SAFETY: the arrays are sixteen bytes.
    unsafe {
        let values =
            sixteen(_mm_loadu_si128(last[0].as_ptr().cast()), _mm_loadu_si128(last[1].as_ptr().cast()));
        _mm_storeu_si128(result.as_mut_ptr().cast(), values);
    }
    rest.copy_from_slice(&result[..rest.len()]);
}
