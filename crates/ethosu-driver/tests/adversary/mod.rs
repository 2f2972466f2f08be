//! Any bytes as what may happen to an NPU: registers read and written, words as its commands, faults, and calls of the driver.
//!
//! Whatever they say: nothing panics, the NPU only accesses memory that is there and only while a job runs, a job moves no more
//! than its limits allow, no power request is lost, and afterwards a plain job gives the right result. Then the stream that was
//! written last runs once more, on this NPU after a reset and on a new one, which have to agree in everything.
// Not every one of its users needs all of it.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod script;

use std::cell::Cell;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ethosu_driver::{
    Accelerator, Bus, Config, CounterMask, Device, Hooks, InvokeError, Job, Npu, PmuEvent, Progress, Status,
    Waiting, target::Any,
};
use ethosu_isa::registers;
use ethosu_model::Limits;
use ethosu_model::device::{Banks, Npu as Registers, SystemMemory, Timing};

use crate::common::{COPY_BYTES, Ticks, copies, payload};
pub use script::{Input, Op, Script};

pub const FLASH: u64 = 0x3800_0000;
pub const FLASH_BYTES: usize = 0x2000;
pub const SRAM: u64 = 0x2100_0000;
pub const SRAM_BYTES: usize = 0x8000;
/// Where the plain job copies from and to.
const SOURCE: u64 = FLASH + 0x1000;
const DESTINATION: u64 = SRAM + 0x100;
/// Where commands of the input lie, and how many bytes of them there are at most.
pub const STREAM: u64 = SRAM + 0x4000;
pub const STREAM_BYTES: usize = 0x1000;

/// What a job may ask for.
const LIMITS: Limits = Limits { work: 1 << 14, map_elements: 1 << 12 };
/// Bytes from a base that it may reach, and that the model holds for it.
const REACH: u64 = 1 << 16;
/// Bytes that a job moves at most: each of eight regions once in, to look for changes, and out.
const MOST_MOVED: u64 = 3 * 8 * (FLASH_BYTES + SRAM_BYTES) as u64 + STREAM_BYTES as u64;
const LIMIT: Duration = Duration::from_millis(8);
const OPERATIONS: usize = 48;
/// NPU_OP_STOP.
const STOP: u32 = 0xFFFF_0000;

/// Memory that notices what is done to it.
struct Watched {
    banks: Banks,
    moved: Cell<u64>,
}

impl Watched {
    fn note(&self, address: u64, bytes: usize, write: bool) {
        assert!(self.banks.has(address, bytes as u64, write), "{bytes} bytes at {address:#x} aren't there");
        self.moved.set(self.moved.get() + bytes as u64);
    }
}

impl SystemMemory for Watched {
    fn has(&self, address: u64, bytes: u64, write: bool) -> bool {
        self.banks.has(address, bytes, write)
    }

    fn read(&self, address: u64, into: &mut [u8]) {
        self.note(address, into.len(), false);
        self.banks.read(address, into);
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        self.note(address, from.len(), true);
        self.banks.write(address, from);
    }
}

/// An NPU behind a bus.
#[derive(Clone)]
struct Sim(Arc<Mutex<Registers<Watched>>>);

impl Sim {
    fn new(accelerator: Accelerator, flash: &[u8]) -> Sim {
        let mut banks = Banks::new();
        banks.rom(FLASH, flash.to_vec());
        banks.ram(SRAM, SRAM_BYTES);
        let mut npu = Registers::new(accelerator, Watched { banks, moved: Cell::new(0) });
        npu.set_limits(LIMITS, REACH);
        Sim(Arc::new(Mutex::new(npu)))
    }

    fn lock(&self) -> MutexGuard<'_, Registers<Watched>> {
        self.0.lock().unwrap()
    }

    /// Does something to the NPU; `most` bytes may move meanwhile.
    fn watched<R>(&self, most: u64, act: impl FnOnce(&mut Registers<Watched>) -> R) -> R {
        let mut npu = self.lock();
        let before = npu.memory().moved.get();
        let result = act(&mut npu);
        let moved = npu.memory().moved.get() - before;
        assert!(moved <= most, "{moved} bytes moved, {most} at most");
        result
    }

    fn advance(&self) -> bool {
        let waiting = self.lock().is_running();
        self.watched(if waiting { MOST_MOVED } else { 0 }, Registers::advance)
    }

    fn fill(&self, address: u64, bytes: &[u8]) {
        if let Some(place) = self.lock().memory_mut().banks.bytes_mut(address, bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn bytes(&self, address: u64, bytes: usize) -> Vec<u8> {
        self.lock().memory().banks.bytes(address, bytes).unwrap().to_vec()
    }

    fn copied(&self) -> bool {
        self.bytes(SOURCE, 2 * COPY_BYTES) == self.bytes(DESTINATION, 2 * COPY_BYTES)
    }
}

impl Bus for Sim {
    fn read(&self, offset: u32) -> u32 {
        self.watched(0, |npu| npu.read(offset))
    }

    fn write(&self, offset: u32, value: u32) {
        let starts = offset == registers::CMD && value & registers::command::RUN != 0;
        self.watched(if starts { MOST_MOVED } else { 0 }, |npu| npu.write(offset, value));
    }
}

/// While the driver waits, the hardware gets on.
struct Meanwhile(Sim);

impl Waiting for Meanwhile {
    fn wait(&self, _: u32, _: Option<Duration>) {
        self.0.advance();
    }
}

impl Hooks for Meanwhile {
    type Argument = ();
}

type OurDevice = Device<Sim, Any, Meanwhile>;
type OurNpu<'d> = Npu<'d, Sim, Any, Meanwhile>;

/// Flash with the plain job's payload, and something to copy.
fn flash(payload: &[u8]) -> Vec<u8> {
    let mut flash = vec![0; FLASH_BYTES];
    flash[..payload.len()].copy_from_slice(payload);
    for (index, byte) in flash[0x1000..].iter_mut().enumerate() {
        *byte = (index * 7 + 3) as u8;
    }
    flash
}

struct World<'w> {
    accelerator: Accelerator,
    sim: &'w Sim,
    device: &'w OurDevice,
    payload: &'w [u8],
    clock: Ticks,
    /// The words of the input that were last written as commands.
    stream: Vec<u8>,
    /// Guards and jobs that were forgotten since the NPU was taken.
    forgotten: u32,
}

/// Does to an NPU what the bytes say.
///
/// # Panics
/// If one of the promises is broken.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let accelerator = Accelerator::ALL[usize::from(input.byte()) % Accelerator::ALL.len()];
    let switches = input.byte();
    let payload = payload(accelerator, &copies(2, accelerator.product()));
    let flash = flash(&payload);
    let sim = Sim::new(accelerator, &flash);
    sim.lock().set_power_gating(switches & 1 != 0);
    let config = Config::new().with_reset_polls(4);
    let config = if switches & 2 != 0 { config.without_read_back() } else { config };
    let device: OurDevice = Device::with_hooks(sim.clone(), config, Meanwhile(sim.clone()));
    let mut world = World {
        accelerator,
        sim: &sim,
        device: &device,
        payload: &payload,
        clock: Ticks::default(),
        stream: Vec::new(),
        forgotten: 0,
    };
    let mut npu = None;
    for _ in 0..OPERATIONS {
        let Some(op) = Op::read(&mut input) else { break };
        world.act(&mut npu, &op);
        world.invariants(npu.as_ref());
    }
    drop(npu);

    sim.lock().clear_injections();
    sim.lock().set_timing(Timing::AtOnce);
    // Registers that another master wrote since the driver let go of the NPU stay as they are until it is taken again.
    world.plain_job();
    assert_eq!(sim.bytes(FLASH, FLASH_BYTES), flash, "flash was written");
    world.as_on_a_new_one(&flash);
}

impl<'w> World<'w> {
    fn act(&mut self, npu: &mut Option<OurNpu<'w>>, op: &Op) {
        match op {
            Op::Write(offset, value) => self.sim.write(*offset, *value),
            Op::Read(offset) => drop(self.sim.read(*offset)),
            Op::Fill(offset, bytes) => self.sim.fill(SRAM + u64::from(*offset), bytes),
            Op::Stream(bytes) => {
                self.stream.clone_from(bytes);
                self.sim.fill(STREAM, bytes);
            }
            Op::RunRaw(bases, routing) => self.run_raw(self.sim, bases, *routing),
            Op::Inject(injection) => {
                if self.sim.lock().injections().len() < 8 {
                    self.sim.lock().inject(injection.clone());
                }
            }
            Op::RaiseInterrupt => self.sim.lock().raise_interrupt(),
            Op::Advance => drop(self.sim.advance()),
            Op::Timing(manual) => {
                let timing = if *manual { Timing::Manual } else { Timing::AtOnce };
                self.sim.lock().set_timing(timing);
            }
            Op::OnInterrupt => drop(self.device.on_interrupt()),
            Op::LetGo => *npu = None,
            Op::Invoke(..) | Op::Submit(..) | Op::Reset | Op::KeepOn(_) | Op::Count(_) | Op::Plain => {
                if npu.is_none() {
                    self.forgotten = 0;
                    *npu = self.device.init().ok();
                }
                if let Some(npu) = npu {
                    self.drive(npu, op);
                }
            }
        }
    }

    /// What the driver is asked for.
    fn drive(&mut self, npu: &mut OurNpu<'_>, op: &Op) {
        match op {
            Op::Invoke(bases, bytes) => {
                let framed = payload(self.accelerator, &self.stream);
                self.sim.fill(STREAM, &framed);
                let mut job = Job::from_addresses(&framed, Some(STREAM), bases, &[*bytes; 8]).unwrap();
                match npu.invoke_within(&mut job, LIMIT, &self.clock) {
                    // It wasn't started: another master's job may be there.
                    Err(InvokeError::Submit(error)) => assert!(!error.to_string().is_empty()),
                    ended => {
                        if let Err(fault) = ended {
                            assert!(!fault.to_string().is_empty());
                        }
                        assert!(!self.sim.lock().is_running(), "memory is given back while the NPU runs");
                    }
                }
            }
            Op::Submit(polls, end) => {
                let mut job = self.plain();
                let Ok(mut running) = npu.submit(&mut job) else { return };
                for _ in 0..*polls {
                    self.sim.advance();
                    self.device.on_interrupt();
                    match running.poll() {
                        Progress::Running(still) => running = still,
                        Progress::Over(_) => return,
                    }
                }
                match end {
                    0 => drop(running),
                    1 => drop(running.stop()),
                    // The one thing that no guard can prevent.
                    2 => {
                        self.forgotten += 1;
                        mem::forget(running);
                    }
                    _ => drop(running.wait_within(LIMIT, &self.clock)),
                }
            }
            Op::Reset => drop(npu.reset()),
            Op::KeepOn(forget) => {
                let Ok(mut on) = npu.keep_on() else { return };
                let _ = on.invoke_within(&mut self.plain(), LIMIT, &self.clock);
                if *forget {
                    self.forgotten += 1;
                    mem::forget(on);
                }
            }
            Op::Count(number) => {
                let Ok(mut pmu) = npu.pmu() else { return };
                let event = PmuEvent::ALL[usize::from(*number) % PmuEvent::ALL.len()];
                let _ = pmu.counters().set_event(u32::from(*number) % 10, event);
                pmu.counters().enable(CounterMask::all(self.accelerator.product()));
                let _ = pmu.invoke_within(&mut self.plain(), LIMIT, &self.clock);
                pmu.counters().cycles();
            }
            _ => drop(npu.invoke_within(&mut self.plain(), LIMIT, &self.clock)),
        }
    }

    /// The job that copies.
    fn plain(&self) -> Job<'w> {
        Job::from_addresses(self.payload, Some(FLASH), &[SOURCE, DESTINATION], &[0x1000; 2]).unwrap()
    }

    fn invariants(&self, npu: Option<&OurNpu<'_>>) {
        let (running, status) = {
            let mut npu = self.sim.lock();
            // While a reset is under way there is nothing to see, and looking would get it on.
            (npu.is_running(), if npu.read(registers::ID) == 0 { 0 } else { npu.read(registers::STATUS) })
        };
        assert!(!running || Status(status).faults() == 0, "it runs after a fault: STATUS {status:#x}");
        if let Some(npu) = npu {
            let requests = npu.power_requests();
            assert!(requests <= self.forgotten, "{requests} power requests, {} forgotten", self.forgotten);
        }
    }

    /// Whatever has happened: a plain job runs.
    fn plain_job(&mut self) {
        self.sim.fill(DESTINATION, &[0xA5; 2 * COPY_BYTES]);
        let mut npu = self.device.init().expect("nothing is wrong with the NPU");
        npu.invoke(&mut self.plain()).expect("the next job runs");
        assert!(self.sim.copied(), "done without having copied");
        assert_eq!(npu.power_requests(), 0);
        drop(npu);
        assert!(!self.sim.lock().is_running() && !self.sim.lock().is_kept_on(), "a power request is left");
        self.sim.fill(DESTINATION, &[0xA5; 2 * COPY_BYTES]);
        assert!(!self.sim.advance() && !self.sim.copied(), "the NPU writes memory that was given back");
    }

    /// Runs the stream through the registers alone.
    fn run_raw(&self, sim: &Sim, bases: &[u64], routing: u32) {
        let address = |offset: u32, value: u64| {
            sim.write(offset, value as u32);
            sim.write(offset + 4, (value >> 32) as u32);
        };
        address(registers::QBASE, STREAM);
        sim.write(registers::QSIZE, self.stream.len() as u32);
        sim.write(registers::QCONFIG, routing >> 16);
        sim.write(registers::REGIONCFG, routing);
        for (offset, base) in (registers::BASEP..).step_by(8).zip(bases) {
            address(offset, *base);
        }
        sim.write(registers::CMD, registers::command::RUN);
    }

    /// After a reset the NPU does with the last stream what a new one does with it.
    fn as_on_a_new_one(&self, flash: &[u8]) {
        let new = Sim::new(self.accelerator, flash);
        let bases = std::array::from_fn::<u64, 8, _>(|region| SRAM + 0x400 * region as u64);
        let reset = |sim: &Sim| {
            sim.write(registers::RESET, 1);
            while Status(sim.read(registers::STATUS)).has(Status::RESETTING) {}
        };
        // The same job but for what it does: nothing.
        reset(self.sim);
        self.sim.fill(STREAM, &self.stream);
        self.sim.fill(STREAM, &STOP.to_le_bytes());
        self.run_raw(self.sim, &bases, 0);
        let [used, new] = [self.sim, &new].map(|sim| {
            let noise: Vec<u8> = (0..SRAM_BYTES).map(|at| (at * 31 + at / 97) as u8).collect();
            sim.fill(SRAM, &noise);
            sim.fill(STREAM, &self.stream);
            sim.lock().set_power_gating(false);
            reset(sim);
            self.run_raw(sim, &bases, 0);
            let npu = sim.lock();
            let refusal = npu.refusal().map(ToString::to_string);
            drop(npu);
            let seen = [registers::STATUS, registers::QREAD].map(|offset| sim.read(offset));
            (seen, refusal, sim.bytes(SRAM, SRAM_BYTES))
        });
        assert_eq!((used.0, &used.1), (new.0, &new.1), "an NPU remembers what was before its reset");
        assert!(used.2 == new.2, "an NPU remembers what was before its reset, and writes something else");
    }
}
