//! Hooks that panic, and guards that are forgotten: neither leaves an NPU that runs on or is kept on.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use common::*;
use ethosu_driver::{
    Accelerator, Config, Counters, Device, Hooks, InitError, Interrupt, Npu, Pool, PoolError, Span, Waiting,
    Want, target::Any,
};
use ethosu_model::device::{Injection, Timing};

const U65: Accelerator = Accelerator::U65_256;

/// Notes each call, and panics in the hook that it is told to.
#[derive(Default)]
struct Board {
    calls: Mutex<Vec<&'static str>>,
    panics_in: Mutex<Option<&'static str>>,
}

impl Board {
    fn call(&self, hook: &'static str) {
        self.calls.lock().unwrap().push(hook);
        let mut panics_in = self.panics_in.lock().unwrap();
        if *panics_in == Some(hook) {
            *panics_in = None;
            drop(panics_in);
            panic!("in {hook}");
        }
    }

    fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }
}

impl Waiting for Board {
    fn wait(&self, _: u32, _: Option<std::time::Duration>) {
        self.call("wait");
    }
}

impl Hooks for Board {
    type Argument = ();

    fn clean(&self, _: Span) {
        self.call("clean");
    }

    fn invalidate(&self, _: Span) {
        self.call("invalidate");
    }

    fn begin(&self, _: &Counters<'_>, _: Option<&mut ()>) {
        self.call("begin");
    }

    fn end(&self, _: &Counters<'_>, argument: Option<&mut ()>) {
        self.call(if argument.is_some() { "end with its argument" } else { "end" });
    }
}

type OurNpu<'d> = Npu<'d, Sim, Any, Board>;

fn board(test: impl FnOnce(&Sim, &Device<Sim, Any, Board>, &[u8], &Shared)) {
    let payload = payload(U65, &copies(1, U65.product()));
    let memory = memory(&payload);
    let sim = Sim::new(U65, &memory);
    let device = Device::with_hooks(sim.clone(), Config::new(), Board::default());
    test(&sim, &device, &payload, &memory);
}

#[test]
fn a_hook_that_panics_leaves_an_npu_that_stands_still() {
    std::panic::set_hook(Box::new(|_| {}));
    type Act = fn(&mut OurNpu<'_>, &[u8]);
    let invoke: Act = |npu, payload| _ = npu.invoke(&mut job(payload));
    let stop: Act = |npu, payload| _ = npu.submit(&mut job(payload)).unwrap().stop();
    let abandon: Act = |npu, payload| drop(npu.submit(&mut job(payload)).unwrap());
    let forget: Act = |npu, payload| {
        std::mem::forget(npu.submit(&mut job(payload)).unwrap());
        drop(npu.keep_on());
    };
    for (hook, timing, fault, act) in [
        ("clean", Timing::AtOnce, false, invoke),
        ("begin", Timing::AtOnce, false, invoke),
        ("invalidate", Timing::AtOnce, false, invoke),
        ("invalidate", Timing::AtOnce, true, invoke),
        ("end", Timing::AtOnce, false, invoke),
        ("end", Timing::AtOnce, true, invoke),
        ("wait", Timing::Manual, false, invoke),
        ("end", Timing::Manual, false, stop),
        ("invalidate", Timing::Manual, false, stop),
        ("end", Timing::Manual, false, abandon),
        ("end", Timing::Manual, false, forget),
    ] {
        board(|sim, device, payload, memory| {
            let mut npu = device.init().unwrap();
            sim.lock().set_timing(timing);
            if fault {
                sim.lock().inject(Injection::Parse { offset: 0 });
            }
            *device.hooks().panics_in.lock().unwrap() = Some(hook);
            catch_unwind(AssertUnwindSafe(|| act(&mut npu, payload))).expect_err("it panicked");
            let case = format!("{hook}, {timing:?}, {fault}");
            assert!(!sim.lock().is_running() && !sim.lock().is_kept_on(), "{case}");
            assert!(!sim.lock().advance(), "{case}: nothing runs on");
            assert_eq!(npu.power_requests(), 0, "{case}");
            sim.lock().set_timing(Timing::AtOnce);
            spoil(memory);
            npu.invoke(&mut job(payload)).unwrap_or_else(|error| panic!("{case}: {error}"));
            assert!(copied(memory, 1), "{case}");
        });
    }
    // While the owner itself goes.
    board(|sim, device, payload, _| {
        let mut npu = device.init().unwrap();
        sim.lock().set_timing(Timing::Manual);
        std::mem::forget(npu.submit(&mut job(payload)).unwrap());
        *device.hooks().panics_in.lock().unwrap() = Some("end");
        catch_unwind(AssertUnwindSafe(|| drop(npu))).expect_err("it panicked");
        assert!(!sim.lock().is_running() && !sim.lock().is_kept_on());
        device.init().expect("it is free again");
    });
}

#[test]
fn a_forgotten_job_ends_once_and_without_its_argument() {
    type Act = fn(&mut OurNpu<'_>);
    let acts: [(&str, Act); 4] = [
        ("keep_on", |npu| drop(npu.keep_on().unwrap())),
        ("pmu", |npu| drop(npu.pmu().unwrap())),
        ("reset", |npu| npu.reset().unwrap()),
        ("nothing", |_| {}),
    ];
    for (act, find) in acts {
        board(|sim, device, payload, _| {
            let mut npu = device.init().unwrap();
            sim.lock().set_timing(Timing::Manual);
            std::mem::forget(npu.submit_with(&mut job(payload), &mut ()).unwrap());
            sim.lock().advance();
            device.hooks().calls();
            find(&mut npu);
            let power = npu.power_requests();
            drop(npu);
            // What it wrote may be somebody else's memory by now, so no line of it is dropped.
            assert_eq!(device.hooks().calls(), ["end"], "{act}");
            assert!(act == "nothing" || power == 0, "{act}: {power}");
            assert!(!sim.lock().is_kept_on(), "{act}");
        });
    }
}

#[test]
fn what_other_guards_leave_when_they_are_forgotten() {
    let payload = payload(U65, &copies(1, U65.product()));
    let memory = memory(&payload);
    let sim = Sim::new(U65, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    // Power: on until the NPU goes.
    std::mem::forget(npu.keep_on().unwrap());
    npu.invoke(&mut job(&payload)).unwrap();
    assert!(npu.power_requests() == 1 && sim.lock().is_kept_on());
    // The monitor: in use until then.
    std::mem::forget(npu.pmu().unwrap());
    assert!(npu.pmu().is_err());
    npu.invoke(&mut job(&payload)).unwrap();
    drop(npu);
    assert!(!sim.lock().is_kept_on());
    drop(device.init().unwrap().pmu().unwrap());
    // The NPU itself: taken for ever, and jobs that were started ended.
    let npu = device.init().unwrap();
    std::mem::forget(npu);
    assert_eq!(device.init().unwrap_err(), InitError::Taken);
    assert_eq!(device.on_interrupt(), Interrupt::Spurious);
}

#[test]
fn an_npu_is_in_one_pool() {
    let memory = memory(&[]);
    let devices: [Device<_>; 2] = [(); 2].map(|()| Device::new(Sim::new(U65, &memory), Config::new()));
    let [first, second] = &devices;
    let pool: Pool<'_, _, _, _, 1> = Pool::new([first]).unwrap();
    assert_eq!(first.init().unwrap_err(), InitError::Pooled);
    let other = Pool::<'_, _, _, _, 2>::new([second, first]).unwrap_err();
    assert_eq!(other, PoolError { index: 1, error: InitError::Pooled });
    assert_eq!(other.to_string(), "NPU 1 of the pool: the NPU belongs to a pool");
    // Neither attempt has taken anything.
    drop(second.init().unwrap());
    let reserved = pool.try_reserve(Want::Any).unwrap();
    assert_eq!(first.init().unwrap_err(), InitError::Pooled);
    drop(reserved);
    drop(pool.try_reserve(Want::Any).unwrap());
    drop(pool);
    let npu = first.init().unwrap();
    assert_eq!(
        Pool::<'_, _, _, _, 1>::new([first]).unwrap_err(),
        PoolError { index: 0, error: InitError::Taken }
    );
    drop(npu);
    assert_eq!(
        Pool::<'_, _, _, _, 2>::new([first, first]).unwrap_err(),
        PoolError { index: 1, error: InitError::Pooled }
    );
    drop(first.init().unwrap());
}
