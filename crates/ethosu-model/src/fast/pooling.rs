//! Pools with a kernel, on 8-bit data.

use ethosu_isa::{ElementSize, Upscale};

use super::output::Output;
use super::requant::LANES;
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
    scale: Scaling,
    output: Output,
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
        Some(Self {
            stage: Stage::new(window, Form::Dense, limit)?,
            region: window.ifm.region,
            turn,
            zero,
            kernel: window.kernel,
            stride: window.stride,
            mode,
            scale: pooling.scale,
            output,
        })
    }

    pub(super) fn run(&self, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.region).expect("planned regions are bound");
        let mut staged = scratch.bytes.take(self.stage.elements());
        // Padding never wins and adds nothing.
        let pad = match self.mode {
            Mode::Max => u8::MIN,
            Mode::Min => u8::MAX,
            Mode::Sum | Mode::Mean { .. } => self.zero as u8,
        };
        self.stage.fill(region, &mut staged, pad, |[byte]: [u8; 1]| byte ^ self.turn);
        let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
        let extent = self.output.store.extent;
        let depth = extent.depth;
        // Whole blocks are computed: what lies beyond the last channel is dropped.
        let padded = depth.next_multiple_of(LANES);
        scratch.byte_results.resize(extent.width * depth, 0);
        scratch.first.resize(padded, 0);
        for y in 0..extent.height {
            for x in 0..extent.width {
                let base = y * self.stride.0 * self.stage.row + x * self.stride.1 * depth;
                for (block, sums) in scratch.first.chunks_exact_mut(LANES).enumerate() {
                    let sums: &mut [i32; LANES] = sums.try_into().expect("a block");
                    self.block(&staged[base + block * LANES..], depth, sums);
                }
                let results = &mut scratch.byte_results[x * depth..(x + 1) * depth];
                let taps = (self.kernel.0 * self.kernel.1) as i64;
                for (result, &sum) in results.iter_mut().zip(scratch.first.iter()) {
                    let sum = i64::from(sum);
                    // Staged padding adds the zero point, so all taps count in a sum.
                    let value = match self.mode {
                        Mode::Max | Mode::Min => sum - self.zero,
                        Mode::Sum => sum - taps * self.zero,
                        Mode::Mean { height, width, top, left } => {
                            let inside = |o: usize, stride: usize, kernel: usize, pad: i64, size: i64| {
                                let first = (o * stride) as i64 - pad;
                                (first + kernel as i64).min(size) - first.max(0)
                            };
                            let rows = inside(y, self.stride.0, self.kernel.0, top, height);
                            let columns = inside(x, self.stride.1, self.kernel.1, left, width);
                            divide_half_away(sum - taps * self.zero, rows * columns)
                        }
                    };
                    let clamp = self.output.clamp;
                    let shifted = self.scale.apply(value).saturating_add(clamp.zero_point.into());
                    *result = shifted.clamp(clamp.low.into(), clamp.high.into()) as u8;
                }
            }
            self.output.finish(&mut scratch.byte_results);
            self.output.store.row(out, y, &scratch.byte_results);
        }
        scratch.bytes.give_back(staged);
    }

    /// The sums, or the largest or smallest values, of a block of channels under the kernel.
    fn block(&self, window: &[u8], depth: usize, results: &mut [i32; LANES]) {
        *results = [if self.mode == Mode::Min { i32::MAX } else { 0 }; LANES];
        for ky in 0..self.kernel.0 {
            for kx in 0..self.kernel.1 {
                let at = ky * self.stage.row + kx * depth;
                let inputs: &[u8; LANES] = window[at..at + LANES].try_into().expect("a block");
                let pairs = results.iter_mut().zip(inputs.map(i32::from));
                match self.mode {
                    Mode::Max => pairs.for_each(|(result, input)| *result = (*result).max(input)),
                    Mode::Min => pairs.for_each(|(result, input)| *result = (*result).min(input)),
                    Mode::Sum | Mode::Mean { .. } => pairs.for_each(|(result, input)| *result += input),
                }
            }
        }
    }
}
