//! The one owner of an NPU: switches it on and off, and starts jobs.

use core::ops::{Deref, DerefMut};
use core::time::Duration;

use ethosu_isa::Product;
use ethosu_isa::registers::{self, PmuBlock, Protection, REGIONS, Status, command};

use crate::check::{self, Prepared};
use crate::device::{Device, HardwareInfo};
use crate::pmu::{Counters, Pmu, Snapshot};
use crate::ports::{Setup, set_up};
use crate::sync::{Ordering, fence};
use crate::target::{Any, Target};
use crate::{
    Bus, Clock, Completion, Hooks, InvokeError, Job, JobError, NoHooks, PmuError, ResetError, Running,
    SubmitError,
};

/// An NPU that is ready, and its only owner. Jobs are started here.
///
/// Dropping it stops a job that was left running, switches the NPU off and makes it free for the next owner.
pub struct Npu<'d, B: Bus, T: Target = Any, H: Hooks = NoHooks> {
    pub(crate) device: &'d Device<B, T, H>,
    info: HardwareInfo,
    /// Requests to keep the NPU on: each guard and each job is one.
    power: u32,
    /// The last reset went wrong, so the NPU isn't as set up.
    must_reset: bool,
    /// A [`Pmu`] guard is there.
    pub(crate) pmu: bool,
    /// How the guard's owner has set the monitor up, while the registers can't be trusted with it: from a job's start to its
    /// end, and from a reset that went wrong to one that went well.
    monitor: Option<Snapshot>,
}

impl<'d, B: Bus, T: Target, H: Hooks> Npu<'d, B, T, H> {
    pub(crate) fn new(device: &'d Device<B, T, H>, info: HardwareInfo) -> Npu<'d, B, T, H> {
        Npu { device, info, power: 0, must_reset: false, pmu: false, monitor: None }
    }

    /// What the NPU says about itself.
    pub fn info(&self) -> &HardwareInfo {
        &self.info
    }

    pub(crate) fn product(&self) -> Product {
        self.device.product(self.info.accelerator)
    }

    /// Checks a job as [`submit`](Npu::submit) does, and runs nothing.
    ///
    /// # Errors
    /// [`JobError`]: why it would be refused.
    pub fn check(&self, job: &Job<'_>) -> Result<(), JobError> {
        self.prepare(job).map(|_| ())
    }

    fn prepare(&self, job: &Job<'_>) -> Result<Prepared, JobError> {
        check::check(job, &self.info, self.product(), &self.device.config, &self.device.hooks)
    }

    /// Runs a job and waits until it is over, however long that takes.
    ///
    /// # Errors
    /// [`InvokeError`]: it was refused, or went wrong.
    pub fn invoke(&mut self, job: &mut Job<'_>) -> Result<Completion, InvokeError> {
        Ok(self.submit(job)?.wait()?)
    }

    /// Runs a job and waits until it is over, but not longer than `limit`.
    ///
    /// # Errors
    /// [`InvokeError`]: it was refused, went wrong or took too long.
    pub fn invoke_within(
        &mut self,
        job: &mut Job<'_>,
        limit: Duration,
        clock: &impl Clock,
    ) -> Result<Completion, InvokeError> {
        Ok(self.submit(job)?.wait_within(limit, clock)?)
    }

    /// Starts a job.
    ///
    /// # Errors
    /// [`SubmitError`]: it didn't start.
    pub fn submit<'n>(&'n mut self, job: &'n mut Job<'_>) -> Result<Running<'n, 'd, B, T, H>, SubmitError> {
        self.start(job, None)
    }

    /// Starts a job, with an argument for [`Hooks::begin`] and [`Hooks::end`].
    ///
    /// # Errors
    /// [`SubmitError`]: it didn't start, and neither hook was called.
    pub fn submit_with<'n>(
        &'n mut self,
        job: &'n mut Job<'_>,
        argument: &'n mut H::Argument,
    ) -> Result<Running<'n, 'd, B, T, H>, SubmitError> {
        self.start(job, Some(argument))
    }

    fn start<'n>(
        &'n mut self,
        job: &'n mut Job<'_>,
        mut argument: Option<&'n mut H::Argument>,
    ) -> Result<Running<'n, 'd, B, T, H>, SubmitError> {
        self.stop_forgotten();
        let prepared = match self.prepare(job) {
            Ok(prepared) => prepared,
            Err(error) => {
                message!(warn, "job refused: {}", error);
                return Err(error.into());
            }
        };
        // Before the first request for power, which resets whatever runs.
        self.check_unoccupied()?;
        let hooks = &self.device.hooks;
        hooks.clean(prepared.stream);
        for region in prepared.regions.iter().flatten() {
            hooks.clean(region.span);
        }
        self.request_power()?;
        if let Err(error) = self.check_idle() {
            self.release_power();
            return Err(error);
        }
        let closing = Closing { npu: self, stands: true };
        closing.npu.device.hooks.begin(&closing.npu.counters(), argument.as_deref_mut());
        core::mem::forget(closing);
        self.monitor = self.pmu.then(|| Snapshot::of(&self.counters()));
        self.program(&prepared);
        Ok(Running::new(self, prepared, job.commands(), argument))
    }

    /// Whether the NPU runs nothing; gives `STATUS`.
    fn check_unoccupied(&self) -> Result<Status, ResetError> {
        let status = self.device.status();
        if status.has(Status::RUNNING) {
            message!(error, "the NPU runs something else, STATUS {}", status.0);
            return Err(ResetError::Occupied { status });
        }
        Ok(status)
    }

    /// Refuses to start over something that another master has started.
    fn check_idle(&mut self) -> Result<(), SubmitError> {
        let status = self.check_unoccupied()?;
        let protection = Protection::from_word(self.device.bus.read(registers::PROT));
        if status.faults() != 0
            || status.has(Status::RESETTING)
            || protection != self.device.config.protection
        {
            self.reset()?;
        }
        Ok(())
    }

    fn program(&self, prepared: &Prepared) {
        let (bus, latch) = (&self.device.bus, &self.device.latch);
        let wide = self.product().address_bits() > 32;
        let address = |offset, value: u64| {
            bus.write(offset, value as u32);
            if wide {
                bus.write(offset + 4, (value >> 32) as u32);
            }
        };
        // This also clears the end of the last job from STATUS, which has to happen before the latch is armed.
        address(registers::QBASE, prepared.qbase);
        bus.write(registers::QSIZE, prepared.qsize);
        bus.write(registers::QCONFIG, prepared.qconfig);
        for (offset, region) in (registers::BASEP..).step_by(8).zip(&prepared.regions) {
            address(offset, region.map_or(0, |region| region.basep));
        }
        bus.write(registers::REGIONCFG, prepared.regioncfg);
        let _ = latch.take_overflow();
        latch.arm();
        // What the CPU has written to memory comes before the NPU's start.
        fence(Ordering::SeqCst);
        bus.write(registers::CMD, latch.power() | command::RUN);
    }

    /// Looks for a register that isn't as the driver left it: the work of another master. Name, what is found, what was written.
    pub(crate) fn interference(&self, prepared: &Prepared) -> Option<(&'static str, u64, u64)> {
        const BASEP: [&str; REGIONS] =
            ["BASEP0", "BASEP1", "BASEP2", "BASEP3", "BASEP4", "BASEP5", "BASEP6", "BASEP7"];
        let Device { bus, config, .. } = self.device;
        if !config.read_back {
            return None;
        }
        let wide = self.product().address_bits() > 32;
        let address = |offset| {
            let high = if wide { bus.read(offset + 4) } else { 0 };
            u64::from(bus.read(offset)) | u64::from(high) << 32
        };
        let mut differs = None;
        let mut compare = |name, found: u64, expected: u64| {
            if found != expected && differs.is_none() {
                differs = Some((name, found, expected));
            }
        };
        compare("PROT", (bus.read(registers::PROT) & 3).into(), config.protection.word().into());
        compare("QBASE", address(registers::QBASE), prepared.qbase);
        compare("QSIZE", bus.read(registers::QSIZE).into(), prepared.qsize.into());
        compare("QCONFIG", (bus.read(registers::QCONFIG) & 3).into(), prepared.qconfig.into());
        let bases = (registers::BASEP..).step_by(8).zip(BASEP);
        for ((offset, name), region) in bases.zip(&prepared.regions) {
            compare(name, address(offset), region.map_or(0, |region| region.basep));
        }
        compare("REGIONCFG", (bus.read(registers::REGIONCFG) & 0xFFFF).into(), prepared.regioncfg.into());
        config.ports.words(self.info.accelerator, &mut |offset, expected| {
            compare(register_name(offset, self.product()), bus.read(offset).into(), expected.into());
        });
        differs
    }

    /// Stops a job whose guard was forgotten instead of dropped, and takes its power request back. Its argument and its memory
    /// are gone, so [`Hooks::end`] gets none, and no cache is invalidated.
    pub(crate) fn stop_forgotten(&mut self) {
        if self.device.latch.is_armed() {
            message!(warn, "a job was forgotten; stopping it, STATUS {}", self.device.status().0);
            let _ = self.device.latch.claim();
            self.device.latch.clear_waker();
            let closing = Closing { npu: self, stands: false };
            closing.npu.device.hooks.end(&closing.npu.counters(), None);
        }
    }

    /// Resets the NPU into its security state and sets its ports up. Guards stay valid, and counters' events too; what
    /// they have counted is lost.
    ///
    /// # Errors
    /// [`ResetError`]; the next job tries again.
    pub fn reset(&mut self) -> Result<(), ResetError> {
        self.stop_forgotten();
        self.reset_keeping_monitor()
    }

    pub(crate) fn reset_keeping_monitor(&mut self) -> Result<(), ResetError> {
        let counters = Counters::new(&self.device.bus, self.product());
        let saved = self.monitor.take();
        let snapshot = self.pmu.then(|| saved.unwrap_or_else(|| Snapshot::of(&counters)));
        let result = self.reset_registers();
        self.must_reset = result.is_err();
        match (&result, snapshot) {
            (Ok(()), Some(snapshot)) => snapshot.restore(&self.counters()),
            (Ok(()), None) => {}
            (Err(error), snapshot) => {
                message!(error, "{}", error);
                self.monitor = snapshot;
            }
        }
        result
    }

    /// The registers of the monitor are to be believed again.
    pub(crate) fn forget_monitor(&mut self) {
        self.monitor = None;
    }

    fn reset_registers(&self) -> Result<(), ResetError> {
        let Device { bus, config, .. } = self.device;
        bus.write(registers::RESET, config.protection.word());
        self.device.reset_end()?;
        let found = Protection::from_word(bus.read(registers::PROT));
        if found != config.protection {
            return Err(ResetError::Protection { found, expected: config.protection });
        }
        set_up(&config.ports, self.info.accelerator, bus);
        // After a reset the NPU is on until CMD is written.
        self.write_power();
        Ok(())
    }

    fn write_power(&self) {
        let bits = if self.power > 0 { 0 } else { command::CLOCK_Q | command::POWER_Q };
        self.device.latch.set_power(bits);
        self.device.bus.write(registers::CMD, bits);
    }

    /// The first request resets the NPU: nothing is known of what it held while it was off.
    pub(crate) fn request_power(&mut self) -> Result<(), ResetError> {
        let first = self.power == 0;
        if first {
            self.check_unoccupied()?;
        }
        self.power += 1;
        let result = if first || self.must_reset { self.reset_keeping_monitor() } else { Ok(()) };
        if result.is_err() {
            self.release_power();
        }
        result
    }

    pub(crate) fn release_power(&mut self) {
        self.power = self.power.saturating_sub(1);
        if self.power == 0 {
            self.write_power();
        }
    }

    /// How many guards and jobs keep the NPU on.
    pub fn power_requests(&self) -> u32 {
        self.power
    }

    /// Keeps the NPU on while the guard lives. Jobs that run meanwhile needn't reset it first.
    ///
    /// # Errors
    /// [`ResetError`]: it couldn't be switched on.
    pub fn keep_on(&mut self) -> Result<Powered<'_, 'd, B, T, H>, ResetError> {
        self.stop_forgotten();
        self.request_power()?;
        Ok(Powered { npu: self })
    }

    /// Switches the performance monitor on, and the NPU, while the guard lives. Jobs are run through the guard.
    ///
    /// # Errors
    /// [`PmuError`]: it is on already, or the NPU couldn't be switched on.
    pub fn pmu(&mut self) -> Result<Pmu<'_, 'd, B, T, H>, PmuError> {
        self.stop_forgotten();
        if self.pmu {
            return Err(PmuError::InUse);
        }
        self.request_power()?;
        self.pmu = true;
        Ok(Pmu::start(self))
    }

    pub(crate) fn counters(&self) -> Counters<'_> {
        Counters::new(&self.device.bus, self.product())
    }

    /// Switches counting off after a job, unless a guard has it on.
    pub(crate) fn stop_counting(&self) {
        if !self.pmu {
            self.device.bus.write(PmuBlock::of(self.product()).control(), 0);
        }
    }

    /// Whether a counter that interrupts has overflowed since the last call, or since the last job began.
    pub fn take_counter_overflow(&mut self) -> bool {
        self.device.latch.take_overflow()
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Npu<'_, B, T, H> {
    fn drop(&mut self) {
        /// What has to happen even if a hook panics.
        struct Leaving<'n, 'd, B: Bus, T: Target, H: Hooks>(&'n mut Npu<'d, B, T, H>);

        impl<B: Bus, T: Target, H: Hooks> Drop for Leaving<'_, '_, B, T, H> {
            fn drop(&mut self) {
                let npu = &mut *self.0;
                npu.pmu = false;
                npu.monitor = None;
                npu.power = 0;
                if npu.device.status().has(Status::RUNNING) {
                    // A job of another master's: the next owner gets an NPU that stands still.
                    let _ = npu.reset_keeping_monitor();
                }
                npu.stop_counting();
                npu.write_power();
                npu.device.give_back();
            }
        }

        Leaving(self).0.stop_forgotten();
    }
}

/// Ends a job's hold on the NPU, also when a hook panics in between: what may still run is reset, counting is switched off and
/// the power request taken back.
pub(crate) struct Closing<'n, 'd, B: Bus, T: Target, H: Hooks> {
    pub(crate) npu: &'n mut Npu<'d, B, T, H>,
    /// Whether the NPU surely stands still.
    pub(crate) stands: bool,
}

impl<B: Bus, T: Target, H: Hooks> Closing<'_, '_, B, T, H> {
    /// Resets the NPU, which then stands still if anything can make it.
    pub(crate) fn reset(&mut self) -> Result<(), ResetError> {
        self.stands = true;
        self.npu.reset_keeping_monitor()
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Closing<'_, '_, B, T, H> {
    fn drop(&mut self) {
        self.npu.stop_counting();
        if !self.stands {
            let _ = self.reset();
        }
        self.npu.release_power();
    }
}

/// What a register of the ports is called.
fn register_name(offset: u32, product: Product) -> &'static str {
    let names = match product {
        Product::U55 | Product::U65 => ["AXI_LIMIT0", "AXI_LIMIT1", "AXI_LIMIT2", "AXI_LIMIT3"],
        Product::U85 => ["MEM_ATTR0", "MEM_ATTR1", "MEM_ATTR2", "MEM_ATTR3"],
    };
    match offset {
        registers::AXI_SRAM => "AXI_SRAM",
        registers::AXI_EXT => "AXI_EXT",
        registers::POWER_CTRL => "POWER_CTRL",
        _ => {
            let index = offset.wrapping_sub(registers::AXI_LIMIT) / 4;
            names.get(index as usize).copied().unwrap_or("a port register")
        }
    }
}

impl<B: Bus, T: Target, H: Hooks> core::fmt::Debug for Npu<'_, B, T, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Npu").field("info", &self.info).field("power", &self.power).finish_non_exhaustive()
    }
}

/// Keeps an NPU on. It is the NPU meanwhile: jobs are run through it.
pub struct Powered<'n, 'd, B: Bus, T: Target = Any, H: Hooks = NoHooks> {
    npu: &'n mut Npu<'d, B, T, H>,
}

impl<'d, B: Bus, T: Target, H: Hooks> Deref for Powered<'_, 'd, B, T, H> {
    type Target = Npu<'d, B, T, H>;

    fn deref(&self) -> &Npu<'d, B, T, H> {
        self.npu
    }
}

impl<'d, B: Bus, T: Target, H: Hooks> DerefMut for Powered<'_, 'd, B, T, H> {
    fn deref_mut(&mut self) -> &mut Npu<'d, B, T, H> {
        self.npu
    }
}

impl<B: Bus, T: Target, H: Hooks> core::fmt::Debug for Powered<'_, '_, B, T, H> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Powered").field(&**self).finish()
    }
}

impl<B: Bus, T: Target, H: Hooks> Drop for Powered<'_, '_, B, T, H> {
    fn drop(&mut self) {
        self.npu.stop_forgotten();
        self.npu.release_power();
    }
}
