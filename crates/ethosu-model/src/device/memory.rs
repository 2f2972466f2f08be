//! The memory behind the NPU's ports.

use std::sync::{Arc, Mutex, PoisonError};

/// What an NPU reads and writes: the system's address space.
pub trait SystemMemory {
    /// Whether there is memory at all of these addresses, and it can be written if `write` is set. Where there isn't, the bus
    /// aborts an access.
    fn has(&self, address: u64, bytes: u64, write: bool) -> bool;

    /// Reads memory of which [`has`](SystemMemory::has) said that it's there.
    fn read(&self, address: u64, into: &mut [u8]);

    /// Writes memory of which [`has`](SystemMemory::has) said that it's there and can be written.
    fn write(&mut self, address: u64, from: &[u8]);
}

/// A piece of memory.
#[derive(Debug, Clone)]
struct Bank {
    base: u64,
    bytes: Vec<u8>,
    writable: bool,
}

/// Memory in pieces: SRAM, flash and so on. An access has to lie in one of them.
///
/// ```
/// use ethosu_model::device::{Banks, SystemMemory};
/// let mut banks = Banks::new();
/// banks.ram(0x2000_0000, 256);
/// banks.rom(0x3800_0000, vec![7; 16]);
/// assert!(banks.has(0x2000_00F0, 16, true) && !banks.has(0x2000_00F0, 17, true));
/// assert!(banks.has(0x3800_0000, 16, false) && !banks.has(0x3800_0000, 16, true));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Banks {
    banks: Vec<Bank>,
}

impl Banks {
    /// No memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds zeroed memory.
    pub fn ram(&mut self, base: u64, bytes: usize) {
        self.banks.push(Bank { base, bytes: vec![0; bytes], writable: true });
    }

    /// Adds memory that can't be written by the NPU.
    pub fn rom(&mut self, base: u64, bytes: Vec<u8>) {
        self.banks.push(Bank { base, bytes, writable: false });
    }

    fn find(&self, address: u64, bytes: u64) -> Option<(usize, usize)> {
        self.banks.iter().enumerate().find_map(|(index, bank)| {
            let offset = address.checked_sub(bank.base)?;
            let end = offset.checked_add(bytes)?;
            (end <= bank.bytes.len() as u64).then_some((index, offset as usize))
        })
    }

    /// Bytes at an address, if they all lie in one piece.
    pub fn bytes(&self, address: u64, bytes: usize) -> Option<&[u8]> {
        let (index, offset) = self.find(address, bytes as u64)?;
        Some(&self.banks[index].bytes[offset..offset + bytes])
    }

    /// Bytes at an address, as a CPU or debugger writes them, if they all lie in one piece.
    pub fn bytes_mut(&mut self, address: u64, bytes: usize) -> Option<&mut [u8]> {
        let (index, offset) = self.find(address, bytes as u64)?;
        Some(&mut self.banks[index].bytes[offset..offset + bytes])
    }
}

impl SystemMemory for Banks {
    fn has(&self, address: u64, bytes: u64, write: bool) -> bool {
        self.find(address, bytes).is_some_and(|(index, _)| !write || self.banks[index].writable)
    }

    fn read(&self, address: u64, into: &mut [u8]) {
        if let Some(bytes) = self.bytes(address, into.len()) {
            into.copy_from_slice(bytes);
        }
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        if let Some(bytes) = self.bytes_mut(address, from.len()) {
            bytes.copy_from_slice(from);
        }
    }
}

/// Memory that several NPUs and the program share.
impl<M: SystemMemory> SystemMemory for Arc<Mutex<M>> {
    fn has(&self, address: u64, bytes: u64, write: bool) -> bool {
        self.lock().unwrap_or_else(PoisonError::into_inner).has(address, bytes, write)
    }

    fn read(&self, address: u64, into: &mut [u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).read(address, into);
    }

    fn write(&mut self, address: u64, from: &[u8]) {
        self.lock().unwrap_or_else(PoisonError::into_inner).write(address, from);
    }
}
