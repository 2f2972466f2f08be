//! The compiler's clock: rebuilds Vela 5.2.0's own estimate from the stream.
//!
//! Rules: `ethos_u55_performance.cpp`, `ethos_u85_performance.cpp` and `network_performance.cpp` of Vela 5.2.0. Vela prices whole
//! layers, so commands are put back into layers first. Which weights it takes for loaded ahead isn't in the stream: here those are
//! that could be loaded under the layer before.

use ethosu_isa::Product;

use super::layer::{Layer, Transfer, layers};
use super::pass::{Input, Kind, Machine, Pass, Second, smaller};
use super::rates::Channel;
use super::report::{Bottleneck, Cost, Report};
use super::schedule::Activation;
use super::system::{Port, System};
use super::transfer::{
    Allowance, BlockTransfers, Way, channel_bandwidth, copy, copy_to_tables, cycles, inflated, stored_depth,
    stored_elements,
};
use super::units::Detail;
use super::{ClockError, beats};
use crate::map::{Extent, FeatureMap};
use crate::operation::PoolFunction;
use crate::program::Program;

/// What Vela 5.2.0 would say the program takes, layer by layer as the stream shows them.
///
/// # Errors
/// [`ClockError`] for a stream that never sets its blocks, and for a system without bandwidth.
pub fn estimate(program: &Program, system: &System) -> Result<Report, ClockError> {
    estimate_layers(program, system, |_| None)
}

/// The same with the layers given: `layer_of` tells an operation's layer from its offset in the stream, as the queue table of
/// Vela's debug database does. Commands it has no number for are put together by likeness.
///
/// # Errors
/// As [`estimate`].
pub fn estimate_layers(
    program: &Program,
    system: &System,
    layer_of: impl Fn(usize) -> Option<u32>,
) -> Result<Report, ClockError> {
    system.check(program.accelerator().product())?;
    let estimate = Estimate { machine: Machine::new(program.accelerator()), system };
    let mut report = Report::new(program, system);
    // Cycles of the layer before under which transfers can hide.
    let mut slack = 0;
    let mut now = 0u64;
    for layer in layers(&estimate.machine, program, &layer_of)? {
        let priced = estimate.layer(&layer, slack);
        slack = priced.slack;
        let mut cost = priced.cost;
        for pass in layer.pieces.iter().map(|piece| &piece.pass).chain(&layer.chain) {
            cost.beats += beats::of_pass(&estimate.machine, system, pass);
        }
        for transfer in layer.pieces.iter().flat_map(|piece| piece.weights.iter().chain(&piece.tables)) {
            cost.beats += beats::of_transfer(&estimate.machine, system, transfer);
        }
        cost.start = now;
        now = cost.end();
        report.push(cost);
    }
    Ok(report)
}

struct Estimate<'a> {
    machine: Machine,
    system: &'a System,
}

struct Priced {
    cost: Cost,
    slack: u64,
}

/// Cycles of an operation that has all it needs.
#[derive(Debug, Clone, Copy)]
struct Operation {
    cycles: u64,
    mac: u64,
    weights: u64,
    output: u64,
    bottleneck: Bottleneck,
}

/// Bytes on their way through a port.
#[derive(Debug, Clone, Copy)]
struct Traffic {
    port: Port,
    channel: Channel,
    bytes: u64,
}

/// Which end of a layer a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slice {
    Whole,
    Last,
}

impl Estimate<'_> {
    fn layer(&self, layer: &Layer, slack: u64) -> Priced {
        let first = &layer.first().pass;
        let mut cost = Cost::new(first.offset, first.kind.name(), layer.commands());
        if first.permutes() {
            return self.transposition(layer, cost);
        }
        let whole = layer.whole();
        let output = layer.chain.last().unwrap_or(&whole).ofm;
        let rate = self.rate(first) + layer.chain.iter().map(|pass| self.rate(pass)).sum::<f64>();
        let operation = self.operation(&whole, rate, &output, Slice::Whole);
        let tables = self.table_cycles(layer);
        let transfers: Vec<&Transfer> = layer.pieces.iter().flat_map(|piece| &piece.weights).collect();
        let traffic;
        let next;
        match self.staging(layer) {
            Some((from, to)) => {
                let bytes = |transfers: &[&Transfer]| {
                    transfers.iter().map(|transfer| transfer.bytes).fold(0, u64::saturating_add)
                };
                let ahead = bytes(&layer.first().weights.iter().collect::<Vec<_>>());
                let moved =
                    |bytes| copy(&self.machine, self.system.memory(from), self.system.memory(to), bytes);
                let last = &layer.last().pass;
                next = match layer.pieces.len() > 1
                    && (layer.is_sliced() || self.machine.product == Product::U85)
                {
                    true => self.operation(last, rate, &output, Slice::Last).cycles,
                    false => operation.cycles,
                };
                let all = moved(bytes(&transfers));
                let late = moved(ahead).saturating_sub(slack);
                let behind = all.saturating_add(next).saturating_sub(slack);
                cost.npu_cycles = behind.max(operation.cycles.saturating_add(late)).saturating_add(tables);
                cost.transfer_cycles = all;
                // The compiler leaves the first transfer out where there was an operation to hide it under.
                let hidden = if slack > 0 { ahead } else { 0 };
                traffic = self.traffic(layer, &whole, Some((from, to, hidden)));
                cost.bottleneck = if behind >= operation.cycles.saturating_add(late) && behind > next {
                    Bottleneck::Transfer
                } else {
                    operation.bottleneck
                };
            }
            None => {
                next = operation.cycles;
                cost.npu_cycles = operation.cycles.saturating_add(tables.saturating_sub(slack));
                cost.transfer_cycles = tables;
                cost.bottleneck = operation.bottleneck;
                traffic = self.traffic(layer, &whole, None);
            }
        }
        cost.mac_cycles = operation.mac;
        cost.weight_cycles = operation.weights;
        cost.output_cycles = operation.output;
        cost.macs = macs(&whole);
        cost.input_bits = whole.input_bits as u8;
        cost.output_bits = (8 * output.element.bytes()) as u8;
        self.settle(&mut cost, &traffic);
        Priced { cost, slack: next }
    }

    /// What a port needs, and the layer's total.
    fn settle(&self, cost: &mut Cost, traffic: &[Traffic]) {
        cost.cycles = cost.npu_cycles;
        for port in Port::ALL {
            let memory = self.system.memory(port);
            let here = || traffic.iter().filter(|part| part.port == port);
            let bytes = here().map(|part| part.bytes).fold(0, u64::saturating_add);
            let mut needed = cycles(bytes, memory.bytes_per_cycle(self.machine.product));
            if self.machine.product == Product::U85 {
                let mut channels = [0u64; Channel::COUNT];
                for part in here() {
                    let channel = &mut channels[part.channel as usize];
                    *channel = channel.saturating_add(cycles(
                        part.bytes,
                        channel_bandwidth(&self.machine, memory, part.channel, Allowance::Estimate),
                    ));
                }
                needed = channels.into_iter().fold(needed, u64::max);
            }
            cost.port_cycles[port.index()] = needed;
            if needed > cost.cycles {
                cost.cycles = needed;
                cost.bottleneck = Bottleneck::Port(port);
            }
        }
    }

    /// Where weights are copied from and to, if they are.
    fn staging(&self, layer: &Layer) -> Option<(Port, Port)> {
        let first = layer.first();
        let from = self.system.port(first.weights.first()?.source)?;
        let to = self.system.port(first.pass.weights.as_ref()?.region)?;
        Some((from, to))
    }

    /// Loading a table is only charged where the operation does nothing else.
    fn table_cycles(&self, layer: &Layer) -> u64 {
        let alone = matches!(layer.first().pass.kind, Kind::Pool(_)) && self.machine.product != Product::U85;
        if !alone {
            return 0;
        }
        let tables = layer.pieces.iter().flat_map(|piece| &piece.tables);
        let source = |transfer: &Transfer| {
            self.system.port(transfer.source).map(|port| (self.system.memory(port), transfer.bytes))
        };
        tables
            .filter_map(source)
            .map(|(memory, bytes)| copy_to_tables(&self.machine, memory, bytes))
            .fold(0, u64::saturating_add)
    }

    /// The output rate. A table that is looked up by a plain copy costs Vela nothing.
    fn rate(&self, pass: &Pass) -> f64 {
        let copies = matches!(pass.kind, Kind::Pool(PoolFunction::Sum | PoolFunction::Mean))
            && (pass.y.taps, pass.x.taps) == (1, 1);
        if copies && pass.activation == Activation::Table {
            return self.machine.output_rate(&Pass { activation: Activation::None, ..pass.clone() });
        }
        self.machine.output_rate(pass)
    }

    fn operation(&self, pass: &Pass, rate: f64, ofm: &FeatureMap, slice: Slice) -> Operation {
        let transfers = BlockTransfers::new(&self.machine, self.system, pass, ofm);
        if pass.kind.uses_macs() {
            self.mac_operation(pass, rate, transfers, slice)
        } else {
            self.output_operation(pass, rate, transfers)
        }
    }

    fn output_operation(&self, pass: &Pass, rate: f64, transfers: BlockTransfers) -> Operation {
        let elements = stored_elements(pass.extent, pass.ofm.layout) as f64;
        let output = (rate * elements).ceil() as u64;
        let block = transfers.input.max(transfers.output) as f64 / pass.block.elements() as f64;
        // Commands for four units are issued one by one.
        let issue = ((block + rate) / 4.0 * elements).ceil() as u64;
        let bottleneck = if issue > output { Bottleneck::Issue } else { Bottleneck::Output };
        Operation { cycles: output.max(issue), mac: 0, weights: 0, output, bottleneck }
    }

    fn mac_operation(&self, pass: &Pass, rate: f64, transfers: BlockTransfers, slice: Slice) -> Operation {
        let machine = &self.machine;
        let block = pass.clipped_block();
        let ifm = pass.ifm.map_or(pass.extent, |input| input.extent);
        let ifm_depth = pass.ifm_block.depth.min(ifm.depth);
        let blocks =
            machine.microblock_count(pass, pass.extent) as f64 / machine.microblock_count(pass, block) as f64;
        let one = machine.mac_cycles(pass, block, ifm_depth, Detail::Estimate);
        let input_blocks = if pass.kind.is_deep() { ifm.depth.div_ceil(ifm_depth) as u64 } else { 1 };
        let mac = (one.mac.saturating_mul(input_blocks) / machine.cores) as f64;
        let computed = (rate * block.elements() as f64).ceil();
        let output = computed.max(self.bias_cycles(pass, block));
        let apart = if blocks > 1.0 { transfers.output.abs_diff(transfers.input) as f64 } else { 0.0 };
        let issue = (apart + mac + output) / 4.0;
        let (macs, outputs) = (mac.max(issue), output.max(issue));
        let mut total = if macs > outputs {
            (macs * blocks) as u64
                + if slice == Slice::Last || slice == Slice::Whole { outputs as u64 } else { 0 }
        } else {
            (outputs * blocks + macs) as u64
        };
        total = total.saturating_add(transfers.output);
        if slice == Slice::Whole {
            total = total.saturating_add(transfers.input);
        }
        let bottleneck = match (macs > outputs, mac.max(output) < issue) {
            (_, true) => Bottleneck::Issue,
            (true, false) => Bottleneck::Mac,
            (false, false) => Bottleneck::Output,
        };
        Operation {
            cycles: total,
            mac: (mac * blocks) as u64,
            weights: (one.weights.saturating_mul(input_blocks) as f64 / machine.cores as f64 * blocks) as u64,
            output: (computed * blocks) as u64,
            bottleneck,
        }
    }

    /// Cycles to read a block's biases and scales, 256 bits of them at once: ten bytes a channel.
    fn bias_cycles(&self, pass: &Pass, block: Extent) -> f64 {
        let Some(weights) = &pass.weights else { return 0.0 };
        let latency =
            self.system.port(weights.region).map_or(0, |port| self.system.memory(port).read_latency);
        10.0 * block.depth as f64 * f64::from(latency) / 256.0
    }

    fn transposition(&self, layer: &Layer, mut cost: Cost) -> Priced {
        let pass = &layer.first().pass;
        let elements = layer.pieces.iter().map(|piece| piece.pass.extent.elements()).sum::<u64>();
        let from = pass.ifm.and_then(|input| self.system.port(input.map.region));
        let to = self.system.port(pass.ofm.region);
        let element = u64::from(pass.ofm.element.bytes());
        let mut traffic = Vec::new();
        for (port, way, bytes) in [
            (from, Way::Read, elements.saturating_mul(pass.input_bits / 8)),
            (to, Way::Write, elements.saturating_mul(element)),
        ] {
            let Some(port) = port else { continue };
            let memory = self.system.memory(port);
            let run = 16 * element * self.machine.cores;
            let burst = u64::from(memory.burst_bytes.max(1));
            let (bytes, latency, channel) = match way {
                Way::Read => (bytes, memory.read_latency, Channel::Ifm),
                Way::Write => {
                    (bytes.saturating_mul(burst) / burst.min(run), memory.write_latency, Channel::Write)
                }
            };
            let needed =
                cycles(bytes, memory.bytes_per_cycle(self.machine.product)).saturating_add(latency.into());
            cost.npu_cycles = cost.npu_cycles.max(needed);
            traffic.push(Traffic { port, channel, bytes });
        }
        cost.name = "TRANSPOSE";
        cost.bottleneck = Bottleneck::Transfer;
        self.settle(&mut cost, &traffic);
        let slack = cost.npu_cycles;
        Priced { cost, slack }
    }

    /// What a layer moves, as the compiler counts it. `staged` has the ports between which weights are copied, and the bytes
    /// that were copied before.
    fn traffic(&self, layer: &Layer, pass: &Pass, staged: Option<(Port, Port, u64)>) -> Vec<Traffic> {
        let mut traffic = Vec::new();
        let mut add = |port: Option<Port>, channel, bytes| {
            if let (Some(port), 1..) = (port, bytes) {
                traffic.push(Traffic { port, channel, bytes });
            }
        };
        if pass.kind.uses_macs() {
            self.window_traffic(pass, &mut add);
            self.constant_traffic(pass, staged, &mut add);
        } else {
            self.operand_traffic(pass, &mut add);
        }
        for chained in &layer.chain {
            for input in chained.ifm.iter().chain(chained.ifm2.map()) {
                let elements = stored_elements(input.extent, input.map.layout);
                if !input.is_chained() && input.extent.elements() > 1 {
                    let bytes = self.read_bytes(&input.map, pass.ifm_block, input.extent, elements);
                    add(self.system.port(input.map.region), Channel::Stream, bytes);
                }
            }
        }
        let last = layer.chain.last().unwrap_or(pass);
        if let Some(port) = self.system.port(last.ofm.region) {
            let bits = 8 * u64::from(last.ofm.element.bytes());
            let elements = stored_elements(last.extent, last.ofm.layout);
            let shapes = (last.block, last.extent);
            let memory = self.system.memory(port);
            let bytes = inflated(&self.machine, Way::Write, memory, &last.ofm, bits, shapes, elements);
            add(Some(port), Channel::Write, bytes);
        }
        traffic
    }

    fn read_bytes(&self, map: &FeatureMap, block: Extent, extent: Extent, elements: u64) -> u64 {
        let Some(port) = self.system.port(map.region) else { return 0 };
        let bits = 8 * u64::from(map.element.bytes());
        inflated(&self.machine, Way::Read, self.system.memory(port), map, bits, (block, extent), elements)
    }

    fn window_traffic(&self, pass: &Pass, add: &mut dyn FnMut(Option<Port>, Channel, u64)) {
        let Some(input) = &pass.ifm else { return };
        let block = smaller(input.extent, pass.ifm_block);
        let depth = stored_depth(input.extent.depth, input.map.layout);
        let fetched = Extent { depth, ..block }.elements();
        let sub_kernels = (pass.y.taps.div_ceil(8) * pass.x.taps.div_ceil(8)) as u64;
        let deep = if pass.kind.is_deep() { block_count(pass)[2] } else { 1 };
        let elements = fetched.saturating_mul(sub_kernels).saturating_mul(positions(pass) * deep);
        let bytes = self.read_bytes(&input.map, pass.ifm_block, input.extent, elements);
        add(self.system.port(input.map.region), Channel::Ifm, bytes);
        if let Second::Map(second) = &pass.ifm2 {
            let elements = stored_elements(second.extent, second.map.layout);
            let bytes = self.read_bytes(&second.map, pass.ifm_block, second.extent, elements);
            add(self.system.port(second.map.region), Channel::Stream, bytes);
        }
    }

    fn constant_traffic(
        &self,
        pass: &Pass,
        staged: Option<(Port, Port, u64)>,
        add: &mut dyn FnMut(Option<Port>, Channel, u64),
    ) {
        let Some(weights) = &pass.weights else { return };
        let fetches = positions(pass);
        let home = self.system.port(weights.region);
        let channel = if pass.fast_weights { Channel::FastWeights } else { Channel::Weights };
        add(home, channel, weights.bytes().saturating_mul(fetches));
        let scales = pass.scales.as_ref().map_or(0, |scales| scales.bytes());
        // Scales stay charged to the memory that they are copied from.
        add(staged.map_or(home, |(from, ..)| Some(from)), Channel::Scales, scales.saturating_mul(fetches));
        if let Some((from, to, ahead)) = staged {
            let later = weights.bytes().saturating_sub(ahead);
            add(Some(from), Channel::Transfer, later);
            add(Some(to), Channel::Write, later);
        }
    }

    fn operand_traffic(&self, pass: &Pass, add: &mut dyn FnMut(Option<Port>, Channel, u64)) {
        let is_85 = self.machine.product == Product::U85;
        let full = pass.ifm.map_or(0, |input| stored_elements(pass.extent, input.map.layout));
        let mut read = |input: Option<&Input>, elements: u64| {
            if let Some(input) = input {
                let bytes = self.read_bytes(&input.map, pass.ifm_block, input.extent, elements);
                add(self.system.port(input.map.region), Channel::Stream, bytes);
            }
        };
        let own = |input: &Input| stored_elements(input.extent, input.map.layout);
        let (first, second) = (pass.ifm.as_ref(), pass.ifm2.map());
        if is_85 {
            for input in first.into_iter().chain(second).filter(|input| input.extent.elements() > 1) {
                read(Some(input), own(input));
            }
            return;
        }
        // A single value is taken for a register if it has 8 bits, and read in full otherwise.
        let single = |input: &Input| input.extent.elements() == 1;
        let narrow = |input: &Input| input.bits() == 8;
        match first {
            Some(input) if single(input) && narrow(input) => read(second, full),
            Some(input) if single(input) => read(first, own(input)),
            _ => {
                read(first, full);
                match second {
                    Some(input) if !single(input) => read(second, full),
                    Some(input) if !narrow(input) => read(second, own(input)),
                    _ => {}
                }
            }
        }
    }
}

/// Output blocks in rows, columns and depth.
fn block_count(pass: &Pass) -> [u64; 3] {
    let (block, extent) = (pass.clipped_block(), pass.extent);
    [
        extent.height.div_ceil(block.height) as u64,
        extent.width.div_ceil(block.width) as u64,
        extent.depth.div_ceil(block.depth) as u64,
    ]
}

/// Output blocks side by side, without depth.
fn positions(pass: &Pass) -> u64 {
    let [rows, columns, _] = block_count(pass);
    rows.saturating_mul(columns)
}

/// Multiply-accumulates as Vela counts them.
pub(super) fn macs(pass: &Pass) -> u64 {
    if !pass.kind.uses_macs() {
        return 0;
    }
    let depth = if pass.kind.is_deep() { pass.ifm.map_or(1, |input| input.extent.depth) } else { 1 };
    let taps = (pass.y.taps as u64).saturating_mul(pass.x.taps as u64);
    let macs = taps.saturating_mul(pass.extent.elements()).saturating_mul(depth as u64);
    if pass.sparse { macs / 2 } else { macs }
}
