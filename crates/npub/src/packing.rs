//! How runtime regions lie in the arena.

use crate::layout::{ALIGN, round_up};

/// How runtime regions are dealt from an arena: one after the other, each at a multiple of 16, unless it is told otherwise.
///
/// ```
/// # let bytes = { let mut b = npub::BlobBuilder::new(npub::Accel::u55(256)); b.commands(&[0]);
/// #     b.runtime(npub::Role::Scratch, 40); b.runtime(npub::Role::Input, 8); b.build().unwrap() };
/// use npub::{Blob, Packing};
///
/// let blob = Blob::parse(&bytes)?;
/// assert_eq!(blob.arena_bytes(), 48 + 8);
/// // No line of a data cache with lines of 32 bytes belongs to two regions, or to a region and what follows the arena.
/// assert_eq!(blob.arena_bytes_with(Packing::new().aligned(32)), 64 + 32);
/// # Ok::<(), npub::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packing {
    align: u32,
    elsewhere: u8,
}

impl Packing {
    /// At multiples of 16, all regions.
    pub const fn new() -> Packing {
        Packing { align: ALIGN, elsewhere: 0 }
    }

    /// At multiples of `bytes` (of the next power of two, and at least 16), with whole multiples for each region: for a CPU
    /// whose data cache has lines of so many bytes. The arena has to start at such a multiple as well.
    pub const fn aligned(mut self, bytes: u32) -> Packing {
        let most = 1 << 31;
        self.align = if bytes > most {
            most
        } else if bytes > ALIGN {
            bytes.next_power_of_two()
        } else {
            ALIGN
        };
        self
    }

    /// Without the runtime region in `slot`, and what shares its memory: the caller has memory for it elsewhere.
    pub const fn without(mut self, slot: u8) -> Packing {
        if slot < 8 {
            self.elsewhere |= 1 << slot;
        }
        self
    }

    /// The alignment in bytes.
    pub const fn alignment(self) -> u32 {
        self.align
    }

    pub(crate) const fn deals(self, slot: u8) -> bool {
        slot >= 8 || self.elsewhere & 1 << slot == 0
    }

    pub(crate) const fn align_up(self, offset: u64) -> u64 {
        round_up(offset, self.align)
    }

    /// The bytes that a region takes up. At the format's own alignment the last one needs no padding.
    pub(crate) const fn room(self, size: u32) -> u64 {
        if self.align > ALIGN { self.align_up(size as u64) } else { size as u64 }
    }
}

impl Default for Packing {
    fn default() -> Packing {
        Packing::new()
    }
}
