//! The way to an NPU's registers.

/// Reads and writes the registers of one NPU.
///
/// Implementations take `&self`, because the interrupt handler and the owner of the NPU both reach the registers; the
/// driver's own order of accesses makes that safe. A read or write is one 32-bit access that is neither left out, repeated nor
/// moved past another one.
///
/// What an implementation may rely on:
///
/// * Offsets are multiples of 4 below [`register_bytes`](crate::Product::register_bytes) of the product that `CONFIG` names, and
///   only of registers which that product has. Until that is known, only `STATUS`, `RESET`, `CONFIG` and `ID` are accessed.
/// * `STATUS`, `QREAD` and `CMD` may be accessed from the interrupt handler at any moment, on any core; every other register only by
///   the NPU's owner.
/// * A job whose [`Running`](crate::Running) guard was dropped doesn't run any more, unless its reset failed. A job whose guard was
///   *forgotten* does, and its memory may be somebody else's by then. So an implementation that is itself an NPU, reaching memory
///   by address, has the contract of [`Mmio::new`](crate::Mmio::new) to hand on to its user; it can't be a safe function.
pub trait Bus {
    /// Reads the register at `offset` bytes from the start of the block.
    fn read(&self, offset: u32) -> u32;

    /// Writes the register at `offset` bytes from the start of the block.
    fn write(&self, offset: u32, value: u32);
}

impl<B: Bus + ?Sized> Bus for &B {
    fn read(&self, offset: u32) -> u32 {
        (**self).read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        (**self).write(offset, value);
    }
}
