//! AVX2: products of 16-bit pairs, and 64-bit shifts made exact without an arithmetic one.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{
    BLOCKS_TOGETHER, Clamp, Combination, Combine, Convolve, Depthwise, Fold, LANES, Operand, Pixel, Prepare,
    RequantBlock, Results, Segment, portable,
};

pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Lanes of a vector; a block is two of them.
const HALF: usize = LANES / 2;
/// Elements in a group.
const GROUP: usize = 2;

/// The scaling of eight channels.
///
/// AVX2 has no arithmetic shift of 64-bit lanes. With 2^63 added a sum is never negative as an unsigned number, so that the logical
/// shift rounds it down as well; the result is then too large by 2^(63 - shift), which is taken off its low 32 bits.
#[derive(Clone, Copy)]
struct Scaling {
    scale: __m256i,
    scale_odd: __m256i,
    /// Of the even and of the odd lanes, 2^63 included.
    positive: [__m256i; 2],
    negative: [__m256i; 2],
    shift: [__m256i; 2],
    excess: __m256i,
}

impl Scaling {
    /// The first or second half of a block.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(block: &RequantBlock, half: usize) -> Self {
        let words = |words: &[i32; LANES]| {
            // SAFETY: eight 32-bit words are 32 bytes, and `half` is 0 or 1.
            unsafe { _mm256_loadu_si256(words[half * HALF..][..HALF].as_ptr().cast()) }
        };
        let longs = |longs: &[i64; HALF]| {
            // SAFETY: four 64-bit words are 32 bytes, and `half` is 0 or 1.
            unsafe { _mm256_loadu_si256(longs[half * HALF / 2..][..HALF / 2].as_ptr().cast()) }
        };
        let top = _mm256_set1_epi64x(i64::MIN);
        let raised = |terms: &[i64; HALF]| _mm256_xor_si256(longs(terms), top);
        let shift = [longs(&block.shift[0]), longs(&block.shift[1])];
        // Up to a shift of 31 this has no bits below bit 32.
        let excess = shift.map(|shift| _mm256_srlv_epi64(top, shift));
        Self {
            scale: words(&block.scale),
            scale_odd: words(&block.scale_odd),
            positive: [raised(&block.positive[0]), raised(&block.positive[1])],
            negative: [raised(&block.negative[0]), raised(&block.negative[1])],
            shift,
            excess: merge(excess[0], excess[1]),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn block(block: &RequantBlock) -> [Self; 2] {
        [Self::load(block, 0), Self::load(block, 1)]
    }

    /// [`RequantBlock::apply`] on eight lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn apply(&self, value: __m256i) -> __m256i {
        let half = |product: __m256i, sign: __m256i, odd: usize| {
            let sign = _mm256_castsi256_pd(sign);
            let terms = [self.positive[odd], self.negative[odd]].map(|term| _mm256_castsi256_pd(term));
            let term = _mm256_castpd_si256(_mm256_blendv_pd(terms[0], terms[1], sign));
            _mm256_srlv_epi64(_mm256_add_epi64(product, term), self.shift[odd])
        };
        // Bit 63 of a 64-bit lane is the odd value's sign; shifted up, the even one's.
        let even = half(_mm256_mul_epi32(value, self.scale), _mm256_slli_epi64::<32>(value), 0);
        let odd = half(_mm256_mul_epi32(_mm256_srli_epi64::<32>(value), self.scale_odd), value, 1);
        _mm256_sub_epi32(merge(even, odd), self.excess)
    }
}

/// The low words of the even and of the odd lanes, in order.
#[inline]
#[target_feature(enable = "avx2")]
fn merge(even: __m256i, odd: __m256i) -> __m256i {
    _mm256_blend_epi32::<0b1010_1010>(even, _mm256_slli_epi64::<32>(odd))
}

#[derive(Clone, Copy)]
struct Clamping {
    zero_point: __m256i,
    low: __m256i,
    high: __m256i,
}

impl Clamping {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(clamp: Clamp) -> Self {
        Self {
            zero_point: _mm256_set1_epi32(clamp.zero_point),
            low: _mm256_set1_epi32(clamp.low),
            high: _mm256_set1_epi32(clamp.high),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn apply(&self, value: __m256i) -> __m256i {
        let value = _mm256_add_epi32(value, self.zero_point);
        _mm256_min_epi32(_mm256_max_epi32(value, self.low), self.high)
    }
}

/// The low bytes of sixteen values.
#[inline]
#[target_feature(enable = "avx2")]
fn low_bytes(values: [__m256i; 2]) -> __m128i {
    let byte = _mm256_set1_epi32(0xFF);
    let words = _mm256_packus_epi32(_mm256_and_si256(values[0], byte), _mm256_and_si256(values[1], byte));
    // Packing goes by 128-bit halves.
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(words);
    _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words))
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
    #[target_feature(enable = "avx2")]
    unsafe fn store(self, at: usize, values: [__m256i; 2]) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Bytes(out) => _mm_storeu_si128(out.add(at).cast(), low_bytes(values)),
                Self::Words(out) => {
                    _mm256_storeu_si256(out.add(at).cast(), values[0]);
                    _mm256_storeu_si256(out.add(at + HALF).cast(), values[1]);
                }
            }
        }
    }
}

/// How sums become results.
#[derive(Clone, Copy)]
struct Finish<'a> {
    scaling: &'a [Scaling; 2],
    clamp: Clamping,
    out: Out,
}

impl Finish<'_> {
    /// Scales, clamps and stores sixteen sums.
    ///
    /// # Safety
    /// As [`Out::store`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(&self, at: usize, sums: [__m256i; 2]) {
        let low = self.clamp.apply(self.scaling[0].apply(sums[0]));
        let high = self.clamp.apply(self.scaling[1].apply(sums[1]));
        // SAFETY: the caller's promise.
        unsafe { self.out.store(at, [low, high]) }
    }
}

/// A vector from memory.
///
/// # Safety
/// There must be 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<T>(from: *const T) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// A block's bias.
#[inline]
#[target_feature(enable = "avx2")]
fn bias(block: &RequantBlock) -> [__m256i; 2] {
    // SAFETY: sixteen 32-bit words are 64 bytes.
    unsafe { [load(block.bias.as_ptr()), load(block.bias.as_ptr().add(HALF))] }
}

pub(super) fn convolve_words(work: Convolve<'_, i16, i16>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Convolve::check` has passed.
    unsafe { convolve(work) }
}

/// # Safety
/// `Convolve::check` must have passed.
#[target_feature(enable = "avx2")]
unsafe fn convolve(mut work: Convolve<'_, i16, i16>) {
    let blocks = work.requant.len();
    let groups: usize = work.segments.iter().map(|segment| segment.groups).sum();
    let out = Out::new(&mut work.results);
    let clamp = Clamping::new(work.clamp);
    for (block, requant) in work.requant.iter().enumerate() {
        let together = block / BLOCKS_TOGETHER * BLOCKS_TOGETHER;
        let width = BLOCKS_TOGETHER.min(blocks - together);
        let at = (together * groups + block - together) * LANES * GROUP;
        let strip = Strip {
            staged: work.staged,
            segments: work.segments,
            // Without groups there is no weight, and none is read.
            weights: work.weights.get(at..).unwrap_or_default(),
            step: width * LANES * GROUP,
            bias: bias(requant),
            finish: Finish { scaling: &Scaling::block(requant), clamp, out },
            first: block * work.block_step,
        };
        // SAFETY: the caller's promise.
        unsafe { strip.run(work.pixels) };
    }
}

/// One block of output channels.
struct Strip<'a> {
    staged: &'a [i16],
    segments: &'a [Segment],
    weights: &'a [i16],
    /// Weights from a group of this block to the next.
    step: usize,
    bias: [__m256i; 2],
    finish: Finish<'a>,
    /// Results before the block's.
    first: usize,
}

impl Strip<'_> {
    /// # Safety
    /// As [`convolve`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn run(&self, pixels: &[Pixel]) {
        // Twelve sums, two vectors of weights, an input and a product fill the sixteen registers.
        const TILE: usize = 6;
        let mut tiles = pixels.chunks_exact(TILE);
        for tile in &mut tiles {
            // SAFETY: the caller's promise.
            unsafe { self.tile::<TILE>(tile.try_into().expect("a tile")) };
        }
        let rest = tiles.remainder();
        macro_rules! rest {
            ($($m:literal)*) => {
                match rest.len() {
                    // SAFETY: the caller's promise.
                    $($m => unsafe { self.tile::<$m>(rest.try_into().expect("as many pixels")) },)*
                    _ => {}
                }
            };
        }
        rest!(1 2 3 4 5);
    }

    /// `M` pixels.
    ///
    /// # Safety
    /// As [`convolve`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn tile<const M: usize>(&self, pixels: &[Pixel; M]) {
        let mut low = [self.bias[0]; M];
        let mut high = [self.bias[1]; M];
        let mut weights = self.weights.as_ptr();
        for segment in self.segments {
            // SAFETY: `Convolve::check` has found all groups of all pixels inside `staged`, and as many weights as groups. The
            // pointers to weights end beyond the last group's, where none is read.
            unsafe {
                let inputs = pixels.map(|pixel| self.staged.as_ptr().add(pixel.window + segment.offset));
                for group in 0..segment.groups {
                    let row = [load(weights), load(weights.add(LANES))];
                    weights = weights.wrapping_add(self.step);
                    for m in 0..M {
                        let input = inputs[m].add(group * GROUP).cast::<i32>().read_unaligned();
                        let input = _mm256_set1_epi32(input);
                        low[m] = _mm256_add_epi32(low[m], _mm256_madd_epi16(input, row[0]));
                        high[m] = _mm256_add_epi32(high[m], _mm256_madd_epi16(input, row[1]));
                    }
                }
            }
        }
        for m in 0..M {
            // SAFETY: `Convolve::check` has found room for every pixel's blocks.
            unsafe { self.finish.store(self.first + pixels[m].result, [low[m], high[m]]) };
        }
    }
}

pub(super) fn depthwise_words(work: Depthwise<'_, i16, i16>) {
    assert!(available());
    // SAFETY: the instruction set is there, and `Depthwise::check` has passed.
    unsafe { depthwise(work) }
}

/// # Safety
/// `Depthwise::check` must have passed.
#[target_feature(enable = "avx2")]
unsafe fn depthwise(mut work: Depthwise<'_, i16, i16>) {
    let out = Out::new(&mut work.results);
    let clamp = Clamping::new(work.clamp);
    for (brick, requant) in work.requant.iter().enumerate() {
        let [low, high] = bias(requant);
        let taps = Taps {
            staged: &work.staged[brick * work.brick..],
            offsets: work.offsets,
            weights: &work.weights[brick * work.offsets.len() * LANES * GROUP..],
            bias: [
                _mm256_permute2x128_si256::<0x20>(low, high),
                _mm256_permute2x128_si256::<0x31>(low, high),
            ],
            finish: Finish { scaling: &Scaling::block(requant), clamp, out },
            first: brick * work.block_step,
        };
        let mut tiles = work.pixels.chunks_exact(4);
        for tile in &mut tiles {
            // SAFETY: the caller's promise.
            unsafe { taps.tile::<4>(tile.try_into().expect("four pixels")) };
        }
        for &pixel in tiles.remainder() {
            // SAFETY: the caller's promise.
            unsafe { taps.tile::<1>(&[pixel]) };
        }
    }
}

/// One brick of a depthwise convolution. Sums are kept in the order in which 16-bit values interleave: channels 0 to 3 and 8 to 11,
/// then the others.
struct Taps<'a> {
    staged: &'a [i16],
    offsets: &'a [usize],
    weights: &'a [i16],
    bias: [__m256i; 2],
    finish: Finish<'a>,
    /// Results before the brick's.
    first: usize,
}

impl Taps<'_> {
    /// `M` pixels.
    ///
    /// # Safety
    /// As [`depthwise`].
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn tile<const M: usize>(&self, pixels: &[Pixel; M]) {
        let mut low = [self.bias[0]; M];
        let mut high = [self.bias[1]; M];
        for (group, &offset) in self.offsets.iter().enumerate() {
            // SAFETY: `Depthwise::check` has found the windows of all pixels inside `staged`, and the weights.
            unsafe {
                let weights = self.weights.as_ptr().add(group * LANES * GROUP);
                let row = [load(weights), load(weights.add(LANES))];
                let row = [
                    _mm256_permute2x128_si256::<0x20>(row[0], row[1]),
                    _mm256_permute2x128_si256::<0x31>(row[0], row[1]),
                ];
                for m in 0..M {
                    let columns = self.staged.as_ptr().add(pixels[m].window + offset);
                    let columns = [load(columns), load(columns.add(LANES))];
                    let pairs = _mm256_unpacklo_epi16(columns[0], columns[1]);
                    low[m] = _mm256_add_epi32(low[m], _mm256_madd_epi16(pairs, row[0]));
                    let pairs = _mm256_unpackhi_epi16(columns[0], columns[1]);
                    high[m] = _mm256_add_epi32(high[m], _mm256_madd_epi16(pairs, row[1]));
                }
            }
        }
        for m in 0..M {
            let sums = [
                _mm256_permute2x128_si256::<0x20>(low[m], high[m]),
                _mm256_permute2x128_si256::<0x31>(low[m], high[m]),
            ];
            // SAFETY: `Depthwise::check` has found room for every pixel.
            unsafe { self.finish.store(self.first + pixels[m].result, sums) };
        }
    }
}

pub(super) fn fold<T: Copy + Into<i32>>(work: Fold<'_, T>, results: &mut [i32]) {
    #[target_feature(enable = "avx2")]
    fn vectors<T: Copy + Into<i32>>(work: Fold<'_, T>, results: &mut [i32]) {
        portable::fold(work, results);
    }
    assert!(available());
    // SAFETY: the instruction set is there.
    unsafe { vectors(work, results) }
}

pub(super) fn scale(values: &mut [i32], block: &RequantBlock) {
    assert!(available());
    // SAFETY: the instruction set is there.
    unsafe { scale_all(values, block) }
}

#[target_feature(enable = "avx2")]
fn scale_all(values: &mut [i32], block: &RequantBlock) {
    let scaling = Scaling::block(block);
    for values in values.chunks_exact_mut(LANES) {
        for (values, scaling) in values.chunks_exact_mut(HALF).zip(&scaling) {
            // SAFETY: eight 32-bit words are 32 bytes.
            unsafe {
                let scaled = scaling.apply(load(values.as_ptr()));
                _mm256_storeu_si256(values.as_mut_ptr().cast(), scaled);
            }
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
    zero: __m256i,
    multiply: __m256i,
    scaling: Option<Scaling>,
}

impl Preparation {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(operand: &Operand<'_>) -> Self {
        // All channels of an operand's block are alike.
        let (multiply, scaling) = match operand.prepare {
            Prepare::Multiply(by) => (by, None),
            Prepare::Scale(block) => (1, Some(Scaling::load(block, 0))),
        };
        Self {
            signed: operand.signed,
            zero: _mm256_set1_epi32(operand.zero),
            multiply: _mm256_set1_epi32(multiply),
            scaling,
        }
    }

    /// The first eight bytes, prepared.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn apply(&self, bytes: __m128i) -> __m256i {
        let value = if self.signed { _mm256_cvtepi8_epi32(bytes) } else { _mm256_cvtepu8_epi32(bytes) };
        let value = _mm256_sub_epi32(value, self.zero);
        match &self.scaling {
            Some(scaling) => scaling.apply(value),
            None => _mm256_mullo_epi32(value, self.multiply),
        }
    }
}

#[target_feature(enable = "avx2")]
fn combine_all(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    let operands = [Preparation::new(&work.operands[0]), Preparation::new(&work.operands[1])];
    let scaling = Scaling::load(work.scale, 0);
    let clamp = Clamping::new(work.clamp);
    let eight = |a: __m128i, b: __m128i| {
        let (a, b) = (operands[0].apply(a), operands[1].apply(b));
        let combined = match work.mode {
            Combination::Sum => _mm256_add_epi32(a, b),
            Combination::Difference => _mm256_sub_epi32(a, b),
            Combination::Product => _mm256_mullo_epi32(a, b),
        };
        clamp.apply(scaling.apply(combined))
    };
    let sixteen = |a: &[u8; LANES], b: &[u8; LANES]| {
        // SAFETY: the arrays are sixteen bytes.
        let (a, b) = unsafe { (_mm_loadu_si128(a.as_ptr().cast()), _mm_loadu_si128(b.as_ptr().cast())) };
        low_bytes([eight(a, b), eight(_mm_unpackhi_epi64(a, a), _mm_unpackhi_epi64(b, b))])
    };
    let store = |result: &mut [u8; LANES], values: __m128i| {
        // SAFETY: the array is sixteen bytes.
        unsafe { _mm_storeu_si128(result.as_mut_ptr().cast(), values) }
    };
    let (lines, rest) = results.as_chunks_mut::<LANES>();
    let ((a_lines, a_rest), (b_lines, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for ((result, a), b) in lines.iter_mut().zip(a_lines).zip(b_lines) {
        store(result, sixteen(a, b));
    }
    let padded = |bytes: &[u8]| {
        let mut line = [0; LANES];
        line[..bytes.len()].copy_from_slice(bytes);
        line
    };
    let mut last = [0; LANES];
    store(&mut last, sixteen(&padded(a_rest), &padded(b_rest)));
    rest.copy_from_slice(&last[..rest.len()]);
}
