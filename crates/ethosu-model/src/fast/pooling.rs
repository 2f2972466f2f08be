//! Pools with a kernel, on 8-bit data.

use ethosu_isa::{ElementSize, PoolMode, Rounding, Upscale};

use super::output::Output;
use super::requant::LANES;
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::memory::Memory;
use crate::operation::Pooling;
use crate::rounding::{DoublingShift, Scale, divide_half_away};

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
    rounding: Rounding,
    output: Output,
}

#[derive(Debug, Clone, Copy)]
enum Mode {
    /// The largest, scaled.
    Max(Scale),
    /// The sum, scaled.
    Sum(Scale),
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
        let extent = window.ofm_extent;
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
        let mode = match pooling.mode {
            PoolMode::Max => Mode::Max(pooling.scale.unwrap_or(Scale::UNIT)),
            PoolMode::Average if window.padded || pooling.scale.is_none() => Mode::Mean {
                height: window.height,
                width: window.width,
                top: window.pad.0,
                left: window.pad.1,
            },
            PoolMode::Average => Mode::Sum(pooling.scale?),
            PoolMode::ReduceSum => return None,
        };
        let turn = if window.ifm.signed { 0x80 } else { 0 };
        Some(Self {
            stage: Stage::new(window, Form::Dense, limit)?,
            region: window.ifm.region,
            turn,
            zero: window.ifm.zero_point + i64::from(turn),
            kernel: window.kernel,
            stride: window.stride,
            mode,
            rounding: window.rounding,
            output,
        })
    }

    /// Elements of the staged input.
    pub(super) fn staged_elements(&self) -> usize {
        self.stage.elements()
    }

    pub(super) fn run(&self, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.region).expect("planned regions are bound");
        let mut staged = scratch.bytes.take(self.staged_elements());
        // Padding never wins a maximum and adds nothing to a sum.
        let pad = if matches!(self.mode, Mode::Max(_)) { 0 } else { self.zero as u8 };
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
                    *result = match self.mode {
                        Mode::Max(scale) => self.scaled(sum - self.zero, scale),
                        Mode::Sum(scale) => self.scaled(sum - taps * self.zero, scale),
                        Mode::Mean { height, width, top, left } => {
                            let inside = |o: usize, stride: usize, kernel: usize, pad: i64, size: i64| {
                                let first = (o * stride) as i64 - pad;
                                (first + kernel as i64).min(size) - first.max(0)
                            };
                            let rows = inside(y, self.stride.0, self.kernel.0, top, height);
                            let columns = inside(x, self.stride.1, self.kernel.1, left, width);
                            self.clamped(divide_half_away(sum - taps * self.zero, rows * columns))
                        }
                    };
                }
            }
            self.output.finish(&mut scratch.byte_results);
            self.output.store.row(out, y, &scratch.byte_results);
        }
        scratch.bytes.give_back(staged);
    }

    /// The sums, or the largest values, of a block of channels under the kernel.
    fn block(&self, window: &[u8], depth: usize, results: &mut [i32; LANES]) {
        *results = [0; LANES];
        for ky in 0..self.kernel.0 {
            for kx in 0..self.kernel.1 {
                let at = ky * self.stage.row + kx * depth;
                let inputs: &[u8; LANES] = window[at..at + LANES].try_into().expect("a block");
                if matches!(self.mode, Mode::Max(_)) {
                    for lane in 0..LANES {
                        results[lane] = results[lane].max(inputs[lane].into());
                    }
                } else {
                    for lane in 0..LANES {
                        results[lane] += i32::from(inputs[lane]);
                    }
                }
            }
        }
    }

    fn scaled(&self, value: i64, scale: Scale) -> u8 {
        self.clamped(scale.apply(value, self.rounding, DoublingShift::RESULT))
    }

    fn clamped(&self, value: i64) -> u8 {
        let clamp = self.output.clamp;
        value.saturating_add(clamp.zero_point.into()).clamp(clamp.low.into(), clamp.high.into()) as u8
    }
}
