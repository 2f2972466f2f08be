//! A job that runs.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use ethosu_isa::registers::{self, Status, command};

use crate::check::Prepared;
use crate::fault::{Fault, FaultKind};
use crate::job::command_at;
use crate::latch::Record;
use crate::npu::{Closing, Npu};
use crate::sync::{Ordering, fence};
use crate::target::{Any, Target};
use crate::{Bus, Clock, Hooks, NoHooks};

/// A job that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// `STATUS` at the end.
    pub status: Status,
    /// `QREAD` at the end.
    pub qread: u32,
    /// Whether the interrupt handler saw the end. If it never does, the interrupt isn't connected.
    pub interrupt: bool,
}

/// How far a job is.
#[derive(Debug)]
#[must_use]
pub enum Progress<R> {
    /// Under way: ask again.
    Running(R),
    /// Over.
    Over(Result<Completion, Fault>),
}

/// A job that runs. It borrows the NPU and the job, so that neither can be touched before it is over.
///
/// It ends in one of four ways: [`wait`](Running::wait) blocks, [`wait_within`](Running::wait_within) blocks for a time,
/// [`poll`](Running::poll) asks, and as a future it is woken by [`Device::on_interrupt`](crate::Device::on_interrupt).
/// Dropping it stops the job.
///
/// # Panics
/// As a future, when it is polled again after it was ready.
#[must_use = "dropping it stops the job"]
pub struct Running<'n, 'd, B: Bus, T: Target = Any, H: Hooks = NoHooks> {
    npu: &'n mut Npu<'d, B, T, H>,
    prepared: Prepared,
    stream: &'n [u8],
    argument: Option<&'n mut H::Argument>,
    over: bool,
}

impl<'n, 'd, B: Bus, T: Target, H: Hooks> Running<'n, 'd, B, T, H> {
    pub(crate) fn new(
        npu: &'n mut Npu<'d, B, T, H>,
        prepared: Prepared,
        stream: &'n [u8],
        argument: Option<&'n mut H::Argument>,
    ) -> Running<'n, 'd, B, T, H> {
        Running { npu, prepared, stream, argument, over: false }
    }

    /// Asks whether it is over.
    pub fn poll(mut self) -> Progress<Self> {
        match self.advance() {
            Some(result) => Progress::Over(result),
            None => Progress::Running(self),
        }
    }

    /// Waits until it is over, however long that takes. With hooks that block until a
    /// [`notify`](crate::Waiting::notify), a missing interrupt makes that for ever.
    ///
    /// # Errors
    /// [`Fault`]: how it went wrong.
    pub fn wait(mut self) -> Result<Completion, Fault> {
        loop {
            let ticket = self.npu.device.hooks.ticket();
            if let Some(result) = self.advance() {
                return result;
            }
            self.npu.device.hooks.wait(ticket, None);
        }
    }

    /// Waits until it is over, but not longer than `limit` from now. When the time is over it looks once more, so a job that was
    /// over in time, but whose interrupt went missing, gives its result.
    ///
    /// # Errors
    /// [`Fault`]: how it went wrong, or that it took too long.
    pub fn wait_within(mut self, limit: Duration, clock: &impl Clock) -> Result<Completion, Fault> {
        let start = clock.now();
        loop {
            let ticket = self.npu.device.hooks.ticket();
            if let Some(result) = self.advance() {
                return result;
            }
            let spent = clock.now().saturating_sub(start);
            match limit.checked_sub(spent) {
                Some(left) if !left.is_zero() => self.npu.device.hooks.wait(ticket, Some(left)),
                _ => return self.give_up(FaultKind::TimeOut { limit }),
            }
        }
    }

    /// A future that gives up after `limit` from now. Something has to poll it at that time, such as a timer's waker that the
    /// caller waits for as well.
    pub fn within<C: Clock>(self, limit: Duration, clock: C) -> Within<'n, 'd, B, T, H, C> {
        Within { start: clock.now(), running: self, limit, clock }
    }

    /// Stops it.
    ///
    /// # Errors
    /// [`Fault`] of the kind [`FaultKind::Stopped`], unless the job was over already.
    pub fn stop(mut self) -> Result<Completion, Fault> {
        self.give_up(FaultKind::Stopped)
    }

    /// The result, if it is over.
    fn advance(&mut self) -> Option<Result<Completion, Fault>> {
        let device = self.npu.device;
        let latch = &device.latch;
        if let Some(record) = latch.take() {
            return Some(self.finish(record, None));
        }
        // Without the interrupt, or if one got lost, the register tells.
        let status = device.status();
        if status.is_over() {
            return Some(self.claim(status, None));
        }
        // It stands still and isn't at the end: somebody has reset it, or is about to.
        let stands = !status.has(Status::RUNNING) && !status.has(Status::RESETTING);
        if stands && self.npu.interference(&self.prepared).is_some() {
            return Some(self.claim(status, None));
        }
        None
    }

    /// Ends the job as over or as `failure`, whichever came first.
    fn give_up(&mut self, failure: FaultKind) -> Result<Completion, Fault> {
        match self.advance() {
            Some(result) => result,
            None => self.claim(self.npu.device.status(), Some(failure)),
        }
    }

    /// Takes the end from the interrupt handler, and ends the job unless the handler was quicker.
    fn claim(&mut self, status: Status, failure: Option<FaultKind>) -> Result<Completion, Fault> {
        match self.npu.device.latch.claim() {
            Ok(()) => {
                let qread = self.npu.device.bus.read(registers::QREAD);
                self.finish(Record { status, qread, interrupt: false }, failure)
            }
            Err(record) => self.finish(record, None),
        }
    }

    fn finish(&mut self, record: Record, failure: Option<FaultKind>) -> Result<Completion, Fault> {
        self.over = true;
        let device = self.npu.device;
        device.latch.clear_waker();
        let now = device.status();
        if now.has(Status::PMU_IRQ) {
            // As the handler would, which finds nothing any more once the interrupt is cleared.
            device.latch.set_overflow();
        }
        device.clear_interrupt();
        let Record { status, qread, interrupt } = record;
        // During a reset all registers read as zero.
        let interference = (!now.has(Status::RESETTING))
            .then(|| self.npu.interference(&self.prepared))
            .flatten()
            .map(|(register, found, expected)| FaultKind::Interference { register, found, expected });
        let kind = interference.or_else(|| FaultKind::from_status(status)).or(failure);
        let argument = self.argument.as_deref_mut();
        let prepared = &self.prepared;
        let mut closing = Closing { stands: kind.is_none(), npu: &mut *self.npu };
        match kind {
            None => {
                closing.npu.forget_monitor();
                // What the NPU has written comes before anything the CPU reads.
                fence(Ordering::SeqCst);
                invalidate(prepared, &device.hooks);
                device.hooks.end(&closing.npu.counters(), argument);
                closing.npu.stop_counting();
                let history = u32::from(status.history()) << command::CLEAR_HISTORY;
                device.bus.write(registers::CMD, device.latch.power() | history);
                Ok(Completion { status, qread, interrupt })
            }
            Some(kind) => {
                device.hooks.end(&closing.npu.counters(), argument);
                closing.npu.stop_counting();
                // Only now does the NPU surely stand still, so only now are the caches seen to.
                let recovery = closing.reset();
                fence(Ordering::SeqCst);
                invalidate(prepared, &device.hooks);
                let command = command_at(self.stream, qread);
                let fault = Fault { kind, status, qread, command, product: closing.npu.product(), recovery };
                message!(error, "{}", fault);
                Err(fault)
            }
        }
    }
}

fn invalidate<H: Hooks>(prepared: &Prepared, hooks: &H) {
    for region in prepared.regions.iter().flatten().filter(|region| region.written) {
        hooks.invalidate(region.span);
    }
}

impl<B: Bus, T: Target, H: Hooks> Future for Running<'_, '_, B, T, H> {
    type Output = Result<Completion, Fault>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.over, "polled after it was ready");
        // First the waker, then the look: an end that comes after the look wakes.
        this.npu.device.latch.register(context.waker());
        this.advance().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Running<'_, '_, B, T, H> {
    fn drop(&mut self) {
        if !self.over {
            let _ = self.give_up(FaultKind::Stopped);
        }
    }
}

impl<B: Bus, T: Target, H: Hooks> core::fmt::Debug for Running<'_, '_, B, T, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Running")
            .field("prepared", &self.prepared)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// A job that runs, as a future with a time limit. See [`Running::within`].
#[must_use = "dropping it stops the job"]
pub struct Within<'n, 'd, B: Bus, T: Target, H: Hooks, C: Clock> {
    running: Running<'n, 'd, B, T, H>,
    start: Duration,
    limit: Duration,
    clock: C,
}

impl<B: Bus, T: Target, H: Hooks, C: Clock + Unpin> Future for Within<'_, '_, B, T, H, C> {
    type Output = Result<Completion, Fault>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let result = Pin::new(&mut this.running).poll(context);
        if result.is_pending() && this.clock.now().saturating_sub(this.start) >= this.limit {
            return Poll::Ready(this.running.give_up(FaultKind::TimeOut { limit: this.limit }));
        }
        result
    }
}
