//! The memory an NPU sees: up to eight regions, each a base pointer of its own.

use std::fmt;
use std::sync::Arc;

/// Base pointers an Ethos-U has (BASEP0 to BASEP7).
pub const REGIONS: usize = 8;

/// The first of eight regions that stand for the U85's chain buffers. No command addresses them by number.
pub(crate) const CHAIN_REGION: u8 = REGIONS as u8;

/// Regions and chain buffers.
pub(crate) const SLOTS: usize = 2 * REGIONS;

/// Where a region's bytes live.
#[derive(Debug, Clone)]
enum Storage {
    /// Bytes that no command may write (weights in flash).
    Constant(Arc<[u8]>),
    /// Scratch, inputs and outputs.
    Writable(Vec<u8>),
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Constant(bytes) => bytes,
            Self::Writable(bytes) => bytes,
        }
    }
}

/// The regions that a command stream addresses.
///
/// Every access is checked against the region's own length, so a stream can't reach anything else.
///
/// ```
/// use ethosu_model::Memory;
/// let mut memory = Memory::new();
/// memory.bind_constant(0, vec![1, 2, 3, 4].into());
/// memory.bind_writable(1, 32);
/// assert_eq!(memory.bytes(0), Some(&[1, 2, 3, 4][..]));
/// assert!(memory.read(1, 31, 2).is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Memory {
    storages: Vec<Storage>,
    regions: [Option<usize>; SLOTS],
}

/// An access that the memory system refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BusFault {
    /// Nothing is bound to the region.
    Unbound {
        /// The region.
        region: u8,
    },
    /// A part of the access lies outside the region.
    Outside {
        /// The region.
        region: u8,
        /// First byte of the access, relative to the region's base.
        offset: i64,
        /// Bytes accessed.
        bytes: u64,
        /// Bytes the region has.
        size: u64,
    },
    /// A write to bytes that can't be written.
    ReadOnly {
        /// The region.
        region: u8,
        /// First byte of the access, relative to the region's base.
        offset: i64,
    },
}

impl fmt::Display for BusFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unbound { region } => write!(f, "region {region} has no base address"),
            Self::Outside { region, offset, bytes, size } => {
                let sign = if *offset < 0 { "-" } else { "" };
                write!(
                    f,
                    "{bytes} bytes at {sign}{:#x} don't lie in region {region}, which has {size:#x} bytes",
                    offset.unsigned_abs()
                )
            }
            Self::ReadOnly { region, offset } => {
                write!(f, "write at {offset:#x} of region {region}, which is read-only")
            }
        }
    }
}

impl std::error::Error for BusFault {}

impl Memory {
    /// Memory with no region bound.
    pub fn new() -> Self {
        Self::default()
    }

    /// Binds `region` to bytes that no command may write.
    ///
    /// # Panics
    /// If `region` is 8 or more.
    pub fn bind_constant(&mut self, region: u8, bytes: Arc<[u8]>) {
        self.bind(region, Storage::Constant(bytes));
    }

    /// Binds `region` to `size` zeroed bytes.
    ///
    /// # Panics
    /// If `region` is 8 or more.
    pub fn bind_writable(&mut self, region: u8, size: usize) {
        self.bind(region, Storage::Writable(vec![0; size]));
    }

    /// Binds `region` to the same bytes as region `of`.
    ///
    /// # Panics
    /// If either is 8 or more, or nothing is bound to `of`.
    pub fn bind_alias(&mut self, region: u8, of: u8) {
        let storage = self.regions[usize::from(of)].expect("an alias names a bound region");
        self.regions[usize::from(region)] = Some(storage);
    }

    fn bind(&mut self, region: u8, storage: Storage) {
        self.regions[usize::from(region)] = Some(self.storages.len());
        self.storages.push(storage);
    }

    /// Makes room for the chain buffers that a program uses.
    pub(crate) fn prepare_chain(&mut self, bytes: &[usize; 8]) {
        for (buffer, &bytes) in (CHAIN_REGION..).zip(bytes) {
            let enough = self.bytes(buffer).map_or(0, <[u8]>::len) >= bytes;
            if !enough {
                self.bind_writable(buffer, bytes);
            }
        }
    }

    fn storage(&self, region: u8) -> Option<&Storage> {
        let index = (*self.regions.get(usize::from(region))?)?;
        self.storages.get(index)
    }

    /// All bytes of a region, if it is bound.
    pub fn bytes(&self, region: u8) -> Option<&[u8]> {
        self.storage(region).map(Storage::bytes)
    }

    /// All bytes of a writable region.
    pub fn bytes_mut(&mut self, region: u8) -> Option<&mut [u8]> {
        let index = (*self.regions.get(usize::from(region))?)?;
        match self.storages.get_mut(index)? {
            Storage::Constant(_) => None,
            Storage::Writable(bytes) => Some(bytes),
        }
    }

    /// The layout alone: which regions there are, their sizes and kinds. No bytes are kept of writable ones.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            regions: self.regions,
            storages: self
                .storages
                .iter()
                .map(|storage| match storage {
                    Storage::Constant(bytes) => Layout::Constant(Arc::clone(bytes)),
                    Storage::Writable(bytes) => Layout::Writable(bytes.len()),
                })
                .collect(),
        }
    }

    /// Whether the memory is laid out as `shape` says, its constants the same bytes.
    pub(crate) fn has_shape(&self, shape: &Shape) -> bool {
        self.regions == shape.regions
            && self.storages.len() == shape.storages.len()
            && self.storages.iter().zip(&shape.storages).all(|pair| match pair {
                (Storage::Constant(a), Layout::Constant(b)) => Arc::ptr_eq(a, b),
                (Storage::Writable(bytes), Layout::Writable(size)) => bytes.len() == *size,
                _ => false,
            })
    }

    /// Bytes of all constants.
    pub(crate) fn constant_bytes(&self) -> usize {
        let constants = self.storages.iter().filter(|storage| matches!(storage, Storage::Constant(_)));
        constants.fold(0, |sum, storage| sum.saturating_add(storage.bytes().len()))
    }

    /// Whether a region is bound to bytes that no command may write.
    pub fn is_constant(&self, region: u8) -> bool {
        matches!(self.storage(region), Some(Storage::Constant(_)))
    }

    /// Whether two regions are the same bytes.
    pub fn same(&self, a: u8, b: u8) -> bool {
        let index = |region: u8| self.regions.get(usize::from(region)).copied().flatten();
        index(a).is_some() && index(a) == index(b)
    }

    /// `bytes` bytes at `offset` of `region`.
    ///
    /// # Errors
    /// [`BusFault`] where the region isn't bound or the access isn't inside it.
    pub fn read(&self, region: u8, offset: i64, bytes: u64) -> Result<&[u8], BusFault> {
        let all = self.bytes(region).ok_or(BusFault::Unbound { region })?;
        let range = range(region, offset, bytes, all.len())?;
        Ok(&all[range])
    }

    /// `bytes` writable bytes at `offset` of `region`.
    ///
    /// # Errors
    /// [`BusFault`] where the region isn't bound, is read-only, or the access isn't inside it.
    pub fn write(&mut self, region: u8, offset: i64, bytes: u64) -> Result<&mut [u8], BusFault> {
        let size = self.bytes(region).ok_or(BusFault::Unbound { region })?.len();
        let range = range(region, offset, bytes, size)?;
        let all = self.bytes_mut(region).ok_or(BusFault::ReadOnly { region, offset })?;
        Ok(&mut all[range])
    }

    /// Copies bytes from one (region, offset) to another, as if all were read before any is written.
    ///
    /// # Errors
    /// [`BusFault`] as for [`read`](Self::read) and [`write`](Self::write), and the side that refused.
    pub fn copy(&mut self, from: (u8, i64), to: (u8, i64), bytes: u64) -> Result<(), (Side, BusFault)> {
        self.read(from.0, from.1, bytes).map_err(|fault| (Side::Source, fault))?;
        self.write(to.0, to.1, bytes).map_err(|fault| (Side::Destination, fault))?;
        let (source, destination) = (from.1 as usize, to.1 as usize);
        let length = bytes as usize;
        let (Some(from), Some(to)) = (self.regions[usize::from(from.0)], self.regions[usize::from(to.0)])
        else {
            return Ok(());
        };
        if let Ok([from, Storage::Writable(to)]) = self.storages.get_disjoint_mut([from, to]) {
            to[destination..destination + length].copy_from_slice(&from.bytes()[source..source + length]);
        } else if let Some(Storage::Writable(same)) = self.storages.get_mut(to) {
            same.copy_within(source..source + length, destination);
        }
        Ok(())
    }
}

/// How a [`Memory`] is laid out.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    regions: [Option<usize>; SLOTS],
    storages: Vec<Layout>,
}

#[derive(Debug, Clone)]
enum Layout {
    Constant(Arc<[u8]>),
    Writable(usize),
}

/// A side of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// What is read.
    Source,
    /// What is written.
    Destination,
}

fn range(region: u8, offset: i64, bytes: u64, size: usize) -> Result<std::ops::Range<usize>, BusFault> {
    let outside = BusFault::Outside { region, offset, bytes, size: size as u64 };
    let start = usize::try_from(offset).map_err(|_| outside)?;
    let length = usize::try_from(bytes).map_err(|_| outside)?;
    let end = start.checked_add(length).ok_or(outside)?;
    if end > size { Err(outside) } else { Ok(start..end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_shares_its_bytes() {
        let mut memory = Memory::new();
        memory.bind_writable(1, 4);
        memory.bind_alias(2, 1);
        memory.write(2, 3, 1).unwrap()[0] = 9;
        assert_eq!(memory.bytes(1), Some(&[0, 0, 0, 9][..]));
        assert!(memory.same(1, 2) && !memory.same(1, 3) && !memory.same(3, 3));
    }

    #[test]
    fn every_access_stays_inside_its_region() {
        let mut memory = Memory::new();
        memory.bind_constant(0, vec![7; 16].into());
        for (offset, bytes) in [(-1, 1), (0, 17), (16, 1), (i64::MAX, 1), (0, u64::MAX), (i64::MIN, 0)] {
            let fault = memory.read(0, offset, bytes).unwrap_err();
            assert_eq!(fault, BusFault::Outside { region: 0, offset, bytes, size: 16 });
        }
        assert_eq!(memory.read(0, 16, 0), Ok(&[][..]));
        assert_eq!(memory.read(5, 0, 1), Err(BusFault::Unbound { region: 5 }));
        assert_eq!(memory.read(8, 0, 1), Err(BusFault::Unbound { region: 8 }));
        assert_eq!(memory.write(0, 2, 1), Err(BusFault::ReadOnly { region: 0, offset: 2 }));
    }
}
