//! Operations that map each byte of the input to one of the output, whatever they are called.
//!
//! Vela copies, requantises, transposes, concatenates and looks up with 1x1 average pools; element-wise operations with one operand
//! or a scalar are the same kind. All 256 results are computed when the plan is made.

use super::output::Output;
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::map::{Axes, Flip};
use crate::memory::Memory;

/// A planned byte map.
#[derive(Debug, Clone)]
pub(super) struct ByteMap {
    stage: Stage,
    region: u8,
    /// `None` where each byte stays what it is.
    table: Option<Box<[u8; 256]>>,
    /// How axes are exchanged, and which one is reversed afterwards.
    order: (Axes, Flip),
    output: Output,
}

impl ByteMap {
    /// How such an input is staged.
    pub(super) const FORM: Form = Form::Dense;

    pub(super) fn new(
        stage: Stage,
        region: u8,
        table: Box<[u8; 256]>,
        order: (Axes, Flip),
        output: Output,
    ) -> Self {
        let identity = table.iter().enumerate().all(|(index, &byte)| index == usize::from(byte));
        Self { stage, region, table: (!identity).then_some(table), order, output }
    }

    pub(super) fn run(&self, memory: &mut Memory, scratch: &mut Scratch) {
        let region = memory.bytes(self.region).expect("planned regions are bound");
        let mut staged = scratch.bytes.take(self.stage.elements());
        // Between upscaled elements stands the zero point, which the planner doesn't let come here.
        match &self.table {
            None => self.stage.fill(region, &mut staged, 0, |[byte]: [u8; 1]| byte),
            Some(table) => {
                self.stage.fill(region, &mut staged, 0, |[byte]: [u8; 1]| table[usize::from(byte)])
            }
        }
        let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
        if self.order == (Axes::Hwc, Flip::None) {
            for (y, row) in staged.chunks_exact(self.stage.row).take(self.stage.rows).enumerate() {
                self.output.store.row(out, y, row);
            }
        } else {
            for y in 0..self.output.store.extent.height {
                self.rearrange(y, &staged, &mut scratch.byte_results);
                self.output.store.row(out, y, &scratch.byte_results);
            }
        }
        scratch.bytes.give_back(staged);
    }

    /// Row `y` as it is stored, out of the staged input.
    fn rearrange(&self, y: usize, staged: &[u8], row: &mut Vec<u8>) {
        let (axes, flip) = self.order;
        let stored = self.output.store.extent;
        let depth = self.stage.row / self.stage.columns;
        // Bytes between neighbours on each computed axis: rows, columns, channels.
        let steps = [self.stage.row, depth, 1];
        // Where a stored position comes from.
        let index = |y: usize, x: usize, c: usize| {
            let (h, w, c) = axes.source(y, x, c);
            h * steps[0] + w * steps[1] + c * steps[2]
        };
        let y = if flip == Flip::Height { stored.height - 1 - y } else { y };
        let (x_step, c_step) = (index(0, 1, 0), index(0, 0, 1));
        row.clear();
        for x in 0..stored.width {
            let x = if flip == Flip::Width { stored.width - 1 - x } else { x };
            let first = index(y, 0, 0) + x * x_step;
            let channels = (0..stored.depth).map(|c| staged[first + c * c_step]);
            if flip == Flip::Depth { row.extend(channels.rev()) } else { row.extend(channels) }
        }
    }
}
