//! AVX-512: VNNI dot products, VBMI byte permutes.
#![allow(unsafe_code)]

mod combine;
mod finish;
mod scaling;

use std::arch::x86_64::*;

use finish::{Finish, FinishAny, FinishPacked};
use scaling::{Scaling, Wide};

use super::{
    BLOCKS_TOGETHER, Combine, Convolve, Depthwise, Fold, LANES, Pixel, RequantBlock, Segment, portable,
};

pub(super) fn available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vnni")
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
    // SAFETY: the caller's promise.
    unsafe {
        match FinishPacked::new(work.clamp, work.requant, &mut work.results) {
            Some(finish) => convolve_with(&work, finish),
            None => {
                let finish = FinishAny::new(work.clamp, &mut work.results);
                convolve_with(&work, finish);
            }
        }
    }
}

/// # Safety
/// As [`convolve`]; `finish` is one for the results of `work`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn convolve_with<T: Dot>(work: &Convolve<'_, T, T::Weight>, finish: impl Finish) {
    let blocks = work.requant.len();
    let groups: usize = work.segments.iter().map(|segment| segment.groups).sum();
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
            finish,
            first: first * work.block_step,
            block_step: work.block_step,
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
struct Strip<'a, T: Dot, F> {
    staged: &'a [T],
    segments: &'a [Segment],
    weights: &'a [T::Weight],
    requant: &'a [RequantBlock],
    finish: F,
    /// Results before the first block's.
    first: usize,
    block_step: usize,
}

impl<T: Dot, F: Finish> Strip<'_, T, F> {
    /// # Safety
    /// As [`convolve`]; `N` is `requant.len()`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn run<const N: usize, const M: usize>(&self, pixels: &[Pixel]) {
        let mut tiles = pixels.chunks_exact(M);
        for tile in &mut tiles {
            let tile: &[Pixel; M] = tile.try_into().expect("M pixels");
            // SAFETY: the caller's promise.
            unsafe { self.tile::<N, M>(tile) };
        }
        let rest = tiles.remainder();
        macro_rules! rest {
            ($($m:literal)*) => {
                match rest.len() {
                    $($m => {
                        let tile: &[Pixel; $m] = rest.try_into().expect("as many pixels");
                        // SAFETY: the caller's promise.
                        unsafe { self.tile::<N, $m>(tile) }
                    })*
                    _ => {}
                }
            };
        }
        rest!(1 2 3 4 5 6 7);
    }

    /// `M` pixels of `N` blocks.
    ///
    /// # Safety
    /// As [`convolve`]; `N` is `requant.len()`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn tile<const N: usize, const M: usize>(&self, pixels: &[Pixel; M]) {
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
                let mut inputs = pixels.map(|pixel| self.staged.as_ptr().add(pixel.window + segment.offset));
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
        // With indices that the compiler knows, and without a closure that borrows them, sums stay in registers.
        macro_rules! finish {
            ($($n:literal)*) => {
                $(if $n < N {
                    let first = self.first + $n * self.block_step;
                    let at = pixels.map(|pixel| first + pixel.result);
                    let sums = sums.map(|row| row[$n]);
                    // SAFETY: `Convolve::check` has found room for every pixel's blocks.
                    unsafe { self.finish.store(self.requant.get_unchecked($n), sums, at) };
                })*
            };
        }
        const { assert!(N <= 4) };
        finish!(0 1 2 3);
    }
}

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
    // SAFETY: the caller's promise.
    unsafe {
        match FinishPacked::new(work.clamp, work.requant, &mut work.results) {
            Some(finish) => depthwise_with::<T, K>(&work, finish),
            None => {
                let finish = FinishAny::new(work.clamp, &mut work.results);
                depthwise_with::<T, K>(&work, finish);
            }
        }
    }
}

/// # Safety
/// As [`depthwise`]; `finish` is one for the results of `work`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
unsafe fn depthwise_with<T: Dot, const K: usize>(work: &Depthwise<'_, T, T::Weight>, finish: impl Finish) {
    let groups = if K > 0 { K } else { work.offsets.len() };
    for (brick, requant) in work.requant.iter().enumerate() {
        let weights = &work.weights[brick * groups * LANES * T::GROUP..];
        let staged = &work.staged[brick * work.brick..];
        let offsets = &work.offsets[..groups];
        let strip = Taps { staged, offsets, weights, requant, finish, first: brick * work.block_step };
        // SAFETY: the caller's promise.
        unsafe {
            let mut tiles = work.pixels.chunks_exact(8);
            for tile in &mut tiles {
                strip.tile::<8>(tile.try_into().expect("eight pixels"));
            }
            let mut tiles = tiles.remainder().chunks_exact(4);
            for tile in &mut tiles {
                strip.tile::<4>(tile.try_into().expect("four pixels"));
            }
            for &pixel in tiles.remainder() {
                strip.tile::<1>(&[pixel]);
            }
        }
    }
}

/// One brick of a depthwise convolution.
struct Taps<'a, T: Dot, F> {
    staged: &'a [T],
    offsets: &'a [usize],
    weights: &'a [T::Weight],
    requant: &'a RequantBlock,
    finish: F,
    /// Results before the brick's.
    first: usize,
}

impl<T: Dot, F: Finish> Taps<'_, T, F> {
    /// `M` pixels.
    ///
    /// # Safety
    /// As [`depthwise`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")]
    unsafe fn tile<const M: usize>(&self, pixels: &[Pixel; M]) {
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
                for (sum, pixel) in sums.iter_mut().zip(pixels) {
                    let taps = _mm512_loadu_si512(self.staged.as_ptr().add(pixel.window + offset).cast());
                    *sum = T::dot(*sum, _mm512_permutexvar_epi8(order, taps), weights);
                }
            }
        }
        let at = pixels.map(|pixel| self.first + pixel.result);
        // SAFETY: `Depthwise::check` has found room for every pixel.
        unsafe { self.finish.store(self.requant, sums, at) };
    }
}

pub(super) fn fold<T: Copy + Into<i32>>(work: Fold<'_, T>, results: &mut [i32]) {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
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

#[target_feature(enable = "avx512f,avx512dq")]
fn scale_all(values: &mut [i32], block: &RequantBlock) {
    // SAFETY: this function's own target features; a chunk is sixteen 32-bit words.
    unsafe {
        let scaling = Wide::load(block);
        for values in values.chunks_exact_mut(LANES) {
            let scaled = scaling.apply(_mm512_loadu_si512(values.as_ptr().cast()));
            _mm512_storeu_si512(values.as_mut_ptr().cast(), scaled);
        }
    }
}

pub(super) fn combine(work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    assert!(available());
    // SAFETY: the instruction set is there.
    unsafe { combine::combine_all(work, a, b, results) }
}
