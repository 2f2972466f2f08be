//! The register block.

use ethosu_isa::registers::{self, Channel, Protection, REGIONS, Status, command};
use ethosu_isa::{Accelerator, Command, Decoder, Product};

use super::execution::{Ending, Execution, FaultKind, JobLimits, JobRegisters, Outcome, Refusal, Sabotage};
use super::injection::Injection;
use super::memory::SystemMemory;
use super::pmu::{Activity, JobView, Monitor, NoClock};
use crate::Limits;
use crate::fast::Workspace;

/// When a job that was started runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Timing {
    /// Within the write to `CMD`: it's over when that returns.
    #[default]
    AtOnce,
    /// When [`Npu::advance`] is called. Until then `STATUS` says that the NPU runs.
    Manual,
}

/// Whether a reset is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resetting {
    No,
    /// Until `STATUS` has been read once.
    Soon,
    Endless,
}

/// Registers that a reset clears.
#[derive(Debug, Clone)]
struct File {
    status: u32,
    /// The power bits of `CMD`.
    power: u32,
    qbase: u64,
    qread: u32,
    qconfig: u32,
    qsize: u32,
    regioncfg: u32,
    basep: [u64; REGIONS],
    /// `AXI_LIMIT` or `MEM_ATTR`, `AXI_SRAM`, `AXI_EXT`.
    ports: [u32; 6],
    power_control: u32,
    monitor: Monitor,
}

impl File {
    fn new(product: Product) -> Self {
        Self {
            status: 0,
            power: command::CLOCK_Q | command::POWER_Q,
            qbase: 0,
            qread: 0,
            qconfig: 0,
            qsize: 0,
            regioncfg: 0,
            basep: [0; REGIONS],
            ports: [0; 6],
            power_control: 0,
            monitor: Monitor::new(product),
        }
    }
}

/// An Ethos-U as a driver sees it: registers, an interrupt line, and memory that it accesses on its own.
///
/// Jobs run on the model: the result is exact, or there is none. What the model doesn't know leaves the NPU running until it is
/// reset, and [`refusal`](Npu::refusal) says why.
///
/// ```
/// use ethosu_isa::{Accelerator, registers};
/// use ethosu_model::device::{Banks, Npu};
///
/// let mut memory = Banks::new();
/// memory.rom(0x3800_0000, 0xFFFF_0000u32.to_le_bytes().to_vec()); // NPU_OP_STOP
/// let mut npu = Npu::new(Accelerator::U55_128, memory);
///
/// npu.write(registers::QBASE, 0x3800_0000);
/// npu.write(registers::QSIZE, 4);
/// npu.write(registers::CMD, registers::command::RUN);
/// assert!(npu.interrupt() && registers::Status(npu.read(registers::STATUS)).is_over());
/// ```
pub struct Npu<M> {
    accelerator: Accelerator,
    id: u32,
    config: u32,
    memory: M,
    timing: Timing,
    file: File,
    protection: Protection,
    resetting: Resetting,
    injections: Vec<Injection>,
    refusal: Option<Refusal>,
    /// A started job that hasn't run yet.
    pending: bool,
    /// Whether idling with the power bits set loses the registers.
    power_gating: bool,
    execution: Option<Box<Execution>>,
    workspace: Workspace,
    activity: Box<dyn Activity + Send>,
    limits: JobLimits,
    jobs: u64,
}

impl<M: SystemMemory> Npu<M> {
    /// An NPU after power-up: secure, user.
    pub fn new(accelerator: Accelerator, memory: M) -> Self {
        let product = accelerator.product();
        Self {
            accelerator,
            id: product.id_word(),
            config: accelerator.config_word(),
            memory,
            timing: Timing::default(),
            file: File::new(product),
            protection: Protection::from_word(0),
            resetting: Resetting::No,
            injections: Vec::new(),
            refusal: None,
            pending: false,
            power_gating: false,
            execution: None,
            workspace: Workspace::default(),
            activity: Box::new(NoClock),
            limits: JobLimits::default(),
            jobs: 0,
        }
    }

    /// With another `ID` register.
    #[must_use]
    pub fn with_id(mut self, id: u32) -> Self {
        self.id = id;
        self
    }

    /// With another `CONFIG` register. Streams are executed for the accelerator it was made with.
    #[must_use]
    pub fn with_config(mut self, config: u32) -> Self {
        self.config = config;
        self
    }

    /// Sets when jobs run.
    pub fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    /// Sets whether the registers lose what they hold as soon as the NPU may be switched off and idles: what a power controller
    /// may do, and what a driver without a power request must be ready for.
    pub fn set_power_gating(&mut self, gating: bool) {
        self.power_gating = gating;
    }

    /// Sets what the performance monitor counts by.
    pub fn set_activity(&mut self, activity: impl Activity + Send + 'static) {
        self.activity = Box::new(activity);
    }

    /// Sets what a job may ask for before it is refused: what its commands do, and how many bytes from a region's base it may
    /// reach, which is also the memory that the model takes for the region. By default [`Limits::default`] and 1 GiB.
    pub fn set_limits(&mut self, limits: Limits, reach: u64) {
        self.limits = JobLimits { stream: limits, reach };
        self.execution = None;
    }

    /// Makes a fault happen. Faults of one kind happen in the order in which they were injected.
    pub fn inject(&mut self, injection: Injection) {
        self.injections.push(injection);
    }

    /// Forgets faults that haven't happened.
    pub fn clear_injections(&mut self) {
        self.injections.clear();
    }

    /// Faults that haven't happened.
    pub fn injections(&self) -> &[Injection] {
        &self.injections
    }

    /// Raises the interrupt for no reason.
    pub fn raise_interrupt(&mut self) {
        self.file.status |= Status::IRQ;
    }

    /// The level of the interrupt line.
    pub fn interrupt(&self) -> bool {
        self.file.status & Status::IRQ != 0
    }

    /// Whether a job was started that hasn't ended.
    pub fn is_running(&self) -> bool {
        self.file.status & Status::RUNNING != 0
    }

    /// Whether `CMD` asks that the NPU be kept on.
    pub fn is_kept_on(&self) -> bool {
        self.file.power & (command::CLOCK_Q | command::POWER_Q) == 0
    }

    /// Why the model left the last job unfinished, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Jobs that were started.
    pub fn jobs(&self) -> u64 {
        self.jobs
    }

    /// The memory.
    pub fn memory(&self) -> &M {
        &self.memory
    }

    /// The memory.
    pub fn memory_mut(&mut self) -> &mut M {
        &mut self.memory
    }

    /// The accelerator it is.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    fn product(&self) -> Product {
        self.accelerator.product()
    }

    /// The wide part of an address register, where the product has one.
    fn high(&self, value: u32) -> u64 {
        let bits = self.product().address_bits() - 32;
        u64::from(value) & ((1 << bits) - 1)
    }

    /// Reads a register. Offsets without one read as zero.
    pub fn read(&mut self, offset: u32) -> u32 {
        match (self.resetting, offset) {
            (Resetting::No, _) => {}
            (Resetting::Soon, registers::STATUS) => {
                self.resetting = Resetting::No;
                return Status::RESETTING;
            }
            (Resetting::Endless, registers::STATUS) => return Status::RESETTING,
            _ => return 0,
        }
        let file = &self.file;
        match offset {
            registers::ID => self.id,
            registers::STATUS => file.status,
            registers::CMD => file.power,
            registers::RESET | registers::PROT => self.protection.word(),
            registers::QREAD => file.qread,
            registers::QCONFIG => file.qconfig,
            registers::QSIZE => file.qsize,
            registers::CONFIG => self.config,
            registers::REGIONCFG => file.regioncfg,
            registers::POWER_CTRL if self.product() == Product::U85 => file.power_control,
            _ => {
                if let Some((value, high)) = self.address(offset) {
                    return (if high { value >> 32 } else { value }) as u32;
                }
                if let Some(index) = self.port_register(offset) {
                    return file.ports[index];
                }
                file.monitor.read(offset).unwrap_or(0)
            }
        }
    }

    /// An address register, and whether the offset is its upper half.
    fn address(&self, offset: u32) -> Option<(u64, bool)> {
        let high = offset & 4 != 0;
        match offset & !4 {
            registers::QBASE => Some((self.file.qbase, high)),
            low => basep(low).map(|region| (self.file.basep[region], high)),
        }
    }

    fn port_register(&self, offset: u32) -> Option<usize> {
        let registers = if self.product() == Product::U85 { 6 } else { 4 };
        let index = offset.checked_sub(registers::AXI_LIMIT)? as usize / 4;
        (index < registers).then_some(index)
    }

    /// Writes a register. Offsets without one, and registers that can only be read, ignore it.
    pub fn write(&mut self, offset: u32, value: u32) {
        if offset == registers::RESET {
            return self.reset(value);
        }
        if self.resetting != Resetting::No {
            return;
        }
        match offset {
            registers::CMD => self.command(value),
            registers::QCONFIG => self.file.qconfig = value & 3,
            registers::QSIZE => {
                self.file.qsize = value;
                self.clear_end();
            }
            registers::REGIONCFG => self.file.regioncfg = value & 0xFFFF,
            registers::POWER_CTRL if self.product() == Product::U85 => self.file.power_control = value & 0x3F,
            _ => {
                let (low, high) = (offset & !4, offset & 4 != 0);
                let upper = self.high(value);
                let place = match (low, basep(low)) {
                    (registers::QBASE, _) => Some(&mut self.file.qbase),
                    (_, Some(region)) => Some(&mut self.file.basep[region]),
                    _ => None,
                };
                if let Some(address) = place {
                    *address = if high {
                        *address & u64::from(u32::MAX) | upper << 32
                    } else {
                        *address >> 32 << 32 | u64::from(value)
                    };
                    if low == registers::QBASE {
                        self.clear_end();
                    }
                } else if let Some(index) = self.port_register(offset) {
                    self.file.ports[index] = value;
                } else {
                    self.file.monitor.write(offset, value);
                }
            }
        }
    }

    /// Writing `QBASE` or `QSIZE` while the NPU stands still clears the end of the last job.
    fn clear_end(&mut self) {
        if !self.is_running() {
            self.file.status &= !Status::END;
        }
    }

    fn reset(&mut self, value: u32) {
        self.file = File::new(self.product());
        self.pending = false;
        self.protection = Protection::from_word(value);
        self.resetting = match self.take(|injection| matches!(injection, Injection::EndlessReset)) {
            Some(_) => Resetting::Endless,
            None => Resetting::Soon,
        };
        if let Some(Injection::WrongProtection(protection)) =
            self.take(|injection| matches!(injection, Injection::WrongProtection(_)))
        {
            self.protection = protection;
        }
    }

    fn take(&mut self, which: impl Fn(&Injection) -> bool) -> Option<Injection> {
        let index = self.injections.iter().position(which)?;
        Some(self.injections.remove(index))
    }

    fn command(&mut self, value: u32) {
        if value & command::CLEAR_IRQ != 0 {
            self.file.status &= !(Status::IRQ | Status::PMU_IRQ);
            self.file.monitor.irq = false;
        }
        self.file.status &= !(value & 0xFFFF << command::CLEAR_HISTORY);
        self.file.power = value & (command::CLOCK_Q | command::POWER_Q);
        // After a fault the NPU does nothing more before a reset.
        let faulty = Status(self.file.status).faults() != 0;
        if value & command::RUN != 0 && !self.is_running() && !faulty {
            self.file.status |= Status::RUNNING;
            self.refusal = None;
            self.jobs += 1;
            self.pending = true;
            if let Some(Injection::SecondMaster(writes)) =
                self.take(|injection| matches!(injection, Injection::SecondMaster(_)))
            {
                for (offset, value) in writes {
                    self.write(offset, value);
                }
            }
            if self.timing == Timing::AtOnce {
                self.advance();
            }
        }
        if self.power_gating && !self.is_running() && value & command::POWER_Q != 0 {
            let file = File::new(self.product());
            // The interrupt controller has seen the line, so the level stays.
            let (status, power) = (self.file.status & Status::IRQ, self.file.power);
            self.file = File { status, power, ..file };
            self.protection = Protection::from_word(0);
        }
    }

    /// Runs the job that was started, if there is one. Returns whether it ended.
    pub fn advance(&mut self) -> bool {
        if !std::mem::take(&mut self.pending) {
            return false;
        }
        let registers = self.job_registers();
        let sabotage = self.sabotage();
        let known = self.execution.take().filter(|known| known.is(&registers, &self.memory));
        let outcome = match known
            .map_or_else(|| Execution::new(&registers, &self.memory, &self.limits).map(Box::new), Ok)
        {
            Ok(mut execution) => {
                let outcome = execution.run(&mut self.memory, &sabotage, &mut self.workspace);
                self.execution = Some(execution);
                outcome
            }
            Err(outcome) => outcome,
        };
        self.use_up(&sabotage, &outcome);
        self.count(&registers, &outcome);
        match outcome {
            Outcome::Done { offset } => {
                self.file.status |= u32::from(self.history()) << 16;
                self.end(Status::END, offset);
            }
            Outcome::Fault { kind, offset } => self.end(fault_bits(kind), offset),
            Outcome::Hang { offset } => {
                self.file.qread = offset;
                return false;
            }
            Outcome::Refused { refusal, offset } => {
                self.file.qread = offset;
                self.refusal = Some(refusal);
                return false;
            }
        }
        true
    }

    fn end(&mut self, bits: u32, qread: u32) {
        self.file.qread = qread;
        self.file.status = self.file.status & !Status::RUNNING | bits;
        if self.take(|injection| matches!(injection, Injection::MissingInterrupt)).is_none() {
            self.file.status |= Status::IRQ;
        }
        if self.file.monitor.irq {
            self.file.status |= Status::PMU_IRQ | Status::IRQ;
        }
    }

    fn job_registers(&self) -> JobRegisters {
        let port = |selector: u32| match self.product() {
            Product::U85 => (self.file.ports[selector as usize & 3] >> 2 & 1) as u8,
            Product::U55 | Product::U65 => (selector >> 1 & 1) as u8,
        };
        JobRegisters {
            accelerator: self.accelerator,
            qbase: self.file.qbase,
            qsize: self.file.qsize,
            basep: self.file.basep,
            ports: std::array::from_fn(|region| port(self.file.regioncfg >> (2 * region) & 3)),
            command_port: port(self.file.qconfig),
        }
    }

    fn sabotage(&self) -> Sabotage {
        let mut sabotage = Sabotage::default();
        for injection in &self.injections {
            let stop = match *injection {
                Injection::BusError { address } => {
                    sabotage.holes.push(address);
                    continue;
                }
                Injection::Parse { offset } => (offset, Ending::Fault(FaultKind::Parse)),
                Injection::WeightDecoder { offset } => (offset, Ending::Fault(FaultKind::WeightDecoder)),
                Injection::Ecc { offset } => (offset, Ending::Fault(FaultKind::Ecc)),
                Injection::Hang { offset } => (offset, Ending::Hang),
                _ => continue,
            };
            sabotage.stop.get_or_insert(stop);
        }
        sabotage
    }

    /// Takes the injections out that have had their effect.
    fn use_up(&mut self, sabotage: &Sabotage, outcome: &Outcome) {
        let is_stop = |injection: &Injection| {
            matches!(
                injection,
                Injection::Parse { .. }
                    | Injection::WeightDecoder { .. }
                    | Injection::Ecc { .. }
                    | Injection::Hang { .. }
            )
        };
        match outcome {
            Outcome::Fault { kind: FaultKind::Bus { .. }, .. } => {
                // One of the holes, unless there was no memory in the first place.
                self.take(|injection| matches!(injection, Injection::BusError { .. }));
            }
            Outcome::Fault { .. } | Outcome::Hang { .. } if sabotage.stop.is_some() => {
                self.take(is_stop);
            }
            _ => {}
        }
    }

    fn count(&mut self, registers: &JobRegisters, outcome: &Outcome) {
        let (Some(execution), true) = (&self.execution, self.file.monitor.is_on()) else { return };
        let program = execution.program();
        let steps = match *outcome {
            Outcome::Done { .. } => program.steps().len(),
            Outcome::Fault { offset, .. } => {
                program.steps().iter().filter(|step| step.offset < offset as usize).count()
            }
            Outcome::Hang { .. } | Outcome::Refused { .. } => return,
        };
        let counts = self.activity.counts(&JobView {
            accelerator: self.accelerator,
            program,
            steps,
            stream: execution.stream(),
            ports: registers.ports,
            command_port: registers.command_port,
        });
        self.file.monitor.count(&counts);
    }

    /// The masks of the job's interrupts, for the interrupt history.
    fn history(&self) -> u16 {
        let Some(execution) = &self.execution else { return 0 };
        let mut history = 0;
        for instruction in Decoder::new(execution.stream(), self.product()).filter_map(Result::ok) {
            match instruction.command {
                Command::Irq { mask } => history |= mask,
                Command::Stop { mask } => return history | mask,
                _ => {}
            }
        }
        history
    }
}

fn basep(offset: u32) -> Option<usize> {
    let index = offset.checked_sub(registers::BASEP)? as usize / 8;
    (offset.is_multiple_of(8) && index < REGIONS).then_some(index)
}

fn fault_bits(kind: FaultKind) -> u32 {
    match kind {
        FaultKind::Bus { interface, channel } => {
            Status::BUS | u32::from(interface & 1) << 11 | u32::from(Channel::code(channel)) << 12
        }
        FaultKind::Parse => Status::PARSE,
        FaultKind::WeightDecoder => Status::WEIGHT_DECODER,
        FaultKind::Ecc => Status::ECC,
    }
}

impl<M> std::fmt::Debug for Npu<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Npu")
            .field("accelerator", &self.accelerator)
            .field("file", &self.file)
            .field("protection", &self.protection)
            .field("resetting", &self.resetting)
            .field("injections", &self.injections)
            .field("refusal", &self.refusal)
            .finish_non_exhaustive()
    }
}
