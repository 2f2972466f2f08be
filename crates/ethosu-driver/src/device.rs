//! An NPU as everything shares it: its registers, its set-up, and what its interrupt told.

use ethosu_isa::registers::{self, Configuration, Identity, Status};
use ethosu_isa::{Accelerator, Product};

use crate::latch::Latch;
use crate::ports::Setup;
use crate::sync::{AtomicU32, Ordering};
use crate::target::{Any, Target};
use crate::{Bus, Config, Hooks, InitError, NoHooks, Npu, ResetError};

/// An NPU: its register block, how it is set up, and what its interrupt handler records.
///
/// A `Device` is what the interrupt handler and the rest of the program both see, so it usually lies in a `static`; without
/// an interrupt handler a local variable does as well. Everything else goes through [`Npu`], of which there is one at a time.
///
/// ```
/// use ethosu_driver::{Bus, Config, Device, target};
/// # struct Registers;
/// # impl Bus for Registers {
/// #     fn read(&self, offset: u32) -> u32 { match offset { 0x28 => 0x3008, 0x24 => 1, _ => 0 } }
/// #     fn write(&self, _: u32, _: u32) {}
/// # }
/// # const fn registers() -> Registers { Registers }
/// // On a chip: `unsafe { Mmio::new(0x4810_2000) }`.
/// static NPU: Device<Registers, target::U55> = Device::new(registers(), Config::new());
///
/// // In the interrupt handler:
/// NPU.on_interrupt();
///
/// // In the program:
/// let npu = NPU.init()?;
/// assert_eq!(npu.info().accelerator.to_string(), "ethos-u55-256");
/// # Ok::<(), ethosu_driver::InitError>(())
/// ```
pub struct Device<B, T: Target = Any, H = NoHooks> {
    pub(crate) bus: B,
    pub(crate) hooks: H,
    pub(crate) config: Config<T>,
    pub(crate) latch: Latch,
    holder: AtomicU32,
}

/// Who has the NPU: nobody.
const FREE: u32 = 0;
/// An owner.
const TAKEN: u32 = 1;
/// It belongs to a pool. With or without an owner: what becomes free in a pool is only to be had there, where somebody may wait.
const POOLED: u32 = 2;

/// What an NPU says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HardwareInfo {
    /// Product and size.
    pub accelerator: Accelerator,
    /// The `CONFIG` register.
    pub configuration: Configuration,
    /// The `ID` register: architecture and release.
    pub identity: Identity,
}

/// What an interrupt was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interrupt {
    /// The job is over, well or not; whoever waits for it was woken.
    JobOver,
    /// A counter overflowed, or a command asked for an interrupt.
    Notice,
    /// Nothing that this driver knows of.
    Spurious,
}

impl<B, T: Target> Device<B, T> {
    const_unless_loom! {
        /// An NPU without hooks. Its registers aren't touched yet.
        pub fn new(bus: B, config: Config<T>) -> Device<B, T> {
            Device { bus, hooks: NoHooks, config, latch: Latch::new(), holder: AtomicU32::new(FREE) }
        }
    }
}

impl<B, T: Target, H> Device<B, T, H> {
    const_unless_loom! {
        /// An NPU with hooks. Its registers aren't touched yet.
        pub fn with_hooks(bus: B, config: Config<T>, hooks: H) -> Device<B, T, H> {
            Device { bus, hooks, config, latch: Latch::new(), holder: AtomicU32::new(FREE) }
        }
    }

    /// The hooks.
    pub fn hooks(&self) -> &H {
        &self.hooks
    }

    /// How the NPU is set up.
    pub fn config(&self) -> &Config<T> {
        &self.config
    }

    fn change(&self, from: u32, to: u32) -> Result<(), u32> {
        self.holder.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    /// Ends an owner's hold; a pool's stays.
    pub(crate) fn give_back(&self) {
        self.holder.fetch_and(!TAKEN, Ordering::AcqRel);
    }

    /// Ends a pool's hold; that of an owner who was forgotten stays.
    pub(crate) fn leave_pool(&self) {
        self.holder.fetch_and(!POOLED, Ordering::AcqRel);
    }
}

impl<B: Bus, T: Target, H: Hooks> Device<B, T, H> {
    /// Finds out which NPU it is, checks that it is the right one, and resets it into the configured security state.
    ///
    /// The [`Npu`] is the only one until it is dropped. What the NPU runs at this moment is stopped: after a restart of the CPU
    /// alone it may still run a job of the life before, and only a reset makes that known to be over. So an NPU that is
    /// shared with another master has to be initialised while that leaves it alone; later, [`Npu::submit`] refuses to run over
    /// the other's jobs.
    ///
    /// # Errors
    /// [`InitError`], and then the NPU is as free as before.
    pub fn init(&self) -> Result<Npu<'_, B, T, H>, InitError> {
        self.init_as(TAKEN)
    }

    /// As [`init`](Device::init), for a pool: nobody else gets it until [`leave_pool`](Device::leave_pool).
    pub(crate) fn init_pooled(&self) -> Result<HardwareInfo, InitError> {
        let npu = self.init_as(POOLED | TAKEN).inspect_err(|error| {
            if !matches!(error, InitError::Taken | InitError::Pooled) {
                self.leave_pool();
            }
        })?;
        Ok(*npu.info())
    }

    fn init_as(&self, holder: u32) -> Result<Npu<'_, B, T, H>, InitError> {
        self.change(FREE, holder).map_err(|found| match found & POOLED {
            0 => InitError::Taken,
            _ => InitError::Pooled,
        })?;
        match self.identify() {
            Ok(info) => {
                let mut npu = Npu::new(self, info);
                npu.reset()?;
                message!(info, "{} is ready", info.accelerator);
                Ok(npu)
            }
            Err(error) => {
                self.give_back();
                message!(error, "{}", error);
                Err(error)
            }
        }
    }

    fn identify(&self) -> Result<HardwareInfo, InitError> {
        // During a reset, such as that of power-up, everything but STATUS reads as zero. One that doesn't end, perhaps because the
        // last owner's went wrong, is begun anew.
        if self.reset_end().is_err() {
            self.bus.write(registers::RESET, self.config.protection.word());
            self.reset_end()?;
        }
        let configuration = Configuration(self.bus.read(registers::CONFIG));
        let identity = Identity(self.bus.read(registers::ID));
        let accelerator = Accelerator::from_config_word(configuration.0).map_err(InitError::NoNpu)?;
        let found = accelerator.product();
        if let Some(expected) = T::PRODUCT.filter(|expected| *expected != found) {
            return Err(InitError::Product { found, expected });
        }
        match self.config.accelerator {
            Some(expected) if expected != accelerator => {
                return Err(InitError::Accelerator { found: accelerator, expected });
            }
            _ => {}
        }
        Setup::check(&self.config.ports, accelerator)?;
        Ok(HardwareInfo { accelerator, configuration, identity })
    }

    /// Waits until no reset is under way.
    pub(crate) fn reset_end(&self) -> Result<(), ResetError> {
        let mut status = Status(0);
        for _ in 0..self.config.reset_polls.max(1) {
            status = self.status();
            if !status.has(Status::RESETTING) {
                return Ok(());
            }
        }
        Err(ResetError::TimeOut { status, polls: self.config.reset_polls })
    }

    /// An owner out of its pool: `None` if it is in use. `info` is from [`init_pooled`](Device::init_pooled).
    pub(crate) fn attach(&self, info: HardwareInfo) -> Option<Npu<'_, B, T, H>> {
        self.change(POOLED, POOLED | TAKEN).ok().map(|()| Npu::new(self, info))
    }

    /// The `STATUS` register.
    pub fn status(&self) -> Status {
        Status(self.bus.read(registers::STATUS))
    }

    /// The product, a constant where the target fixes it.
    pub(crate) fn product(&self, found: Accelerator) -> Product {
        T::PRODUCT.unwrap_or(found.product())
    }

    /// To be called by the handler of the NPU's interrupt, on any core: clears the interrupt, records what it was for and
    /// wakes who waits. Decisions are left to the NPU's owner.
    ///
    /// Calling it at any other time does no harm.
    pub fn on_interrupt(&self) -> Interrupt {
        let notice = self.status();
        if notice.has(Status::PMU_IRQ) {
            self.latch.set_overflow();
        }
        loop {
            let seen = self.latch.observe();
            // First clear, then look: an end that comes between the two is seen, one that comes later interrupts again.
            self.clear_interrupt();
            let status = self.status();
            if status.is_over() && self.latch.begin_record(seen) {
                self.latch.record(seen, status, self.bus.read(registers::QREAD));
                self.hooks.notify();
                return Interrupt::JobOver;
            }
            // A job that began meanwhile may have had its interrupt cleared here: look again.
            if self.latch.observe() == seen {
                break;
            }
        }
        if notice.has(Status::PMU_IRQ) {
            self.hooks.notify();
        }
        if notice.has(Status::PMU_IRQ) || notice.has(Status::IRQ) && notice.has(Status::RUNNING) {
            Interrupt::Notice
        } else {
            Interrupt::Spurious
        }
    }

    /// Clears the interrupt and leaves the power bits of `CMD` as the owner wants them, even where the owner changes them on
    /// another core at this moment.
    pub(crate) fn clear_interrupt(&self) {
        loop {
            let power = self.latch.power();
            self.bus.write(registers::CMD, power | registers::command::CLEAR_IRQ);
            if self.latch.power() == power {
                return;
            }
        }
    }
}

impl<B, T: Target, H> core::fmt::Debug for Device<B, T, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Device")
            .field("config", &self.config)
            .field("taken", &(self.holder.load(Ordering::Relaxed) & TAKEN != 0))
            .finish_non_exhaustive()
    }
}
