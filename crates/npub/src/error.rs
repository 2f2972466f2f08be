//! Why a blob was refused.

use core::fmt;

use crate::layout;
use crate::{Flags, FramingError, TensorError};

/// Why a blob was refused, with what was found and what was expected. Offsets and sizes are bytes; offsets count from
/// the blob's first byte and print in hex, to compare with a dump.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The buffer ends within the header.
    TooShort {
        /// Length of the buffer.
        found: usize,
    },
    /// Something else than an NPU1 blob.
    Magic {
        /// The first word.
        found: u32,
    },
    /// A revision of the layout that this reader doesn't know.
    Version {
        /// The version word.
        found: u32,
    },
    /// The blob's length isn't the buffer's: truncated, or with something behind it.
    TotalBytes {
        /// The length the header states.
        found: u32,
        /// The buffer's length.
        expected: usize,
    },
    /// More regions than the hardware has slots.
    RegionCount {
        /// The header's count.
        found: u32,
    },
    /// The region table ends outside the blob.
    RegionTable {
        /// The header's count.
        regions: u32,
        /// Where that many descriptors end.
        end: usize,
        /// The blob's length.
        total_bytes: u32,
    },
    /// The command stream is empty.
    NoCommands,
    /// The command stream ends outside the blob.
    Commands {
        /// Where it starts.
        offset: u32,
        /// Its length.
        bytes: u32,
        /// The blob's length.
        total_bytes: u32,
    },
    /// The payload isn't what was written.
    Checksum {
        /// Of the payload as it is.
        found: u32,
        /// The header's.
        expected: u32,
    },
    /// A baked region ends outside the blob.
    Baked {
        /// Its slot.
        region: u8,
        /// Where it starts.
        offset: u32,
        /// Its length.
        size: u32,
        /// The blob's length.
        total_bytes: u32,
    },
    /// A region's flags contradict each other: ALIAS with BAKED, or TENSORS without BAKED.
    Flags {
        /// Its slot.
        region: u8,
        /// Its flags.
        found: Flags,
    },
    /// An alias names a slot that isn't an earlier runtime region.
    AliasTarget {
        /// The alias' slot.
        region: u8,
        /// The slot it names.
        found: u32,
    },
    /// An alias isn't as long as the region whose base it shares.
    AliasSize {
        /// The alias' slot.
        region: u8,
        /// The slot it names.
        target: u8,
        /// The alias' length.
        found: u32,
        /// The other's length.
        expected: u32,
    },
    /// The tensor table isn't the last region.
    TensorsNotLast {
        /// Its slot.
        region: u8,
        /// The last slot.
        expected: u8,
    },
    /// The tensor table is malformed.
    Tensors {
        /// Its slot.
        region: u8,
        /// What is wrong with it.
        cause: TensorError,
    },
    /// The commands are wrapped in Arm's payload framing, and the wrapping is broken.
    Framing {
        /// Where the wrapping starts.
        offset: u32,
        /// What is wrong with it.
        cause: FramingError,
    },
    /// A runtime region doesn't fit what is left of the arena.
    Arena {
        /// Its slot.
        region: u8,
        /// Where it would start in the arena, after alignment.
        offset: u64,
        /// Its length, with the padding that [`Packing`](crate::Packing) asks for.
        size: u32,
        /// The arena's length.
        arena_bytes: u64,
    },
    /// The blob or the arena would end beyond the 64-bit address space.
    Address {
        /// Where it starts.
        base: u64,
        /// Its length.
        bytes: u64,
    },
}

/// The classes of the loader's contract (bsikar/ra8-firmware, ra8_npu_loader.h), which a C caller sees as error codes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorKind {
    /// Too short for a header, or no commands.
    InvalidSize,
    /// Not an NPU1 blob of this version, or one that contradicts itself.
    InvalidArg,
    /// An offset or a size falls outside what it lies in.
    OutOfRange,
    /// The payload was changed.
    ChecksumMismatch,
    /// The arena is too small.
    NoMem,
}

impl Error {
    /// The class the error belongs to.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::TooShort { .. } | Error::NoCommands => ErrorKind::InvalidSize,
            Error::Magic { .. }
            | Error::Version { .. }
            | Error::RegionCount { .. }
            | Error::Flags { .. }
            | Error::AliasSize { .. }
            | Error::TensorsNotLast { .. } => ErrorKind::InvalidArg,
            Error::TotalBytes { .. }
            | Error::RegionTable { .. }
            | Error::Commands { .. }
            | Error::Baked { .. }
            | Error::AliasTarget { .. }
            | Error::Address { .. } => ErrorKind::OutOfRange,
            Error::Checksum { .. } => ErrorKind::ChecksumMismatch,
            Error::Tensors { cause, .. } => cause.kind(),
            Error::Framing { cause, .. } => cause.kind(),
            Error::Arena { .. } => ErrorKind::NoMem,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Error::TooShort { found } => {
                write!(f, "{found} bytes are too short for the header, which has {}", layout::HEADER_BYTES)
            }
            Error::Magic { found } => {
                write!(f, "not an NPU1 blob: the first word is {found:#010x}, not {:#010x}", layout::MAGIC)
            }
            Error::Version { found } => {
                write!(f, "layout version {found} isn't known, only {}", layout::VERSION)
            }
            Error::TotalBytes { found, expected } => {
                write!(f, "the header states {found:#x} bytes, the buffer has {expected:#x}")
            }
            Error::RegionCount { found } => {
                write!(f, "{found} regions, the hardware has {} slots", layout::MAX_REGIONS)
            }
            Error::RegionTable { regions, end, total_bytes } => {
                write!(f, "the table of {regions} regions ends at {end:#x}, the blob at {total_bytes:#x}")
            }
            Error::NoCommands => f.write_str("the command stream is empty"),
            Error::Commands { offset, bytes, total_bytes } => write!(
                f,
                "the command stream, {bytes:#x} bytes at {offset:#x}, ends outside the blob of {total_bytes:#x} bytes"
            ),
            Error::Checksum { found, expected } => {
                write!(f, "the payload's checksum is {found:#010x}, the header states {expected:#010x}")
            }
            Error::Baked { region, offset, size, total_bytes } => write!(
                f,
                "region {region}, {size:#x} bytes at {offset:#x}, ends outside the blob of {total_bytes:#x} bytes"
            ),
            Error::Flags { region, found } => {
                write!(f, "region {region} has the flags {found}, which contradict each other")
            }
            Error::AliasTarget { region, found } => {
                write!(
                    f,
                    "region {region} is an alias of slot {found}, which isn't an earlier runtime region"
                )
            }
            Error::AliasSize { region, target, found, expected } => write!(
                f,
                "region {region} has {found:#x} bytes and is an alias of region {target}, which has {expected:#x}"
            ),
            Error::TensorsNotLast { region, expected } => {
                write!(f, "the tensor table is region {region}, not the last, {expected}")
            }
            Error::Tensors { region, cause } => write!(f, "tensor table (region {region}): {cause}"),
            Error::Framing { offset, cause } => write!(f, "wrapped command stream at {offset:#x}: {cause}"),
            Error::Arena { region, offset, size, arena_bytes } => write!(
                f,
                "runtime region {region}, {size} bytes at {offset} of the arena, doesn't fit its {arena_bytes} bytes"
            ),
            Error::Address { base, bytes } => {
                write!(f, "{bytes:#x} bytes at {base:#x} end beyond the address space")
            }
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Tensors { cause, .. } => Some(cause),
            Error::Framing { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
