//! The simulating clock: predicts what a real NPU takes.
//!
//! Commands run one after the other, each as long as its slowest part: the MACs and the output stage over the blocks that there
//! really are, or the bus with exactly the words that cross it; and memory's latency comes on top. Transfers run beside them.
//! That commands don't overlap, and how latencies add up, was chosen by comparison with published totals of Arm's simulator;
//! docs/clock.md has them, and says what is not covered.

use ethosu_isa::Product;

use super::beats::{self, Part};
use super::compiler::macs;
use super::layer::Transfer;
use super::pass::{Machine, Pass};
use super::rates::Channel;
use super::report::{Bottleneck, Cost, Report};
use super::system::{Port, System};
use super::transfer::{Allowance, BlockTransfers, buffered_bytes, channel_bandwidth};
use super::units::Detail;
use super::{ClockError, Waits};
use crate::map::Extent;
use crate::operation::{Operation, Target};
use crate::program::Program;

/// Commands that may be waiting or under way before the next one is held up.
const QUEUED_COMMANDS: usize = 3;
/// The share of a block's own way in and out that is not hidden behind other blocks.
const EXPOSED_TRANSFER: f64 = 0.5;

/// What a real NPU would take for the program, command by command; transfers are entries of their own.
///
/// # Errors
/// [`ClockError`] for a stream that never sets its blocks, and for a system without bandwidth.
pub fn simulate(program: &Program, system: &System) -> Result<Report, ClockError> {
    simulate_steps(program, system, program.steps().len())
}

/// The same for a run that ended after the first `steps` operations.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_steps(program: &Program, system: &System, steps: usize) -> Result<Report, ClockError> {
    system.check(program.accelerator().product())?;
    let machine = Machine::new(program.accelerator());
    let mut timeline = Timeline::default();
    let mut report = Report::new(program, system);
    for step in program.steps().iter().take(steps) {
        timeline.wait(&step.schedule.waits);
        let mut cost = match (&step.operation, Pass::new(&machine, step)?) {
            (Operation::Dma(dma), _) => copy(&machine, system, step.offset, &Transfer::new(dma)),
            (_, Some(pass)) => command(&machine, system, &pass),
            (_, None) => continue,
        };
        match &step.operation {
            Operation::Dma(dma) => {
                let latency =
                    system.port(dma.source_region).map_or(0, |port| system.memory(port).read_latency);
                cost.start = timeline.transfer(cost.cycles, latency.into());
            }
            _ => cost.start = timeline.command(cost.cycles),
        }
        report.push(cost);
    }
    report.set_end(timeline.end());
    Ok(report)
}

/// When everything happens.
#[derive(Debug, Default)]
struct Timeline {
    /// When the next command can be issued.
    now: u64,
    /// When the transfer channel is free.
    channel_free: u64,
    /// When each transfer's data is there.
    transfers: Vec<u64>,
    /// When each command ended.
    commands: Vec<u64>,
}

impl Timeline {
    fn wait(&mut self, waits: &Waits) {
        for (outstanding, ends) in [(waits.transfers, &self.transfers), (waits.operations, &self.commands)] {
            let Some(outstanding) = outstanding else { continue };
            if let Some(end) = ends.iter().rev().nth(outstanding.into()) {
                self.now = self.now.max(*end);
            }
        }
    }

    /// Begins a transfer and says when.
    fn transfer(&mut self, cycles: u64, latency: u64) -> u64 {
        let start = self.now.max(self.channel_free);
        self.channel_free = start.saturating_add(cycles);
        self.transfers.push(self.channel_free.saturating_add(latency));
        start
    }

    /// Begins a command and says when.
    fn command(&mut self, cycles: u64) -> u64 {
        let start = self.now.max(self.commands.last().copied().unwrap_or(0));
        self.commands.push(start.saturating_add(cycles));
        if let Some(end) = self.commands.iter().rev().nth(QUEUED_COMMANDS - 1) {
            self.now = self.now.max(*end);
        }
        start
    }

    fn end(&self) -> u64 {
        let last = self.commands.last().copied().unwrap_or(0);
        self.transfers.last().copied().unwrap_or(0).max(last)
    }
}

fn copy(machine: &Machine, system: &System, offset: usize, transfer: &Transfer) -> Cost {
    let mut cost = Cost::new(offset, "DMA", 1);
    let target = match transfer.target {
        Target::Region(region) => system.port(region),
        Target::Internal => None,
    };
    let ways = [(system.port(transfer.source), Channel::Transfer), (target, Channel::Write)];
    for (port, channel) in ways.into_iter().filter_map(|(port, channel)| Some((port?, channel))) {
        let bandwidth = channel_bandwidth(machine, system.memory(port), channel, Allowance::Full);
        let needed = (transfer.bytes as f64 / bandwidth).ceil() as u64;
        let sum = &mut cost.port_cycles[port.index()];
        *sum = sum.saturating_add(needed);
        cost.cycles = cost.cycles.max(needed);
    }
    cost.transfer_cycles = cost.cycles;
    cost.bottleneck = Bottleneck::Transfer;
    cost.beats = beats::of_transfer(machine, system, transfer);
    cost
}

fn command(machine: &Machine, system: &System, pass: &Pass) -> Cost {
    let mut cost = Cost::new(pass.offset, pass.kind.name(), 1);
    let units = Units::new(machine, pass);
    cost.mac_cycles = units.mac as u64;
    cost.weight_cycles = units.weights as u64;
    cost.output_cycles = units.output as u64;
    cost.npu_cycles = units.together().ceil() as u64;
    cost.macs = macs(pass);
    cost.input_bits = pass.input_bits as u8;
    cost.output_bits = (8 * pass.ofm.element.bytes()) as u8;
    cost.beats = beats::of_pass(machine, system, pass);

    let mut longest = units.together();
    cost.bottleneck = if units.mac > units.output { Bottleneck::Mac } else { Bottleneck::Output };
    for port in Port::ALL {
        let beats = cost.beats.of(port);
        let bytes = beats.read.saturating_add(beats.written).saturating_mul(machine.beat);
        let needed = bytes as f64 / system.memory(port).bytes_per_cycle(machine.product);
        cost.port_cycles[port.index()] = needed.ceil() as u64;
        if needed > longest {
            longest = needed;
            cost.bottleneck = Bottleneck::Port(port);
        }
    }
    let channel = channel_cycles(machine, system, pass);
    if channel > longest {
        longest = channel;
        cost.bottleneck = Bottleneck::Latency;
    }
    let latency = latency(machine, system, pass);
    if latency > longest {
        cost.bottleneck = Bottleneck::Latency;
    }
    cost.cycles = (longest + latency).ceil() as u64;
    cost
}

/// Cycles of the slowest read channel of a U85, where latency is what holds it back.
fn channel_cycles(machine: &Machine, system: &System, pass: &Pass) -> f64 {
    if machine.product != Product::U85 {
        return 0.0;
    }
    let cycles = |part: &Part| {
        let Some(port) = system.port(part.region) else { return 0.0 };
        let memory = system.memory(port);
        match part.channel {
            // A write needs no answer to go on.
            Channel::Write => 0.0,
            Channel::Scales => scale_trips(machine, pass) * f64::from(memory.read_latency),
            channel => {
                let bytes = part.words.saturating_mul(machine.beat) as f64;
                bytes / channel_bandwidth(machine, memory, channel, Allowance::Full)
            }
        }
    };
    beats::parts(machine, pass).iter().map(cycles).fold(0.0, f64::max)
}

/// How often the scales of a block have to be asked for: the channel's buffer is smaller than what a deep block needs.
fn scale_trips(machine: &Machine, pass: &Pass) -> f64 {
    /// Bytes of a channel's scale and bias.
    const RECORD: f64 = 10.0;
    let Some(buffered) = buffered_bytes(machine, Channel::Scales) else { return 0.0 };
    let positions = pass.extent.height.div_ceil(pass.block.height) as f64
        * pass.extent.width.div_ceil(pass.block.width) as f64;
    let blocks = sizes(pass.extent.depth, pass.block.depth);
    positions
        * blocks.map(|(depth, count)| count as f64 * (depth as f64 * RECORD / buffered).ceil()).sum::<f64>()
}

/// Cycles before the first block is in and after the last is done.
fn latency(machine: &Machine, system: &System, pass: &Pass) -> f64 {
    let transfers = BlockTransfers::new(machine, system, pass, &pass.ofm);
    let weights = pass.weights.as_ref().and_then(|weights| system.port(weights.region));
    let weights = weights.map_or(0, |port| system.memory(port).read_latency);
    let commands = system.memory(system.commands).read_latency;
    EXPOSED_TRANSFER * (transfers.input + transfers.output) as f64 + f64::from(weights) + f64::from(commands)
}

/// Cycles of the units over all blocks of a command.
#[derive(Debug, Clone, Copy, Default)]
struct Units {
    blocks: f64,
    mac: f64,
    weights: f64,
    output: f64,
}

impl Units {
    fn new(machine: &Machine, pass: &Pass) -> Self {
        let mut units = Self::default();
        let rate = machine.output_rate(pass);
        let (extent, block) = (pass.extent, pass.block);
        let ifm_depth = pass.ifm.map_or(pass.extent.depth, |input| input.extent.depth);
        let depths: Vec<_> = if pass.kind.is_deep() {
            sizes(ifm_depth, pass.ifm_block.depth).collect()
        } else {
            vec![(pass.ifm_block.depth.min(ifm_depth), 1)]
        };
        for (height, rows) in sizes(extent.height, block.height) {
            for (width, columns) in sizes(extent.width, block.width) {
                for (depth, planes) in sizes(extent.depth, block.depth) {
                    let part = Extent { height, width, depth };
                    let count = rows as f64 * columns as f64 * planes as f64;
                    units.blocks += count;
                    units.output += count * (rate * part.elements() as f64).ceil();
                    for &(depth, times) in &depths {
                        let one = machine.mac_cycles(pass, part, depth, Detail::Exact);
                        let times = count * times as f64 / machine.cores as f64;
                        units.mac += times * one.mac as f64;
                        units.weights += times * one.weights as f64;
                    }
                }
            }
        }
        if pass.weights.is_none() {
            units.weights = 0.0;
        }
        units
    }

    /// The slower unit works all the time, the other on one block more.
    fn together(&self) -> f64 {
        (self.mac + self.output / self.blocks).max(self.output + self.mac / self.blocks)
    }
}

/// The sizes of pieces along an axis, and how many there are of each.
fn sizes(size: usize, piece: usize) -> impl Iterator<Item = (usize, usize)> {
    let (whole, rest) = (size / piece, size % piece);
    [(piece, whole), (rest, 1)].into_iter().filter(|&(size, count)| size > 0 && count > 0)
}
