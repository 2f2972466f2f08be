//! A register block that is mapped into memory: the only place here with unsafe code.
#![allow(unsafe_code)]

use core::ptr;

use crate::Bus;

/// The register block of an NPU at a fixed address.
///
/// ```no_run
/// use ethosu_driver::{Config, Device, Mmio, target};
///
/// // SAFETY: the register block of the Corstone-300's Ethos-U55, which nothing else uses.
/// let bus = unsafe { Mmio::new(0x4810_2000) };
/// let device: Device<Mmio, target::U55> = Device::new(bus, Config::new());
/// ```
#[derive(Debug)]
pub struct Mmio {
    base: usize,
}

impl Mmio {
    /// The block that starts at address `base`.
    ///
    /// # Safety
    ///
    /// * From `base` on lie the registers of an Ethos-U ([`register_bytes`](ethosu_isa::Product::register_bytes) of them),
    ///   mapped as device memory, for as long as this value or a copy of its address is in use. `base` is a multiple of 4.
    /// * Nothing else accesses them: there is one `Mmio` for a block.
    /// * An NPU reads and writes memory on its own. Where a job is given *addresses* (see
    ///   [`Region::At`](crate::Region::At)), they name memory that the NPU may read, and write where the job writes, while
    ///   the job runs.
    /// * Commands stay inside their regions. The driver checks that before they run, by what each map, stream and transfer
    ///   covers (`npukit inspect` shows the bytes that a blob's commands reach), with these exceptions, which no compiler makes
    ///   and which are trusted: transfers of several rows on a U65, of which only the first is known, and U85 maps of three
    ///   tiles, of which only the first element is. Registers that the commands leave unset count as zero.
    /// * Where a job borrows memory, its [`Running`](crate::Running) guard is not forgotten ([`core::mem::forget`]) while the
    ///   memory lives on; dropping it is always fine. Nor is the [`Npu`](crate::Npu) or a
    ///   [`Reserved`](crate::Reserved) forgotten after that happened. If a reset failed ([`Fault::recovery`](crate::Fault)), the
    ///   NPU may still run, and the job's memory is left alone until one goes well.
    pub const unsafe fn new(base: usize) -> Mmio {
        Mmio { base }
    }

    /// Where the block starts.
    pub const fn base(&self) -> usize {
        self.base
    }

    fn register(&self, offset: u32) -> *mut u32 {
        ptr::with_exposed_provenance_mut(self.base + offset as usize)
    }
}

impl Bus for Mmio {
    fn read(&self, offset: u32) -> u32 {
        // SAFETY: `new`'s contract: the block is there, and the driver only uses offsets of registers inside it.
        unsafe { ptr::read_volatile(self.register(offset)) }
    }

    fn write(&self, offset: u32, value: u32) {
        // SAFETY: as in `read`.
        unsafe { ptr::write_volatile(self.register(offset), value) }
    }
}
