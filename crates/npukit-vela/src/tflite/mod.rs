//! Reads `.tflite` files: what tensors and operators a network has, how they are quantised, what Vela added.
//!
//! The reader checks the whole file when it is opened (every reference, every index), so that nothing that is read
//! from the [`Model`] afterwards can fail. It borrows from the file and copies only small index lists.
//!
//! ```
//! # fn show(bytes: &[u8]) -> Result<(), npukit_vela::tflite::Error> {
//! let model = npukit_vela::tflite::Model::parse(bytes)?;
//! for operator in &model.main().operators {
//!     println!("{operator}");
//! }
//! # Ok(())
//! # }
//! ```

mod edit;
mod flatbuffer;
mod operators;
mod read;

use std::borrow::Cow;
use std::fmt;

use flatbuffer::Table;
use read::Reader;

pub use edit::{with_batch_of_one, with_outputs};
pub use flatbuffer::{Numbers, Scalar};
pub use operators::{BuiltinOperator, DataType};

/// What a `.tflite` file carries at byte 4.
const IDENTIFIER: &[u8; 4] = b"TFL3";

/// What stands in the identifier's place.
fn no_identifier(found: &[u8]) -> String {
    if found.is_empty() {
        "it has fewer than 8 bytes".to_owned()
    } else {
        format!("bytes 4 to 7 are {found:02x?}, expected \"TFL3\"")
    }
}

/// Why bytes are not a `.tflite` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file identifier isn't there.
    #[error("not a TensorFlow Lite flatbuffer: {}", no_identifier(found))]
    Identifier {
        /// What stands there; shorter in a shorter file.
        found: Vec<u8>,
    },
    /// Something the file refers to lies outside it, as in a truncated file.
    #[error(
        "truncated or damaged: {what} at offset 0x{offset:x} would end at 0x{end:x}, but the file has 0x{file_bytes:x} bytes"
    )]
    OutOfBounds {
        /// What was being read.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Where it would end.
        end: u64,
        /// The file's length.
        file_bytes: usize,
    },
    /// A required part is missing.
    #[error("damaged: no {what}")]
    Missing {
        /// What isn't there.
        what: &'static str,
    },
    /// An index into one of the file's lists is too large or negative.
    #[error("damaged: {what} refers to {list} {index}, but there are {count}")]
    Index {
        /// What holds the index.
        what: &'static str,
        /// The list it indexes.
        list: &'static str,
        /// The index found.
        index: i64,
        /// The list's length.
        count: usize,
    },
    /// A tensor has an absurd shape.
    #[error("damaged: tensor {tensor} has {rank} axes")]
    Rank {
        /// The tensor's index.
        tensor: usize,
        /// Its number of axes.
        rank: usize,
    },
    /// The same bytes give the shape of a constant and of a tensor whose batch size is open.
    #[error("tensor {tensor} is a constant but shares its shape with a tensor of open batch size")]
    SharedShape {
        /// The constant's index.
        tensor: usize,
    },
    /// The file's lists overlap so much that reading them would take more memory than an honest file needs.
    #[error("damaged: its lists add up to more than the file's 0x{file_bytes:x} bytes can hold")]
    Overlapping {
        /// The file's length.
        file_bytes: usize,
    },
}

/// A network: its subgraphs (almost always one), data and notes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Model<'a> {
    /// Schema version; 3 in every file in use.
    pub version: u32,
    /// What wrote the file, in its own words: "MLIR Converted.", "Vela Optimised".
    pub description: Cow<'a, str>,
    /// Never empty. The first is the network; others are called by operators such as `CALL_ONCE` and `WHILE`.
    pub subgraphs: Vec<Subgraph<'a>>,
    /// Constant data by buffer index. Empty slices stand for "no data".
    pub buffers: Vec<&'a [u8]>,
    /// Named notes, such as `OfflineMemoryAllocation`.
    pub metadata: Vec<Metadata<'a>>,
    /// Names that a caller uses for inputs and outputs.
    pub signatures: Vec<Signature<'a>>,
}

/// A graph of operators over tensors.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Subgraph<'a> {
    /// Often "main", often empty.
    pub name: Cow<'a, str>,
    /// All tensors: inputs, constants, intermediates, outputs.
    pub tensors: Vec<Tensor<'a>>,
    /// Indices of the tensors a caller fills.
    pub inputs: Vec<usize>,
    /// Indices of the tensors a caller reads.
    pub outputs: Vec<usize>,
    /// In execution order.
    pub operators: Vec<Operator<'a>>,
}

/// A tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tensor<'a> {
    /// Not necessarily unique, possibly empty.
    pub name: Cow<'a, str>,
    /// Element type.
    pub data_type: DataType,
    /// Sizes of the axes, outermost first. Empty for a scalar.
    pub shape: Vec<i32>,
    /// The same with -1 for axes whose size isn't fixed; empty where the file doesn't say.
    pub shape_signature: Vec<i32>,
    /// Index of its constant data in [`Model::buffers`].
    pub buffer: usize,
    /// How its integers stand for real numbers.
    pub quantisation: Option<Quantisation<'a>>,
    /// Whether it keeps its value from one inference to the next.
    pub is_variable: bool,
}

/// `real = scale * (integer - zero_point)`, for the whole tensor or per index along one axis.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quantisation<'a> {
    /// One for the tensor, or one per index along `axis`. Never empty.
    pub scales: Numbers<'a, f32>,
    /// As many as scales, or one, or none (then 0).
    pub zero_points: Numbers<'a, i64>,
    /// The axis that several scales go along.
    pub axis: i32,
}

impl Quantisation<'_> {
    /// The scale of a tensor quantised as a whole; the first one of a per-axis quantised one.
    pub fn scale(&self) -> f32 {
        self.scales.get(0).unwrap_or(0.0)
    }

    /// The zero point of a tensor quantised as a whole; the first one of a per-axis quantised one.
    pub fn zero_point(&self) -> i64 {
        self.zero_points.get(0).unwrap_or(0)
    }

    /// Whether there is more than one scale.
    pub fn is_per_axis(&self) -> bool {
        self.scales.len() > 1
    }
}

/// One operator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operator<'a> {
    /// Its position in [`Subgraph::operators`].
    pub index: usize,
    /// Which operator it is.
    pub code: BuiltinOperator,
    /// For [`BuiltinOperator::CUSTOM`]: which custom operator, such as "ethos-u".
    pub custom_code: Option<Cow<'a, str>>,
    /// The operator's version in its kernels' sense.
    pub version: i32,
    /// Tensor indices; `None` where an optional input is left out.
    pub inputs: Vec<Option<usize>>,
    /// Tensor indices.
    pub outputs: Vec<usize>,
    /// Tensor indices of the quantisation parameters inside an LSTM.
    pub intermediates: Vec<usize>,
    /// Parameters of a built-in operator.
    pub options: Option<Options<'a>>,
    /// Parameters of a custom operator.
    pub custom_options: &'a [u8],
}

impl Operator<'_> {
    /// Its name: the schema's for a built-in operator, the custom code for a custom one.
    pub fn name(&self) -> Cow<'_, str> {
        match (&self.custom_code, self.code.name()) {
            (Some(custom), _) if self.code == BuiltinOperator::CUSTOM => Cow::Borrowed(custom.as_ref()),
            (_, Some(name)) => Cow::Borrowed(name),
            _ => Cow::Owned(self.code.to_string()),
        }
    }
}

/// "operator 3 CONV_2D".
impl fmt::Display for Operator<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "operator {} {}", self.index, self.name())
    }
}

/// A built-in operator's parameters: a table whose fields are numbered in the order the schema lists them.
///
/// A field that the file leaves out, or that doesn't fit in it, has the default the caller gives.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    kind: u8,
    table: Table<'a>,
}

impl<'a> Options<'a> {
    /// Which table it is (schema union BuiltinOptions).
    pub fn kind(&self) -> u8 {
        self.kind
    }

    /// A number.
    pub fn number<T: Scalar>(&self, field: usize, default: T) -> T {
        self.table.number("operator options", field, default).unwrap_or(default)
    }

    /// A flag.
    pub fn flag(&self, field: usize) -> bool {
        self.number::<u8>(field, 0) != 0
    }

    /// A list of numbers.
    pub fn numbers<T: Scalar>(&self, field: usize) -> Option<Numbers<'a, T>> {
        self.table.numbers("operator options", field).ok().flatten()
    }

    /// A string.
    pub fn string(&self, field: usize) -> Option<Cow<'a, str>> {
        self.table.string("operator options", field).ok().flatten().map(String::from_utf8_lossy)
    }
}

/// A named note.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metadata<'a> {
    /// What the note is.
    pub name: Cow<'a, str>,
    /// Its bytes.
    pub data: &'a [u8],
}

/// Names for the inputs and outputs of one subgraph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Signature<'a> {
    /// The signature's own name, such as "serving_default".
    pub key: Cow<'a, str>,
    /// Which subgraph it is about.
    pub subgraph: usize,
    /// Name and tensor index.
    pub inputs: Vec<(Cow<'a, str>, usize)>,
    /// Name and tensor index.
    pub outputs: Vec<(Cow<'a, str>, usize)>,
}

impl Subgraph<'_> {
    /// How a person refers to a tensor: its name in quotes, or its index where it has none.
    pub fn describe(&self, tensor: usize) -> String {
        match self.tensors.get(tensor) {
            Some(known) if !known.name.is_empty() => format!("'{}'", known.name),
            _ => format!("tensor {tensor}"),
        }
    }
}

impl Tensor<'_> {
    /// Elements it has; `None` when an axis is negative or the product overflows.
    pub fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1usize, |product, &axis| product.checked_mul(usize::try_from(axis).ok()?))
    }

    /// Bytes its values take.
    pub fn bytes(&self) -> Option<usize> {
        self.elements()?.checked_mul(self.data_type.bytes()?)
    }
}

impl<'a> Model<'a> {
    /// Reads and checks a whole file.
    ///
    /// # Errors
    ///
    /// [`Error`] says what in the file is wrong and where.
    pub fn parse(data: &'a [u8]) -> Result<Self, Error> {
        if data.get(4..8) != Some(IDENTIFIER) {
            let found = data.get(4..data.len().min(8)).unwrap_or_default().to_vec();
            return Err(Error::Identifier { found });
        }
        Reader::new(data).model()
    }

    /// The network itself.
    pub fn main(&self) -> &Subgraph<'a> {
        &self.subgraphs[0]
    }

    /// A tensor's constant data, if it has any.
    pub fn data(&self, tensor: &Tensor<'a>) -> Option<&'a [u8]> {
        self.buffers.get(tensor.buffer).copied().filter(|bytes| !bytes.is_empty())
    }

    /// Whether it keeps values from one inference to the next: variable tensors, or resource variables.
    pub fn is_stateful(&self) -> bool {
        self.subgraphs.iter().any(|graph| {
            graph.tensors.iter().any(|tensor| tensor.is_variable)
                || graph.operators.iter().any(|operator| operator.code == BuiltinOperator::VAR_HANDLE)
        })
    }

    /// Whether it is Vela's output: it has an operator of the custom code "ethos-u".
    pub fn is_compiled(&self) -> bool {
        self.subgraphs.iter().flat_map(|graph| &graph.operators).any(is_ethos_u)
    }
}

/// Whether an operator is the one Vela puts in the place of all it compiled.
pub fn is_ethos_u(operator: &Operator<'_>) -> bool {
    operator.code == BuiltinOperator::CUSTOM && operator.custom_code.as_deref() == Some("ethos-u")
}
