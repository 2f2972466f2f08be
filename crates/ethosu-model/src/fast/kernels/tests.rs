//! Every instruction set gives the portable kernels' bits and touches nothing beyond what was checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::rounding::{Rounding, Scaling};

/// Values drawn from a seed: shapes are proptest's to shrink, contents needn't be.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Sixteen bits; in half of the draws an extreme of the type that the low bits make.
    fn element(&mut self) -> i16 {
        match self.next() % 8 {
            0 => i16::MIN,
            1 => i16::MAX,
            2 => 0x80,
            3 => -1,
            _ => self.next() as i16,
        }
    }

    /// A 32-bit value, often at an end of its range.
    fn value(&mut self) -> i32 {
        match self.next() % 8 {
            0 => i32::MIN,
            1 => i32::MAX,
            2 => self.next() as i8 as i32,
            _ => (self.next() as i32) >> self.below(32),
        }
    }

    /// A scale; if it is tame, no value leaves 30 bits.
    fn scale(&mut self, tame: bool) -> Scaling {
        let multiplier = match self.next() % 4 {
            0 => [0, 1, 1 << 30, i32::MAX as u32][self.below(4)],
            _ => (self.next() as u32 >> 1) >> self.below(31),
        };
        let lowest = if tame { 34 - multiplier.leading_zeros() as i32 } else { 0 };
        let shift = (lowest.max(0) + self.below(64) as i32).min(63) as u8;
        let rounding =
            [Rounding::Natural, Rounding::Double, Rounding::Symmetric, Rounding::Floor][self.below(4)];
        let doubling = [0, 20, 15][self.below(3)];
        Scaling { multiplier, shift, rounding, doubling }
    }

    /// A block whose lanes differ, some of them left unset.
    fn block(&mut self, tame: bool) -> RequantBlock {
        let mut block = RequantBlock::ZERO;
        for lane in 0..LANES {
            let bias = self.value();
            let scale = self.scale(tame);
            let bound = if tame { i32::MAX.into() } else { 0 };
            if self.below(9) > 0 {
                assert!(block.set(lane, bias, &scale, bound), "{scale:?} {bound}");
            }
        }
        block
    }

    fn uniform(&mut self, tame: bool) -> RequantBlock {
        let scale = self.scale(tame);
        let bound = if tame { i32::MAX.into() } else { 0 };
        RequantBlock::uniform(&scale, bound).expect("the bound fits")
    }

    /// A clamp; wild values leave no room to add a zero point.
    fn clamp(&mut self, tame: bool) -> Clamp {
        let (a, b) = (i32::from(self.element()), i32::from(self.element()));
        let zero_point = if tame { i32::from(self.element()) } else { 0 };
        Clamp { zero_point, low: a.min(b), high: a.max(b) }
    }
}

/// The two element types of the kernels, as the tests fill them.
trait Sample: Element {
    fn input(draw: &mut Draw) -> Self;
    fn any_weight(draw: &mut Draw) -> Self::Weight;
}

impl Sample for u8 {
    fn input(draw: &mut Draw) -> u8 {
        draw.element() as u8
    }

    fn any_weight(draw: &mut Draw) -> i8 {
        draw.element() as i8
    }
}

impl Sample for i16 {
    fn input(draw: &mut Draw) -> i16 {
        draw.element()
    }

    fn any_weight(draw: &mut Draw) -> i16 {
        draw.element()
    }
}

/// Elements around the results that no kernel may write.
const GUARD: usize = 64;
const UNTOUCHED: u8 = 0xA5;

/// Runs a kernel with so many results, as bytes and as words, and returns both.
///
/// # Panics
/// If something beside the results is written.
fn results(count: usize, mut kernel: impl FnMut(Results<'_>)) -> (Vec<u8>, Vec<i32>) {
    let mut bytes = vec![UNTOUCHED; count + 2 * GUARD];
    kernel(Results::Bytes(&mut bytes[GUARD..GUARD + count]));
    let mut words = vec![i32::from(UNTOUCHED); count + 2 * GUARD];
    kernel(Results::Words(&mut words[GUARD..GUARD + count]));
    for outside in [0..GUARD, GUARD + count..count + 2 * GUARD] {
        assert!(bytes[outside.clone()].iter().all(|&byte| byte == UNTOUCHED));
        assert!(words[outside].iter().all(|&word| word == i32::from(UNTOUCHED)));
    }
    (bytes[GUARD..GUARD + count].to_vec(), words[GUARD..GUARD + count].to_vec())
}

/// A convolution whose buffers end where the last access does.
struct Convolution<T: Element> {
    staged: Vec<T>,
    pixels: Vec<usize>,
    segments: Vec<Segment>,
    weights: Vec<T::Weight>,
    requant: Vec<RequantBlock>,
    clamp: Clamp,
}

impl<T: Sample> Convolution<T> {
    fn draw(pixels: usize, blocks: usize, segments: &[usize], tame: bool, seed: u64) -> Self {
        let mut draw = Draw(seed);
        let segments: Vec<Segment> =
            segments.iter().map(|&groups| Segment { offset: draw.below(50), groups }).collect();
        let pixels: Vec<usize> = (0..pixels).map(|_| draw.below(100)).collect();
        let reach =
            segments.iter().map(|segment| segment.offset + segment.groups * T::GROUP).max().unwrap_or(0);
        let staged = pixels.iter().max().map_or(0, |last| last + reach);
        let groups: usize = segments.iter().map(|segment| segment.groups).sum();
        Self {
            staged: (0..staged).map(|_| T::input(&mut draw)).collect(),
            pixels,
            segments,
            weights: (0..groups * blocks * LANES * T::GROUP).map(|_| T::any_weight(&mut draw)).collect(),
            requant: (0..blocks).map(|_| draw.block(tame)).collect(),
            clamp: draw.clamp(tame),
        }
    }

    fn count(&self) -> usize {
        self.pixels.len() * self.requant.len() * LANES
    }

    fn run(&self, isa: Isa, results: Results<'_>) {
        let Self { staged, pixels, segments, weights, requant, clamp } = self;
        T::convolve(isa, Convolve { staged, pixels, segments, weights, requant, clamp: *clamp, results });
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        let expected = results(self.count(), |results| self.run(Isa::Portable, results));
        for isa in Isa::available() {
            prop_assert_eq!(
                &results(self.count(), |results| self.run(isa, results)),
                &expected,
                "{}",
                isa.name()
            );
        }
        Ok(())
    }
}

/// The same for a depthwise convolution.
struct DepthwiseConvolution<T: Element> {
    staged: Vec<T>,
    pixels: Vec<usize>,
    brick: usize,
    offsets: Vec<usize>,
    weights: Vec<T::Weight>,
    requant: Vec<RequantBlock>,
    clamp: Clamp,
}

impl<T: Sample> DepthwiseConvolution<T> {
    fn draw(pixels: usize, bricks: usize, offsets: usize, tame: bool, seed: u64) -> Self {
        let mut draw = Draw(seed);
        let offsets: Vec<usize> = (0..offsets).map(|_| draw.below(300)).collect();
        let pixels: Vec<usize> = (0..pixels).map(|_| draw.below(300)).collect();
        let brick = draw.below(600);
        let reach = offsets.iter().max().map_or(0, |offset| offset + T::GROUP * LANES);
        let staged = pixels.iter().max().map_or(0, |last| last + bricks.saturating_sub(1) * brick + reach);
        Self {
            staged: (0..staged).map(|_| T::input(&mut draw)).collect(),
            pixels,
            brick,
            weights: (0..bricks * offsets.len() * LANES * T::GROUP)
                .map(|_| T::any_weight(&mut draw))
                .collect(),
            offsets,
            requant: (0..bricks).map(|_| draw.block(tame)).collect(),
            clamp: draw.clamp(tame),
        }
    }

    fn count(&self) -> usize {
        self.pixels.len() * self.requant.len() * LANES
    }

    fn run(&self, isa: Isa, results: Results<'_>) {
        let Self { staged, pixels, brick, offsets, weights, requant, clamp } = self;
        T::depthwise(
            isa,
            Depthwise { staged, pixels, brick: *brick, offsets, weights, requant, clamp: *clamp, results },
        );
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        let expected = results(self.count(), |results| self.run(Isa::Portable, results));
        for isa in Isa::available() {
            prop_assert_eq!(
                &results(self.count(), |results| self.run(isa, results)),
                &expected,
                "{}",
                isa.name()
            );
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn convolutions_agree(
        pixels in 0usize..20, blocks in 0usize..10, segments in prop::collection::vec(0usize..9, 0..4),
        tame in any::<bool>(), seed in any::<u64>(),
    ) {
        Convolution::<u8>::draw(pixels, blocks, &segments, tame, seed).check_all()?;
        Convolution::<i16>::draw(pixels, blocks, &segments, tame, seed).check_all()?;
    }

    #[test]
    fn depthwise_convolutions_agree(
        pixels in 1usize..20, bricks in 0usize..4, offsets in 1usize..12, tame in any::<bool>(), seed in any::<u64>(),
    ) {
        DepthwiseConvolution::<u8>::draw(pixels, bricks, offsets, tame, seed).check_all()?;
        DepthwiseConvolution::<i16>::draw(pixels, bricks, offsets, tame, seed).check_all()?;
    }

    #[test]
    fn scaled_values_agree(lines in 0usize..6, tame in any::<bool>(), seed in any::<u64>()) {
        let mut draw = Draw(seed);
        let block = draw.block(tame);
        let values: Vec<i32> = (0..lines * LANES).map(|_| draw.value()).collect();
        let mut expected = values.clone();
        scale(Isa::Portable, &mut expected, &block);
        for isa in Isa::available() {
            let mut found = values.clone();
            scale(isa, &mut found, &block);
            prop_assert_eq!(&found, &expected, "{}", isa.name());
        }
    }

    #[test]
    fn combined_bytes_agree(
        count in 0usize..70, mode in 0usize..3, signed in any::<[bool; 2]>(), scaled in 0usize..3, tame in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut draw = Draw(seed);
        let blocks = [draw.uniform(tame), draw.uniform(tame)];
        let mut operand = |index: usize| Operand {
            signed: signed[index],
            zero: draw.element().into(),
            prepare: if scaled == index {
                Prepare::Scale(&blocks[index])
            } else {
                Prepare::Multiply(draw.value())
            },
        };
        let operands = [operand(0), operand(1)];
        let scale = draw.uniform(tame);
        let work = Combine {
            operands,
            mode: [Combination::Sum, Combination::Difference, Combination::Product][mode],
            scale: &scale,
            clamp: draw.clamp(tame),
        };
        let bytes: Vec<u8> = (0..2 * count).map(|_| draw.element() as u8).collect();
        let (a, b) = bytes.split_at(count);
        let run = |isa| {
            let mut found = vec![UNTOUCHED; count + GUARD];
            combine(isa, &work, a, b, &mut found[..count]);
            found
        };
        let expected = run(Isa::Portable);
        prop_assert!(expected[count..].iter().all(|&byte| byte == UNTOUCHED));
        for isa in Isa::available() {
            prop_assert_eq!(&run(isa), &expected, "{}", isa.name());
        }
    }

    /// Kernels trust the check, so it must see that a single element is missing, whichever buffer lacks it.
    #[test]
    fn nothing_less_than_what_a_kernel_touches_is_accepted(
        pixels in 1usize..4, blocks in 1usize..6, groups in 1usize..5, short in 0usize..3, seed in any::<u64>(),
    ) {
        fn missing<T: Sample>(pixels: usize, blocks: usize, groups: usize, short: usize, seed: u64) -> [bool; 2] {
            let panics = |kernel: &dyn Fn()| catch_unwind(AssertUnwindSafe(kernel)).is_err();
            let mut convolution = Convolution::<T>::draw(pixels, blocks, &[groups], true, seed);
            let mut depthwise = DepthwiseConvolution::<T>::draw(pixels, blocks, groups, true, seed);
            let counts = [convolution.count(), depthwise.count()].map(|count| count - usize::from(short == 2));
            match short {
                0 => {
                    convolution.staged.pop();
                    depthwise.staged.pop();
                }
                1 => {
                    convolution.weights.pop();
                    depthwise.weights.pop();
                }
                _ => {}
            }
            [
                panics(&|| convolution.run(Isa::Portable, Results::Bytes(&mut vec![0; counts[0]]))),
                panics(&|| depthwise.run(Isa::Portable, Results::Words(&mut vec![0; counts[1]]))),
            ]
        }
        prop_assert_eq!(missing::<u8>(pixels, blocks, groups, short, seed), [true; 2]);
        prop_assert_eq!(missing::<i16>(pixels, blocks, groups, short, seed), [true; 2]);
    }
}

#[test]
#[should_panic(expected = "is_multiple_of")]
fn values_to_scale_come_in_whole_blocks() {
    scale(Isa::detect(), &mut [0; LANES + 1], &RequantBlock::ZERO);
}

#[test]
#[should_panic(expected = "results.len()")]
fn combined_bytes_have_one_length() {
    let operand = Operand { signed: true, zero: 0, prepare: Prepare::Multiply(1) };
    let clamp = Clamp { zero_point: 0, low: -128, high: 127 };
    let work = Combine { operands: [operand; 2], mode: Combination::Sum, scale: &RequantBlock::ZERO, clamp };
    combine(Isa::detect(), &work, &[0; 17], &[0; 16], &mut [0; 17]);
}
