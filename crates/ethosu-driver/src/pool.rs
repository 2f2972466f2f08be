//! Several NPUs that threads and tasks share.

use core::fmt;
use core::future::Future;
use core::ops::{Deref, DerefMut};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use ethosu_isa::{Accelerator, ConfigWordError, Payload, PayloadError};

use crate::device::{Device, HardwareInfo};
use crate::hooks::Spin;
use crate::sync::{AtomicBool, Ordering, WakerCell};
use crate::target::{Any, Target};
use crate::{Bus, Clock, Completion, Hooks, InitError, InvokeError, Job, NoHooks, Npu, Waiting};

/// Which NPU is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// Any that is free.
    Any,
    /// One of this product and size.
    Accelerator(Accelerator),
}

impl Want {
    /// The one a Vela payload was compiled for.
    ///
    /// # Errors
    /// [`WantError`]: the payload doesn't say.
    pub fn of_payload(payload: &[u8]) -> Result<Want, WantError> {
        let payload = Payload::parse(payload).map_err(WantError::Payload)?;
        payload.accelerator().map(Want::Accelerator).map_err(WantError::Accelerator)
    }

    fn fits(self, info: HardwareInfo) -> bool {
        match self {
            Want::Any => true,
            Want::Accelerator(accelerator) => accelerator == info.accelerator,
        }
    }
}

/// Why a payload doesn't say which NPU it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WantError {
    /// It can't be read.
    Payload(PayloadError),
    /// It is for no Ethos-U.
    Accelerator(ConfigWordError),
}

impl fmt::Display for WantError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WantError::Payload(error) => error.fmt(f),
            WantError::Accelerator(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for WantError {}

/// An NPU of a pool that can't be initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolError {
    /// Which, counting from 0.
    pub index: usize,
    /// Why.
    pub error: InitError,
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NPU {} of the pool: {}", self.index, self.error)
    }
}

impl core::error::Error for PoolError {}

/// Why a pool gives no NPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReserveError {
    /// The pool has none of the kind that is wanted, so waiting is pointless.
    None {
        /// What was wanted.
        want: Want,
    },
    /// None became free in time.
    TimeOut {
        /// The time.
        limit: Duration,
    },
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReserveError::None { want: Want::Accelerator(accelerator) } => {
                write!(f, "the pool has no {accelerator}")
            }
            ReserveError::None { want: Want::Any } => f.write_str("the pool has no NPU"),
            ReserveError::TimeOut { limit } => write!(f, "no NPU became free within {limit:?}"),
        }
    }
}

impl core::error::Error for ReserveError {}

/// Why [`Pool::invoke`] gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolInvokeError {
    /// There is no NPU for the job.
    Reserve(ReserveError),
    /// The job was refused or went wrong.
    Invoke(InvokeError),
}

impl fmt::Display for PoolInvokeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PoolInvokeError::Reserve(error) => error.fmt(f),
            PoolInvokeError::Invoke(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PoolInvokeError {}

struct Entry<'d, B, T: Target, H> {
    device: &'d Device<B, T, H>,
    info: HardwareInfo,
}

/// A place where a task leaves its waker while it waits.
struct Seat {
    taken: AtomicBool,
    waker: WakerCell,
}

impl Seat {
    fn take(&self) -> bool {
        self.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// `N` NPUs, and room for `SEATS` tasks that wait for one. (More may wait; they then ask again and again.)
///
/// Reserving and releasing take no lock. `W` is how threads that block wait for a release.
///
/// While the pool lives, its NPUs are to be had from it alone: [`Device::init`] and another pool refuse them
/// ([`InitError::Pooled`]), so that nobody waits here for a release that happens elsewhere.
///
/// ```
/// # use ethosu_driver::*;
/// # fn example<B: Bus>(first: &Device<B>, second: &Device<B>, job: &mut Job<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// let pool: Pool<'_, B, _, _, 2> = Pool::new([first, second])?;
/// let mut npu = pool.reserve_blocking(Want::Any)?;
/// npu.invoke(job)?;
/// drop(npu); // free for the next
/// # Ok(())
/// # }
/// ```
pub struct Pool<
    'd,
    B: Bus,
    T: Target = Any,
    H: Hooks = NoHooks,
    const N: usize = 1,
    const SEATS: usize = 4,
    W: Waiting = Spin,
> {
    entries: [Entry<'d, B, T, H>; N],
    seats: [Seat; SEATS],
    waiting: W,
}

impl<'d, B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize> Pool<'d, B, T, H, N, SEATS> {
    /// Initialises each NPU. Threads that block spin.
    ///
    /// # Errors
    /// [`PoolError`]: one can't be initialised.
    pub fn new(devices: [&'d Device<B, T, H>; N]) -> Result<Self, PoolError> {
        Pool::with_waiting(devices, Spin)
    }
}

impl<'d, B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting>
    Pool<'d, B, T, H, N, SEATS, W>
{
    /// Initialises each NPU. Threads that block do so with `waiting`.
    ///
    /// # Errors
    /// [`PoolError`]: one can't be initialised.
    pub fn with_waiting(devices: [&'d Device<B, T, H>; N], waiting: W) -> Result<Self, PoolError> {
        let mut infos = [None; N];
        for (index, (device, info)) in devices.iter().zip(&mut infos).enumerate() {
            match device.init_pooled() {
                Ok(found) => *info = Some(found),
                Err(error) => {
                    devices.iter().take(index).for_each(|device| device.leave_pool());
                    return Err(PoolError { index, error });
                }
            }
        }
        let mut index = 0;
        let entries = devices.map(|device| {
            let info = infos[index].expect("the loop has filled every one");
            index += 1;
            Entry { device, info }
        });
        let seats = core::array::from_fn(|_| Seat { taken: AtomicBool::new(false), waker: WakerCell::new() });
        Ok(Pool { entries, seats, waiting })
    }

    /// Whether the pool has, free or not, what is wanted.
    pub fn has(&self, want: Want) -> bool {
        self.entries.iter().any(|entry| want.fits(entry.info))
    }

    /// Reserves an NPU if one is free.
    pub fn try_reserve(&self, want: Want) -> Option<Reserved<'_, 'd, B, T, H>> {
        let npu = self
            .entries
            .iter()
            .filter(|entry| want.fits(entry.info))
            .find_map(|entry| entry.device.attach(entry.info))?;
        Some(Reserved { npu: Some(npu), seats: &self.seats, waiting: &self.waiting })
    }

    fn check(&self, want: Want) -> Result<(), ReserveError> {
        if self.has(want) { Ok(()) } else { Err(ReserveError::None { want }) }
    }

    /// Reserves an NPU, when one is free. The task is woken then.
    pub fn reserve(&self, want: Want) -> Reserve<'_, 'd, B, T, H, N, SEATS, W> {
        Reserve { pool: self, want, seat: None }
    }

    /// Reserves an NPU. The thread waits until one is free, however long that takes.
    ///
    /// # Errors
    /// [`ReserveError::None`].
    pub fn reserve_blocking(&self, want: Want) -> Result<Reserved<'_, 'd, B, T, H>, ReserveError> {
        self.check(want)?;
        loop {
            let ticket = self.waiting.ticket();
            if let Some(reserved) = self.try_reserve(want) {
                return Ok(reserved);
            }
            self.waiting.wait(ticket, None);
        }
    }

    /// Reserves an NPU. The thread waits until one is free, but not longer than `limit`.
    ///
    /// # Errors
    /// [`ReserveError`].
    pub fn reserve_within(
        &self,
        want: Want,
        limit: Duration,
        clock: &impl Clock,
    ) -> Result<Reserved<'_, 'd, B, T, H>, ReserveError> {
        self.check(want)?;
        let start = clock.now();
        loop {
            let ticket = self.waiting.ticket();
            if let Some(reserved) = self.try_reserve(want) {
                return Ok(reserved);
            }
            match limit.checked_sub(clock.now().saturating_sub(start)) {
                Some(left) if !left.is_zero() => self.waiting.wait(ticket, Some(left)),
                _ => return Err(ReserveError::TimeOut { limit }),
            }
        }
    }

    /// Runs a job on an NPU of the kind it was compiled for: reserves, runs, waits and releases.
    ///
    /// # Errors
    /// [`PoolInvokeError`].
    pub fn invoke(&self, job: &mut Job<'_>) -> Result<Completion, PoolInvokeError> {
        // A job that doesn't say is refused by whichever NPU comes.
        let want = job.accelerator().map_or(Want::Any, Want::Accelerator);
        let mut npu = self.reserve_blocking(want).map_err(PoolInvokeError::Reserve)?;
        npu.invoke(job).map_err(PoolInvokeError::Invoke)
    }
}

impl<B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting> Drop
    for Pool<'_, B, T, H, N, SEATS, W>
{
    fn drop(&mut self) {
        for entry in &self.entries {
            entry.device.leave_pool();
        }
    }
}

impl<B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting> fmt::Debug
    for Pool<'_, B, T, H, N, SEATS, W>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.iter().map(|entry| entry.info.accelerator)).finish()
    }
}

/// A reserved NPU. Dropping it stops what it runs and releases it.
pub struct Reserved<'p, 'd, B: Bus, T: Target = Any, H: Hooks = NoHooks> {
    /// There until it is dropped.
    npu: Option<Npu<'d, B, T, H>>,
    seats: &'p [Seat],
    waiting: &'p dyn Waiting,
}

impl<'d, B: Bus, T: Target, H: Hooks> Deref for Reserved<'_, 'd, B, T, H> {
    type Target = Npu<'d, B, T, H>;

    fn deref(&self) -> &Npu<'d, B, T, H> {
        self.npu.as_ref().expect("only drop takes it")
    }
}

impl<'d, B: Bus, T: Target, H: Hooks> DerefMut for Reserved<'_, 'd, B, T, H> {
    fn deref_mut(&mut self) -> &mut Npu<'d, B, T, H> {
        self.npu.as_mut().expect("only drop takes it")
    }
}

impl<B: Bus, T: Target, H: Hooks> fmt::Debug for Reserved<'_, '_, B, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reserved").field(&**self).finish()
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Reserved<'_, '_, B, T, H> {
    fn drop(&mut self) {
        // First the NPU becomes free, then everybody who waits looks again.
        drop(self.npu.take());
        for seat in self.seats {
            seat.waker.wake();
        }
        self.waiting.notify();
    }
}

/// Waits for an NPU. Made by [`Pool::reserve`].
#[must_use = "a future does nothing until it is awaited"]
pub struct Reserve<'p, 'd, B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting> {
    pool: &'p Pool<'d, B, T, H, N, SEATS, W>,
    want: Want,
    seat: Option<&'p Seat>,
}

impl<B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting>
    Reserve<'_, '_, B, T, H, N, SEATS, W>
{
    fn leave(&mut self) {
        if let Some(seat) = self.seat.take() {
            seat.waker.clear();
            seat.taken.store(false, Ordering::Release);
        }
    }
}

impl<'p, 'd, B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting> Future
    for Reserve<'p, 'd, B, T, H, N, SEATS, W>
{
    type Output = Result<Reserved<'p, 'd, B, T, H>, ReserveError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Err(error) = this.pool.check(this.want) {
            return Poll::Ready(Err(error));
        }
        if this.seat.is_none() {
            this.seat = this.pool.seats.iter().find(|seat| seat.take());
        }
        // First the waker, then the look: a release that comes after the look wakes.
        if let Some(seat) = this.seat {
            seat.waker.register(context.waker());
        }
        match this.pool.try_reserve(this.want) {
            Some(reserved) => {
                this.leave();
                Poll::Ready(Ok(reserved))
            }
            None => {
                if this.seat.is_none() {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl<B: Bus, T: Target, H: Hooks, const N: usize, const SEATS: usize, W: Waiting> Drop
    for Reserve<'_, '_, B, T, H, N, SEATS, W>
{
    fn drop(&mut self) {
        self.leave();
    }
}
