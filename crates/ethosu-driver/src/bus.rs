//! The way to an NPU's registers.

/// Reads and writes the registers of one NPU.
///
/// Implementations take `&self`, because the interrupt handler and the owner of the NPU both reach the registers; the
/// driver's own order of accesses makes that safe. A read or write is one 32-bit access that is neither left out, repeated nor
/// moved past another one.
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
