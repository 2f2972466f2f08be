//! Pools with a kernel, on 8-bit data.

use ethosu_isa::{ElementSize, Upscale};

use super::kernels::{self, Fold, Folding, Isa};
use super::output::Output;
use super::requant::{LANES, RequantBlock};
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::memory::Memory;
use crate::operation::{PoolFunction, Pooling};
use crate::rounding::{Scaling, divide_half_away};

/// A planned pool.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    stage: Stage,
    region: u8,
    /// Turns a signed byte into an unsigned one of the same order.
    turn: u8,
    /// The staged zero point.
    zero: i64,
    kernel: (usize, usize),
    stride: (usize, usize),
    mode: Mode,
    scale: Scale,
    output: Output,
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

impl Pool {
    /// `None` for forms that have no plan of their own.
    pub(super) fn new(pooling: &Pooling, output: Output, limit: usize) -> Option<Self> {
        let window = &pooling.window;
        if window.ifm.element != ElementSize::Bits8 || output.bytes != 1 || window.upscale != Upscale::None {
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
        // Sums of bytes that fit 32 bits, and their products 64.
        if window.kernel.0.checked_mul(window.kernel.1)? > 1 << 20 {
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
        let turn = if window.ifm.signed { 0x80 } else { 0 };
        let zero = window.ifm.zero_point + i64::from(turn);
        // Padding is staged as the zero point, which must then be a byte.
        u8::try_from(zero).ok()?;
        let taps = match mode {
            Mode::Sum => (window.kernel.0 * window.kernel.1) as i64,
            Mode::Max | Mode::Min | Mode::Mean { .. } => 1,
        };
        let scale = match RequantBlock::uniform(&pooling.scale, taps * window.ifm.farthest_from_zero()) {
            _ if pooling.scale.is_unit() => Scale::Unit,
            Some(block) => Scale::Vectors(Box::new(block)),
            None => Scale::Each(pooling.scale),
        };
        Some(Self {
            stage: Stage::new(window, Form::Dense, limit)?,
            region: window.ifm.region,
            turn,
            zero,
            kernel: window.kernel,
            stride: window.stride,
            mode,
            scale,
            output,
        })
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.region).expect("planned regions are bound");
        let mut staged = scratch.bytes.take(self.stage.elements());
        // Padding never wins and adds nothing.
        let (folding, pad) = match self.mode {
            Mode::Max => (Folding::Largest, u8::MIN),
            Mode::Min => (Folding::Smallest, u8::MAX),
            Mode::Sum | Mode::Mean { .. } => (Folding::Sum, self.zero as u8),
        };
        self.stage.fill(region, &mut staged, pad, |[byte]: [u8; 1]| byte ^ self.turn);
        let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
        let extent = self.output.store.extent;
        let depth = extent.depth;
        // Staged padding adds the zero point, so all taps count in a sum.
        let zeros = match folding {
            Folding::Sum => (self.kernel.0 * self.kernel.1) as i32 * self.zero as i32,
            _ => self.zero as i32,
        };
        let Scratch { first: values, byte_results, .. } = scratch;
        values.resize(depth.next_multiple_of(LANES), 0);
        byte_results.resize(extent.width * depth, 0);
        for y in 0..extent.height {
            for x in 0..extent.width {
                let base = y * self.stride.0 * self.stage.row + x * self.stride.1 * depth;
                let window = &staged[base..];
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
                let clamp = self.output.clamp;
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
                let results = &mut byte_results[x * depth..(x + 1) * depth];
                for (result, &value) in results.iter_mut().zip(values.iter()) {
                    *result = clamp.apply(value) as u8;
                }
            }
            self.output.finish(byte_results);
            self.output.store.row(out, y, byte_results);
        }
        scratch.bytes.give_back(staged);
    }
}
