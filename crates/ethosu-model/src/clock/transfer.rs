//! Feature maps on their way through a port, as Vela estimates them: bytes, inflated where bursts are short.
//!
//! The rules are those of Vela 5.2.0's `ethos_u55_performance.cpp` and `ethos_u85_performance.cpp`.

use ethosu_isa::{Layout, Product};

use super::pass::{Input, Machine, Pass, smaller};
use super::rates::{Channel, Rates};
use super::system::{Memory, System};
use crate::map::{BRICK, Extent, FeatureMap};

/// Longest run of a deep block that is written at once, in bytes.
const LONGEST_WRITE: u64 = 64;

/// Bytes over a bandwidth in whole cycles. Vela divides in single precision.
pub(super) fn cycles(bytes: u64, bytes_per_cycle: f64) -> u64 {
    (bytes as f32 / bytes_per_cycle as f32) as u64
}

/// Which way a map goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Read,
    Write,
}

/// Bytes of `elements` of a map, made longer by the share of each burst that a run leaves unused.
pub(super) fn inflated(
    machine: &Machine,
    way: Way,
    memory: &Memory,
    map: &FeatureMap,
    bits: u64,
    (block, extent): (Extent, Extent),
    elements: u64,
) -> u64 {
    let element = bits / 8;
    let (width, depth) = (block.width as u64, block.depth as u64);
    let brick = BRICK as u64;
    let cores = if way == Way::Write { machine.cores } else { 1 };
    let run = match (map.layout, way) {
        (Layout::Nhcwb16, _) if extent.width as u64 * element * brick == depth => element * width * depth,
        (Layout::Nhcwb16, _) => brick * element * width * cores,
        (Layout::Nhwc, way) => {
            let whole = extent.depth as u64 * element == depth;
            match way {
                Way::Read if whole => element * width * depth,
                Way::Read => element * depth,
                Way::Write if whole && depth <= brick => element * width * depth,
                Way::Write => LONGEST_WRITE.min(brick * element * cores).min(depth * element),
            }
        }
    };
    let burst = u64::from(memory.burst_bytes.max(1));
    elements.saturating_mul(element).saturating_mul(burst) / burst.min(run).max(1)
}

/// Elements of an extent with whole bricks.
pub(super) fn stored_elements(extent: Extent, layout: Layout) -> u64 {
    let depth = stored_depth(extent.depth, layout);
    Extent { depth, ..extent }.elements()
}

/// Channels with whole bricks.
pub(super) fn stored_depth(depth: usize, layout: Layout) -> usize {
    match layout {
        Layout::Nhwc => depth,
        Layout::Nhcwb16 => depth.next_multiple_of(BRICK),
    }
}

/// Cycles to bring in one input block and to take out one output block, by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockTransfers {
    pub(super) input: u64,
    pub(super) output: u64,
}

impl BlockTransfers {
    /// Those of a pass whose results end up in `ofm`, which is another map than its own in a chain.
    pub(super) fn new(machine: &Machine, system: &System, pass: &Pass, ofm: &FeatureMap) -> Self {
        let read = |input: &Input| {
            let Some(port) = system.port(input.map.region) else { return 0 };
            let memory = system.memory(port);
            let elements = smaller(input.extent, pass.ifm_block).elements();
            let shapes = (pass.ifm_block, input.extent);
            let bytes = inflated(machine, Way::Read, memory, &input.map, pass.input_bits, shapes, elements);
            cycles(bytes, memory.bytes_per_cycle(machine.product)).saturating_add(memory.read_latency.into())
        };
        let output = system.port(ofm.region).map_or(0, |port| {
            let memory = system.memory(port);
            let bits = 8 * u64::from(ofm.element.bytes());
            let elements = pass.clipped_block().elements();
            let bytes = inflated(machine, Way::Write, memory, ofm, bits, (pass.block, pass.extent), elements);
            cycles(bytes, memory.bytes_per_cycle(machine.product)).saturating_add(memory.write_latency.into())
        });
        let inputs = pass.ifm.iter().chain(pass.ifm2.map());
        Self { input: inputs.map(read).max().unwrap_or(0), output }
    }
}

/// How much of a channel's buffer and of the outstanding reads counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Vela's: bursts aren't full, and ports aren't evenly used.
    Estimate,
    /// All of it.
    Full,
}

/// Bytes that a U85's read channel buffers.
pub(super) fn buffered_bytes(machine: &Machine, channel: Channel) -> Option<f64> {
    match (machine.rates, channel) {
        (Rates::U55(_), _) | (_, Channel::Write) => None,
        (Rates::U85(rates), _) => Some(16.0 * f64::from(rates.buffered_words[channel as usize])),
    }
}

/// The share of a memory's bandwidth that a U85's channel can use: no more can be under way during the latency than its
/// buffer holds and the memory has outstanding.
pub(super) fn channel_bandwidth(
    machine: &Machine,
    memory: &Memory,
    channel: Channel,
    allowance: Allowance,
) -> f64 {
    let bandwidth = memory.bytes_per_cycle(machine.product);
    let (outstanding, latency) = match channel {
        Channel::Write => (memory.max_writes, memory.write_latency),
        _ => (memory.max_reads, memory.read_latency),
    };
    if latency == 0 || machine.product != Product::U85 {
        return bandwidth;
    }
    let efficiency = if allowance == Allowance::Estimate { 0.8 } else { 1.0 };
    let outstanding = f64::from(outstanding * memory.ports) * efficiency;
    // Vela counts the buffer in whole bursts of 16-byte words.
    let burst = f64::from((memory.burst_bytes / 16).max(1) * 16);
    let buffered = buffered_bytes(machine, channel).map_or(f64::INFINITY, |bytes| bytes / burst);
    let under_way = f64::from(memory.burst_bytes) * buffered.min(outstanding);
    bandwidth.min(under_way / f64::from(latency) * efficiency)
}

/// Cycles of a copy from one memory to another.
pub(super) fn copy(machine: &Machine, from: &Memory, to: &Memory, bytes: u64) -> u64 {
    let (read, write) = match machine.product {
        Product::U55 | Product::U65 => {
            (from.bytes_per_cycle(machine.product), to.bytes_per_cycle(machine.product))
        }
        Product::U85 => {
            let usable = |memory, channel| channel_bandwidth(machine, memory, channel, Allowance::Estimate);
            (usable(from, Channel::Transfer), usable(to, Channel::Write))
        }
    };
    let reading = cycles(bytes, read).saturating_add(from.read_latency.into());
    let writing = cycles(bytes, write).saturating_add(to.write_latency.into());
    reading.max(writing)
}

/// Cycles of a copy into the table memory, which takes a byte a cycle (Vela 5.2.0, `ethos_u55.cpp`).
pub(super) fn copy_to_tables(machine: &Machine, from: &Memory, bytes: u64) -> u64 {
    let reading =
        cycles(bytes, from.bytes_per_cycle(machine.product)).saturating_add(from.read_latency.into());
    reading.max(bytes)
}
