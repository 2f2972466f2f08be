//! NBG files: networks compiled for a VIP, read whole.
//!
//! [`Nbg::parse`] is strict: sections that leave the file or overlap, counts that don't fit their tables and records
//! that point outside are errors, and what it keeps is bounded by the file's size. Nothing is skipped in silence: the
//! coverage map ([`Nbg::coverage`]) tiles the whole file and says of each byte whether it is read, known only by its
//! extent, padding or unknown.
//!
//! Versions met in real files: 0x10009, 0x1000E, 0x1000F, 0x1001E, 0x10020. Of version 2 (0x2xxxx) only the header is
//! read; its section layout isn't public.
//!
//! ```no_run
//! let bytes = std::fs::read("network.nb")?;
//! let nbg = npukit_vip::nbg::Nbg::parse(&bytes)?;
//! println!("{nbg}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod checksum;
mod compare;
mod coverage;
mod layout;
mod parse;
mod reader;
mod records;
mod render;
mod verdict;

pub use checksum::{Checksum, crc32};
pub use compare::{Comparison, Difference, compare};
pub use coverage::{Coverage, Span, Understanding};
pub use layout::{HEADER_BYTES, MAGIC, section_name};
pub use verdict::{Answer, Device, LoadVerdict, Reason, check};

use crate::chip::Engine;
use crate::version::Certainty;
use serde::Serialize;

/// Why a file isn't a readable NBG.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NbgError {
    /// The file ends inside something.
    #[error("{what} needs {needed:#x} bytes at {offset:#x}, the file has {length:#x}")]
    Short {
        /// What was being read.
        what: String,
        /// Where it starts.
        offset: u64,
        /// How long it is.
        needed: u64,
        /// The file's length.
        length: u64,
    },
    /// The first four bytes aren't `VPMN`.
    #[error("the file starts with {found:02x?}, not with `VPMN`")]
    Magic {
        /// The bytes found.
        found: [u8; 4],
    },
    /// A version that is neither 1 nor 2 in its upper half.
    #[error("version {0:#x}: neither 0x1xxxx nor 0x2xxxx")]
    Version(u32),
    /// The list of sections has no end.
    #[error(
        "the input table starts at {offset:#x}; the section list starts at {start:#x} and has entries of 8 bytes"
    )]
    SectionList {
        /// Offset of the input table, where the list should end.
        offset: u32,
        /// Where the list starts.
        start: u32,
    },
    /// A section leaves the file.
    #[error("section {name} claims {size:#x} bytes at {offset:#x}, the file has {length:#x}")]
    Section {
        /// The section.
        name: String,
        /// Its offset.
        offset: u32,
        /// Its size.
        size: u32,
        /// The file's length.
        length: u64,
    },
    /// A section starts inside the fixed part.
    #[error("section {name} at {offset:#x} lies in the fixed part, which ends at {end:#x}")]
    InFixedPart {
        /// The section.
        name: String,
        /// Its offset.
        offset: u32,
        /// The end of the fixed part.
        end: u32,
    },
    /// Two sections share bytes.
    #[error("sections {first} and {second} overlap at {at:#x}")]
    Overlap {
        /// The one that starts first.
        first: String,
        /// The other.
        second: String,
        /// Where the second starts.
        at: u32,
    },
    /// A table's size doesn't fit the count in the header.
    #[error("{name}: {size:#x} bytes for {count} records of {record} bytes")]
    Count {
        /// The table.
        name: String,
        /// Its size.
        size: u32,
        /// The header's count.
        count: u32,
        /// The record size of this version.
        record: u32,
    },
    /// A table's size isn't a whole number of records.
    #[error("{name}: {size:#x} bytes aren't whole records of {record} bytes")]
    Records {
        /// The table.
        name: String,
        /// Its size.
        size: u32,
        /// The record size.
        record: u32,
    },
    /// A record points outside of what it points into.
    #[error("{what} is {value}, there are {count} in {into}")]
    Reference {
        /// The record and the field.
        what: String,
        /// Its value.
        value: u64,
        /// What it points into.
        into: String,
        /// How many there are.
        count: u64,
    },
    /// A tensor claims more dimensions than its record holds.
    #[error("{what} claims {value} dimensions, the record holds {limit}")]
    Dimensions {
        /// The tensor.
        what: String,
        /// The claim.
        value: u32,
        /// The limit.
        limit: u32,
    },
}

/// A parsed NBG.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nbg {
    /// The header.
    pub header: Header,
    /// How much was read.
    pub depth: Depth,
    /// Whether this version's layout was met in real files.
    pub layout: Certainty,
    /// The feature words after the header; absent before version 0x10003 and in version 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub features: Option<FeatureWords>,
    /// What the network needs of memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// The sections, in the order of the list.
    pub sections: Vec<Section>,
    /// The input tensors.
    pub inputs: Vec<IoTensor>,
    /// The output tensors.
    pub outputs: Vec<IoTensor>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The operations.
    pub operations: Vec<Operation>,
    /// The operations that software has to do, by name.
    pub software: Vec<SoftwareOperation>,
    /// The shader's operations: which program each runs.
    pub shaders: Vec<ShaderOperation>,
    /// The places in commands and states that the driver fills in when it loads the file.
    pub patches: Vec<Patch>,
    /// The checksum's verdict.
    pub checksum: Checksum,
    /// Words that hold something whose meaning isn't known.
    pub unknown_words: Vec<UnknownWord>,
    /// Things that don't agree with each other but lead nowhere outside.
    pub findings: Vec<String>,
    /// What every byte of the file is.
    pub coverage: Coverage,
    /// The trailing text that some compilers leave, with the names of tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trailer: Option<String>,
    /// SHA-256 of the file.
    pub sha256: String,
}

/// How much of a file was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// Everything.
    Whole,
    /// The header alone: the layout behind it isn't known.
    HeaderOnly,
}

/// The first 92 bytes, the same in every version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Header {
    /// The format's version.
    pub version: u32,
    /// The customer ID or PID of the chip.
    pub target: u32,
    /// The network's name.
    pub name: String,
    /// How many layers.
    pub layer_count: u32,
    /// How many operations.
    pub operation_count: u32,
    /// How many inputs.
    pub input_count: u32,
    /// How many outputs.
    pub output_count: u32,
}

/// The named part of the 256 bytes of feature words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FeatureWords {
    /// `HI_REORDER_FIX`.
    pub hi_reorder_fix: bool,
    /// `OCB_COUNTER`.
    pub ocb_counter: bool,
    /// The size of an NN command in bytes, if the field holds a known value.
    pub nn_command_bytes: Option<u32>,
    /// Whether the shader parameters may be changed.
    pub change_ppu_param: bool,
    /// How many pixel pipes.
    pub pixel_pipes: u32,
    /// How many cores.
    pub cores: u8,
}

/// What the network needs of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// The pool for intermediate data, in bytes.
    pub pool_bytes: u32,
    /// The pool's alignment.
    pub pool_alignment: u32,
    /// The pool's base address.
    pub pool_base: u32,
    /// Base of the SRAM on the AXI bus.
    pub axi_sram_base: u32,
    /// Its size in bytes.
    pub axi_sram_bytes: u32,
    /// Base of the VIP's own SRAM; absent before version 0x10008.
    pub vip_sram_base: Option<u32>,
    /// Its size in bytes.
    pub vip_sram_bytes: Option<u32>,
}

/// One section of the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Section {
    /// Its place in the list.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its offset in the file.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
}

/// A network input or output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IoTensor {
    /// Its name; empty before version 0x10004.
    pub name: String,
    /// Its dimensions, the fastest-running first.
    pub dims: Vec<u32>,
    /// The element format's number and its name, if known. These numbers aren't OpenVX's.
    pub format: Code,
    /// Tensor, image, array or scalar.
    pub kind: Code,
    /// The quantisation; only the fields it names are read, the others hold junk.
    pub quant: IoQuant,
}

/// A number and its name, if it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// The number.
    pub number: u32,
    /// The name.
    pub name: Option<&'static str>,
}

/// The quantisation of an input or output.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "scheme", rename_all = "snake_case")]
pub enum IoQuant {
    /// None.
    None,
    /// Dynamic fixed point.
    Dfp {
        /// The fixed-point position.
        fl: i32,
    },
    /// Affine.
    Affine {
        /// The scale.
        scale: f32,
        /// The zero point.
        zero_point: i32,
    },
    /// A number whose meaning isn't known.
    Other {
        /// The number.
        number: u32,
    },
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// The driver's name for its kind.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// How many operations it has.
    pub operation_count: u32,
    /// The unique number that the compiler gave it; absent before version 0x10008.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
}

/// What an operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationRole {
    /// Work for an engine.
    Work(Engine),
    /// The record that starts every list (type 0xFFFF).
    Init,
    /// The record that ends the list in some versions (type 0xFFFE).
    End,
    /// A type that isn't known.
    Unknown(u32),
}

/// One operation: the driver's own record of which engine does what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// The record's type.
    pub role: OperationRole,
    /// Its place in its engine's table.
    pub index: u32,
    /// The layer it belongs to; none for records outside of any.
    pub layer: Option<u32>,
    /// Its command state.
    pub state: u32,
    /// Its first patch.
    pub patch_index: u32,
    /// How many patches.
    pub patch_count: u32,
    /// The running number in versions that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<i32>,
}

impl Operation {
    /// The engine, for an operation that works on one.
    pub fn engine(&self) -> Option<Engine> {
        match self.role {
            OperationRole::Work(engine) => Some(engine),
            _ => None,
        }
    }
}

/// An operation for software.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SoftwareOperation {
    /// Its type.
    pub kind: u32,
    /// Its name.
    pub name: String,
}

/// One of the shader's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ShaderOperation {
    /// Its program: an entry of the LCD table, from version 0x1001E on of the shader programs' table.
    pub program: u32,
    /// Its parameters; absent before version 0x1000E.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u32>,
}

/// One place that the driver fills in. What the numbers of the two types mean isn't public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// The kind of place.
    pub kind: u32,
    /// The offset in the operation's states or command.
    pub offset: u32,
    /// The kind of source.
    pub source: u32,
    /// Which of its sort; negative for none.
    pub index: i32,
    /// An offset from the source's base.
    pub base: i32,
    /// Whether it is transformed.
    pub transformed: u32,
    /// Its name's number.
    pub name: u32,
}

/// A word that isn't zero and whose meaning isn't known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownWord {
    /// Where in the file.
    pub offset: u32,
    /// What it holds.
    pub value: u32,
    /// What it lies in.
    pub place: String,
}

impl Nbg {
    /// How many operations an engine has.
    pub fn count(&self, engine: Engine) -> usize {
        self.operations.iter().filter(|operation| operation.engine() == Some(engine)).count()
    }

    /// The engines of a layer's operations, in order.
    pub fn engines_of(&self, layer: u32) -> Vec<Engine> {
        self.operations
            .iter()
            .filter(|operation| operation.layer == Some(layer))
            .filter_map(Operation::engine)
            .collect()
    }
}

impl IoTensor {
    /// The tensor's size in bytes, where the format's element size is known and the product fits.
    pub fn bytes(&self) -> Option<u64> {
        let element: u64 = layout::format_bytes(self.format.number)?;
        self.dims.iter().try_fold(element, |product, dim| product.checked_mul(u64::from(*dim)))
    }
}
