//! What a clock reports: the cost of each layer or command, and totals.

use std::fmt;

use super::beats::{self, Beats};
use super::pass::Machine;
use super::system::{Port, System};
use crate::program::Program;

/// What a layer or command spends its time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bottleneck {
    /// The MACs.
    Mac,
    /// The output stage.
    Output,
    /// The issue of blocks to the units.
    Issue,
    /// The memory behind a port.
    Port(Port),
    /// A copy from memory to memory.
    Transfer,
    /// The latency of memory: it takes longer to begin than to be done.
    Latency,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Mac => "MAC",
            Self::Output => "output",
            Self::Issue => "issue",
            Self::Port(Port::Axi0) => "AXI0",
            Self::Port(Port::Axi1) => "AXI1",
            Self::Transfer => "transfer",
            Self::Latency => "latency",
        })
    }
}

/// The cost of one layer (the compiler's clock) or one command (the simulating clock).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// Byte offset of its first command in the stream.
    pub offset: usize,
    /// What it does, such as `CONV` or `MAX_POOL`.
    pub name: &'static str,
    /// Commands it is made of.
    pub commands: usize,
    /// When it starts, in cycles from the beginning.
    pub start: u64,
    /// Cycles from its start to its end.
    pub cycles: u64,
    /// Cycles the NPU needs if memory keeps up (the compiler's clock), or the units (the simulating clock).
    pub npu_cycles: u64,
    /// Cycles in which the MACs work.
    pub mac_cycles: u64,
    /// Cycles in which the weight decoder works, within those of the MACs.
    pub weight_cycles: u64,
    /// Cycles in which the output stage works.
    pub output_cycles: u64,
    /// Cycles of the copies from memory to memory that it waits for or is.
    pub transfer_cycles: u64,
    /// Cycles that the memory behind each port needs, by [`Port::index`].
    pub port_cycles: [u64; 2],
    /// Data words through each port.
    pub beats: Beats,
    /// Multiply-accumulates.
    pub macs: u64,
    /// Bits of an input element.
    pub input_bits: u8,
    /// Bits of an output element.
    pub output_bits: u8,
    /// What bounds it.
    pub bottleneck: Bottleneck,
}

impl Cost {
    pub(super) fn new(offset: usize, name: &'static str, commands: usize) -> Self {
        Self {
            offset,
            name,
            commands,
            start: 0,
            cycles: 0,
            npu_cycles: 0,
            mac_cycles: 0,
            weight_cycles: 0,
            output_cycles: 0,
            transfer_cycles: 0,
            port_cycles: [0; 2],
            beats: Beats::default(),
            macs: 0,
            input_bits: 8,
            output_bits: 8,
            bottleneck: Bottleneck::Latency,
        }
    }

    /// When it ends, in cycles from the beginning.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.cycles)
    }
}

/// The cost of a whole program.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Of each layer or command, in the order of the stream.
    pub costs: Vec<Cost>,
    /// Data words of reading the command stream itself.
    pub command_beats: Beats,
    /// The NPU's clock in hertz.
    pub core_clock_hz: f64,
    /// When the last thing ended that isn't a cost by itself, such as the latency of a transfer.
    end: u64,
}

impl Report {
    pub(super) fn new(program: &Program, system: &System) -> Self {
        let machine = Machine::new(program.accelerator());
        Self {
            costs: Vec::new(),
            command_beats: beats::of_commands(&machine, system, program.stream_bytes()),
            core_clock_hz: system.core_clock_hz,
            end: 0,
        }
    }

    pub(super) fn push(&mut self, cost: Cost) {
        self.costs.push(cost);
    }

    pub(super) fn set_end(&mut self, end: u64) {
        self.end = end;
    }

    /// Cycles from the beginning to the end of whatever ends last.
    pub fn total(&self) -> u64 {
        self.costs.iter().map(Cost::end).fold(self.end, u64::max)
    }

    /// The same in seconds.
    pub fn seconds(&self) -> f64 {
        self.total() as f64 / self.core_clock_hz
    }

    /// Multiply-accumulates.
    pub fn macs(&self) -> u64 {
        self.costs.iter().map(|cost| cost.macs).fold(0, u64::saturating_add)
    }

    /// Data words through each port, those of the commands included.
    pub fn beats(&self) -> Beats {
        self.costs.iter().fold(self.command_beats, |sum, cost| sum + cost.beats)
    }
}
