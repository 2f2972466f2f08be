//! Random sequences of calls, hardware events and faults: whatever happens, the NPU comes back.
//!
//! After each sequence: no power request is left, the NPU stands still and is free, memory that was lent isn't touched any
//! more, and a plain job gives the right result. During it: every job that says it's done has done its work, every fault
//! was asked for, and a job that was refused or has failed at its first operation has written nothing.

mod common;

use std::collections::BTreeMap;
use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use common::*;
use ethosu_driver::{
    Accelerator, Config, CounterMask, Device, FaultKind, Hooks, InvokeError, Job, Npu, PmuEvent, Pool,
    Progress, Protection, Waiting, Want, target::Any,
};
use ethosu_isa::registers;
use ethosu_model::device::{Injection, Timing};

/// Sequences; the environment variable `NPUKIT_SEQUENCES` sets another number.
const SEQUENCES: u64 = 100_000;
const LIMIT: Duration = Duration::from_millis(8);

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// While a thread waits, the hardware gets on.
struct Meanwhile {
    sim: Sim,
    random: Mutex<Random>,
}

impl Waiting for Meanwhile {
    fn wait(&self, _: u32, _: Option<Duration>) {
        match self.random.lock().unwrap().below(4) {
            0 => self.sim.lock().raise_interrupt(),
            1 => {}
            _ => drop(self.sim.lock().advance()),
        }
    }
}

impl Hooks for Meanwhile {
    type Argument = ();
}

type OurDevice = Device<Sim, Any, Meanwhile>;
type OurNpu<'d> = Npu<'d, Sim, Any, Meanwhile>;

struct World<'w> {
    sim: &'w Sim,
    device: &'w OurDevice,
    memory: &'w Shared,
    payload: &'w [u8],
    foreign: &'w [u8],
    random: Random,
    clock: Ticks,
    /// How often jobs ended in which way.
    endings: BTreeMap<String, u64>,
    jobs_forgotten: u32,
    /// Guards that were forgotten: each leaves its request until the NPU is released.
    forgotten: u32,
    /// Faults that were injected since the last job that came to an end.
    injected: Vec<Injection>,
}

impl World<'_> {
    fn inject(&mut self) {
        let offset = self.random.below(0x70) as u32;
        let injection = match self.random.below(11) {
            0 => Injection::BusError { address: SOURCE + self.random.below(2 * COPY_BYTES as u64) },
            1 => Injection::BusError { address: DESTINATION + self.random.below(2 * COPY_BYTES as u64) },
            2 => Injection::BusError { address: FLASH + 32 + self.random.below(0x40) },
            3 => Injection::Parse { offset },
            4 => Injection::WeightDecoder { offset },
            5 => Injection::Ecc { offset },
            6 => Injection::Hang { offset },
            7 => Injection::MissingInterrupt,
            8 => Injection::EndlessReset,
            9 => Injection::WrongProtection(Protection::from_word([0, 2, 3][self.random.below(3) as usize])),
            _ => Injection::SecondMaster(match self.random.below(4) {
                0 => vec![(registers::RESET, self.random.below(4) as u32)],
                1 => vec![(registers::QBASE, 0x1000), (registers::BASEP, 0x2000)],
                2 => vec![(registers::BASEP + 8, SRAM as u32 + 0x2000)],
                _ => vec![(registers::QSIZE, 4), (registers::CMD, registers::command::RUN)],
            }),
        };
        self.sim.lock().inject(injection.clone());
        self.injected.push(injection);
    }

    /// What a job's end has to do with the faults that were asked for.
    fn judge(&mut self, result: Result<(), InvokeError>) {
        let ending = match &result {
            Ok(()) => "done".to_owned(),
            Err(InvokeError::Fault(fault)) => {
                format!("{:?}", fault.kind).split([' ', '{']).next().unwrap_or_default().to_owned()
            }
            Err(_) => "not started".to_owned(),
        };
        *self.endings.entry(ending).or_default() += 1;
        let had = |which: fn(&Injection) -> bool| self.injected.iter().any(which);
        match result {
            Ok(()) => assert!(copied(self.memory, 2), "done without having copied"),
            Err(InvokeError::Submit(error)) => {
                assert!(
                    had(|injection| matches!(
                        injection,
                        Injection::EndlessReset | Injection::WrongProtection(_)
                    )),
                    "{error}"
                );
            }
            Err(InvokeError::Fault(fault)) => {
                let asked = match fault.kind {
                    FaultKind::Bus { .. } => {
                        had(|i| matches!(i, Injection::BusError { .. } | Injection::SecondMaster(_)))
                    }
                    FaultKind::Parse => {
                        had(|i| matches!(i, Injection::Parse { .. } | Injection::SecondMaster(_)))
                    }
                    FaultKind::WeightDecoder => had(|i| matches!(i, Injection::WeightDecoder { .. })),
                    FaultKind::Ecc => had(|i| matches!(i, Injection::Ecc { .. })),
                    // Stopping is the caller's doing, and a limit may be short.
                    FaultKind::Stopped | FaultKind::TimeOut { .. } => true,
                    FaultKind::Interference { .. } => had(|i| matches!(i, Injection::SecondMaster(_))),
                    kind => panic!("{kind:?} can't happen"),
                };
                assert!(asked, "{fault} with {:?}", self.injected);
            }
            Err(error) => panic!("{error}"),
        }
        // What is left waits for the next job or reset.
        self.injected = self.sim.lock().injections().to_vec();
        assert!(!self.sim.lock().is_running(), "memory is given back while the NPU runs");
    }

    fn step(&mut self, npu: &mut OurNpu<'_>, depth: u32) {
        let payload = self.payload;
        match self.random.below(16) {
            0..3 => self.inject(),
            3 => {
                spoil(self.memory);
                let result = npu.invoke_within(&mut job(payload), LIMIT, &self.clock);
                self.judge(result.map(drop));
            }
            4..6 => {
                spoil(self.memory);
                let mut job = job(payload);
                let result = match npu.submit(&mut job) {
                    Ok(running) => running.wait_within(LIMIT, &self.clock).map(drop).map_err(Into::into),
                    Err(error) => Err(error.into()),
                };
                self.judge(result);
            }
            6..8 => {
                // Polled, with interrupts and time in between, and given up at some point.
                spoil(self.memory);
                let mut job = job(payload);
                match npu.submit(&mut job) {
                    Ok(mut running) => {
                        for _ in 0..self.random.below(6) {
                            match self.random.below(3) {
                                0 => drop(self.sim.lock().advance()),
                                1 => self.sim.lock().raise_interrupt(),
                                _ => drop(self.device.on_interrupt()),
                            }
                            match running.poll() {
                                Progress::Running(still) => running = still,
                                Progress::Over(result) => {
                                    return self.judge(result.map(drop).map_err(Into::into));
                                }
                            }
                        }
                        let result = running.stop();
                        self.judge(result.map(drop).map_err(Into::into));
                    }
                    Err(error) => self.judge(Err(error.into())),
                }
            }
            8 => {
                let mut job = job(payload);
                drop(npu.submit(&mut job));
                assert!(!self.sim.lock().is_running());
                self.injected = self.sim.lock().injections().to_vec();
            }
            9 => {
                // The one thing that no guard can prevent.
                let mut job = job(payload);
                if let Ok(running) = npu.submit(&mut job) {
                    self.jobs_forgotten += 1;
                    mem::forget(running);
                }
                self.injected = self.sim.lock().injections().to_vec();
            }
            10 => {
                let jobs = self.sim.lock().jobs();
                npu.invoke(
                    &mut Job::from_addresses(self.foreign, Some(FLASH), &[SOURCE, DESTINATION], &[64; 2])
                        .unwrap(),
                )
                .unwrap_err();
                npu.invoke(
                    &mut Job::from_addresses(payload, Some(FLASH), &[SOURCE + 8, DESTINATION], &[64; 2])
                        .unwrap(),
                )
                .unwrap_err();
                assert_eq!(self.sim.lock().jobs(), jobs, "a refused job has run");
            }
            11 => {
                let _ = npu.reset();
                self.injected = self.sim.lock().injections().to_vec();
            }
            12 if depth < 3 => {
                let (requests, forgotten) = (npu.power_requests(), self.forgotten);
                if let Ok(mut on) = npu.keep_on() {
                    for _ in 0..self.random.below(4) {
                        self.step(&mut on, depth + 1);
                    }
                    if self.random.below(4) == 0 {
                        self.forgotten += 1;
                        mem::forget(on);
                    }
                }
                // A forgotten job's request is taken back with the next call.
                assert!(npu.power_requests() <= requests + self.forgotten - forgotten + 1);
                self.injected = self.sim.lock().injections().to_vec();
            }
            13 if depth < 3 => {
                if let Ok(mut pmu) = npu.pmu() {
                    let counters = pmu.counters();
                    counters.set_event(self.random.below(4) as u32, PmuEvent::MacActive).unwrap();
                    counters.enable(CounterMask::CYCLES | CounterMask::counter(1));
                    for _ in 0..self.random.below(4) {
                        self.step(&mut pmu, depth + 1);
                    }
                }
                self.injected = self.sim.lock().injections().to_vec();
            }
            14 => {
                let timing = if self.random.below(2) == 0 { Timing::AtOnce } else { Timing::Manual };
                self.sim.lock().set_timing(timing);
            }
            _ => {
                self.sim.lock().raise_interrupt();
                self.device.on_interrupt();
            }
        }
    }
}

#[test]
fn nothing_is_lost() {
    let sequences = std::env::var("NPUKIT_SEQUENCES").map_or(SEQUENCES, |number| number.parse().unwrap());
    for (seed, accelerator) in [(1, Accelerator::U55_256), (2, Accelerator::U65_512)] {
        let payload = payload(accelerator, &copies(2, accelerator.product()));
        let foreign = common::payload(Accelerator::U55_32, &copies(2, accelerator.product()));
        let memory = memory(&payload);
        let sim = Sim::new(accelerator, &memory);
        let hooks = Meanwhile { sim: sim.clone(), random: Mutex::new(Random(seed)) };
        let device: OurDevice = Device::with_hooks(sim.clone(), Config::new().with_reset_polls(8), hooks);
        let pool: Pool<'_, _, _, _, 1> = Pool::new([&device]).unwrap();
        let (random, clock) = (Random(seed), Ticks::default());
        let (sim, device, memory) = (&sim, &device, &memory);
        let mut world = World {
            sim,
            device,
            memory,
            payload: &payload,
            foreign: &foreign,
            random,
            clock,
            endings: BTreeMap::new(),
            jobs_forgotten: 0,
            forgotten: 0,
            injected: Vec::new(),
        };
        for _ in 0..sequences / 2 {
            let mut npu = pool.try_reserve(Want::Accelerator(accelerator)).expect("the NPU is free");
            for _ in 0..world.random.below(10) {
                world.step(&mut npu, 0);
                // Nothing holds the NPU between calls, unless something was forgotten.
                let most = world.forgotten + world.jobs_forgotten.min(1);
                assert!(npu.power_requests() <= most, "a power request is lost");
            }
            (world.forgotten, world.jobs_forgotten) = (0, 0);
            drop(npu);

            sim.lock().clear_injections();
            world.injected.clear();
            assert!(!sim.lock().is_running() && !sim.lock().is_kept_on(), "a power request is left");
            spoil(memory);
            assert!(!sim.lock().advance() && !copied(memory, 1), "the NPU writes memory that was given back");
            sim.lock().set_timing(Timing::AtOnce);
            // A reset that never ends lasts until the next one.
            let mut npu = pool.try_reserve(Want::Any).expect("the NPU is free");
            npu.invoke(&mut job(&payload)).expect("the next job runs");
            assert!(copied(memory, 2));
        }
        // Every way to end came up, and often.
        assert_eq!(world.endings.len(), 9, "{:?}", world.endings);
        assert!(world.endings.values().all(|times| *times >= sequences / 1000), "{:?}", world.endings);
        println!("{accelerator}: {:?}", world.endings);
    }
}
