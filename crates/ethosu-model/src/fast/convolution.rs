//! Convolutions and depthwise convolutions, their weights packed for a kernel.

use std::ops::Range;
use std::sync::Arc;

use ethosu_isa::ElementSize;

use super::kernels::{Convolve, Depthwise, Element, Isa, Pixel, Results, Segment};
use super::output::Output;
use super::packed::{Grouping, Packed};
use super::requant::{LANES, RequantBlock};
use super::scratch::{Scratch, Staged};
use super::stage::{Form, Stage};
use crate::memory::Memory;
use crate::operation::{Convolution, Window};
use crate::weights::ChannelScale;

/// How staged elements come from an input's bytes.
#[derive(Debug, Clone, Copy)]
struct Input {
    region: u8,
    bits16: bool,
    signed: bool,
}

/// The staged value that stands for zero, and the largest distance of an input from it.
fn zero_and_reach(window: &Window, staged_bytes: bool) -> (i32, i64) {
    let map = &window.ifm;
    // Signed bytes are staged with their sign bit turned, as value + 128.
    let offset = if staged_bytes && map.signed { 128 } else { 0 };
    (map.zero_point as i32 + offset, map.farthest_from_zero())
}

/// A staged element as a kernel wants it.
pub(super) trait StagedElement: Element {
    /// Stages a window's input into the scratch buffer of this type.
    fn stage(stage: &Stage, input: (bool, bool), region: &[u8], out: &mut [Self], pad: i32);
    fn buffer(scratch: &mut Scratch) -> &mut Staged<Self>;
}

impl StagedElement for u8 {
    fn stage(stage: &Stage, (_, signed): (bool, bool), region: &[u8], out: &mut [u8], pad: i32) {
        let turn = if signed { 0x80 } else { 0 };
        stage.fill(region, out, pad as u8, |[byte]: [u8; 1]| byte ^ turn);
    }

    fn buffer(scratch: &mut Scratch) -> &mut Staged<u8> {
        &mut scratch.bytes
    }
}

impl StagedElement for i16 {
    fn stage(stage: &Stage, (bits16, signed): (bool, bool), region: &[u8], out: &mut [i16], pad: i32) {
        match (bits16, signed) {
            (true, _) => stage.fill(region, out, pad as i16, i16::from_le_bytes),
            (false, true) => stage.fill(region, out, pad as i16, |[byte]: [u8; 1]| i16::from(byte as i8)),
            (false, false) => stage.fill(region, out, pad as i16, |[byte]: [u8; 1]| i16::from(byte)),
        }
    }

    fn buffer(scratch: &mut Scratch) -> &mut Staged<i16> {
        &mut scratch.words
    }
}

/// A planned convolution.
#[derive(Debug, Clone)]
pub(super) struct Convolver<T: Element> {
    stage: Stage,
    input: Input,
    pad: i32,
    /// For a convolution: where groups lie from a pixel's base.
    segments: Vec<Segment>,
    /// For a depthwise one: the same, a group at a time.
    offsets: Vec<usize>,
    depthwise: bool,
    packed: Arc<Packed<T>>,
    requant: Vec<RequantBlock>,
    stride: (usize, usize),
    /// [`Output::direct_step`].
    direct_step: Option<usize>,
    output: Output,
}

/// Pixels whose results are held before they are stored.
const PIXELS_TOGETHER: usize = 256;

impl<T: StagedElement> Convolver<T> {
    /// `None` if a scale or a sum doesn't fit what kernels compute with.
    pub(super) fn new(
        convolution: &Convolution,
        packed: Arc<Packed<T>>,
        scales: &[ChannelScale],
        output: Output,
        limit: usize,
    ) -> Option<Self> {
        let window = &convolution.window;
        let bits16 = window.ifm.element == ElementSize::Bits16;
        if window.ifm.element == ElementSize::Bits32 || bits16 && !window.ifm.signed {
            return None;
        }
        let staged_bytes = T::GROUP == 4;
        let (pad, reach) = zero_and_reach(window, staged_bytes);
        // Padding is staged as the zero point, which must then be an element.
        if staged_bytes && u8::try_from(pad).is_err() || i16::try_from(pad).is_err() {
            return None;
        }
        let form = if convolution.depthwise { Form::Bricks } else { Form::Dense };
        let stage = Stage::new(window, form, limit)?;
        let mut requant = vec![RequantBlock::ZERO; scales.len().div_ceil(LANES)];
        for (o, (channel, &(magnitude, sum))) in scales.iter().zip(&packed.sums).enumerate() {
            // The accumulator and the result must stay in range whatever the input.
            let bound = (magnitude * reach).checked_add(channel.bias.abs())?;
            let bias = (channel.bias - sum * i64::from(pad)) as i32;
            if !requant[o / LANES].set(o % LANES, bias, &channel.scale, bound) {
                return None;
            }
        }
        let grouping = Grouping::new::<T>(convolution);
        // A depthwise kernel's groups are of columns of bricks, a convolution's of all channels.
        let piece = if convolution.depthwise {
            T::GROUP * LANES
        } else {
            window.dilation.1 * window.ifm_extent.depth
        };
        let (mut segments, mut offsets) = (Vec::new(), Vec::new());
        for ky in 0..window.kernel.0 {
            for number in 0..grouping.pieces {
                let offset = ky * window.dilation.0 * stage.row + number * piece;
                if convolution.depthwise {
                    offsets.push(offset);
                } else {
                    segments.push(Segment { offset, groups: grouping.groups });
                }
            }
        }
        Some(Self {
            stage,
            input: Input { region: window.ifm.region, bits16, signed: window.ifm.signed },
            pad,
            segments,
            offsets,
            depthwise: convolution.depthwise,
            packed,
            requant,
            stride: window.stride,
            direct_step: output.direct_step(),
            output,
        })
    }

    /// The same with other weights, no larger than those it was planned for, and no biases.
    pub(super) fn with_weights(&self, packed: Packed<T>) -> Self {
        let mut other = self.clone();
        for (o, &(_, sum)) in packed.sums.iter().enumerate() {
            other.requant[o / LANES].bias[o % LANES] = (-sum * i64::from(self.pad)) as i32;
        }
        other.packed = Arc::new(packed);
        other
    }

    /// What it is, for reports.
    pub(super) fn form(&self) -> &'static str {
        match (self.depthwise, T::GROUP) {
            (false, 4) => "convolution, bytes",
            (false, _) => "convolution, 16-bit",
            (true, 4) => "depthwise, bytes",
            (true, _) => "depthwise, 16-bit",
        }
    }

    /// The packed weights, which other convolutions may share.
    pub(super) fn packed(&self) -> &Arc<Packed<T>> {
        &self.packed
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.input.region).expect("planned regions are bound");
        let mut staged = T::buffer(scratch).take(self.stage.elements());
        T::stage(&self.stage, (self.input.bits16, self.input.signed), region, &mut staged, self.pad);
        let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
        let extent = self.output.store.extent;
        let rows_together = (PIXELS_TOGETHER / extent.width).clamp(1, extent.height);
        for first in (0..extent.height).step_by(rows_together) {
            let rows = first..(first + rows_together).min(extent.height);
            match self.direct_step {
                Some(step) => {
                    self.list_pixels(rows, true, &mut scratch.pixels);
                    self.compute(isa, &staged, &scratch.pixels, Results::Bytes(out), step);
                }
                None => self.run_rows(isa, &staged, rows, out, scratch),
            }
        }
        T::buffer(scratch).give_back(staged);
    }

    /// Computes rows and stores them afterwards.
    fn run_rows(&self, isa: Isa, staged: &[T], rows: Range<usize>, out: &mut [u8], scratch: &mut Scratch) {
        let Scratch { pixels, byte_results, word_results, .. } = scratch;
        self.list_pixels(rows.clone(), false, pixels);
        let step = pixels.len() * LANES;
        let values = step * self.requant.len();
        let line = self.output.store.extent.width * LANES;
        if self.output.bytes == 1 {
            byte_results.resize(values, 0);
            self.compute(isa, staged, pixels, Results::Bytes(byte_results), step);
            self.output.finish(byte_results);
            for (block, values) in byte_results.chunks_exact(step).enumerate() {
                for (y, values) in rows.clone().zip(values.chunks_exact(line)) {
                    self.output.store.block_row(out, y, block, values);
                }
            }
        } else {
            word_results.resize(values, 0);
            self.compute(isa, staged, pixels, Results::Words(word_results), step);
            for (block, values) in word_results.chunks_exact(step).enumerate() {
                for (y, values) in rows.clone().zip(values.chunks_exact(line)) {
                    self.output.store.block_row_words(out, y, block, values);
                }
            }
        }
    }

    /// The pixels of some rows, whose results go where they belong in the region, or one behind the other.
    fn list_pixels(&self, rows: Range<usize>, direct: bool, pixels: &mut Vec<Pixel>) {
        let pixel = if self.depthwise { LANES } else { self.stage.row / self.stage.columns };
        let (window_step, width) = (self.stride.1 * pixel, self.output.store.extent.width);
        pixels.clear();
        let mut run = |window: usize, count: usize, result: usize, result_step: usize| {
            pixels.extend((0..count).map(|x| Pixel {
                window: window + x * window_step,
                result: result.wrapping_add(x.wrapping_mul(result_step)),
            }));
        };
        for (number, y) in rows.enumerate() {
            let row = y * self.stride.0 * self.stage.row;
            if direct {
                for (columns, result, result_step) in self.output.store.row_parts(y) {
                    run(row + columns.start * window_step, columns.len(), result, result_step);
                }
            } else {
                run(row, width, number * width * LANES, LANES);
            }
        }
    }

    /// The results of some pixels.
    fn compute(&self, isa: Isa, staged: &[T], pixels: &[Pixel], results: Results<'_>, block_step: usize) {
        let (segments, weights, requant) = (&self.segments, &self.packed.weights, &self.requant);
        let clamp = self.output.clamp;
        if self.depthwise {
            let brick = self.stage.columns * LANES;
            let offsets = &self.offsets;
            T::depthwise(
                isa,
                Depthwise { staged, pixels, brick, offsets, weights, requant, clamp, results, block_step },
            );
        } else {
            T::convolve(
                isa,
                Convolve { staged, pixels, segments, weights, requant, clamp, results, block_step },
            );
        }
    }
}
