//! What the driver writes where, and what it tells about the hardware.

mod common;

use std::cell::{Cell, RefCell};
use std::sync::Mutex;

use common::*;
use ethosu_driver::{
    Accelerator, Bus, Config, CounterMask, Counters, Device, Hooks, Place, PmuError, PmuEvent, Product,
    Protection, Selector, Span, Waiting, Watch, target,
};
use ethosu_isa::registers::{self, Channel};
use ethosu_model::device::{Activity, Counts, Injection, JobView};

/// A bus that remembers writes.
struct Spy<'a> {
    sim: &'a Sim,
    writes: &'a RefCell<Vec<(u32, u32)>>,
}

impl Bus for Spy<'_> {
    fn read(&self, offset: u32) -> u32 {
        self.sim.read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.writes.borrow_mut().push((offset, value));
        self.sim.write(offset, value);
    }
}

/// What initialisation and a job write.
fn writes(accelerator: Accelerator) -> Vec<(u32, u32)> {
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let writes = RefCell::new(Vec::new());
    let device: Device<_> = Device::new(Spy { sim: &sim, writes: &writes }, Config::new());
    let mut npu = device.init().unwrap();
    let _ = npu.submit(&mut job(&payload)).unwrap().stop();
    drop(npu);
    drop(device);
    writes.into_inner()
}

/// The last value written to a register.
fn last(writes: &[(u32, u32)], offset: u32) -> Option<u32> {
    writes.iter().rev().find(|(written, _)| *written == offset).map(|(_, value)| *value)
}

#[test]
fn defaults_are_the_core_drivers() {
    // Values as `ethosu_config_u55.h`, `_u65.h` and `_u85.h` of the core driver give them.
    let limits =
        |writes: &[(u32, u32)]| [0, 4, 8, 12].map(|n| last(writes, registers::AXI_LIMIT + n).unwrap());
    let u55 = writes(Accelerator::U55_128);
    assert_eq!(limits(&u55), [15 << 24 | 31 << 16; 4]);
    let u65 = writes(Accelerator::U65_512);
    assert_eq!(limits(&u65), [31 << 24 | 63 << 16; 4]);
    let u85 = writes(Accelerator::U85_1024);
    assert_eq!(limits(&u85), [0, 0, 4, 4]);
    assert_eq!(last(&u85, registers::AXI_SRAM), Some(2 << 16 | 15 << 8 | 11));
    assert_eq!(last(&u85, registers::AXI_EXT), Some(2 << 16 | 31 << 8 | 63));
    assert_eq!(last(&writes(Accelerator::U85_256), registers::AXI_EXT), Some(2 << 16 | 31 << 8 | 31));
    assert_eq!(last(&u85, registers::POWER_CTRL), Some(0));
    for all in [&u55, &u65, &u85] {
        assert_eq!(last(all, registers::RESET), Some(Protection::default().word()));
        assert_eq!(last(all, registers::QCONFIG), Some(2));
        assert_eq!(last(all, registers::REGIONCFG), Some(0x5553));
        assert_eq!(last(all, registers::QBASE), Some(FLASH as u32 + 32));
        assert_eq!(last(all, registers::BASEP), Some(SOURCE as u32));
        assert_eq!(last(all, registers::BASEP + 8), Some(DESTINATION as u32));
        assert_eq!(last(all, registers::CMD), Some(0b1100), "off at the end");
        // The NPU runs with its power bits clear, and everything is written before it starts.
        let start = all.iter().position(|write| *write == (registers::CMD, 1)).unwrap();
        let after = &all[start + 1..];
        assert!(!after.iter().any(|(offset, _)| (registers::QBASE..registers::CONFIG).contains(offset)
            || *offset == registers::REGIONCFG
            || (registers::BASEP..0x100).contains(offset)));
    }
    // Only products with wide addresses have an upper half.
    assert_eq!(last(&u55, registers::QBASE + 4), None);
    assert_eq!(last(&u65, registers::QBASE + 4), Some(0));
    assert_eq!(last(&u85, registers::BASEP + 4), Some(0));
}

#[test]
fn hardware_tells_what_it_is() {
    for accelerator in Accelerator::ALL {
        let memory = memory(&[]);
        let device: Device<_> = Device::new(Sim::new(accelerator, &memory), Config::new());
        let npu = device.init().unwrap();
        let info = npu.info();
        assert_eq!((info.accelerator, info.configuration.0), (accelerator, accelerator.config_word()));
        assert_eq!(info.identity.0, accelerator.product().id_word());
        assert_eq!(info.configuration.macs(), accelerator.macs());
    }
    assert_eq!(ethosu_driver::VERSION.split('.').count(), 3);
}

/// Hooks that write down what they are called with.
#[derive(Default)]
struct Diary {
    lines: Mutex<Vec<String>>,
    moved: u64,
}

impl Diary {
    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl Waiting for Diary {}

impl Hooks for Diary {
    type Argument = Cell<u32>;

    fn clean(&self, span: Span) {
        self.note(format!("clean {} {:#x}+{:#x}", span.place, span.address, span.bytes));
    }

    fn invalidate(&self, span: Span) {
        self.note(format!("invalidate {} {:#x}+{:#x}", span.place, span.address, span.bytes));
    }

    fn translate(&self, _: Place, address: u64) -> u64 {
        address + self.moved
    }

    fn select(&self, place: Place, address: u64, configured: Selector) -> Selector {
        self.note(format!("select {place} {address:#x} {configured}"));
        if place == Place::Region(1) { Selector::S1 } else { configured }
    }

    fn begin(&self, counters: &Counters<'_>, argument: Option<&mut Cell<u32>>) {
        self.note(format!("begin {:?}", argument.map(|argument| argument.replace(7))));
        counters.enable(CounterMask::CYCLES);
        counters.start();
    }

    fn end(&self, counters: &Counters<'_>, argument: Option<&mut Cell<u32>>) {
        self.note(format!("end {:?} {}", argument.map(|argument| argument.get()), counters.cycles()));
    }
}

/// Every job takes 1000 cycles and is active for 900.
struct Thousand;

impl Activity for Thousand {
    fn counts(&mut self, job: &JobView<'_>) -> Counts {
        assert!(job.steps <= job.program.steps().len());
        Counts { cycles: Some(1000), events: vec![(PmuEvent::NpuActive, 900), (PmuEvent::NpuIdle, 100)] }
    }
}

#[test]
fn hooks_are_called_in_order() {
    let accelerator = Accelerator::U65_256;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    sim.lock().set_activity(Thousand);
    // The CPU sees everything 16 MiB lower than the NPU.
    let moved = 0x0100_0000;
    let device: Device<_, target::U65, _> =
        Device::with_hooks(sim.clone(), Config::new(), Diary { moved, ..Diary::default() });
    let mut npu = device.init().unwrap();
    let bases = [SOURCE - moved, DESTINATION - moved];
    let mut job =
        ethosu_driver::Job::from_addresses(&payload, Some(FLASH - moved), &bases, &[64, 64]).unwrap();
    let mut argument = Cell::new(3);
    npu.submit_with(&mut job, &mut argument).unwrap().wait().unwrap();
    assert!(copied(&memory, 1));
    let lines = std::mem::take(&mut *device.hooks().lines.lock().unwrap());
    assert_eq!(
        lines,
        [
            "select the command stream 0x38000020 2",
            "select region 0 0x38001000 3",
            "select region 1 0x21001000 0",
            "clean the command stream 0x37000020+0x2c",
            "clean region 0 0x37001000+0x40",
            "clean region 1 0x20001000+0x40",
            "begin Some(3)",
            "invalidate region 1 0x20001000+0x40",
            "end Some(7) 1000",
        ]
    );

    // After a fault the callback comes while counters still hold, the caches when the NPU stands still.
    sim.lock().inject(Injection::Ecc { offset: u32::MAX });
    npu.submit(&mut job).unwrap().wait().unwrap_err();
    let lines = device.hooks().lines.lock().unwrap();
    let end = lines.len() - 2;
    assert_eq!(lines[end..], ["end None 1000", "invalidate region 1 0x20001000+0x40"]);
    assert!(lines.contains(&"begin None".to_owned()));
}

#[test]
fn the_monitor_counts_and_survives_faults() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    sim.lock().set_activity(Thousand);
    let device: Device<_, target::U55> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);

    let mut pmu = npu.pmu().unwrap();
    assert!(matches!(pmu.pmu(), Err(PmuError::InUse)));
    let counters = pmu.counters();
    assert_eq!((counters.number(), counters.product()), (4, Product::U55));
    counters.set_event(0, PmuEvent::NpuActive).unwrap();
    counters.set_event(3, PmuEvent::NpuIdle).unwrap();
    assert_eq!(counters.event(3), Ok(Some(PmuEvent::NpuIdle)));
    assert_eq!(counters.set_event(4, PmuEvent::NpuIdle), Err(PmuError::Counter { found: 4, counters: 4 }));
    let error = counters.set_event(1, PmuEvent::Ext0WrTransAccepted).unwrap_err();
    assert_eq!(error.to_string(), "ethos-u55 doesn't count EXT0_WR_TRANS_ACCEPTED");
    counters.watch_latency(Channel::Ofm, Watch::Counter(Selector::S3)).unwrap();
    assert_eq!(sim.lock().read(0x1AC), 0x308);
    assert!(counters.watch_latency(Channel::IfmStream, Watch::Counter(Selector::S3)).is_err());
    assert!(counters.watch_latency(Channel::Ofm, Watch::Ports(ethosu_driver::AxiPort::Sram)).is_err());
    counters.set_cycle_events(PmuEvent::NpuActive, PmuEvent::NpuIdle).unwrap();
    assert_eq!(sim.lock().read(0x1A8), 35 | 32 << 16);
    let on = CounterMask::CYCLES | CounterMask::counter(0) | CounterMask::counter(3);
    counters.enable(on);
    for _ in 0..3 {
        pmu.invoke(&mut job).unwrap();
    }
    let counters = pmu.counters();
    assert_eq!((counters.cycles(), counters.count(0), counters.count(3)), (3000, Ok(2700), Ok(300)));
    counters.increment(CounterMask::counter(3) | CounterMask::CYCLES);
    assert_eq!((counters.cycles(), counters.count(3)), (3001, Ok(301)));
    assert_eq!(counters.enabled(), on);

    counters.set_cycles((1 << 48) - 1);
    counters.enable_interrupt(CounterMask::CYCLES);
    assert_eq!(counters.interrupts(), CounterMask::CYCLES);
    assert!(!pmu.take_counter_overflow());
    sim.lock().set_timing(ethosu_model::device::Timing::Manual);
    let running = pmu.submit(&mut job).unwrap();
    sim.lock().advance();
    assert_eq!(device.on_interrupt(), ethosu_driver::Interrupt::JobOver);
    running.wait().unwrap();
    assert!(pmu.take_counter_overflow() && !pmu.take_counter_overflow());
    assert_eq!(pmu.counters().overflowed(), CounterMask::CYCLES);
    pmu.counters().clear_overflow(CounterMask::CYCLES);
    assert!(pmu.counters().overflowed().is_empty());
    assert_eq!(pmu.counters().cycles(), 999);

    sim.lock().set_timing(ethosu_model::device::Timing::AtOnce);
    sim.lock().inject(Injection::Parse { offset: 0 });
    pmu.invoke(&mut job).unwrap_err();
    let counters = pmu.counters();
    assert_eq!((counters.enabled(), counters.event(0)), (on, Ok(Some(PmuEvent::NpuActive))));
    assert_eq!(counters.cycles(), 0);
    pmu.invoke(&mut job).unwrap();
    assert_eq!(pmu.counters().count(0), Ok(900));
    assert_eq!(pmu.power_requests(), 1);
    drop(pmu);
    assert_eq!(npu.power_requests(), 0);
    assert!(!sim.lock().is_kept_on());
}

/// What is counted is the driver's to keep, whatever became of the registers.
#[test]
fn what_is_counted_survives_resets_that_fail_and_other_masters() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new().with_reset_polls(10));
    let mut npu = device.init().unwrap();
    let mut pmu = npu.pmu().unwrap();
    let on = CounterMask::CYCLES | CounterMask::counter(1);
    pmu.counters().set_event(1, PmuEvent::NpuActive).unwrap();
    pmu.counters().enable(on);
    pmu.counters().enable_interrupt(CounterMask::counter(1));
    let is_set_up = |counters: &Counters<'_>| {
        assert_eq!(counters.event(1), Ok(Some(PmuEvent::NpuActive)));
        assert_eq!((counters.enabled(), counters.interrupts()), (on, CounterMask::counter(1)));
    };

    for failures in 1..4 {
        for _ in 0..failures {
            sim.lock().inject(Injection::EndlessReset);
            pmu.reset().unwrap_err();
        }
        pmu.invoke(&mut job(&payload)).unwrap();
        is_set_up(&pmu.counters());
    }
    // After a fault.
    sim.lock().inject(Injection::Parse { offset: 0 });
    sim.lock().inject(Injection::EndlessReset);
    pmu.invoke(&mut job(&payload)).unwrap_err();
    pmu.invoke(&mut job(&payload)).unwrap();
    is_set_up(&pmu.counters());
    // After somebody else's reset in the middle of a job.
    sim.lock().inject(Injection::SecondMaster(vec![(registers::RESET, Protection::default().word())]));
    pmu.invoke(&mut job(&payload)).unwrap_err();
    is_set_up(&pmu.counters());
    pmu.invoke(&mut job(&payload)).unwrap();
    is_set_up(&pmu.counters());
    // What is changed between jobs is what the next reset restores.
    pmu.counters().set_event(1, PmuEvent::MacActive).unwrap();
    pmu.reset().unwrap();
    assert_eq!(pmu.counters().event(1), Ok(Some(PmuEvent::MacActive)));
    drop(pmu);
    let pmu = npu.pmu().unwrap();
    assert!(pmu.counters().enabled().is_empty(), "a new guard begins anew");
}

#[test]
fn an_overflow_is_noticed_by_whoever_sees_the_end_first() {
    let accelerator = Accelerator::U65_256;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    sim.lock().set_activity(Thousand);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut pmu = npu.pmu().unwrap();
    pmu.counters().enable(CounterMask::CYCLES);
    pmu.counters().enable_interrupt(CounterMask::CYCLES);
    for handler_first in [true, false] {
        pmu.counters().clear_overflow(CounterMask::CYCLES);
        pmu.counters().set_cycles((1 << 48) - 1);
        sim.lock().set_timing(ethosu_model::device::Timing::Manual);
        let mut job = job(&payload);
        let running = pmu.submit(&mut job).unwrap();
        sim.lock().advance();
        if handler_first {
            device.on_interrupt();
        }
        running.wait().unwrap();
        assert!(pmu.take_counter_overflow(), "{handler_first}");
        assert!(!pmu.take_counter_overflow());
        assert!(!sim.lock().interrupt());
    }
}

#[test]
fn jobs_under_a_guard_need_no_reset() {
    let accelerator = Accelerator::U55_128;
    let payload = payload(accelerator, &copies(1, accelerator.product()));
    let memory = memory(&payload);
    let sim = Sim::new(accelerator, &memory);
    let writes = RefCell::new(Vec::new());
    let device: Device<_> = Device::new(Spy { sim: &sim, writes: &writes }, Config::new());
    let mut npu = device.init().unwrap();
    let resets = || writes.borrow().iter().filter(|(offset, _)| *offset == registers::RESET).count();
    let mut job = job(&payload);
    assert_eq!(resets(), 1);
    npu.invoke(&mut job).unwrap();
    assert_eq!(resets(), 2, "nothing is known of an NPU that was off");
    let mut on = npu.keep_on().unwrap();
    assert_eq!((resets(), on.power_requests()), (3, 1));
    let mut twice = on.keep_on().unwrap();
    assert_eq!(twice.power_requests(), 2);
    twice.invoke(&mut job).unwrap();
    twice.invoke(&mut job).unwrap();
    drop(twice);
    assert!(sim.lock().is_kept_on());
    drop(on);
    assert_eq!(resets(), 3);
    assert!(!sim.lock().is_kept_on());
}
