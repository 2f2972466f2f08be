//! What is wrong with a tensor table.

use core::fmt;

use crate::layout::table;

/// What is wrong with a tensor table. Offsets are bytes from the table's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TensorError {
    /// The header, the records or the names end outside the region.
    Table {
        /// Where they end.
        end: u64,
        /// The region's length.
        bytes: usize,
    },
    /// The distance between records is shorter than a record, or no whole number of words.
    Stride {
        /// The header's value.
        found: u32,
    },
    /// One record is malformed.
    Tensor {
        /// Its index.
        index: u32,
        /// What is wrong with it.
        cause: TensorFault,
    },
}

/// What is wrong with one record of a tensor table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TensorFault {
    /// A kind without a meaning.
    Kind {
        /// The kind word.
        found: u32,
    },
    /// An element type without a meaning.
    DType {
        /// The type's number.
        found: u32,
    },
    /// More dimensions than a record holds.
    Rank {
        /// The rank word.
        found: u32,
    },
    /// The name ends outside the names.
    Name {
        /// Where it starts among the names.
        offset: u32,
        /// Where it ends among them.
        end: u64,
        /// How long the names are together.
        names_bytes: usize,
    },
    /// The name isn't UTF-8.
    Utf8 {
        /// Where it starts among the names.
        offset: u32,
        /// How many of its bytes are valid.
        valid: usize,
    },
    /// The size isn't the shape's product times the element's size.
    Size {
        /// The size word.
        found: u32,
        /// What it should be; None beyond 32 bits.
        expected: Option<u32>,
    },
    /// The scale isn't a finite number above zero.
    Scale {
        /// Its bits.
        bits: u32,
    },
    /// No such region, the table's own, or none where only an input may have none.
    Region {
        /// The region word.
        found: u32,
    },
    /// The tensor ends outside its region.
    Outside {
        /// The region's slot.
        region: u8,
        /// Where the tensor starts in it.
        offset: u32,
        /// The tensor's length.
        size: u32,
        /// The region's length.
        region_size: u32,
    },
    /// A tensor that is written lies in a baked region.
    ReadOnly {
        /// The region's slot.
        region: u8,
    },
    /// Not a state, or its source isn't an output or next state of the same type and size.
    FedFrom {
        /// The source's index.
        found: u32,
    },
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TensorError::Table { end, bytes } => write!(f, "ends at {end:#x}, the region at {bytes:#x}"),
            TensorError::Stride { found } => {
                write!(
                    f,
                    "records {found} bytes apart; it takes a multiple of 4 from {} on",
                    table::RECORD_BYTES
                )
            }
            TensorError::Tensor { index, cause } => write!(f, "tensor {index}: {cause}"),
        }
    }
}

impl fmt::Display for TensorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            TensorFault::Kind { found } => write!(f, "unknown kind {found:#x}"),
            TensorFault::DType { found } => write!(f, "unknown element type {found:#x}"),
            TensorFault::Rank { found } => write!(f, "{found} dimensions, at most {}", table::MAX_RANK),
            TensorFault::Name { offset, end, names_bytes } => {
                write!(
                    f,
                    "its name, {offset:#x} to {end:#x}, ends outside the names of {names_bytes:#x} bytes"
                )
            }
            TensorFault::Utf8 { offset, valid } => {
                write!(f, "its name at {offset:#x} isn't UTF-8 from byte {valid} on")
            }
            TensorFault::Size { found, expected: Some(expected) } => {
                write!(f, "{found} bytes, but its shape and element type make {expected}")
            }
            TensorFault::Size { found, expected: None } => {
                write!(f, "{found} bytes, but its shape and element type make more than 32 bits can tell")
            }
            TensorFault::Scale { bits } => {
                write!(f, "scale {} isn't a finite number above 0", f32::from_bits(bits))
            }
            TensorFault::Region { found: table::NONE } => f.write_str("has no region, and isn't an input"),
            TensorFault::Region { found } => write!(f, "region {found} doesn't exist or holds this table"),
            TensorFault::Outside { region, offset, size, region_size } => {
                write!(
                    f,
                    "{size:#x} bytes at {offset:#x} of region {region}, which has {region_size:#x} bytes"
                )
            }
            TensorFault::ReadOnly { region } => write!(f, "is written, but region {region} is baked"),
            TensorFault::FedFrom { found } => {
                write!(
                    f,
                    "can't be fed from tensor {found}: it takes a state, and an output or next state like it"
                )
            }
        }
    }
}

impl core::error::Error for TensorError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            TensorError::Tensor { cause, .. } => Some(cause),
            _ => None,
        }
    }
}

impl core::error::Error for TensorFault {}
