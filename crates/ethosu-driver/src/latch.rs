//! What the interrupt handler and the NPU's owner share: the state of the job under way, and what its interrupt told.
//!
//! The state is a number of a job and one of four phases. The handler remembers the state it has seen *before* it reads
//! `STATUS`, and may only record for that state: what it read can't end up with a later job.

use core::task::Waker;

use ethosu_isa::registers::Status;

use crate::sync::{AtomicBool, AtomicU32, Ordering, WakerCell, spin_loop};

/// No job.
const IDLE: u32 = 0;
/// A job that nobody has seen end.
const RUNNING: u32 = 1;
/// The handler is recording the end.
const RECORDING: u32 = 2;
/// The end is recorded.
const OVER: u32 = 3;
const PHASE: u32 = 3;

/// A job's end as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) status: Status,
    pub(crate) qread: u32,
    /// Whether the interrupt handler saw it.
    pub(crate) interrupt: bool,
}

pub(crate) struct Latch {
    state: AtomicU32,
    status: AtomicU32,
    qread: AtomicU32,
    /// The power bits that `CMD` has, so that the handler can clear its interrupt without changing them.
    power: AtomicU32,
    overflow: AtomicBool,
    waker: WakerCell,
}

impl Latch {
    const_unless_loom! {
        pub(crate) fn new() -> Latch {
            Latch {
                state: AtomicU32::new(IDLE),
                status: AtomicU32::new(0),
                qread: AtomicU32::new(0),
                power: AtomicU32::new(0),
                overflow: AtomicBool::new(false),
                waker: WakerCell::new(),
            }
        }
    }

    // The owner's side.

    /// Begins a job. The owner has stopped any job before.
    pub(crate) fn arm(&self) {
        let job = (self.state.load(Ordering::Relaxed) & !PHASE).wrapping_add(PHASE + 1);
        self.state.store(job | RUNNING, Ordering::SeqCst);
    }

    /// Whether there is a job whose end nobody took.
    pub(crate) fn is_armed(&self) -> bool {
        self.state.load(Ordering::Acquire) & PHASE != IDLE
    }

    /// Takes the record, if the handler has made one.
    pub(crate) fn take(&self) -> Option<Record> {
        let state = self.state.load(Ordering::Acquire);
        if state & PHASE != OVER {
            return None;
        }
        let record = Record {
            status: Status(self.status.load(Ordering::Relaxed)),
            qread: self.qread.load(Ordering::Relaxed),
            interrupt: true,
        };
        self.state.store(state & !PHASE | IDLE, Ordering::Release);
        Some(record)
    }

    /// Ends the job on the owner's own account: afterwards the handler can't. Gives the handler's record if that came first.
    pub(crate) fn claim(&self) -> Result<(), Record> {
        loop {
            let state = self.state.load(Ordering::Acquire);
            match state & PHASE {
                RUNNING => {
                    let idle = state & !PHASE | IDLE;
                    let claimed =
                        self.state.compare_exchange(state, idle, Ordering::AcqRel, Ordering::Acquire);
                    if claimed.is_ok() {
                        return Ok(());
                    }
                }
                // The handler runs on another core, and is nearly done.
                RECORDING => spin_loop(),
                OVER => {
                    if let Some(record) = self.take() {
                        return Err(record);
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Forgets the waker: nobody waits any more.
    pub(crate) fn clear_waker(&self) {
        self.waker.clear();
    }

    /// Whether a counter's overflow interrupted since the last call.
    pub(crate) fn take_overflow(&self) -> bool {
        self.overflow.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn set_power(&self, bits: u32) {
        self.power.store(bits, Ordering::SeqCst);
    }

    pub(crate) fn power(&self) -> u32 {
        self.power.load(Ordering::SeqCst)
    }

    // The handler's side.

    /// The state to record for.
    pub(crate) fn observe(&self) -> u32 {
        self.state.load(Ordering::SeqCst)
    }

    /// Whether the job that `seen` was about still runs, and is now this handler's to record.
    pub(crate) fn begin_record(&self, seen: u32) -> bool {
        seen & PHASE == RUNNING
            && self
                .state
                .compare_exchange(seen, seen & !PHASE | RECORDING, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }

    /// Records the end and wakes who waits for it. Only after [`begin_record`](Latch::begin_record) said yes.
    pub(crate) fn record(&self, seen: u32, status: Status, qread: u32) {
        self.status.store(status.0, Ordering::Relaxed);
        self.qread.store(qread, Ordering::Relaxed);
        self.state.store(seen & !PHASE | OVER, Ordering::Release);
        self.waker.wake();
    }

    pub(crate) fn set_overflow(&self) {
        self.overflow.store(true, Ordering::Release);
        self.waker.wake();
    }
}
