//! From what Vela writes to an NPU1 file.
//!
//! Vela writes one of two things: a `.tflite` file in which one `ethos-u` operator stands for the network
//! ([`from_vela_tflite`]), or the same parts as an `.npz` archive ([`from_raw`]). Both give a [`Program`], and a program
//! gives the `.npub` bytes.
//!
//! ```no_run
//! let compiled = std::fs::read("kws_vela.tflite")?;
//! let program = npukit_vela::distil::from_vela_tflite(&compiled)?;
//! std::fs::write("kws.npub", program.to_npub()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod operator;
mod raw;

use std::fmt;
use std::str::FromStr;

use ethosu_isa::{
    Accelerator, Command, ConfigWordError, DecodeError, Decoder, PayloadError, PayloadKind, Product,
};
use npub::{Accel, BlobBuilder, DType, Quantisation, Role, Shape, TensorEntry};

use crate::npy::NpyError;
use crate::tflite;

pub use operator::from_vela_tflite;
pub(crate) use operator::{UNNAMED, is_bookkeeping, left_to_cpu};
pub use raw::from_raw;

/// Base pointers as Vela 5.2.0 uses them (`raw_writer.cpp`): constants, scratch, fast scratch, inputs, outputs.
const SCRATCH_REGION: u8 = 1;
const FAST_SCRATCH_REGION: u8 = 2;
const INPUT_REGION: u8 = 3;
const OUTPUT_REGION: u8 = 4;
/// What a region of inputs or outputs is rounded up to: the NPU's alignment of a base pointer.
const REGION_ALIGNMENT: u64 = 16;

/// Where a network's inputs and outputs live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IoMode {
    /// All inputs in a region of their own, all outputs in another: a caller can bring its own buffers.
    #[default]
    Separate,
    /// In the scratch region, at offsets that the tensor table gives.
    Arena,
}

impl fmt::Display for IoMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Separate => "separate",
            Self::Arena => "arena",
        })
    }
}

impl FromStr for IoMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "separate" => Ok(Self::Separate),
            "arena" => Ok(Self::Arena),
            other => {
                Err(format!("{other:?} is no place for inputs and outputs: it's \"separate\" or \"arena\""))
            }
        }
    }
}

/// An operator that Vela left to the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuOperator {
    /// Its position in the network, where it can be told.
    pub index: Option<usize>,
    /// Which operator, such as `SVDF`.
    pub operator: String,
    /// The name of its first output; may be empty.
    pub tensor: String,
    /// Vela's reason, where it gave one.
    pub reason: Option<String>,
}

/// "operator 3 SVDF ('conv_out'): Unsupported opType".
impl fmt::Display for CpuOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(formatter, "operator {index} {}", self.operator)?,
            None => write!(formatter, "an operator {}", self.operator)?,
        }
        if !self.tensor.is_empty() {
            write!(formatter, " ('{}')", self.tensor)?;
        }
        match &self.reason {
            Some(reason) => write!(formatter, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// Why there is no `.npub` in what was given.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DistilError {
    /// The `.tflite` can't be read.
    #[error(transparent)]
    Tflite(#[from] tflite::Error),
    /// The archive can't be read.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// The command stream's framing can't be read.
    #[error("the command stream's payload: {0}")]
    Payload(#[from] PayloadError),
    /// The command stream is for no known NPU.
    #[error("the command stream's payload: {0}")]
    Config(#[from] ConfigWordError),
    /// The command stream can't be read.
    #[error("the command stream: {0}")]
    Stream(#[from] DecodeError),
    /// The parts make no valid file.
    #[error(transparent)]
    Npub(#[from] npub::BuildError),
    /// The network hasn't been through Vela, or Vela put nothing on the NPU.
    #[error("there is no ethos-u operator: the network isn't compiled")]
    NotCompiled,
    /// Operators are left to the CPU.
    #[error("{} left to the CPU:\n  {}", count(.0.len()), list(.0))]
    CpuOperators(Vec<CpuOperator>),
    /// The network is in several pieces.
    #[error("{count} ethos-u operators (at {indices:?}): only a network in one piece makes an .npub")]
    SeveralPrograms {
        /// How many.
        count: usize,
        /// Their positions.
        indices: Vec<usize>,
    },
    /// The `ethos-u` operator isn't as Vela makes it.
    #[error("the ethos-u operator: {problem}")]
    Operator {
        /// What is wrong.
        problem: String,
    },
    /// The note on where tensors live is missing or doesn't fit.
    #[error("the note OfflineMemoryAllocation: {problem}")]
    Allocation {
        /// What is wrong.
        problem: String,
    },
    /// The archive's parts contradict each other or the network.
    #[error("the raw output: {problem}")]
    Raw {
        /// What is wrong.
        problem: String,
    },
    /// A state can't be kept by the rules of an `.npub`.
    #[error("the state '{tensor}': {problem}")]
    State {
        /// Its name.
        tensor: String,
        /// What is wrong.
        problem: String,
    },
    /// Vela's note on where separate inputs live can't be trusted.
    #[error(
        "an input isn't used, and with separate regions Vela 5.2.0 then mixes up the inputs' places ('{without_place}' has \
         none); compile it with `--io arena`"
    )]
    MixedPlaces {
        /// The input that the note gives no place, which isn't always the one that isn't used.
        without_place: String,
    },
    /// A tensor has properties that an `.npub` can't tell.
    #[error("tensor '{tensor}': {problem}")]
    Tensor {
        /// Its name.
        tensor: String,
        /// What is wrong.
        problem: String,
    },
    /// The stream refers to a region that isn't there.
    #[error("the command at offset 0x{offset:x} refers to region {region}, which the network doesn't have")]
    Region {
        /// Where in the stream.
        offset: usize,
        /// Which region.
        region: u8,
    },
    /// The stream is for another NPU than asked for.
    #[error("the command stream is for {found}, not for {requested}")]
    Accelerator {
        /// What the stream is for.
        found: Accelerator,
        /// What was asked for.
        requested: Accelerator,
    },
}

fn count(operators: usize) -> String {
    if operators == 1 { "1 operator is".to_owned() } else { format!("{operators} operators are") }
}

fn list(operators: &[CpuOperator]) -> String {
    operators.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  ")
}

/// The second scratch region that some memory modes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastScratch {
    /// Not used.
    None,
    /// The same memory as the scratch region.
    Shared,
    /// Memory of its own, of this many bytes.
    Own(u32),
}

/// A compiled network, taken apart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Program {
    /// The NPU the command stream is for, by its own words.
    pub accelerator: Accelerator,
    /// What the stream was wrapped in.
    pub payload: PayloadKind,
    /// Bare command words, little-endian.
    pub commands: Vec<u8>,
    /// The constants: region 0.
    pub constants: Vec<u8>,
    /// Bytes of region 1, which holds what is computed on the way.
    pub scratch_bytes: u32,
    /// Region 2.
    pub fast_scratch: FastScratch,
    /// Where inputs and outputs live.
    pub io: IoMode,
    /// Inputs in the network's order, outputs likewise, states, and what states are fed from.
    pub tensors: Vec<TensorEntry>,
}

impl Program {
    /// Compares the NPU that the command stream is for with the one it should be for.
    ///
    /// # Errors
    ///
    /// [`DistilError::Accelerator`] if they differ.
    pub fn check_accelerator(&self, requested: Accelerator) -> Result<(), DistilError> {
        if self.accelerator == requested {
            return Ok(());
        }
        Err(DistilError::Accelerator { found: self.accelerator, requested })
    }

    /// Packs the program into an NPU1 file.
    ///
    /// # Errors
    ///
    /// [`DistilError::Npub`] when the parts don't fit together, [`DistilError::Region`] when the stream refers to
    /// memory that isn't there.
    pub fn to_npub(&self) -> Result<Vec<u8>, DistilError> {
        let mut builder =
            BlobBuilder::new(Accel::from_config_word(self.accelerator.config_word()).unwrap_or_default());
        builder.command_bytes(&self.commands);
        builder.baked(Role::Weights, &self.constants);
        builder.runtime(Role::Scratch, self.scratch_bytes);
        let mut regions = 2;
        if self.fast_scratch != FastScratch::None || self.io == IoMode::Separate {
            match self.fast_scratch {
                FastScratch::Own(bytes) => builder.runtime(Role::Scratch, bytes),
                FastScratch::Shared => builder.alias(Role::Scratch, usize::from(SCRATCH_REGION)),
                // Nothing refers to it; it keeps the slots behind it in their places.
                FastScratch::None => builder.runtime(Role::Scratch, 0),
            };
            regions += 1;
        }
        if self.io == IoMode::Separate {
            builder.runtime(Role::Input, self.io_bytes(INPUT_REGION)?);
            builder.runtime(Role::Output, self.io_bytes(OUTPUT_REGION)?);
            regions += 2;
        }
        for mention in mentions(&self.commands, self.accelerator.product())? {
            // A chained operation of the U85 names a buffer inside the NPU where others name a region.
            if mention.region >= regions && self.accelerator.product() != Product::U85 {
                return Err(DistilError::Region { offset: mention.offset, region: mention.region });
            }
        }
        for tensor in &self.tensors {
            builder.tensor(tensor.clone());
        }
        Ok(builder.build()?)
    }

    /// Bytes of a region that holds nothing but inputs or outputs.
    fn io_bytes(&self, region: u8) -> Result<u32, DistilError> {
        let mut end = 0;
        for tensor in &self.tensors {
            if let Some(place) = tensor.place.filter(|place| place.region == region) {
                let bytes = tensor.shape.bytes(tensor.dtype).unwrap_or(u32::MAX);
                end = end.max(u64::from(place.offset) + u64::from(bytes));
            }
        }
        let end = end.next_multiple_of(REGION_ALIGNMENT);
        u32::try_from(end).map_err(|_| DistilError::Npub(npub::BuildError::TooLong { end }))
    }
}

/// A command that names a region.
struct Mention {
    offset: usize,
    region: u8,
}

/// Every command of a stream that names a region.
fn mentions(stream: &[u8], product: Product) -> Result<Vec<Mention>, DistilError> {
    let mut all = Vec::new();
    for instruction in Decoder::new(stream, product) {
        let instruction = instruction?;
        let region = match instruction.command {
            Command::IfmRegion(region)
            | Command::Ifm2Region(region)
            | Command::OfmRegion(region)
            | Command::WeightRegion(region)
            | Command::ScaleRegion(region)
            | Command::Dma0IdxRegion(region) => region,
            Command::Dma0SrcRegion(side) | Command::Dma0DstRegion(side) if !side.internal => side.region,
            Command::Dma0SrcRegion85(side) if !side.internal => side.region,
            Command::Dma0DstRegion85(side) if !side.internal => side.region,
            _ => continue,
        };
        all.push(Mention { offset: instruction.offset, region });
    }
    Ok(all)
}

/// What region 2 is, given the fast scratch tensor Vela declares. Vela declares one in every memory mode; whether it
/// means anything shows in the stream.
fn fast_scratch(
    stream: &[u8],
    product: Product,
    shares_scratch: bool,
    bytes: u32,
) -> Result<FastScratch, DistilError> {
    if !mentions(stream, product)?.iter().any(|mention| mention.region == FAST_SCRATCH_REGION) {
        return Ok(FastScratch::None);
    }
    Ok(if shares_scratch { FastScratch::Shared } else { FastScratch::Own(bytes) })
}

/// A tensor's description for the table, apart from what it is and where it lives.
fn describe(tensor: &tflite::Tensor<'_>) -> Result<(DType, Shape, Option<Quantisation>), DistilError> {
    let error = |problem: String| DistilError::Tensor { tensor: tensor.name.to_string(), problem };
    let data_type = tensor.data_type;
    let dtype = data_type
        .in_npub()
        .ok_or_else(|| error(format!("elements of {data_type} have no place in an .npub")))?;
    let axes: Option<Vec<u32>> = tensor.shape.iter().map(|&axis| u32::try_from(axis).ok()).collect();
    let shape = axes.and_then(|axes| Shape::new(&axes));
    let shape = shape.ok_or_else(|| error(format!("shape {:?} has no place in an .npub", tensor.shape)))?;
    let quantisation = match &tensor.quantisation {
        None => None,
        Some(quantisation) if quantisation.is_per_axis() => {
            return Err(error(format!(
                "an input, output or state quantised per axis ({} scales) has no place in an .npub",
                quantisation.scales.len()
            )));
        }
        Some(quantisation) => {
            let (scale, zero_point) = (quantisation.scale(), quantisation.zero_point());
            let zero_point =
                i32::try_from(zero_point).map_err(|_| error(format!("zero point {zero_point}")))?;
            // A scale of zero is what some converters write for "none".
            (scale.is_finite() && scale > 0.0).then_some(Quantisation { scale, zero_point })
        }
    };
    Ok((dtype, shape, quantisation))
}
