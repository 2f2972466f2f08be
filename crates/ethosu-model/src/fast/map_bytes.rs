//! Operations that map each byte of the input to one of the output, whatever they are called.
//!
//! Vela copies, requantises, transposes, concatenates and looks up with 1x1 average pools; element-wise operations with one operand
//! or a scalar are the same kind. All 256 results are computed when the plan is made.

use super::output::Output;
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::memory::Memory;

/// A planned byte map.
#[derive(Debug, Clone)]
pub(super) struct ByteMap {
    stage: Stage,
    region: u8,
    /// `None` where each byte stays what it is.
    table: Option<Box<[u8; 256]>>,
    output: Output,
}

impl ByteMap {
    /// How such an input is staged.
    pub(super) const FORM: Form = Form::Dense;

    pub(super) fn new(stage: Stage, region: u8, table: Box<[u8; 256]>, output: Output) -> Self {
        let identity = table.iter().enumerate().all(|(index, &byte)| index == usize::from(byte));
        Self { stage, region, table: (!identity).then_some(table), output }
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
        for (y, row) in staged.chunks_exact(self.stage.row).take(self.stage.rows).enumerate() {
            self.output.store.row(out, y, row);
        }
        scratch.bytes.give_back(staged);
    }
}
