//! NEON, which every AArch64 machine has: 16-bit products added up in 32 bits.
#![allow(unsafe_code)]

use std::arch::aarch64::*;

use super::{
    BLOCKS_TOGETHER, Clamp, Combination, Combine, Convolve, Depthwise, LANES, Operand, Pixel, Prepare,
    RequantBlock, Results, Segment,
};

/// Elements in a group.
const GROUP: usize = 2;

/// Sixteen values or sums in lane order.
type Block = [int32x4_t; 4];

/// Sixteen 32-bit words.
///
/// # Safety
/// There must be 64 bytes.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_words(from: *const i32) -> Block {
    // SAFETY: the caller's promise.
    unsafe { [vld1q_s32(from), vld1q_s32(from.add(4)), vld1q_s32(from.add(8)), vld1q_s32(from.add(12))] }
}

/// The scaling of eight channels, the even and the odd ones apart.
#[derive(Clone, Copy)]
struct Scaling {
    scale: [int32x4_t; 2],
    positive: [[int64x2_t; 2]; 2],
    negative: [[int64x2_t; 2]; 2],
    /// Shifts to the left.
    shift: [[int64x2_t; 2]; 2],
}

impl Scaling {
    /// The first or second half of a block.
    #[inline]
    #[target_feature(enable = "neon")]
    fn load(block: &RequantBlock, half: usize) -> Self {
        let longs = |longs: &[i64; LANES / 2]| {
            let longs = &longs[half * 4..][..4];
            // SAFETY: four 64-bit words are 32 bytes.
            unsafe { [vld1q_s64(longs.as_ptr()), vld1q_s64(longs[2..].as_ptr())] }
        };
        // SAFETY: eight 32-bit words are 32 bytes.
        let scale = unsafe { vld2q_s32(block.scale[half * 8..][..8].as_ptr()) };
        let left = |shift: &[i64; LANES / 2]| longs(shift).map(|shift| vnegq_s64(shift));
        Self {
            scale: [scale.0, scale.1],
            positive: [longs(&block.positive[0]), longs(&block.positive[1])],
            negative: [longs(&block.negative[0]), longs(&block.negative[1])],
            shift: [left(&block.shift[0]), left(&block.shift[1])],
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn block(block: &RequantBlock) -> [Self; 2] {
        [Self::load(block, 0), Self::load(block, 1)]
    }

    /// [`RequantBlock::apply`] on eight lanes.
    #[inline]
    #[target_feature(enable = "neon")]
    fn apply(&self, values: [int32x4_t; 2]) -> [int32x4_t; 2] {
        let quarter = |value: int32x2_t, scale: int32x2_t, odd: usize, pair: usize| {
            let negative = vreinterpretq_u64_s64(vmovl_s32(vshr_n_s32::<31>(value)));
            let term = vbslq_s64(negative, self.negative[odd][pair], self.positive[odd][pair]);
            vmovn_s64(vshlq_s64(vaddq_s64(vmull_s32(value, scale), term), self.shift[odd][pair]))
        };
        let half = |value: int32x4_t, odd: usize| {
            let scale = self.scale[odd];
            vcombine_s32(
                quarter(vget_low_s32(value), vget_low_s32(scale), odd, 0),
                quarter(vget_high_s32(value), vget_high_s32(scale), odd, 1),
            )
        };
        let even = half(vuzp1q_s32(values[0], values[1]), 0);
        let odd = half(vuzp2q_s32(values[0], values[1]), 1);
        [vzip1q_s32(even, odd), vzip2q_s32(even, odd)]
    }
}

#[derive(Clone, Copy)]
struct Clamping {
    zero_point: int32x4_t,
    low: int32x4_t,
    high: int32x4_t,
}

impl Clamping {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(clamp: Clamp) -> Self {
        Self {
            zero_point: vdupq_n_s32(clamp.zero_point),
            low: vdupq_n_s32(clamp.low),
            high: vdupq_n_s32(clamp.high),
        }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn apply(&self, value: int32x4_t) -> int32x4_t {
        vminq_s32(vmaxq_s32(vaddq_s32(value, self.zero_point), self.low), self.high)
    }
}

/// The low bytes of sixteen values.
#[inline]
#[target_feature(enable = "neon")]
fn low_bytes(values: Block) -> uint8x16_t {
    let words = |low: int32x4_t, high: int32x4_t| vcombine_s16(vmovn_s32(low), vmovn_s32(high));
    let (low, high) = (words(values[0], values[1]), words(values[2], values[3]));
    vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)))
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
    #[target_feature(enable = "neon")]
    unsafe fn store(self, at: usize, values: Block) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Bytes(out) => vst1q_u8(out.add(at), low_bytes(values)),
                Self::Words(out) => {
                    for (four, value) in values.into_iter().enumerate() {
                        vst1q_s32(out.add(at + 4 * four), value);
                    }
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
    #[target_feature(enable = "neon")]
    unsafe fn store(&self, at: usize, sums: Block) {
        let [a, b] = self.scaling[0].apply([sums[0], sums[1]]);
        let [c, d] = self.scaling[1].apply([sums[2], sums[3]]);
        // SAFETY: the caller's promise.
        unsafe { self.out.store(at, [a, b, c, d].map(|value| self.clamp.apply(value))) }
    }
}

/// The weights of a group for sixteen lanes: the first of each pair and the second.
///
/// # Safety
/// There must be 32 weights.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn load_weights(from: *const i16) -> [int16x8x2_t; 2] {
    // SAFETY: the caller's promise.
    unsafe { [vld2q_s16(from), vld2q_s16(from.add(LANES))] }
}

// NEON belongs to every AArch64 target that Rust's standard library supports, so there is nothing to detect.

pub(super) fn convolve_words(work: Convolve<'_, i16, i16>) {
    // SAFETY: the instruction set is there, and `Convolve::check` has passed.
    unsafe { convolve(work) }
}

/// # Safety
/// `Convolve::check` must have passed.
#[target_feature(enable = "neon")]
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
            // SAFETY: a bias is sixteen 32-bit words.
            bias: unsafe { load_words(requant.bias.as_ptr()) },
            finish: Finish { scaling: &Scaling::block(requant), clamp, out },
            first: block * work.block_step,
        };
        // SAFETY: `Convolve::check` has passed.
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
    bias: Block,
    finish: Finish<'a>,
    /// Results before the block's.
    first: usize,
}

impl Strip<'_> {
    /// # Safety
    /// `Convolve::check` must have passed.
    #[target_feature(enable = "neon")]
    unsafe fn run(&self, pixels: &[Pixel]) {
        // Twenty sums and four vectors of weights leave eight registers for inputs.
        const TILE: usize = 5;
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
        rest!(1 2 3 4);
    }

    /// `M` pixels.
    ///
    /// # Safety
    /// `Convolve::check` must have passed.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn tile<const M: usize>(&self, pixels: &[Pixel; M]) {
        let mut sums = [self.bias; M];
        let mut weights = self.weights.as_ptr();
        for segment in self.segments {
            // SAFETY: `Convolve::check` has found all groups of all pixels inside `staged`, and as many weights as groups. The
            // pointers to weights end beyond the last group's, where none is read.
            unsafe {
                let inputs = pixels.map(|pixel| self.staged.as_ptr().add(pixel.window + segment.offset));
                for group in 0..segment.groups {
                    let [low, high] = load_weights(weights);
                    weights = weights.wrapping_add(self.step);
                    for m in 0..M {
                        let pair = inputs[m].add(group * GROUP).cast::<i32>().read_unaligned();
                        let pair = vreinterpret_s16_s32(vdup_n_s32(pair));
                        let [mut a, mut b, mut c, mut d] = sums[m];
                        a = vmlal_lane_s16::<0>(a, vget_low_s16(low.0), pair);
                        b = vmlal_high_lane_s16::<0>(b, low.0, pair);
                        c = vmlal_lane_s16::<0>(c, vget_low_s16(high.0), pair);
                        d = vmlal_high_lane_s16::<0>(d, high.0, pair);
                        a = vmlal_lane_s16::<1>(a, vget_low_s16(low.1), pair);
                        b = vmlal_high_lane_s16::<1>(b, low.1, pair);
                        c = vmlal_lane_s16::<1>(c, vget_low_s16(high.1), pair);
                        d = vmlal_high_lane_s16::<1>(d, high.1, pair);
                        sums[m] = [a, b, c, d];
                    }
                }
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            // SAFETY: `Convolve::check` has found room for every pixel's blocks.
            unsafe { self.finish.store(self.first + pixels[m].result, sums) };
        }
    }
}

pub(super) fn depthwise_words(work: Depthwise<'_, i16, i16>) {
    // SAFETY: the instruction set is there, and `Depthwise::check` has passed.
    unsafe { depthwise(work) }
}

/// # Safety
/// `Depthwise::check` must have passed.
#[target_feature(enable = "neon")]
unsafe fn depthwise(mut work: Depthwise<'_, i16, i16>) {
    let out = Out::new(&mut work.results);
    let clamp = Clamping::new(work.clamp);
    for (brick, requant) in work.requant.iter().enumerate() {
        let taps = Taps {
            staged: &work.staged[brick * work.brick..],
            offsets: work.offsets,
            weights: &work.weights[brick * work.offsets.len() * LANES * GROUP..],
            // SAFETY: a bias is sixteen 32-bit words.
            bias: unsafe { load_words(requant.bias.as_ptr()) },
            finish: Finish { scaling: &Scaling::block(requant), clamp, out },
            first: brick * work.block_step,
        };
        let mut tiles = work.pixels.chunks_exact(4);
        for tile in &mut tiles {
            // SAFETY: `Depthwise::check` has passed.
            unsafe { taps.tile::<4>(tile.try_into().expect("four pixels")) };
        }
        for &pixel in tiles.remainder() {
            // SAFETY: `Depthwise::check` has passed.
            unsafe { taps.tile::<1>(&[pixel]) };
        }
    }
}

/// One brick of a depthwise convolution.
struct Taps<'a> {
    staged: &'a [i16],
    offsets: &'a [usize],
    weights: &'a [i16],
    bias: Block,
    finish: Finish<'a>,
    /// Results before the brick's.
    first: usize,
}

impl Taps<'_> {
    /// `M` pixels.
    ///
    /// # Safety
    /// `Depthwise::check` must have passed.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn tile<const M: usize>(&self, pixels: &[Pixel; M]) {
        let mut sums = [self.bias; M];
        for (group, &offset) in self.offsets.iter().enumerate() {
            // SAFETY: `Depthwise::check` has found the windows of all pixels inside `staged`, and the weights.
            unsafe {
                let [low, high] = load_weights(self.weights.as_ptr().add(group * LANES * GROUP));
                for m in 0..M {
                    let columns = self.staged.as_ptr().add(pixels[m].window + offset);
                    let [mut a, mut b, mut c, mut d] = sums[m];
                    for (column, low, high) in [(columns, low.0, high.0), (columns.add(LANES), low.1, high.1)]
                    {
                        let inputs = [vld1q_s16(column), vld1q_s16(column.add(8))];
                        a = vmlal_s16(a, vget_low_s16(inputs[0]), vget_low_s16(low));
                        b = vmlal_high_s16(b, inputs[0], low);
                        c = vmlal_s16(c, vget_low_s16(inputs[1]), vget_low_s16(high));
                        d = vmlal_high_s16(d, inputs[1], high);
                    }
                    sums[m] = [a, b, c, d];
                }
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            // SAFETY: `Depthwise::check` has found room for every pixel.
            unsafe { self.finish.store(self.first + pixels[m].result, sums) };
        }
    }
}

pub(super) fn scale(values: &mut [i32], block: &RequantBlock) {
    // SAFETY: the instruction set is there.
    unsafe { scale_all(values, block) }
}

#[target_feature(enable = "neon")]
fn scale_all(values: &mut [i32], block: &RequantBlock) {
    let scaling = Scaling::block(block);
    for values in values.chunks_exact_mut(LANES) {
        for (values, scaling) in values.chunks_exact_mut(LANES / 2).zip(&scaling) {
            // SAFETY: eight 32-bit words are 32 bytes.
            unsafe {
                let [low, high] =
                    scaling.apply([vld1q_s32(values.as_ptr()), vld1q_s32(values[4..].as_ptr())]);
                vst1q_s32(values.as_mut_ptr(), low);
                vst1q_s32(values[4..].as_mut_ptr(), high);
            }
        }
    }
}

/// An operand of [`Combine`], in registers.
#[derive(Clone, Copy)]
struct Preparation {
    signed: bool,
    zero: int32x4_t,
    multiply: int32x4_t,
    scaling: Option<Scaling>,
}

impl Preparation {
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(operand: &Operand<'_>) -> Self {
        // All channels of an operand's block are alike.
        let (multiply, scaling) = match operand.prepare {
            Prepare::Multiply(by) => (by, None),
            Prepare::Scale(block) => (1, Some(Scaling::load(block, 0))),
        };
        Self {
            signed: operand.signed,
            zero: vdupq_n_s32(operand.zero),
            multiply: vdupq_n_s32(multiply),
            scaling,
        }
    }

    /// Eight bytes, prepared.
    #[inline]
    #[target_feature(enable = "neon")]
    fn apply(&self, bytes: uint8x8_t) -> [int32x4_t; 2] {
        let words = if self.signed {
            vmovl_s8(vreinterpret_s8_u8(bytes))
        } else {
            vreinterpretq_s16_u16(vmovl_u8(bytes))
        };
        let values =
            [vmovl_s16(vget_low_s16(words)), vmovl_high_s16(words)].map(|value| vsubq_s32(value, self.zero));
        match &self.scaling {
            Some(scaling) => scaling.apply(values),
            None => values.map(|value| vmulq_s32(value, self.multiply)),
        }
    }
}

pub(super) fn combine(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    // SAFETY: the instruction set is there.
    unsafe { combine_all(work, a, b, results) }
}

#[target_feature(enable = "neon")]
fn combine_all(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    let operands = [Preparation::new(&work.operands[0]), Preparation::new(&work.operands[1])];
    let scaling = Scaling::load(work.scale, 0);
    let clamp = Clamping::new(work.clamp);
    let eight = |a: uint8x8_t, b: uint8x8_t| {
        let (a, b) = (operands[0].apply(a), operands[1].apply(b));
        let combined = [0, 1].map(|half| match work.mode {
            Combination::Sum => vaddq_s32(a[half], b[half]),
            Combination::Difference => vsubq_s32(a[half], b[half]),
            Combination::Product => vmulq_s32(a[half], b[half]),
        });
        scaling.apply(combined).map(|value| clamp.apply(value))
    };
    let sixteen = |a: &[u8; LANES], b: &[u8; LANES]| {
        // SAFETY: the arrays are sixteen bytes.
        let (a, b) = unsafe { (vld1q_u8(a.as_ptr()), vld1q_u8(b.as_ptr())) };
        let [low, high] = eight(vget_low_u8(a), vget_low_u8(b));
        let [third, fourth] = eight(vget_high_u8(a), vget_high_u8(b));
        low_bytes([low, high, third, fourth])
    };
    let store = |result: &mut [u8; LANES], values: uint8x16_t| {
        // SAFETY: the array is sixteen bytes.
        unsafe { vst1q_u8(result.as_mut_ptr(), values) }
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
