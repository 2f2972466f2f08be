//! Runs a job on the model: takes what it touches out of the system's memory, computes, and puts back what was written.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use ethosu_isa::registers::{Channel, REGIONS};
use ethosu_isa::{Accelerator, Command, Decoder, Product};
use thiserror::Error;

use super::memory::SystemMemory;
use crate::fast::{Plan, Workspace};
use crate::footprint::{Access, accesses};
use crate::memory::Memory;
use crate::program::{Limits, Program};
use crate::reference;
use crate::stop::{Cause, Stop};

/// Why the model leaves a job unfinished although a real NPU may be able to run it. Nothing is made up: the NPU goes on
/// running until it is reset.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A command whose result isn't established, or an accelerator that isn't modelled.
    #[error(transparent)]
    Stop(#[from] Stop),
    /// The job writes through a port that a U55 only reads through.
    #[error("region {region} is written through AXI1, where an ethos-u55 only reads")]
    ReadOnlyPort {
        /// The region.
        region: u8,
    },
    /// Two regions overlap without being the same, and the job writes one of them.
    #[error("regions {first} and {second} overlap, and what the job writes to them isn't followed")]
    Overlap {
        /// One.
        first: u8,
        /// The other.
        second: u8,
    },
    /// Rows of a transfer are picked or placed by index, and not all of those that an index could name are there.
    #[error("not all rows are there that an index could name in region {region}")]
    IndexedRows {
        /// The region.
        region: u8,
    },
    /// The job reaches further from a region's base than the model holds.
    #[error(
        "the job reaches {bytes:#x} bytes from the base of region {region}, and {limit:#x} at most are held for it"
    )]
    Reach {
        /// The region.
        region: u8,
        /// How far.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// The job reaches memory before a region's base.
    #[error("the job reaches memory {before} bytes before the base of region {region}")]
    BeforeRegion {
        /// The region.
        region: u8,
        /// How far before.
        before: u64,
    },
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// At its NPU_OP_STOP, which lies at this offset.
    Done { offset: u32 },
    /// With a fault at the command at this offset.
    Fault { kind: FaultKind, offset: u32 },
    /// It doesn't end: it hangs at this offset.
    Hang { offset: u32 },
    /// The model doesn't know how it ends.
    Refused { refusal: Refusal, offset: u32 },
}

/// What a fault's bits in `STATUS` are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultKind {
    Bus { interface: u8, channel: Channel },
    Parse,
    WeightDecoder,
    Ecc,
}

/// What a job may ask for before the model refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobLimits {
    pub(super) stream: Limits,
    /// Bytes from a base pointer to the end of the memory that is accessed through it.
    pub(super) reach: u64,
}

impl Default for JobLimits {
    /// Far more than a chip with an Ethos-U has.
    fn default() -> Self {
        Self { stream: Limits::default(), reach: 1 << 30 }
    }
}

/// A job as the registers describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct JobRegisters {
    pub(super) accelerator: Accelerator,
    pub(super) qbase: u64,
    pub(super) qsize: u32,
    pub(super) basep: [u64; REGIONS],
    /// The port behind each region, 0 or 1.
    pub(super) ports: [u8; REGIONS],
    pub(super) command_port: u8,
}

/// Where a job is to be stopped by hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Sabotage {
    /// Addresses at which the bus aborts.
    pub(super) holes: Vec<u64>,
    /// How it ends at the first operation from an offset on.
    pub(super) stop: Option<(u32, Ending)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Fault(FaultKind),
    Hang,
}

impl Ending {
    fn at(self, offset: u32) -> Outcome {
        match self {
            Self::Fault(kind) => Outcome::Fault { kind, offset },
            Self::Hang => Outcome::Hang { offset },
        }
    }
}

impl Sabotage {
    fn hits(&self, range: &Range<u64>) -> Option<u64> {
        self.holes.iter().copied().find(|hole| range.contains(hole))
    }
}

/// A job made ready; the same job is likely to come again.
#[derive(Debug)]
pub(super) struct Execution {
    registers: JobRegisters,
    stream: Vec<u8>,
    program: Program,
    /// Where the stream ends, and the fault it ends with if it isn't NPU_OP_STOP.
    end: (u32, Option<FaultKind>),
    accesses: Vec<Vec<Access>>,
    groups: Vec<Group>,
    /// What goes in and out when all of it runs.
    stretches: Vec<Stretch>,
    memory: Memory,
    plan: Option<Plan>,
}

/// Regions that share a base.
#[derive(Debug)]
struct Group {
    base: u64,
    /// The first one stands for all.
    regions: Vec<u8>,
    /// How many bytes the commands reach.
    bytes: usize,
    /// The bytes, where no command writes them and they decide how the job is planned.
    constant: Option<Arc<[u8]>>,
    /// How often they have changed from one run to the next.
    changes: u32,
}

/// A region whose bytes change this often from run to run isn't constant: planning for it anew would be for nothing.
const MOST_CHANGES: u32 = 2;

/// Bytes on their way into the model or back.
#[derive(Debug)]
struct Stretch {
    group: usize,
    written: bool,
    range: Range<u64>,
    /// What it was put together from.
    parts: Vec<Range<u64>>,
}

impl Stretch {
    /// The pieces of it in which memory is transferred: all at once if that lies in one piece of memory.
    fn pieces(&self, base: u64, memory: &dyn SystemMemory) -> Vec<Range<u64>> {
        let there =
            |range: &Range<u64>| memory.has(base + range.start, range.end - range.start, self.written);
        if there(&self.range) {
            vec![self.range.clone()]
        } else {
            self.parts.iter().filter(|part| there(part)).cloned().collect()
        }
    }
}

impl Execution {
    /// Reads the command stream and decodes it.
    pub(super) fn new(
        registers: &JobRegisters,
        memory: &dyn SystemMemory,
        limits: &JobLimits,
    ) -> Result<Self, Outcome> {
        let stream = fetch(registers, memory)?;
        let (program, end) = decode(&stream, registers.accelerator, &limits.stream)?;
        let accesses: Vec<Vec<Access>> =
            program.steps().iter().map(|step| accesses(&step.operation)).collect();
        let mut execution = Self {
            registers: *registers,
            stream,
            program,
            end,
            accesses,
            groups: Vec::new(),
            stretches: Vec::new(),
            memory: Memory::new(),
            plan: None,
        };
        let refused = |refusal| Outcome::Refused { refusal, offset: 0 };
        execution.check_places().map_err(refused)?;
        execution.group(memory, limits.reach).map_err(refused)?;
        execution.bind();
        execution.stretches = execution.stretches(execution.accesses.len());
        Ok(execution)
    }

    /// Whether this is the job that the registers describe.
    pub(super) fn is(&self, registers: &JobRegisters, memory: &dyn SystemMemory) -> bool {
        self.registers == *registers && fetch(registers, memory).is_ok_and(|stream| stream == self.stream)
    }

    /// The program, as far as it can be read.
    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The command stream.
    pub(super) fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// Refuses what the model can't follow.
    fn check_places(&self) -> Result<(), Refusal> {
        let mut hulls: [Option<(Range<u64>, bool)>; REGIONS] = [const { None }; REGIONS];
        for access in self.accesses.iter().flatten() {
            if access.range.start < 0 {
                let before = access.range.start.unsigned_abs();
                return Err(Refusal::BeforeRegion { region: access.region, before });
            }
            let port = self.registers.ports[usize::from(access.region)];
            if access.writes() && port == 1 && self.registers.accelerator.product() == Product::U55 {
                return Err(Refusal::ReadOnlyPort { region: access.region });
            }
            let range = self.absolute(access);
            let hull = &mut hulls[usize::from(access.region)];
            *hull = Some(match hull.take() {
                None => (range, access.writes()),
                Some((hull, written)) => {
                    (hull.start.min(range.start)..hull.end.max(range.end), written || access.writes())
                }
            });
        }
        // Regions that share a base are the same memory; any other overlap would have to be followed byte by byte.
        for first in 0..REGIONS {
            for second in first + 1..REGIONS {
                let (Some((a, a_written)), Some((b, b_written))) = (&hulls[first], &hulls[second]) else {
                    continue;
                };
                let overlap = a.start < b.end && b.start < a.end;
                let same = self.registers.basep[first] == self.registers.basep[second];
                if overlap && !same && (*a_written || *b_written) {
                    return Err(Refusal::Overlap { first: first as u8, second: second as u8 });
                }
            }
        }
        Ok(())
    }

    /// Where an access lies in the system's memory.
    fn absolute(&self, access: &Access) -> Range<u64> {
        let base = self.registers.basep[usize::from(access.region)];
        let at = |offset: i64| base.saturating_add_signed(offset);
        at(access.range.start)..at(access.range.end)
    }

    /// Finds out which regions there are, and how large. An operation that touches what isn't there won't run, so it doesn't
    /// count.
    fn group(&mut self, memory: &dyn SystemMemory, limit: u64) -> Result<(), Refusal> {
        for region in 0..REGIONS as u8 {
            if self.accesses.iter().flatten().any(|access| access.region == region) {
                let base = self.registers.basep[usize::from(region)];
                match self.groups.iter_mut().find(|group| group.base == base) {
                    Some(group) => group.regions.push(region),
                    None => {
                        let group =
                            Group { base, regions: vec![region], bytes: 0, constant: None, changes: 0 };
                        self.groups.push(group);
                    }
                }
            }
        }
        let there = |base: u64, access: &Access| {
            let bytes = (access.range.end - access.range.start) as u64;
            memory.has(base.saturating_add_signed(access.range.start), bytes, access.writes())
        };
        for group in &mut self.groups {
            let touched =
                || self.accesses.iter().flatten().filter(|access| group.regions.contains(&access.region));
            let reached = touched().filter(|access| there(group.base, access)).map(|access| access.range.end);
            let bytes = reached.max().unwrap_or(0).max(0).unsigned_abs();
            if bytes > limit {
                return Err(Refusal::Reach { region: group.regions[0], bytes, limit });
            }
            group.bytes = bytes as usize;
            // The planner decodes weights and tables ahead where nothing writes them.
            let decides = |access: &Access| {
                matches!(access.channel, Channel::Weights | Channel::Scales | Channel::TransferRead)
            };
            if touched().any(decides) && !touched().any(Access::writes) {
                group.constant = Some(vec![0; group.bytes].into());
            }
        }
        Ok(())
    }

    /// Gives the model its regions.
    fn bind(&mut self) {
        self.memory = Memory::new();
        self.plan = None;
        for group in &self.groups {
            let first = group.regions[0];
            match &group.constant {
                Some(bytes) => self.memory.bind_constant(first, Arc::clone(bytes)),
                None => self.memory.bind_writable(first, group.bytes),
            }
            for &alias in &group.regions[1..] {
                self.memory.bind_alias(alias, first);
            }
        }
    }

    /// What the first `steps` operations touch: everything has to come in, also what is written only in part.
    fn stretches(&self, steps: usize) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        for (group, regions) in self.groups.iter().map(|group| &group.regions).enumerate() {
            for written in [false, true] {
                let ranges = self.accesses[..steps]
                    .iter()
                    .flatten()
                    .filter(|access| regions.contains(&access.region) && (!written || access.writes()))
                    .map(|access| access.range.start as u64..access.range.end as u64);
                merge(ranges, |range, parts| stretches.push(Stretch { group, written, range, parts }));
            }
        }
        stretches
    }

    /// Runs the job.
    pub(super) fn run(
        &mut self,
        memory: &mut dyn SystemMemory,
        sabotage: &Sabotage,
        workspace: &mut Workspace,
    ) -> Outcome {
        let (steps, outcome) = self.cut(memory, sabotage);
        let whole = steps == self.accesses.len();
        let stretches = if whole { mem::take(&mut self.stretches) } else { self.stretches(steps) };
        self.load(memory, &stretches);
        let result = if whole {
            let plan = self.plan.get_or_insert_with(|| Plan::new(&self.program, &self.memory));
            plan.run(&mut self.memory, workspace)
        } else {
            // Only a part of it runs, once: no plan is worth it.
            let mut tables = self.program.tables();
            self.memory.prepare_chain(self.program.chain_bytes());
            self.program.steps()[..steps].iter().try_for_each(|step| {
                let (offset, operation) = (step.offset, step.operation.name());
                reference::execute(&step.operation, &mut self.memory, &mut tables).map_err(|cause| Stop {
                    offset,
                    operation,
                    cause,
                })
            })
        };
        self.store(memory, &stretches);
        if whole {
            self.stretches = stretches;
        }
        match result {
            Ok(()) => outcome,
            Err(stop) => ended_by(stop, &self.registers),
        }
    }

    /// How many operations run, and how the job ends after them.
    fn cut(&self, memory: &dyn SystemMemory, sabotage: &Sabotage) -> (usize, Outcome) {
        let stream = self.registers.qbase..self.registers.qbase + u64::from(self.registers.qsize);
        let interface = self.registers.command_port;
        let unread = sabotage.hits(&stream).map(|hole| {
            let kind = FaultKind::Bus { interface, channel: Channel::Commands };
            ((hole - stream.start) as u32 & !3, Ending::Fault(kind))
        });
        let ending = |offset| sabotage.stop.into_iter().chain(unread).find(|(from, _)| offset >= *from);
        for (index, (step, accesses)) in self.program.steps().iter().zip(&self.accesses).enumerate() {
            let offset = step.offset as u32;
            if let Some((_, ending)) = ending(offset) {
                return (index, ending.at(offset));
            }
            for access in accesses {
                let range = self.absolute(access);
                let there = memory.has(range.start, range.end - range.start, access.writes());
                if !there && access.loose {
                    let refusal = Refusal::IndexedRows { region: access.region };
                    return (index, Outcome::Refused { refusal, offset });
                }
                if !there || sabotage.hits(&range).is_some() {
                    let interface = self.registers.ports[usize::from(access.region)];
                    let kind = FaultKind::Bus { interface, channel: access.channel };
                    return (index, Outcome::Fault { kind, offset });
                }
            }
        }
        let (offset, fault) = self.end;
        let outcome = match (sabotage.stop.or(unread), fault) {
            (Some((_, ending)), _) => ending.at(offset),
            (None, Some(kind)) => Outcome::Fault { kind, offset },
            (None, None) => Outcome::Done { offset },
        };
        (self.accesses.len(), outcome)
    }

    /// Brings memory into the model.
    fn load(&mut self, memory: &dyn SystemMemory, stretches: &[Stretch]) {
        let pieces = |index: usize, base: u64| {
            stretches
                .iter()
                .filter(move |stretch| stretch.group == index && !stretch.written)
                .flat_map(move |stretch| stretch.pieces(base, memory))
        };
        let read = |base: u64, piece: &Range<u64>, bytes: &mut [u8]| {
            memory.read(base + piece.start, &mut bytes[piece.start as usize..piece.end as usize]);
        };
        let mut changed = false;
        for (index, group) in self.groups.iter_mut().enumerate() {
            let Some(known) = &group.constant else { continue };
            let mut now = known.to_vec();
            for piece in pieces(index, group.base) {
                read(group.base, &piece, &mut now);
            }
            if now[..] != known[..] {
                changed = true;
                group.changes += 1;
                group.constant = (group.changes <= MOST_CHANGES).then(|| now.into());
            }
        }
        if changed {
            self.bind();
        }
        for (index, group) in self.groups.iter().enumerate() {
            if let Some(bytes) = self.memory.bytes_mut(group.regions[0]) {
                for piece in pieces(index, group.base) {
                    read(group.base, &piece, bytes);
                }
            }
        }
    }

    /// Puts back what was written.
    fn store(&self, memory: &mut dyn SystemMemory, stretches: &[Stretch]) {
        for stretch in stretches.iter().filter(|stretch| stretch.written) {
            let group = &self.groups[stretch.group];
            let Some(bytes) = self.memory.bytes(group.regions[0]) else { continue };
            for piece in stretch.pieces(group.base, memory) {
                memory.write(group.base + piece.start, &bytes[piece.start as usize..piece.end as usize]);
            }
        }
    }
}

/// The bytes of the command stream.
fn fetch(registers: &JobRegisters, memory: &dyn SystemMemory) -> Result<Vec<u8>, Outcome> {
    let bytes = u64::from(registers.qsize);
    if !memory.has(registers.qbase, bytes, false) {
        let kind = FaultKind::Bus { interface: registers.command_port, channel: Channel::Commands };
        return Err(Outcome::Fault { kind, offset: 0 });
    }
    let mut stream = vec![0; bytes as usize];
    memory.read(registers.qbase, &mut stream);
    Ok(stream)
}

/// The program and its end: where a stream goes wrong, the operations before that run all the same.
fn decode(
    stream: &[u8],
    accelerator: Accelerator,
    limits: &Limits,
) -> Result<(Program, (u32, Option<FaultKind>)), Outcome> {
    let decode = |stream: &[u8]| Program::decode(stream, accelerator, limits);
    match decode(stream) {
        Ok(program) => Ok((program, (stop_offset(stream, accelerator), None))),
        Err(stop) if matches!(stop.cause, Cause::Decode(_) | Cause::Endless) => {
            let offset = stop.offset as u32;
            let mut before = stream.get(..stop.offset & !3).unwrap_or_default().to_vec();
            before.extend(0u32.to_le_bytes()); // NPU_OP_STOP
            let program = decode(&before)
                .map_err(|stop| Outcome::Refused { offset: stop.offset as u32, refusal: stop.into() })?;
            Ok((program, (offset, Some(FaultKind::Parse))))
        }
        Err(stop) => Err(Outcome::Refused { offset: stop.offset as u32, refusal: stop.into() }),
    }
}

/// Where the NPU_OP_STOP lies.
fn stop_offset(stream: &[u8], accelerator: Accelerator) -> u32 {
    Decoder::new(stream, accelerator.product())
        .filter_map(Result::ok)
        .find(|instruction| matches!(instruction.command, Command::Stop { .. }))
        .map_or(0, |instruction| instruction.offset as u32)
}

/// What a run of the model that stopped early means for the NPU.
fn ended_by(stop: Stop, registers: &JobRegisters) -> Outcome {
    let offset = stop.offset as u32;
    let kind = match &stop.cause {
        Cause::Decode(_) | Cause::Endless => FaultKind::Parse,
        // The U85's STATUS has no bit for it.
        Cause::Weights { .. } if registers.accelerator.product() != Product::U85 => FaultKind::WeightDecoder,
        _ => return Outcome::Refused { offset, refusal: stop.into() },
    };
    Outcome::Fault { kind, offset }
}

/// Puts ranges that overlap or touch together, and gives each union with its parts.
fn merge(ranges: impl Iterator<Item = Range<u64>>, mut each: impl FnMut(Range<u64>, Vec<Range<u64>>)) {
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_by_key(|range| (range.start, range.end));
    ranges.dedup();
    let mut union: Option<(Range<u64>, Vec<Range<u64>>)> = None;
    for range in ranges {
        match &mut union {
            Some((all, parts)) if range.start <= all.end => {
                all.end = all.end.max(range.end);
                parts.push(range);
            }
            _ => {
                if let Some((all, parts)) = union.replace((range.clone(), vec![range])) {
                    each(all, parts);
                }
            }
        }
    }
    if let Some((all, parts)) = union {
        each(all, parts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut unions = Vec::new();
        merge([8..12, 0..4, 2..6, 6..8, 20..21, 0..4].into_iter(), |all, parts| {
            unions.push((all, parts.len()))
        });
        assert_eq!(unions, [(0..12, 4), (20..21, 1)]);
    }
}
