//! A command stream, decoded and checked as far as that needs no data.

use ethosu_isa::{Accelerator, Command, Decoder};

use crate::clock::{Schedule, Waits};
use crate::front::{FrontEnd, FrontEnd55, FrontEnd85};
use crate::operation::Operation;
use crate::stop::{Cause, Stop};
use crate::table::TableMemory;

/// How much a stream may ask for before it is refused: a hostile one costs no more time or memory than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Multiply-accumulates, elements and bytes of one run, added up.
    pub work: u64,
    /// Elements of one feature map.
    pub map_elements: u64,
}

impl Default for Limits {
    /// About a thousand inferences of MobileNetV2, and maps fifty times its largest.
    fn default() -> Self {
        Self { work: 1 << 38, map_elements: 1 << 26 }
    }
}

/// An operation and where its command lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Byte offset of the command in the stream.
    pub offset: usize,
    /// What it does.
    pub operation: Operation,
    /// How the hardware goes about it, which changes no value.
    pub schedule: Schedule,
}

/// A whole command stream.
///
/// Waits, interrupts and PMU commands change no value and have no step: operations run to completion in stream order. What a
/// wait holds up is in the [`Schedule`] of the step after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    accelerator: Accelerator,
    steps: Vec<Step>,
    stream_bytes: usize,
    tables: TableMemory,
    chain_bytes: [usize; 8],
}

impl Program {
    /// Decodes a bare command stream (words from the first to NPU_OP_STOP, without a COP header).
    ///
    /// # Errors
    /// [`Stop`] at the first command that can't be decoded, depends on a register that was never set, has a form that isn't
    /// modelled, or exceeds the limits.
    pub fn decode(stream: &[u8], accelerator: Accelerator, limits: &Limits) -> Result<Self, Stop> {
        match FrontEnd55::new(accelerator) {
            Some(front) => Self::decode_with(front, stream, accelerator, limits),
            None => match FrontEnd85::new(accelerator) {
                Some(front) => Self::decode_with(front, stream, accelerator, limits),
                None => {
                    let cause = Cause::not_modelled(
                        "the accelerator",
                        accelerator.macs(),
                        "U55, U65 and U85 are modelled",
                    );
                    Err(Stop { offset: 0, operation: "the stream", cause })
                }
            },
        }
    }

    fn decode_with(
        mut front: impl FrontEnd,
        stream: &[u8],
        accelerator: Accelerator,
        limits: &Limits,
    ) -> Result<Self, Stop> {
        let mut steps = Vec::new();
        let mut waits = Waits::default();
        let mut work = 0u64;
        for instruction in Decoder::new(stream, accelerator.product()) {
            let instruction = instruction.map_err(|error| Stop {
                offset: error.offset(),
                operation: "the command",
                cause: Cause::Decode(error),
            })?;
            let stop =
                |cause| Stop { offset: instruction.offset, operation: instruction.command.name(), cause };
            if let Command::Stop { .. } = instruction.command {
                let stream_bytes = instruction.offset + instruction.words.bytes();
                let (tables, chain_bytes) = (TableMemory::new(accelerator), front.chain_bytes());
                return Ok(Self { accelerator, steps, stream_bytes, tables, chain_bytes });
            }
            waits.apply(&instruction.command);
            let Some(operation) = front.command(&instruction.command).map_err(stop)? else { continue };
            if operation.largest_map() > limits.map_elements {
                let what = format!("a feature map of {} elements", operation.largest_map());
                return Err(stop(Cause::WorkLimit { what, limit: limits.map_elements }));
            }
            work = work.saturating_add(operation.work());
            if work > limits.work {
                let what = format!("{} multiply-accumulates, elements or bytes here", operation.work());
                return Err(stop(Cause::WorkLimit { what, limit: limits.work }));
            }
            let schedule = Schedule { waits: std::mem::take(&mut waits), ..front.schedule() };
            steps.push(Step { offset: instruction.offset, operation, schedule });
        }
        Err(Stop { offset: stream.len(), operation: "the stream", cause: Cause::Endless })
    }

    /// What the stream was decoded for.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Bytes of the command stream from its first word to the end of NPU_OP_STOP.
    pub fn stream_bytes(&self) -> usize {
        self.stream_bytes
    }

    /// The table memory before the run: nothing loaded.
    pub(crate) fn tables(&self) -> TableMemory {
        self.tables.clone()
    }

    /// Bytes that each chain buffer needs.
    pub(crate) fn chain_bytes(&self) -> &[usize; 8] {
        &self.chain_bytes
    }

    /// Its operations in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// All operations' [`work`](Operation::work).
    pub fn work(&self) -> u64 {
        self.steps.iter().map(|step| step.operation.work()).sum()
    }
}
