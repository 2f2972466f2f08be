//! Pools, on 8-bit and signed 16-bit data.

use ethosu_isa::{ElementSize, Upscale};

use super::convolution::StagedElement;
use super::kernels::{self, Fold, Folding, Isa};
use super::output::Output;
use super::requant::{LANES, RequantBlock};
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::memory::Memory;
use crate::operation::{PoolFunction, Pooling};
use crate::rounding::{Scaling, divide_half_away};

/// An element as it is staged for a pool: a signed byte with its sign bit turned, so that it keeps its order.
pub(super) trait Pooled: StagedElement + Into<i32> {
    const BITS16: bool;
    const LOWEST: i32;
    const HIGHEST: i32;
}

impl Pooled for u8 {
    const BITS16: bool = false;
    const LOWEST: i32 = u8::MIN as i32;
    const HIGHEST: i32 = u8::MAX as i32;
}

impl Pooled for i16 {
    const BITS16: bool = true;
    const LOWEST: i32 = i16::MIN as i32;
    const HIGHEST: i32 = i16::MAX as i32;
}

/// A planned pool.
#[derive(Debug, Clone)]
pub(super) struct Pool<T> {
    stage: Stage,
    region: u8,
    signed: bool,
    /// The staged zero point.
    zero: i32,
    kernel: (usize, usize),
    stride: (usize, usize),
    mode: Mode,
    scale: Scale,
    output: Output,
    element: std::marker::PhantomData<T>,
}

/// How a pooled value is scaled.
#[derive(Debug, Clone)]
enum Scale {
    /// Not at all.
    Unit,
    Vectors(Box<RequantBlock>),
    /// What vectors have no room for.
    Each(Scaling),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The sum.
    Sum,
    /// The sum over the elements that are there.
    Mean { height: i64, width: i64, top: i64, left: i64 },
}

impl<T: Pooled> Pool<T> {
    /// `None` for forms that have no plan of their own.
    pub(super) fn new(pooling: &Pooling, output: Output, limit: usize) -> Option<Self> {
        let window = &pooling.window;
        let map = &window.ifm;
        let element = if T::BITS16 { ElementSize::Bits16 } else { ElementSize::Bits8 };
        if map.element != element || T::BITS16 && !map.signed || window.upscale == Upscale::Zeros {
            return None;
        }
        // Every window must hold an element, or the pool has no result.
        let covers = |pad: i64, size: i64, kernel: usize, dilation: usize, outputs: usize, stride: usize| {
            let span = ((kernel - 1) * dilation + 1) as i64;
            dilation == 1 && pad < span && (outputs as i64 - 1) * (stride as i64) - pad < size
        };
        let extent = window.results.extent;
        if !covers(
            window.pad.0,
            window.height,
            window.kernel.0,
            window.dilation.0,
            extent.height,
            window.stride.0,
        ) || !covers(
            window.pad.1,
            window.width,
            window.kernel.1,
            window.dilation.1,
            extent.width,
            window.stride.1,
        ) {
            return None;
        }
        // Sums of staged elements, and of what stands for zero, must fit 31 bits.
        let taps = window.kernel.0.checked_mul(window.kernel.1)?;
        if taps > if T::BITS16 { 1 << 14 } else { 1 << 20 } {
            return None;
        }
        let mode = match pooling.function {
            PoolFunction::Max => Mode::Max,
            PoolFunction::Min => Mode::Min,
            PoolFunction::Sum => Mode::Sum,
            PoolFunction::Mean => Mode::Mean {
                height: window.height,
                width: window.width,
                top: window.pad.0,
                left: window.pad.1,
            },
            PoolFunction::ReduceSum | PoolFunction::ArgmaxX => return None,
        };
        let turn = if map.signed && !T::BITS16 { 128 } else { 0 };
        // Padding is staged as the zero point, which must then be an element.
        let zero = i32::try_from(map.zero_point).ok()? + turn;
        if !(T::LOWEST..=T::HIGHEST).contains(&zero) {
            return None;
        }
        let counted = if mode == Mode::Sum { taps as i64 } else { 1 };
        let scale = match RequantBlock::uniform(&pooling.scale, counted * map.farthest_from_zero()) {
            _ if pooling.scale.is_unit() => Scale::Unit,
            Some(block) => Scale::Vectors(Box::new(block)),
            None => Scale::Each(pooling.scale),
        };
        Some(Self {
            stage: Stage::new(window, Form::Dense, limit)?,
            region: map.region,
            signed: map.signed,
            zero,
            kernel: window.kernel,
            stride: window.stride,
            mode,
            scale,
            output,
            element: std::marker::PhantomData,
        })
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.region).expect("planned regions are bound");
        let mut staged = T::buffer(scratch).take(self.stage.elements());
        // Padding never wins and adds nothing.
        let (folding, pad) = match self.mode {
            Mode::Max => (Folding::Largest, T::LOWEST),
            Mode::Min => (Folding::Smallest, T::HIGHEST),
            Mode::Sum | Mode::Mean { .. } => (Folding::Sum, self.zero),
        };
        T::stage(&self.stage, (T::BITS16, self.signed), region, &mut staged, pad);
        let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
        let extent = self.output.store.extent;
        let depth = extent.depth;
        // Staged padding adds the zero point, so all taps count in a sum.
        let zeros = match folding {
            Folding::Sum => (self.kernel.0 * self.kernel.1) as i32 * self.zero,
            _ => self.zero,
        };
        let clamp = self.output.clamp;
        let Scratch { first: values, byte_results, word_results, .. } = scratch;
        values.resize(depth.next_multiple_of(LANES), 0);
        byte_results.clear();
        word_results.clear();
        for y in 0..extent.height {
            for x in 0..extent.width {
                let window = &staged[y * self.stride.0 * self.stage.row + x * self.stride.1 * depth..];
                let steps = (self.stage.row, depth);
                kernels::fold(isa, Fold { folding, staged: window, kernel: self.kernel, steps }, values);
                values.iter_mut().for_each(|value| *value -= zeros);
                if let Mode::Mean { height, width, top, left } = self.mode {
                    let inside = |o: usize, stride: usize, kernel: usize, pad: i64, size: i64| {
                        let first = (o * stride) as i64 - pad;
                        (first + kernel as i64).min(size) - first.max(0)
                    };
                    let rows = inside(y, self.stride.0, self.kernel.0, top, height);
                    let columns = inside(x, self.stride.1, self.kernel.1, left, width);
                    for value in values.iter_mut() {
                        *value = divide_half_away((*value).into(), rows * columns) as i32;
                    }
                }
                match &self.scale {
                    Scale::Unit => {}
                    Scale::Vectors(block) => kernels::scale(isa, values, block),
                    Scale::Each(scale) => {
                        for value in values.iter_mut() {
                            // The clamp's limits and zero point are far from the ends of 32 bits.
                            let scaled = scale.apply((*value).into());
                            *value = scaled.clamp((i32::MIN / 2).into(), (i32::MAX / 2).into()) as i32;
                        }
                    }
                }
                let results = values[..depth].iter().map(|&value| clamp.apply(value));
                if self.output.bytes == 1 {
                    byte_results.extend(results.map(|value| value as u8));
                } else {
                    word_results.extend(results);
                }
            }
            if self.output.bytes == 1 {
                self.output.finish(byte_results);
                self.output.store.row(out, y, byte_results);
                byte_results.clear();
            } else {
                self.output.store.row_words(out, y, word_results);
                word_results.clear();
            }
        }
        T::buffer(scratch).give_back(staged);
    }
}
