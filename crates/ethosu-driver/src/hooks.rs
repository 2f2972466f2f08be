//! What the platform adds: caches, addresses, waiting, and callbacks around an inference.

use core::time::Duration;

use crate::pmu::Counters;
use crate::ports::Selector;

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The command stream.
    Commands,
    /// A region, by number.
    Region(u8),
}

impl core::fmt::Display for Place {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Place::Commands => f.write_str("the command stream"),
            Place::Region(region) => write!(f, "region {region}"),
        }
    }
}

/// Memory of a job, as the CPU sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it is.
    pub place: Place,
    /// Its first byte.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// A monotonic clock of the platform's.
pub trait Clock {
    /// The time since some fixed moment. Never goes back.
    fn now(&self) -> Duration;
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// How a thread waits for an interrupt or for another thread: the counterpart of an RTOS' semaphore.
///
/// The defaults spin, which is always right. To sleep instead, with a handler that calls
/// [`Device::on_interrupt`](crate::Device::on_interrupt) and only then (if an interrupt goes missing, a wait without a limit
/// doesn't end; one with a limit looks at the NPU once more when its time is over):
///
/// * bare metal: `wait` is `WFE`, `notify` is `SEV` (its event is remembered, so none is lost);
/// * an RTOS: `notify` increments a number and wakes every waiting thread; `ticket` gives the number, and `wait` blocks
///   while it is still the ticket's.
pub trait Waiting {
    /// A mark of the present: [`wait`](Waiting::wait) returns at once if [`notify`](Waiting::notify) was called after it.
    fn ticket(&self) -> u32 {
        0
    }

    /// Waits for a [`notify`](Waiting::notify) after `ticket`, at most for `limit`. It may return early for any reason.
    fn wait(&self, ticket: u32, limit: Option<Duration>) {
        let _ = (ticket, limit);
        crate::sync::spin_loop();
    }

    /// Ends every [`wait`](Waiting::wait). Called from the interrupt handler, among others.
    fn notify(&self) {}
}

/// Waits by looking again and again.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl Waiting for Spin {}

impl<W: Waiting + ?Sized> Waiting for &W {
    fn ticket(&self) -> u32 {
        (**self).ticket()
    }

    fn wait(&self, ticket: u32, limit: Option<Duration>) {
        (**self).wait(ticket, limit);
    }

    fn notify(&self) {
        (**self).notify();
    }
}

/// What the platform does around a job. Every method has a default that is safe: no caches, equal addresses, no callbacks.
///
/// ```
/// use ethosu_driver::{Hooks, Place, Span, Waiting};
///
/// struct Board;
///
/// impl Waiting for Board {}
///
/// impl Hooks for Board {
///     type Argument = u32;
///
///     fn clean(&self, span: Span) {
///         // SCB.clean_dcache_by_address(span.address as usize, span.bytes as usize)
///         let _ = span;
///     }
///
///     fn translate(&self, _: Place, address: u64) -> u64 {
///         // The CPU's tightly coupled memory, as the NPU sees it.
///         if (0x2000_0000..0x2004_0000).contains(&address) { address + 0x3800_0000 } else { address }
///     }
/// }
/// ```
pub trait Hooks: Waiting {
    /// What [`begin`](Hooks::begin) and [`end`](Hooks::end) are given with a job.
    type Argument: ?Sized;

    /// Writes the data cache's lines of this memory back, before the NPU reads it. Called for the command stream and for
    /// each region of a job.
    fn clean(&self, span: Span) {
        let _ = span;
    }

    /// Drops the data cache's lines of this memory, after the NPU has written it. Called for each region that the job's
    /// commands write, also after a fault, but not for a job whose guard was forgotten: its memory may be another's by then. See
    /// [`Config::cache_line`](crate::Config::cache_line), with which the memory is whole lines.
    fn invalidate(&self, span: Span) {
        let _ = span;
    }

    /// The address at which the NPU sees what the CPU sees at `address`.
    fn translate(&self, place: Place, address: u64) -> u64 {
        let _ = place;
        address
    }

    /// How the NPU accesses what it sees at `address`; `configured` is what [`Config`](crate::Config) says.
    fn select(&self, place: Place, address: u64, configured: Selector) -> Selector {
        let _ = (place, address);
        configured
    }

    /// Called when everything is checked and the NPU is on, just before it starts.
    fn begin(&self, counters: &Counters<'_>, argument: Option<&mut Self::Argument>) {
        let _ = (counters, argument);
    }

    /// Called when a job is over, for whatever reason, before the NPU is reset or switched off: the counters still hold what
    /// they counted. After a good end the caches have been seen to; after a fault there are no results to look at, and the
    /// caches follow when the NPU stands still. For a job whose guard was forgotten it is called when that is found out, without
    /// the argument.
    ///
    /// A hook may panic, where panics unwind: the NPU is reset if it may still run, and isn't kept on.
    fn end(&self, counters: &Counters<'_>, argument: Option<&mut Self::Argument>) {
        let _ = (counters, argument);
    }
}

/// No hooks: no data cache, the NPU sees what the CPU sees, waiting spins.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Waiting for NoHooks {}

impl Hooks for NoHooks {
    type Argument = ();
}
