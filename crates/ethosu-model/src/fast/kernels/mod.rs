//! The inner loops, for several instruction sets that all give the same bits.
//!
//! Kernels work on staged inputs and packed weights. A *group* is what one lane of a dot-product instruction takes: four bytes, or two
//! 16-bit values. Accumulators wrap at 32 bits; the planner has made sure that the true sums fit.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(test)]
mod tests;

use super::requant::{LANES, RequantBlock};

/// An instruction set that the kernels are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isa {
    /// No particular one.
    Portable,
    /// AVX2 (Haswell, Zen and later).
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with VNNI and VBMI (Ice Lake, Zen 4 and later).
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// What every AArch64 machine has.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Isa {
    /// The best one this machine has.
    pub fn detect() -> Self {
        Self::available().pop().unwrap_or(Self::Portable)
    }

    /// All that this machine has, the best one last.
    pub fn available() -> Vec<Self> {
        let mut found = vec![Self::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if avx2::available() {
                found.push(Self::Avx2);
            }
            if avx512::available() {
                found.push(Self::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        found.push(Self::Neon);
        found
    }

    /// A name for tables and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512-vnni",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
        }
    }

    /// Whether dot products of unsigned by signed bytes are faster than those of 16-bit values.
    pub(super) fn likes_bytes(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => true,
            _ => false,
        }
    }
}

/// Groups that lie next to each other in the staged input: a kernel row, or a tap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Elements from a pixel's base.
    pub(super) offset: usize,
    /// Groups from there on.
    pub(super) groups: usize,
}

/// What follows the scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Clamp {
    pub(super) zero_point: i32,
    pub(super) low: i32,
    pub(super) high: i32,
}

impl Clamp {
    pub(super) fn apply(self, value: i32) -> i32 {
        (value + self.zero_point).clamp(self.low, self.high)
    }

    /// Whether the limits are those of signed or unsigned bytes, and the zero point so small that saturating a value at 16 bits
    /// before it is added can't show.
    pub(super) fn is_of_bytes(self) -> bool {
        let within = |low: i32, high: i32| low <= self.low && self.high <= high;
        let byte = within(i8::MIN.into(), i8::MAX.into()) || within(0, u8::MAX.into());
        byte && self.zero_point.abs() <= 32_000
    }
}

/// A pixel to compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pixel {
    /// Where its window begins in the staged input; for a depthwise convolution in the first brick.
    pub(super) window: usize,
    /// Where its results for the first block of channels go.
    pub(super) result: usize,
}

/// What a kernel writes: [`LANES`] values for each pixel and block of channels.
pub(super) enum Results<'a> {
    /// The low byte of each value.
    Bytes(&'a mut [u8]),
    /// Whole values.
    Words(&'a mut [i32]),
}

impl Results<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Words(words) => words.len(),
        }
    }

    /// # Panics
    /// If the results of one of the pixels, in so many blocks, don't all lie inside.
    fn check(&self, pixels: &[Pixel], blocks: usize, block_step: usize) {
        let last = pixels.iter().map(|pixel| pixel.result).max();
        if let (Some(last), Some(before)) = (last, blocks.checked_sub(1)) {
            assert!(last + before * block_step + LANES <= self.len());
        }
    }
}

/// Output channels whose weights lie together, in blocks of [`LANES`].
pub(super) const BLOCKS_TOGETHER: usize = 4;

/// A convolution of some pixels, all their output channels.
pub(super) struct Convolve<'a, T, W> {
    pub(super) staged: &'a [T],
    pub(super) pixels: &'a [Pixel],
    pub(super) segments: &'a [Segment],
    /// For each [`BLOCKS_TOGETHER`] blocks (fewer in the last), for each group, for each block: a group of weights for each lane.
    pub(super) weights: &'a [W],
    /// One for each block of channels.
    pub(super) requant: &'a [RequantBlock],
    pub(super) clamp: Clamp,
    pub(super) results: Results<'a>,
    /// Results from a pixel's block to its next.
    pub(super) block_step: usize,
}

/// A depthwise convolution of some pixels, all their channels.
pub(super) struct Depthwise<'a, T, W> {
    /// Pixels of 16 channels.
    pub(super) staged: &'a [T],
    pub(super) pixels: &'a [Pixel],
    /// Elements from a brick to the next.
    pub(super) brick: usize,
    /// Where each group of taps (of adjacent columns) lies, from the window's beginning.
    pub(super) offsets: &'a [usize],
    /// For each brick, for each group, for each lane, the group's weights.
    pub(super) weights: &'a [W],
    /// One for each brick.
    pub(super) requant: &'a [RequantBlock],
    pub(super) clamp: Clamp,
    pub(super) results: Results<'a>,
    /// Results from a pixel's brick to its next.
    pub(super) block_step: usize,
}

/// The two kinds of elements that kernels multiply.
pub(super) trait Element: Copy + Default + Send + Sync + 'static {
    /// The weight's type.
    type Weight: Copy + Default + Send + Sync + std::fmt::Debug;
    /// Elements in a group.
    const GROUP: usize;

    fn convolve(isa: Isa, work: Convolve<'_, Self, Self::Weight>);
    fn depthwise(isa: Isa, work: Depthwise<'_, Self, Self::Weight>);
    /// A weight, if it fits.
    fn weight(value: i16) -> Option<Self::Weight>;
}

impl<T: Element> Convolve<'_, T, T::Weight> {
    /// Checks that everything the kernel will touch is there.
    ///
    /// # Panics
    /// If it isn't: vector kernels rely on it.
    fn check(&self) {
        let groups: usize = self.segments.iter().map(|segment| segment.groups).sum();
        let reach =
            self.segments.iter().map(|segment| segment.offset + segment.groups * T::GROUP).max().unwrap_or(0);
        let last = self.pixels.iter().map(|pixel| pixel.window + reach).max().unwrap_or(0);
        assert!(last <= self.staged.len());
        assert!(self.weights.len() >= groups * self.requant.len() * LANES * T::GROUP);
        self.results.check(self.pixels, self.requant.len(), self.block_step);
    }
}

impl<T: Element> Depthwise<'_, T, T::Weight> {
    /// As [`Convolve::check`].
    fn check(&self) {
        let bricks = self.requant.len();
        let reach = self.offsets.iter().max().map_or(0, |offset| offset + T::GROUP * LANES);
        let brick = bricks.saturating_sub(1) * self.brick;
        let last = self.pixels.iter().map(|pixel| pixel.window + brick + reach).max().unwrap_or(0);
        assert!(last <= self.staged.len());
        assert!(self.weights.len() >= bricks * self.offsets.len() * LANES * T::GROUP);
        self.results.check(self.pixels, bricks, self.block_step);
    }
}

impl Element for u8 {
    type Weight = i8;
    const GROUP: usize = 4;

    fn convolve(isa: Isa, work: Convolve<'_, u8, i8>) {
        work.check();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::convolve_bytes(work),
            _ => portable::convolve(work),
        }
    }

    fn depthwise(isa: Isa, work: Depthwise<'_, u8, i8>) {
        work.check();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::depthwise_bytes(work),
            _ => portable::depthwise(work),
        }
    }

    fn weight(value: i16) -> Option<i8> {
        i8::try_from(value).ok()
    }
}

impl Element for i16 {
    type Weight = i16;
    const GROUP: usize = 2;

    fn convolve(isa: Isa, work: Convolve<'_, i16, i16>) {
        work.check();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::convolve_words(work),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::convolve_words(work),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::convolve_words(work),
            Isa::Portable => portable::convolve(work),
        }
    }

    fn depthwise(isa: Isa, work: Depthwise<'_, i16, i16>) {
        work.check();
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::depthwise_words(work),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::depthwise_words(work),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::depthwise_words(work),
            Isa::Portable => portable::depthwise(work),
        }
    }

    fn weight(value: i16) -> Option<i16> {
        Some(value)
    }
}

/// Scales each value in place: `values` is padded to whole blocks of [`LANES`].
pub(super) fn scale(isa: Isa, values: &mut [i32], block: &RequantBlock) {
    assert!(values.len().is_multiple_of(LANES));
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::scale(values, block),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::scale(values, block),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::scale(values, block),
        Isa::Portable => portable::scale(values, block),
    }
}

/// What becomes of the elements under a pool's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folding {
    Largest,
    Smallest,
    Sum,
}

/// The elements under a pool's kernel, of one pixel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fold<'a, T> {
    pub(super) folding: Folding,
    /// From the window's first element on.
    pub(super) staged: &'a [T],
    pub(super) kernel: (usize, usize),
    /// Elements from a row to the next, and from a column to the next.
    pub(super) steps: (usize, usize),
}

/// Folds each channel, in whole blocks of [`LANES`]; those after the last channel get what lies there.
pub(super) fn fold<T: Copy + Into<i32>>(isa: Isa, work: Fold<'_, T>, results: &mut [i32]) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::fold(work, results),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::fold(work, results),
        // NEON is a part of every AArch64 target, so the compiler uses it here, too.
        _ => portable::fold(work, results),
    }
}

/// What is done to an operand before two are combined.
#[derive(Debug, Clone, Copy)]
pub(super) enum Prepare<'a> {
    Multiply(i32),
    Scale(&'a RequantBlock),
}

/// One operand of [`combine`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) signed: bool,
    pub(super) zero: i32,
    pub(super) prepare: Prepare<'a>,
    /// The same as a table.
    pub(super) planes: &'a Planes,
}

impl Prepare<'_> {
    fn apply(&self, value: i32) -> i32 {
        match self {
            Self::Multiply(by) => value.wrapping_mul(*by),
            Self::Scale(block) => block.apply(0, value),
        }
    }
}

/// What an operand's 256 bytes are prepared to: the four bytes of the values, each in a table of its own.
#[derive(Debug, Clone)]
pub(super) struct Planes([[u8; 256]; 4]);

impl Planes {
    pub(super) fn new(signed: bool, zero: i32, prepare: Prepare<'_>) -> Self {
        let mut planes = [[0; 256]; 4];
        for byte in 0..=u8::MAX {
            let value = if signed { i32::from(byte as i8) } else { byte.into() };
            for (plane, part) in planes.iter_mut().zip(prepare.apply(value - zero).to_le_bytes()) {
                plane[usize::from(byte)] = part;
            }
        }
        Self(planes)
    }

    /// What one byte is prepared to.
    fn value(&self, byte: u8) -> i32 {
        i32::from_le_bytes(self.0.each_ref().map(|plane| plane[usize::from(byte)]))
    }
}

/// How two operands become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combination {
    Sum,
    Difference,
    Product,
}

/// An element-wise operation on bytes. The lanes of each of its scalings are alike, and its clamp [is one of
/// bytes](Clamp::is_of_bytes).
pub(super) struct Combine<'a> {
    pub(super) operands: [Operand<'a>; 2],
    pub(super) mode: Combination,
    pub(super) scale: &'a RequantBlock,
    pub(super) clamp: Clamp,
}

/// Combines `a` and `b` into `results`, all of one length.
pub(super) fn combine(isa: Isa, work: &Combine<'_>, a: &[u8], b: &[u8], results: &mut [u8]) {
    assert!(a.len() == results.len() && b.len() == results.len());
    assert!(work.clamp.is_of_bytes());
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => avx2::combine(work, a, b, results),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => avx512::combine(work, a, b, results),
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => neon::combine(work, a, b, results),
        Isa::Portable => portable::combine(work, a, b, results),
    }
}
