//! Every instruction set gives the portable kernels' bits and touches nothing beyond what was checked.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::rounding::{Rounding, Scaling};

/// How far values go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// Anything: sums and scaled values wrap.
    Wild,
    /// Any sums, and scales that keep them within 30 bits.
    Tame,
    /// Small sums, and scales that [`RequantBlock::narrow`] is for.
    Narrow,
}

fn nature() -> impl Strategy<Value = Nature> {
    prop::sample::select(vec![Nature::Wild, Nature::Tame, Nature::Narrow])
}

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

    /// A scale: unless it is wild, no value leaves 30 bits.
    fn scale(&mut self, nature: Nature) -> Scaling {
        let multiplier = match self.next() % 4 {
            0 => [0, 1, 1 << 30, i32::MAX as u32][self.below(4)],
            _ => (self.next() as u32 >> 1) >> self.below(31),
        };
        let (lowest, highest) = match nature {
            Nature::Wild => (0, 63),
            Nature::Tame => (34 - multiplier.leading_zeros() as i32, 63),
            Nature::Narrow => (31, 61),
        };
        let shift = (lowest.max(0) + self.below(64) as i32).min(highest) as u8;
        let roundings = [Rounding::Natural, Rounding::Double, Rounding::Symmetric, Rounding::Floor];
        let narrow = nature == Nature::Narrow;
        let rounding = roundings[self.below(if narrow { 2 } else { 4 })];
        let doubling = if narrow { 0 } else { [0, 20, 15][self.below(3)] };
        Scaling { multiplier, shift, rounding, doubling }
    }

    /// What values may be, where blocks are told.
    fn bound(nature: Nature) -> i64 {
        match nature {
            Nature::Wild => 0,
            Nature::Tame => i32::MAX.into(),
            Nature::Narrow => 1 << 29,
        }
    }

    /// A block whose lanes differ, some of them left unset.
    fn block(&mut self, nature: Nature) -> RequantBlock {
        let mut block = RequantBlock::ZERO;
        for lane in 0..LANES {
            let bias = self.value() >> if nature == Nature::Narrow { 4 } else { 0 };
            let scale = self.scale(nature);
            let bound = Self::bound(nature);
            if self.below(9) > 0 {
                assert!(block.set(lane, bias, &scale, bound), "{scale:?} {bound}");
            }
        }
        Self::checked(block, nature)
    }

    fn uniform(&mut self, nature: Nature) -> RequantBlock {
        let scale = self.scale(nature);
        let block = RequantBlock::uniform(&scale, Self::bound(nature)).expect("the bound fits");
        Self::checked(block, nature)
    }

    /// Wild values keep no bound, which the narrow form relies on.
    fn checked(mut block: RequantBlock, nature: Nature) -> RequantBlock {
        match nature {
            Nature::Wild => block.narrow = false,
            Nature::Tame => {}
            Nature::Narrow => assert!(block.narrow),
        }
        block
    }

    /// A clamp; wild values leave no room to add a zero point. Half of the tame ones are those of bytes.
    fn clamp(&mut self, nature: Nature) -> Clamp {
        if nature != Nature::Wild && self.below(2) == 0 {
            return self.byte_clamp(nature);
        }
        let (a, b) = (i32::from(self.element()), i32::from(self.element()));
        let zero_point = if nature == Nature::Wild { 0 } else { i32::from(self.element()) };
        Clamp { zero_point, low: a.min(b), high: a.max(b) }
    }

    /// A clamp of bytes, its zero point not always one.
    fn byte_clamp(&mut self, nature: Nature) -> Clamp {
        let signed = self.below(2) == 0;
        let byte = |value: i16| if signed { i32::from(value as i8) } else { i32::from(value as u8) };
        let (a, b) = (byte(self.element()), byte(self.element()));
        let zero_points = [byte(self.element()), i32::from(self.element()).clamp(-32_000, 32_000)];
        let zero_point = if nature == Nature::Wild { 0 } else { zero_points[self.below(2)] };
        Clamp { zero_point, low: a.min(b), high: a.max(b) }
    }
}

/// The two element types of the kernels, as the tests fill them.
trait Sample: Element {
    fn input(draw: &mut Draw) -> Self;
    /// A weight; a small one has eight bits.
    fn any_weight(draw: &mut Draw, small: bool) -> Self::Weight;
}

impl Sample for u8 {
    fn input(draw: &mut Draw) -> u8 {
        draw.element() as u8
    }

    fn any_weight(draw: &mut Draw, _: bool) -> i8 {
        draw.element() as i8
    }
}

impl Sample for i16 {
    fn input(draw: &mut Draw) -> i16 {
        draw.element()
    }

    fn any_weight(draw: &mut Draw, small: bool) -> i16 {
        if small { (draw.element() as i8).into() } else { draw.element() }
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

/// Whether the results of a pixel lie together, or those of a block.
#[derive(Clone, Copy, Debug)]
struct Arrangement {
    by_pixel: bool,
    /// Elements between the results of a pixel and those of the next.
    gap: usize,
}

fn arrangement() -> impl Strategy<Value = Arrangement> {
    (any::<bool>(), 0usize..3).prop_map(|(by_pixel, gap)| Arrangement { by_pixel, gap: gap * 8 })
}

impl Arrangement {
    /// So many pixels, their windows drawn, the step from block to block, and the results from the first to the last.
    fn pixels(
        self,
        draw: &mut Draw,
        windows: usize,
        count: usize,
        blocks: usize,
    ) -> (Vec<Pixel>, usize, usize) {
        let each = if self.by_pixel { blocks * LANES } else { LANES } + self.gap;
        let block_step = if self.by_pixel { LANES } else { count * each };
        let mut pixel = |number: usize| Pixel { window: draw.below(windows), result: number * each };
        let pixels: Vec<Pixel> = (0..count).map(&mut pixel).collect();
        let end = match (pixels.last(), blocks) {
            (None, _) | (_, 0) => 0,
            (Some(last), _) => last.result + (blocks - 1) * block_step + LANES,
        };
        (pixels, block_step, end)
    }
}

/// A convolution whose buffers end where the last access does.
struct Convolution<T: Element> {
    staged: Vec<T>,
    pixels: Vec<Pixel>,
    segments: Vec<Segment>,
    weights: Vec<T::Weight>,
    requant: Vec<RequantBlock>,
    clamp: Clamp,
    block_step: usize,
    /// Elements of the results.
    count: usize,
}

impl<T: Sample> Convolution<T> {
    fn draw(
        pixels: usize,
        blocks: usize,
        segments: &[usize],
        arrangement: Arrangement,
        nature: Nature,
        seed: u64,
    ) -> Self {
        let mut draw = Draw(seed);
        let segments: Vec<Segment> =
            segments.iter().map(|&groups| Segment { offset: draw.below(50), groups }).collect();
        let (pixels, block_step, count) = arrangement.pixels(&mut draw, 100, pixels, blocks);
        let reach =
            segments.iter().map(|segment| segment.offset + segment.groups * T::GROUP).max().unwrap_or(0);
        let staged = pixels.iter().map(|pixel| pixel.window + reach).max().unwrap_or(0);
        let small = nature == Nature::Narrow;
        let groups: usize = segments.iter().map(|segment| segment.groups).sum();
        Self {
            staged: (0..staged).map(|_| T::input(&mut draw)).collect(),
            pixels,
            segments,
            weights: (0..groups * blocks * LANES * T::GROUP)
                .map(|_| T::any_weight(&mut draw, small))
                .collect(),
            requant: (0..blocks).map(|_| draw.block(nature)).collect(),
            clamp: draw.clamp(nature),
            block_step,
            count,
        }
    }

    fn run(&self, isa: Isa, results: Results<'_>) {
        let Self { staged, pixels, segments, weights, requant, clamp, block_step, .. } = self;
        let (clamp, block_step) = (*clamp, *block_step);
        T::convolve(isa, Convolve { staged, pixels, segments, weights, requant, clamp, results, block_step });
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        let expected = results(self.count, |results| self.run(Isa::Portable, results));
        for isa in Isa::available() {
            prop_assert_eq!(
                &results(self.count, |results| self.run(isa, results)),
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
    pixels: Vec<Pixel>,
    brick: usize,
    offsets: Vec<usize>,
    weights: Vec<T::Weight>,
    requant: Vec<RequantBlock>,
    clamp: Clamp,
    block_step: usize,
    count: usize,
}

impl<T: Sample> DepthwiseConvolution<T> {
    fn draw(
        pixels: usize,
        bricks: usize,
        offsets: usize,
        arrangement: Arrangement,
        nature: Nature,
        seed: u64,
    ) -> Self {
        let mut draw = Draw(seed);
        let offsets: Vec<usize> = (0..offsets).map(|_| draw.below(300)).collect();
        let (pixels, block_step, count) = arrangement.pixels(&mut draw, 300, pixels, bricks);
        let brick = draw.below(600);
        let reach = offsets.iter().max().map_or(0, |offset| offset + T::GROUP * LANES);
        let last = bricks.saturating_sub(1) * brick + reach;
        let staged = pixels.iter().map(|pixel| pixel.window + last).max().unwrap_or(0);
        let small = nature == Nature::Narrow;
        Self {
            staged: (0..staged).map(|_| T::input(&mut draw)).collect(),
            pixels,
            brick,
            weights: (0..bricks * offsets.len() * LANES * T::GROUP)
                .map(|_| T::any_weight(&mut draw, small))
                .collect(),
            offsets,
            requant: (0..bricks).map(|_| draw.block(nature)).collect(),
            clamp: draw.clamp(nature),
            block_step,
            count,
        }
    }

    fn run(&self, isa: Isa, results: Results<'_>) {
        let Self { staged, pixels, offsets, weights, requant, .. } = self;
        let (brick, clamp, block_step) = (self.brick, self.clamp, self.block_step);
        T::depthwise(
            isa,
            Depthwise { staged, pixels, brick, offsets, weights, requant, clamp, results, block_step },
        );
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        let expected = results(self.count, |results| self.run(Isa::Portable, results));
        for isa in Isa::available() {
            prop_assert_eq!(
                &results(self.count, |results| self.run(isa, results)),
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
        arrangement in arrangement(), nature in nature(), seed in any::<u64>(),
    ) {
        Convolution::<u8>::draw(pixels, blocks, &segments, arrangement, nature, seed).check_all()?;
        Convolution::<i16>::draw(pixels, blocks, &segments, arrangement, nature, seed).check_all()?;
    }

    #[test]
    fn depthwise_convolutions_agree(
        pixels in 1usize..20, bricks in 0usize..4, offsets in 1usize..12, arrangement in arrangement(),
        nature in nature(), seed in any::<u64>(),
    ) {
        DepthwiseConvolution::<u8>::draw(pixels, bricks, offsets, arrangement, nature, seed).check_all()?;
        DepthwiseConvolution::<i16>::draw(pixels, bricks, offsets, arrangement, nature, seed).check_all()?;
    }

    #[test]
    fn scaled_values_agree(lines in 0usize..6, nature in nature(), seed in any::<u64>()) {
        let mut draw = Draw(seed);
        let block = draw.block(nature);
        let small = if nature == Nature::Narrow { 2 } else { 0 };
        let values: Vec<i32> = (0..lines * LANES).map(|_| draw.value() >> small).collect();
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
        count in 0usize..200, mode in 0usize..3, signed in any::<[bool; 2]>(), scaled in 0usize..3, nature in nature(),
        seed in any::<u64>(),
    ) {
        let mut draw = Draw(seed);
        let blocks = [draw.uniform(nature), draw.uniform(nature)];
        let mut operand = |index: usize| {
            let zero = draw.element();
            let zero = if nature == Nature::Narrow { (zero as i8).into() } else { zero.into() };
            let prepare = match nature {
                _ if scaled == index => Prepare::Scale(&blocks[index]),
                // Products and sums stay within the bound.
                Nature::Narrow => Prepare::Multiply([1, -1, 0][draw.below(3)]),
                _ => Prepare::Multiply(draw.value()),
            };
            (signed[index], zero, prepare)
        };
        let (a, b) = (operand(0), operand(1));
        let planes = [&a, &b].map(|(signed, zero, prepare)| Planes::new(*signed, *zero, *prepare));
        let operand = |(signed, zero, prepare), planes| Operand { signed, zero, prepare, planes };
        let operands = [operand(a, &planes[0]), operand(b, &planes[1])];
        let scale = draw.uniform(nature);
        let work = Combine {
            operands,
            mode: [Combination::Sum, Combination::Difference, Combination::Product][mode],
            scale: &scale,
            clamp: draw.byte_clamp(nature),
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
            let layout = Arrangement { by_pixel: seed.is_multiple_of(2), gap: 8 };
            let mut convolution = Convolution::<T>::draw(pixels, blocks, &[groups], layout, Nature::Tame, seed);
            let mut depthwise = DepthwiseConvolution::<T>::draw(pixels, blocks, groups, layout, Nature::Tame, seed);
            let counts = [convolution.count, depthwise.count].map(|count| count - usize::from(short == 2));
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
    let prepare = Prepare::Multiply(1);
    let operand = Operand { signed: true, zero: 0, prepare, planes: &Planes::new(true, 0, prepare) };
    let clamp = Clamp { zero_point: 0, low: -128, high: 127 };
    let work = Combine { operands: [operand; 2], mode: Combination::Sum, scale: &RequantBlock::ZERO, clamp };
    combine(Isa::detect(), &work, &[0; 17], &[0; 16], &mut [0; 17]);
}
