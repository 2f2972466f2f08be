//! Completion and reservation under a model checker, which tries every order in which threads and interrupt handlers can
//! see each other's accesses (up to a number of preemptions).
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p ethosu-driver --release --test loom`; the environment variable
//! `LOOM_MAX_PREEMPTIONS` sets another bound than 2.
#![cfg(loom)]

use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize as StdCounter, Ordering as StdOrdering};

use ethosu_driver::{
    Bus, Completion, Config, Device, FaultKind, Job, Pool, Progress, Protection, Status, Want, target,
};
use ethosu_isa::{Accelerator, cop1_header, registers};
use loom::future::block_on;
use loom::thread;

/// Just enough of an NPU: what the driver and the hardware both change is seen by the checker.
struct Registers {
    status: loom::sync::Mutex<u32>,
    command: loom::sync::Mutex<u32>,
    others: Mutex<[u32; 0x40]>,
    /// Jobs that have ended, and jobs that were started.
    ended: StdCounter,
    started: StdCounter,
}

impl Registers {
    fn new() -> Registers {
        let mut others = [0; 0x40];
        others[registers::CONFIG as usize / 4] = Accelerator::U55_128.config_word();
        others[registers::ID as usize / 4] = Accelerator::U55_128.product().id_word();
        others[registers::PROT as usize / 4] = Protection::default().word();
        Registers {
            status: loom::sync::Mutex::new(0),
            command: loom::sync::Mutex::new(0),
            others: Mutex::new(others),
            ended: StdCounter::new(0),
            started: StdCounter::new(0),
        }
    }

    /// The hardware ends the job that runs, if it still does.
    fn end(&self) -> bool {
        let mut status = self.status.lock().unwrap();
        let running = *status & Status::RUNNING != 0;
        if running {
            *status = *status & !Status::RUNNING | Status::END | Status::IRQ;
            self.ended.fetch_add(1, StdOrdering::SeqCst);
        }
        running
    }
}

impl Bus for Registers {
    fn read(&self, offset: u32) -> u32 {
        match offset {
            registers::STATUS => *self.status.lock().unwrap(),
            registers::CMD => *self.command.lock().unwrap(),
            _ => self.others.lock().unwrap().get(offset as usize / 4).copied().unwrap_or(0),
        }
    }

    fn write(&self, offset: u32, value: u32) {
        match offset {
            registers::CMD => {
                *self.command.lock().unwrap() = value & 0b1100;
                if value & registers::command::CLEAR_IRQ != 0 {
                    *self.status.lock().unwrap() &= !Status::IRQ;
                }
                if value & registers::command::RUN != 0 {
                    self.started.fetch_add(1, StdOrdering::SeqCst);
                    *self.status.lock().unwrap() |= Status::RUNNING;
                }
            }
            registers::RESET => *self.status.lock().unwrap() = 0,
            _ => {
                if offset == registers::QBASE {
                    *self.status.lock().unwrap() &= !Status::END;
                }
                if let Some(register) = self.others.lock().unwrap().get_mut(offset as usize / 4) {
                    *register = value;
                }
            }
        }
    }
}

type OurDevice = Device<Registers, target::U55>;

fn device() -> &'static OurDevice {
    Box::leak(Box::new(Device::new(Registers::new(), Config::new())))
}

fn payload() -> &'static [u8] {
    let stop = 0xFFFF_0000u32.to_le_bytes();
    Box::leak([&cop1_header(Accelerator::U55_128, 1).unwrap()[..], &stop].concat().into_boxed_slice())
}

fn job() -> Job<'static> {
    Job::from_addresses(payload(), Some(0x1000), &[], &[]).unwrap()
}

/// The registers, behind the device that owns them.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// A bus that the tests reach as well as the device.
#[derive(Clone, Copy)]
struct Wire(&'static Registers);

impl Bus for Wire {
    fn read(&self, offset: u32) -> u32 {
        self.0.read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.0.write(offset, value);
    }
}

fn wired() -> (&'static Registers, &'static Device<Wire, target::U55>) {
    let registers: &'static Registers = Box::leak(Box::new(Registers::new()));
    (registers, Box::leak(Box::new(Device::new(Wire(registers), Config::new()))))
}

#[test]
fn a_future_never_misses_its_interrupt() {
    check(2, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        let hardware = thread::spawn(move || {
            assert!(registers.end());
            device.on_interrupt();
        });
        // Without a wake-up this would never return, which the checker calls a deadlock.
        let Completion { status, .. } = block_on(running).unwrap();
        assert!(status.is_over());
        hardware.join().unwrap();
    });
}

#[test]
fn two_handlers_record_one_end() {
    check(2, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        assert!(registers.end());
        let handlers = [(); 2].map(|()| thread::spawn(move || device.on_interrupt()));
        block_on(running).unwrap();
        for handler in handlers {
            handler.join().unwrap();
        }
        drop(npu);
        assert_eq!(registers.read(registers::CMD), 0b1100);
    });
}

#[test]
fn a_late_handler_never_ends_the_next_job() {
    check(2, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        assert!(registers.end());
        // The handler of the first job's interrupt runs while the owner, who has seen the end, goes on.
        let handler = thread::spawn(move || device.on_interrupt());
        running.wait().unwrap();
        let running = npu.submit(&mut job).unwrap();
        let Progress::Running(running) = running.poll() else { panic!("ended by the first job's interrupt") };
        assert!(registers.end());
        device.on_interrupt();
        running.wait().unwrap();
        assert_eq!(registers.ended.load(StdOrdering::SeqCst), 2);
        handler.join().unwrap();
    });
}

#[test]
fn a_late_handler_swallows_no_interrupt() {
    check(3, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        assert!(registers.end());
        let late = thread::spawn(move || device.on_interrupt());
        running.wait().unwrap();
        let running = npu.submit(&mut job).unwrap();
        let hardware = thread::spawn(move || {
            assert!(registers.end());
            // The line is a level: if the late handler has cleared it, nobody is called.
            if registers.read(registers::STATUS) & Status::IRQ != 0 {
                device.on_interrupt();
            }
        });
        block_on(running).unwrap();
        late.join().unwrap();
        hardware.join().unwrap();
    });
}

#[test]
fn stopping_and_ending_at_once() {
    check(2, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        let hardware = thread::spawn(move || {
            registers.end();
            device.on_interrupt();
        });
        match running.stop() {
            Ok(completion) => assert!(completion.status.is_over()),
            Err(fault) => assert_eq!(fault.kind, FaultKind::Stopped),
        }
        hardware.join().unwrap();
        // Whatever came first, the next job is a new one.
        let running = npu.submit(&mut job).unwrap();
        let Progress::Running(running) = running.poll() else {
            panic!("ended by the stopped job's interrupt")
        };
        assert!(registers.end());
        device.on_interrupt();
        assert!(running.wait().unwrap().interrupt);
    });
}

#[test]
fn a_handler_leaves_the_power_bits_alone() {
    check(3, || {
        let (registers, device) = wired();
        let mut npu = device.init().unwrap();
        let mut job = job();
        let running = npu.submit(&mut job).unwrap();
        assert!(registers.end());
        let spurious = thread::spawn(move || device.on_interrupt());
        running.wait().unwrap();
        drop(npu);
        spurious.join().unwrap();
        assert_eq!(registers.read(registers::CMD), 0b1100, "the NPU is kept on for nobody");
    });
}

#[test]
fn one_owner_at_a_time() {
    check(2, || {
        let device = device();
        let pool: &'static Pool<'static, Registers, target::U55, _, 1, 2> =
            Box::leak(Box::new(Pool::new([device]).unwrap()));
        let inside: &'static StdCounter = Box::leak(Box::new(StdCounter::new(0)));
        let visit = move || {
            // Each waits for the other's release: a lost wake-up would be a deadlock.
            let npu = block_on(pool.reserve(Want::Any)).unwrap();
            assert_eq!(inside.fetch_add(1, StdOrdering::SeqCst), 0, "two owners");
            thread::yield_now();
            inside.fetch_sub(1, StdOrdering::SeqCst);
            drop(npu);
        };
        let other = thread::spawn(visit);
        visit();
        other.join().unwrap();
        assert!(pool.try_reserve(Want::Any).is_some());
    });
}

#[test]
fn a_task_that_gives_up_waiting_keeps_nobody_out() {
    check(2, || {
        let device = device();
        let pool: &'static Pool<'static, Registers, target::U55, _, 1, 2> =
            Box::leak(Box::new(Pool::new([device]).unwrap()));
        let held = pool.try_reserve(Want::Any).unwrap();
        let quitter = thread::spawn(move || {
            let waker = std::task::Waker::noop();
            let mut context = std::task::Context::from_waker(waker);
            let mut reserve = pin!(pool.reserve(Want::Any));
            // Polled once and dropped, whatever came of it.
            let _ = std::future::Future::poll(reserve.as_mut(), &mut context);
        });
        drop(held);
        block_on(pool.reserve(Want::Any)).unwrap();
        quitter.join().unwrap();
    });
}
