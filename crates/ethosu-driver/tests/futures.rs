//! Jobs as futures: woken by the interrupt handler, on executors that aren't ours.

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use common::*;
use ethosu_driver::{Accelerator, Config, Device, FaultKind, Interrupt, Pool, ReserveError, Want};
use ethosu_model::device::{Injection, Timing};

const U55: Accelerator = Accelerator::U55_128;

/// Counts how often it was woken, and unparks a thread.
struct Parked {
    thread: thread::Thread,
    woken: AtomicUsize,
}

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.thread.unpark();
    }
}

/// Polls only after it was woken, and says how often it polled.
fn block_on<F: Future>(future: F) -> (F::Output, usize) {
    let parked = Arc::new(Parked { thread: thread::current(), woken: AtomicUsize::new(0) });
    let waker = Waker::from(parked.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let mut polls = 0;
    let mut seen = 0;
    loop {
        polls += 1;
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return (output, polls);
        }
        while parked.woken.load(Ordering::SeqCst) == seen {
            thread::park();
        }
        seen = parked.woken.load(Ordering::SeqCst);
    }
}

/// Runs `body` while another thread is the NPU's hardware: jobs take a while, then the handler is called.
fn with_hardware<B, R>(sim: &Sim, device: &Device<B>, body: impl FnOnce() -> R) -> R
where
    B: ethosu_driver::Bus + Sync,
{
    sim.lock().set_timing(Timing::Manual);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_micros(200));
                sim.lock().advance();
                // The line may rise for a fault that isn't a job's end.
                let line = sim.lock().interrupt();
                if line {
                    device.on_interrupt();
                }
            }
        });
        let result = body();
        done.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn the_handler_wakes_the_future() {
    let payload = payload(U55, &copies(1, U55.product()));
    let memory = memory(&payload);
    let sim = Sim::new(U55, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);
    with_hardware(&sim, &device, || {
        for _ in 0..20 {
            spoil(&memory);
            let (result, polls) = block_on(npu.submit(&mut job).unwrap());
            assert!(result.unwrap().interrupt && copied(&memory, 1));
            assert!(polls <= 3, "{polls} polls: it isn't the interrupt that wakes");
        }
        spoil(&memory);
        let result = embassy_futures::block_on(npu.submit(&mut job).unwrap());
        assert!(result.is_ok() && copied(&memory, 1));

        sim.lock().inject(Injection::Parse { offset: 0 });
        let (result, _) = block_on(npu.submit(&mut job).unwrap());
        assert_eq!(result.unwrap_err().kind, FaultKind::Parse);
        let (result, _) = block_on(npu.submit(&mut job).unwrap());
        assert!(result.is_ok());
    });
}

#[test]
fn a_time_limit_and_a_timer() {
    let payload = payload(U55, &copies(1, U55.product()));
    let memory = memory(&payload);
    let sim = Sim::new(U55, &memory);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);
    let limit = Duration::from_millis(30);
    with_hardware(&sim, &device, || {
        sim.lock().inject(Injection::Hang { offset: 0 });
        // A timer's task: wakes whoever polls last, every few milliseconds.
        let running = npu.submit(&mut job).unwrap().within(limit, Wall::new());
        let (result, _) = block_on(embassy_futures::select::select(running, Ticking));
        let embassy_futures::select::Either::First(result) = result else { panic!("the timer doesn't end") };
        assert_eq!(result.unwrap_err().kind, FaultKind::TimeOut { limit });
        let (result, _) =
            block_on(npu.submit(&mut job).unwrap().within(Duration::from_secs(30), Wall::new()));
        assert!(result.is_ok() && copied(&memory, 1));
    });
}

/// Wakes its task again and again.
struct Ticking;

impl Future for Ticking {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(2));
            waker.wake();
        });
        Poll::Pending
    }
}

#[test]
fn a_future_that_is_dropped_stops_its_job() {
    let payload = payload(U55, &copies(1, U55.product()));
    let memory = memory(&payload);
    spoil(&memory);
    let sim = Sim::new(U55, &memory);
    sim.lock().set_timing(Timing::Manual);
    let device: Device<_> = Device::new(sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let mut job = job(&payload);
    let waker = Waker::noop();
    let mut context = Context::from_waker(waker);
    {
        let mut running = pin!(npu.submit(&mut job).unwrap());
        assert!(running.as_mut().poll(&mut context).is_pending());
        assert!(sim.lock().is_running() && sim.lock().is_kept_on());
    }
    assert!(!sim.lock().is_running() && !sim.lock().is_kept_on());
    assert!(!sim.lock().advance() && !copied(&memory, 1), "a stopped job writes nothing");
    assert_eq!(npu.submit(&mut job).unwrap().stop().unwrap_err().kind, FaultKind::Stopped);

    // A guard that is forgotten doesn't stop its job; the next one does.
    std::mem::forget(npu.submit(&mut job).unwrap());
    assert!(sim.lock().is_running());
    sim.lock().set_timing(Timing::AtOnce);
    npu.invoke(&mut job).unwrap();
    assert!(copied(&memory, 1));
    assert_eq!(npu.power_requests(), 0);
    sim.lock().set_timing(Timing::Manual);
    std::mem::forget(npu.submit(&mut job).unwrap());
    drop(npu);
    assert!(!sim.lock().is_running() && !sim.lock().is_kept_on());
    assert_eq!(device.on_interrupt(), Interrupt::Spurious);
    device.init().unwrap();
}

#[test]
fn waiting_for_a_pool() {
    let payload = payload(U55, &copies(1, U55.product()));
    let memory = memory(&payload);
    let (first, second) = (Sim::new(U55, &memory), Sim::new(Accelerator::U65_256, &memory));
    let devices: [Device<_>; 2] = [&first, &second].map(|sim| Device::new(sim.clone(), Config::new()));
    let pool: Pool<'_, _, _, _, 2, 1> = Pool::new([&devices[0], &devices[1]]).unwrap();
    let want = Want::Accelerator(U55);
    assert!(pool.has(want) && !pool.has(Want::Accelerator(Accelerator::U85_128)));
    let (none, _) = block_on(pool.reserve(Want::Accelerator(Accelerator::U85_128)));
    assert_eq!(none.unwrap_err().to_string(), "the pool has no ethos-u85-128");
    assert_eq!(Want::of_payload(&payload), Ok(want));

    let held = pool.try_reserve(want).unwrap();
    assert!(pool.try_reserve(want).is_none());
    let other = pool.try_reserve(Want::Any).unwrap();
    assert_eq!(other.info().accelerator, Accelerator::U65_256);
    let error = pool.reserve_within(Want::Any, Duration::from_millis(3), &Ticks::default()).unwrap_err();
    assert!(matches!(error, ReserveError::TimeOut { .. }));

    // One seat for three tasks: the others ask again and again, and all get their turn.
    thread::scope(|scope| {
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (mut npu, _) = block_on(async {
                        let npu = pool.reserve(want).await.unwrap();
                        // A reservation that nobody waits for any more leaves its seat.
                        drop(pool.reserve(Want::Any));
                        npu
                    });
                    npu.invoke(&mut job(&payload)).unwrap();
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(5));
        drop(held);
        for task in tasks {
            task.join().unwrap();
        }
    });
    drop(other);
    assert_eq!(first.lock().jobs(), 3);
    pool.invoke(&mut job(&payload)).unwrap();
    assert!(copied(&memory, 1) && first.lock().jobs() == 4 && second.lock().jobs() == 0);
}
