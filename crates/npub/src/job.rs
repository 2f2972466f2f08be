//! Loading: from a blob and an arena to the addresses that the NPU's registers take.

use core::fmt;

use crate::blob::ArenaCursor;
use crate::layout::{ALIGN, MAX_REGIONS};
use crate::packing::Packing;
use crate::region::Storage;
use crate::{Accel, Blob, Error, Framing, Place};

/// The memory that the runtime regions are dealt from, in the NPU's address space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arena {
    /// Its first byte's address. A multiple of 16, or the job reports it.
    pub base: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// What the NPU needs to run: addresses, nothing owned, nothing borrowed.
///
/// Two things are reported here rather than refused: a command stream or region that isn't aligned
/// ([`misaligned`](Job::misaligned)), and an accelerator other than the caller's ([`accel_match`](Job::accel_match)).
/// A driver refuses both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
#[must_use]
pub struct Job {
    /// Address of the first command word, for QBASE. Framing, if any, is behind.
    pub command_address: u64,
    /// The same, in bytes from the blob's first.
    pub command_offset: u32,
    /// Length of the bare command stream in bytes, for QSIZE.
    pub command_bytes: u32,
    /// What was around the command words in the blob.
    pub framing: Framing,
    /// How many of the slots are in use.
    pub region_count: u8,
    /// Address of each region, for BASEP; 0 in slots not in use.
    pub region_base: [u64; MAX_REGIONS],
    /// Length of each region in bytes; 0 in slots not in use.
    pub region_size: [u32; MAX_REGIONS],
    /// The accelerator that the commands were compiled for.
    pub accel: Accel,
    /// How that compares with the one the caller has.
    pub accel_match: AccelMatch,
    /// How much of the arena is in use.
    pub arena_bytes: u64,
    blob_base: u64,
    arena_base: u64,
    origins: [Origin; MAX_REGIONS],
    packing: Packing,
}

/// Where a region's memory comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    /// Nowhere: the slot isn't in use, or the caller has memory for it.
    None,
    Blob,
    Arena,
}

/// The accelerator a blob was compiled for, compared with the one that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccelMatch {
    /// The caller didn't say which one it has.
    NotAsked,
    /// The blob doesn't say which one it is for.
    Unknown,
    /// The same.
    Same,
    /// Another one: the commands would run wrong or not at all.
    Differs {
        /// The blob's.
        found: Accel,
        /// The caller's.
        expected: Accel,
    },
}

/// An address that the NPU won't take because it isn't a multiple of 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misaligned {
    /// What starts there.
    pub what: Misplaced,
    /// Address of the blob or of the arena.
    pub base: u64,
    /// Bytes from there.
    pub offset: u64,
}

/// What starts at a misaligned address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    /// The command stream.
    Commands,
    /// The region in this slot.
    Region(u8),
}

/// Checks a blob and turns its regions into addresses; shorthand for what a loader on the target does.
///
/// `blob_base` is the address at which the NPU sees `blob`'s first byte. `expected` is the accelerator that is there,
/// if the caller knows. Nothing is written: what comes back is the whole effect.
///
/// # Errors
/// Any [`Error`], in the order of the NPU1 format document, section 4.2.
pub fn load(blob: &[u8], blob_base: u64, arena: Arena, expected: Option<Accel>) -> Result<Job, Error> {
    load_with(blob, blob_base, arena, expected, Packing::new())
}

/// [`load`] with regions that are packed in another way. [`Blob::arena_bytes_with`] says how much arena that takes.
///
/// # Errors
/// As [`load`].
pub fn load_with(
    blob: &[u8],
    blob_base: u64,
    arena: Arena,
    expected: Option<Accel>,
    packing: Packing,
) -> Result<Job, Error> {
    let mut cursor = ArenaCursor::new(packing);
    let blob = Blob::parse_with(blob, |slot, region| match region.storage() {
        Storage::Runtime => cursor.take(slot, region, arena.bytes).map(|_| ()),
        _ => Ok(()),
    })?;
    blob.bind_with(blob_base, arena, expected, packing)
}

impl Blob<'_> {
    /// [`load`] for a blob that has been parsed before.
    ///
    /// # Errors
    /// [`Error::Arena`], [`Error::Address`].
    pub fn bind(&self, blob_base: u64, arena: Arena, expected: Option<Accel>) -> Result<Job, Error> {
        self.bind_with(blob_base, arena, expected, Packing::new())
    }

    /// [`load_with`] for a blob that has been parsed before.
    ///
    /// # Errors
    /// As [`bind`](Blob::bind).
    pub fn bind_with(
        &self,
        blob_base: u64,
        arena: Arena,
        expected: Option<Accel>,
        packing: Packing,
    ) -> Result<Job, Error> {
        within_address_space(blob_base, self.bytes().len() as u64)?;
        within_address_space(arena.base, arena.bytes)?;
        let mut region_base = [0; MAX_REGIONS];
        let mut region_size = [0; MAX_REGIONS];
        let mut origins = [Origin::None; MAX_REGIONS];
        let mut cursor = ArenaCursor::new(packing);
        for (slot, region) in (0u8..).zip(self.regions()) {
            let (base, origin) = match region.storage() {
                Storage::Runtime => match cursor.take(slot, region, arena.bytes)? {
                    Some(offset) => (arena.base + offset, Origin::Arena),
                    None => (0, Origin::None),
                },
                Storage::Baked { offset } | Storage::Tensors { offset } => {
                    (blob_base + u64::from(offset), Origin::Blob)
                }
                // `parse` has seen that this is an earlier slot, so its base is known.
                Storage::Alias { of } => {
                    let of = of as usize;
                    let base = region_base.get(of).copied().unwrap_or(0);
                    (base, origins.get(of).copied().unwrap_or(Origin::None))
                }
            };
            set(&mut origins, slot, origin);
            set(&mut region_base, slot, base);
            set(&mut region_size, slot, region.size);
        }
        let commands = self.command_stream();
        let accel = self.accel();
        Ok(Job {
            command_address: blob_base + commands.offset() as u64,
            // Inside the blob, whose length is 32 bits.
            command_offset: commands.offset() as u32,
            command_bytes: commands.bytes().len() as u32,
            framing: commands.framing(),
            region_count: self.regions().len() as u8,
            region_base,
            region_size,
            accel,
            accel_match: AccelMatch::of(accel, expected),
            arena_bytes: cursor.end(),
            blob_base,
            arena_base: arena.base,
            origins,
            packing,
        })
    }
}

/// Sets a slot, of which there are as many as a blob may have regions; without a bounds check that could panic, so that
/// firmware links no panic code for the loader.
fn set<T>(slots: &mut [T; MAX_REGIONS], slot: u8, value: T) {
    if let Some(place) = slots.get_mut(usize::from(slot)) {
        *place = value;
    }
}

fn within_address_space(base: u64, bytes: u64) -> Result<(), Error> {
    base.checked_add(bytes).map(|_| ()).ok_or(Error::Address { base, bytes })
}

impl Job {
    /// The addresses that aren't multiples of 16, the command stream's first, then by slot. Arm's core driver refuses
    /// a job that has any, and so does npukit's.
    pub fn misaligned(&self) -> impl Iterator<Item = Misaligned> + Clone + use<> {
        let job = *self;
        let commands = Misaligned {
            what: Misplaced::Commands,
            base: self.blob_base,
            offset: u64::from(self.command_offset),
        };
        let slots =
            (0u8..).zip(job.region_base.into_iter().zip(job.origins)).take(usize::from(job.region_count));
        let regions = slots.filter_map(move |(slot, (address, origin))| {
            let base = match origin {
                Origin::None => return None,
                Origin::Blob => job.blob_base,
                Origin::Arena => job.arena_base,
            };
            Some(Misaligned { what: Misplaced::Region(slot), base, offset: address - base })
        });
        core::iter::once(commands)
            .chain(regions)
            .filter(|place| !place.address().is_multiple_of(ALIGN.into()))
    }

    fn origin(&self, slot: u8) -> Origin {
        self.origins.get(usize::from(slot)).copied().unwrap_or(Origin::None)
    }

    /// Whether a region lies in the blob: constants, or the tensor table.
    pub fn is_baked(&self, slot: u8) -> bool {
        self.origin(slot) == Origin::Blob
    }

    /// Whether a region lies in the arena. False for one that was left to the caller ([`Packing::without`]).
    pub fn is_dealt(&self, slot: u8) -> bool {
        self.origin(slot) == Origin::Arena
    }

    /// How the regions in the arena are packed.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// The bytes of the arena that belong to a region and nothing else: its own, and its padding if it has any. 0 for one
    /// that isn't in the arena.
    pub fn room(&self, slot: u8) -> u64 {
        match self.region_size.get(usize::from(slot)) {
            Some(&size) if self.is_dealt(slot) => self.packing.room(size),
            _ => 0,
        }
    }

    /// The address of a tensor's first byte; None for a slot not in use, and one that was left to the caller.
    pub fn address(&self, place: Place) -> Option<u64> {
        if self.origin(place.region) == Origin::None {
            return None;
        }
        let slots = self.region_base.get(..usize::from(self.region_count))?;
        slots.get(usize::from(place.region))?.checked_add(place.offset.into())
    }
}

impl AccelMatch {
    fn of(found: Accel, expected: Option<Accel>) -> AccelMatch {
        match expected.filter(|accel| accel.is_known()) {
            None => AccelMatch::NotAsked,
            Some(_) if !found.is_known() => AccelMatch::Unknown,
            Some(expected) if expected == found => AccelMatch::Same,
            Some(expected) => AccelMatch::Differs { found, expected },
        }
    }
}

impl fmt::Display for AccelMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccelMatch::NotAsked => f.write_str("accelerator not compared"),
            AccelMatch::Unknown => f.write_str("the blob doesn't say which accelerator it was compiled for"),
            AccelMatch::Same => f.write_str("compiled for this accelerator"),
            AccelMatch::Differs { found, expected } => write!(f, "compiled for {found}, this is {expected}"),
        }
    }
}

impl Misaligned {
    /// The address.
    pub fn address(&self) -> u64 {
        self.base + self.offset
    }
}

impl fmt::Display for Misaligned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.what {
            Misplaced::Commands => f.write_str("the command stream")?,
            Misplaced::Region(slot) => write!(f, "region {slot}")?,
        }
        let (base, offset) = (self.base, self.offset);
        write!(f, " is at {:#x} ({base:#x} + {offset:#x}), not a multiple of {ALIGN}", self.address())
    }
}
