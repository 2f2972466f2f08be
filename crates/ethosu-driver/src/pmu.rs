//! The performance monitor: a cycle counter of 48 bits, and four or eight event counters of 32.

use core::fmt;
use core::ops::{BitOr, BitOrAssign, Deref, DerefMut};

use ethosu_isa::registers::{self, CYCLE_BITS, CYCLE_COUNTER, Channel, PmuBlock, Status, pmcr};
use ethosu_isa::{PmuEvent, Product};

use crate::npu::Npu;
use crate::ports::{AxiPort, Selector};
use crate::target::{Any, Target};
use crate::{Bus, Hooks, NoHooks, ResetError};

/// The most event counters that a product has.
const MOST_COUNTERS: usize = 8;

/// Why the performance monitor can't do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PmuError {
    /// It is on already.
    InUse,
    /// There is no such counter.
    Counter {
        /// Which was asked for.
        found: u32,
        /// How many there are.
        counters: u32,
    },
    /// The product doesn't have the event.
    Event {
        /// The event.
        event: PmuEvent,
        /// The product.
        product: Product,
    },
    /// The product doesn't have the channel.
    Channel {
        /// The channel.
        channel: Channel,
        /// The product.
        product: Product,
    },
    /// What is to be watched is of another product.
    Watch {
        /// What.
        watch: Watch,
        /// The product.
        product: Product,
    },
    /// The NPU couldn't be switched on.
    Reset(ResetError),
}

impl fmt::Display for PmuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PmuError::InUse => f.write_str("the performance monitor is in use"),
            PmuError::Counter { found, counters } => {
                write!(f, "there is no event counter {found}: the NPU has {counters}")
            }
            PmuError::Event { event, product } => write!(f, "{product} doesn't count {event}"),
            PmuError::Channel { channel, product } => {
                write!(f, "{product} has no channel for {channel}")
            }
            PmuError::Watch { watch, product } => write!(f, "{product} can't watch {watch:?}"),
            PmuError::Reset(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PmuError {}

impl From<ResetError> for PmuError {
    fn from(error: ResetError) -> PmuError {
        PmuError::Reset(error)
    }
}

/// A set of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CounterMask(u32);

impl CounterMask {
    /// The cycle counter.
    pub const CYCLES: CounterMask = CounterMask(CYCLE_COUNTER);

    /// An event counter. One that doesn't exist has no effect.
    pub const fn counter(n: u32) -> CounterMask {
        CounterMask(if n < 31 { 1 << n } else { 0 })
    }

    /// All counters of a product.
    pub const fn all(product: Product) -> CounterMask {
        CounterMask(CYCLE_COUNTER | ((1 << product.event_counters()) - 1))
    }

    /// Whether all of `other` are in it.
    pub const fn contains(self, other: CounterMask) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether none is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// As in the registers.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl BitOr for CounterMask {
    type Output = CounterMask;

    fn bitor(self, other: CounterMask) -> CounterMask {
        CounterMask(self.0 | other.0)
    }
}

impl BitOrAssign for CounterMask {
    fn bitor_assign(&mut self, other: CounterMask) {
        self.0 |= other.0;
    }
}

/// Whose transactions the latency events (`AXI_LATENCY_*`) look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// U55 and U65: those of the outstanding-transaction counter with this selector.
    Counter(Selector),
    /// U85: those of these ports.
    Ports(AxiPort),
}

/// The registers of the performance monitor, while somebody has it on.
pub struct Counters<'a> {
    bus: &'a dyn Bus,
    block: PmuBlock,
    product: Product,
}

impl<'a> Counters<'a> {
    pub(crate) fn new(bus: &'a dyn Bus, product: Product) -> Counters<'a> {
        Counters { bus, block: PmuBlock::of(product), product }
    }

    /// The product.
    pub fn product(&self) -> Product {
        self.product
    }

    /// How many event counters there are: 4 on U55 and U65, 8 on U85.
    pub fn number(&self) -> u32 {
        self.product.event_counters()
    }

    fn counter(&self, n: u32) -> Result<u32, PmuError> {
        let counters = self.number();
        if n < counters { Ok(n) } else { Err(PmuError::Counter { found: n, counters }) }
    }

    fn event_number(&self, event: PmuEvent) -> Result<u32, PmuError> {
        let product = self.product;
        event.number(product).map(u32::from).ok_or(PmuError::Event { event, product })
    }

    /// Lets the counters that are enabled count. [`Pmu`] has done so; a hook has to.
    pub fn start(&self) {
        self.control(pmcr::ENABLE);
    }

    /// Stops all counting.
    pub fn stop(&self) {
        let control = self.block.control();
        self.bus.write(control, self.bus.read(control) & !pmcr::ENABLE);
    }

    fn control(&self, set: u32) {
        let control = self.block.control();
        self.bus.write(control, self.bus.read(control) | set);
    }

    /// Lets `NPU_OP_PMU_MASK` in the command stream switch counting on and off, or not.
    pub fn obey_commands(&self, obey: bool) {
        let control = self.block.control();
        let kept = self.bus.read(control) & !pmcr::MASK_ENABLE;
        self.bus.write(control, kept | if obey { pmcr::MASK_ENABLE } else { 0 });
    }

    /// Makes an event counter count an event.
    ///
    /// # Errors
    /// [`PmuError::Counter`], [`PmuError::Event`].
    pub fn set_event(&self, n: u32, event: PmuEvent) -> Result<(), PmuError> {
        let (n, number) = (self.counter(n)?, self.event_number(event)?);
        self.bus.write(self.block.event(n), number);
        Ok(())
    }

    /// What an event counter counts; `None` for a number without a name.
    ///
    /// # Errors
    /// [`PmuError::Counter`].
    pub fn event(&self, n: u32) -> Result<Option<PmuEvent>, PmuError> {
        let number = self.bus.read(self.block.event(self.counter(n)?)) & 0x3FF;
        Ok(PmuEvent::from_number(number as u16, self.product))
    }

    /// Switches counters on.
    pub fn enable(&self, counters: CounterMask) {
        self.bus.write(self.block.enable_set(), counters.0);
    }

    /// Switches counters off.
    pub fn disable(&self, counters: CounterMask) {
        self.bus.write(self.block.enable_clear(), counters.0);
    }

    /// The counters that are on.
    pub fn enabled(&self) -> CounterMask {
        CounterMask(self.bus.read(self.block.enable_set()))
    }

    /// Sets all event counters to zero.
    pub fn reset_events(&self) {
        self.control(pmcr::RESET_EVENTS);
    }

    /// Sets the cycle counter to zero.
    pub fn reset_cycles(&self) {
        self.control(pmcr::RESET_CYCLES);
    }

    /// The cycle counter, read so that its two halves belong together.
    pub fn cycles(&self) -> u64 {
        let low = self.block.cycles();
        let mut high = self.bus.read(low + 4);
        loop {
            let value = self.bus.read(low);
            let again = self.bus.read(low + 4);
            if again == high {
                return (u64::from(high) << 32 | u64::from(value)) & ((1 << CYCLE_BITS) - 1);
            }
            high = again;
        }
    }

    /// Sets the cycle counter; bits above 47 are dropped. It stands still meanwhile.
    pub fn set_cycles(&self, cycles: u64) {
        let low = self.block.cycles();
        let on = self.enabled().contains(CounterMask::CYCLES);
        self.disable(CounterMask::CYCLES);
        self.bus.write(low, cycles as u32);
        self.bus.write(low + 4, (cycles >> 32) as u32 & ((1 << (CYCLE_BITS - 32)) - 1));
        if on {
            self.enable(CounterMask::CYCLES);
        }
    }

    /// An event counter.
    ///
    /// # Errors
    /// [`PmuError::Counter`].
    pub fn count(&self, n: u32) -> Result<u32, PmuError> {
        Ok(self.bus.read(self.block.counter(self.counter(n)?)))
    }

    /// Sets an event counter.
    ///
    /// # Errors
    /// [`PmuError::Counter`].
    pub fn set_count(&self, n: u32, count: u32) -> Result<(), PmuError> {
        self.bus.write(self.block.counter(self.counter(n)?), count);
        Ok(())
    }

    /// Adds one to counters, which stand still meanwhile.
    pub fn increment(&self, counters: CounterMask) {
        let on = self.enabled();
        self.disable(counters);
        if counters.contains(CounterMask::CYCLES) {
            self.set_cycles(self.cycles().wrapping_add(1));
        }
        for n in (0..self.number()).filter(|&n| counters.contains(CounterMask::counter(n))) {
            let register = self.block.counter(n);
            self.bus.write(register, self.bus.read(register).wrapping_add(1));
        }
        self.enable(on);
    }

    /// The counters that have overflowed since their flags were cleared.
    pub fn overflowed(&self) -> CounterMask {
        CounterMask(self.bus.read(self.block.overflow_set()))
    }

    /// Clears overflow flags.
    pub fn clear_overflow(&self, counters: CounterMask) {
        self.bus.write(self.block.overflow_clear(), counters.0);
    }

    /// Makes the overflow of counters interrupt. See [`Interrupt::Notice`](crate::Interrupt::Notice).
    pub fn enable_interrupt(&self, counters: CounterMask) {
        self.bus.write(self.block.interrupt_set(), counters.0);
    }

    /// Makes the overflow of counters not interrupt.
    pub fn disable_interrupt(&self, counters: CounterMask) {
        self.bus.write(self.block.interrupt_clear(), counters.0);
    }

    /// The counters whose overflow interrupts.
    pub fn interrupts(&self) -> CounterMask {
        CounterMask(self.bus.read(self.block.interrupt_set()))
    }

    /// Lets the cycle counter start at one event and stop at another.
    ///
    /// # Errors
    /// [`PmuError::Event`].
    pub fn set_cycle_events(&self, start: PmuEvent, stop: PmuEvent) -> Result<(), PmuError> {
        let (start, stop) = (self.event_number(start)?, self.event_number(stop)?);
        self.bus.write(self.block.cycles_config(), start | stop << 16);
        Ok(())
    }

    /// Selects the transactions that the latency events count: those on a channel, of a counter or port.
    ///
    /// # Errors
    /// [`PmuError::Channel`], [`PmuError::Watch`].
    pub fn watch_latency(&self, channel: Channel, watch: Watch) -> Result<(), PmuError> {
        let product = self.product;
        if !channel.exists_on(product) {
            return Err(PmuError::Channel { channel, product });
        }
        // Core driver 1.0.0, `pmcaxi_chan_r`: CH_SEL in bits 3..0; AXI_CNT_SEL in 9..8, or AXI_SEL in 8 on U85.
        let which = match (watch, product) {
            (Watch::Counter(selector), Product::U55 | Product::U65) => selector.bits(),
            (Watch::Ports(port), Product::U85) => (port == AxiPort::External).into(),
            _ => return Err(PmuError::Watch { watch, product }),
        };
        self.bus.write(self.block.latency_channel(), u32::from(channel.code()) | which << 8);
        Ok(())
    }

    /// `QREAD`: how far into the command stream the NPU is.
    pub fn qread(&self) -> u32 {
        self.bus.read(registers::QREAD)
    }

    /// `STATUS`.
    pub fn status(&self) -> Status {
        Status(self.bus.read(registers::STATUS))
    }
}

impl fmt::Debug for Counters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counters").field("product", &self.product).finish_non_exhaustive()
    }
}

/// How the monitor is set up, to survive a reset.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    control: u32,
    enabled: u32,
    interrupts: u32,
    cycles_config: u32,
    latency_channel: u32,
    events: [u32; MOST_COUNTERS],
}

impl Snapshot {
    pub(crate) fn of(counters: &Counters<'_>) -> Snapshot {
        let Counters { bus, block, .. } = *counters;
        let mut events = [0; MOST_COUNTERS];
        for (n, event) in (0..counters.number()).zip(&mut events) {
            *event = bus.read(block.event(n));
        }
        Snapshot {
            control: bus.read(block.control()) & (pmcr::ENABLE | pmcr::MASK_ENABLE),
            enabled: bus.read(block.enable_set()),
            interrupts: bus.read(block.interrupt_set()),
            cycles_config: bus.read(block.cycles_config()),
            latency_channel: bus.read(block.latency_channel()),
            events,
        }
    }

    pub(crate) fn restore(&self, counters: &Counters<'_>) {
        let Counters { bus, block, .. } = *counters;
        for (n, event) in (0..counters.number()).zip(self.events) {
            bus.write(block.event(n), event);
        }
        bus.write(block.latency_channel(), self.latency_channel);
        bus.write(block.cycles_config(), self.cycles_config);
        bus.write(block.interrupt_set(), self.interrupts);
        bus.write(block.enable_set(), self.enabled);
        bus.write(block.control(), self.control);
    }
}

/// Keeps the performance monitor and the NPU on. It is the NPU meanwhile: jobs are run through it.
///
/// ```
/// # use ethosu_driver::*;
/// # fn example<B: Bus>(npu: &mut Npu<'_, B>, job: &mut Job<'_>) -> Result<(), Box<dyn std::error::Error>> {
/// let mut pmu = npu.pmu()?;
/// pmu.counters().set_event(0, PmuEvent::NpuActive)?;
/// pmu.counters().enable(CounterMask::CYCLES | CounterMask::counter(0));
/// pmu.invoke(job)?;
/// let (cycles, active) = (pmu.counters().cycles(), pmu.counters().count(0)?);
/// # let _ = (cycles, active);
/// # Ok(())
/// # }
/// ```
///
/// A job that goes wrong resets the NPU: then the counters start from zero again, with the same events.
pub struct Pmu<'n, 'd, B: Bus, T: Target = Any, H: Hooks = NoHooks> {
    npu: &'n mut Npu<'d, B, T, H>,
}

impl<'n, 'd, B: Bus, T: Target, H: Hooks> Pmu<'n, 'd, B, T, H> {
    pub(crate) fn start(npu: &'n mut Npu<'d, B, T, H>) -> Pmu<'n, 'd, B, T, H> {
        let all = CounterMask::all(npu.product());
        let counters = npu.counters();
        counters.disable(all);
        counters.disable_interrupt(all);
        counters.clear_overflow(all);
        let control = counters.block.control();
        counters.bus.write(control, pmcr::ENABLE | pmcr::RESET_EVENTS | pmcr::RESET_CYCLES);
        Pmu { npu }
    }

    /// The counters. All are off and zero at first.
    pub fn counters(&self) -> Counters<'_> {
        self.npu.counters()
    }
}

impl<'d, B: Bus, T: Target, H: Hooks> Deref for Pmu<'_, 'd, B, T, H> {
    type Target = Npu<'d, B, T, H>;

    fn deref(&self) -> &Npu<'d, B, T, H> {
        self.npu
    }
}

impl<'d, B: Bus, T: Target, H: Hooks> DerefMut for Pmu<'_, 'd, B, T, H> {
    fn deref_mut(&mut self) -> &mut Npu<'d, B, T, H> {
        self.npu
    }
}

impl<B: Bus, T: Target, H: Hooks> fmt::Debug for Pmu<'_, '_, B, T, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pmu").field(&**self).finish()
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Pmu<'_, '_, B, T, H> {
    fn drop(&mut self) {
        self.npu.stop_forgotten();
        let counters = self.npu.counters();
        counters.disable(CounterMask::all(counters.product));
        self.npu.pmu = false;
        self.npu.forget_monitor();
        self.npu.stop_counting();
        self.npu.release_power();
    }
}
