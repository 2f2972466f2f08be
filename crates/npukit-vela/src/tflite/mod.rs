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

use std::borrow::Cow;
use std::fmt;

use flatbuffer::{Fault, Table, Tables};

pub use edit::{with_batch_of_one, with_outputs};
pub use flatbuffer::{Numbers, Scalar};
pub use operators::{BuiltinOperator, DataType};

/// What a `.tflite` file carries at byte 4.
const IDENTIFIER: &[u8; 4] = b"TFL3";
/// The most axes a tensor may have here. TensorFlow Lite's kernels stop at 8.
const MAXIMUM_RANK: usize = 64;

/// Why bytes are not a `.tflite` file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file identifier isn't there.
    #[error("not a TensorFlow Lite flatbuffer: bytes 4 to 7 are {found:02x?}, expected \"TFL3\"")]
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
        Reader { data, budget: data.len() }.model()
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

struct Reader<'a> {
    data: &'a [u8],
    /// List entries that may still be read. Every entry takes four bytes of an honest file.
    budget: usize,
}

fn text<'a>(table: &Table<'a>, what: &'static str, slot: usize) -> Result<Cow<'a, str>, Fault> {
    Ok(table.string(what, slot)?.map_or(Cow::Borrowed(""), String::from_utf8_lossy))
}

struct Code<'a> {
    code: BuiltinOperator,
    custom: Option<Cow<'a, str>>,
    version: i32,
}

impl<'a> Reader<'a> {
    fn fault(&self, fault: Fault) -> Error {
        Error::OutOfBounds {
            what: fault.what,
            offset: fault.offset,
            end: fault.end,
            file_bytes: self.data.len(),
        }
    }

    fn spend(&mut self, entries: usize) -> Result<(), Error> {
        self.budget =
            self.budget.checked_sub(entries).ok_or(Error::Overlapping { file_bytes: self.data.len() })?;
        Ok(())
    }

    /// The tables of a list, paid for.
    fn tables(
        &mut self,
        table: &Table<'a>,
        what: &'static str,
        slot: usize,
    ) -> Result<Vec<Table<'a>>, Error> {
        let Some(tables) = table.tables(what, slot).map_err(|fault| self.fault(fault))? else {
            return Ok(Vec::new());
        };
        self.spend(Tables::len(&tables))?;
        tables.iter().collect::<Result<_, _>>().map_err(|fault| self.fault(fault))
    }

    /// A list of numbers, paid for and copied.
    fn list(&mut self, table: &Table<'a>, what: &'static str, slot: usize) -> Result<Vec<i32>, Error> {
        let Some(numbers) = table.numbers::<i32>(what, slot).map_err(|fault| self.fault(fault))? else {
            return Ok(Vec::new());
        };
        self.spend(numbers.len())?;
        Ok(numbers.iter().collect())
    }

    /// A list of tensor indices, each below `count`.
    fn indices(
        &mut self,
        table: &Table<'a>,
        what: &'static str,
        slot: usize,
        count: usize,
    ) -> Result<Vec<usize>, Error> {
        self.list(table, what, slot)?
            .into_iter()
            .map(|index| checked(what, "tensor", i64::from(index), count))
            .collect()
    }

    fn model(mut self) -> Result<Model<'a>, Error> {
        let root = Table::root(self.data, "the root table").map_err(|fault| self.fault(fault))?;
        let version = root.number("version", 0, 0).map_err(|fault| self.fault(fault))?;
        let description = text(&root, "description", 3).map_err(|fault| self.fault(fault))?;
        let codes = self.codes(&root)?;
        let buffers = self.buffers(&root)?;
        let tables = self.tables(&root, "subgraphs", 2)?;
        if tables.is_empty() {
            return Err(Error::Missing { what: "subgraph" });
        }
        let mut subgraphs = Vec::with_capacity(tables.len());
        for table in &tables {
            subgraphs.push(self.subgraph(table, &codes, buffers.len())?);
        }
        let metadata = self.metadata(&root, &buffers)?;
        let signatures = self.signatures(&root, &subgraphs)?;
        Ok(Model { version, description, subgraphs, buffers, metadata, signatures })
    }

    fn codes(&mut self, root: &Table<'a>) -> Result<Vec<Code<'a>>, Error> {
        let tables = self.tables(root, "operator codes", 1)?;
        let read = |table: &Table<'a>| {
            let what = "operator code";
            // The schema kept the old 8-bit field when the operators outgrew it; the larger of the two counts.
            let old = i32::from(table.number::<i8>(what, 0, 0)?);
            let new = table.number::<i32>(what, 3, 0)?;
            let custom = table.string(what, 1)?.map(String::from_utf8_lossy);
            Ok(Code { code: BuiltinOperator(old.max(new)), custom, version: table.number(what, 2, 1)? })
        };
        tables.iter().map(read).collect::<Result<_, _>>().map_err(|fault| self.fault(fault))
    }

    fn buffers(&mut self, root: &Table<'a>) -> Result<Vec<&'a [u8]>, Error> {
        let what = "buffer";
        let tables = self.tables(root, "buffers", 4)?;
        let mut buffers = Vec::with_capacity(tables.len());
        for table in &tables {
            let inside = table.numbers::<u8>(what, 0).map_err(|fault| self.fault(fault))?;
            let offset = table.number::<u64>(what, 1, 0).map_err(|fault| self.fault(fault))?;
            let bytes = table.number::<u64>(what, 2, 0).map_err(|fault| self.fault(fault))?;
            // Files too large for 32-bit references keep their data behind the flatbuffer, at an offset above 1.
            buffers.push(if offset > 1 && bytes > 0 {
                let end = offset.saturating_add(bytes);
                let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
                range.and_then(|(start, end)| self.data.get(start..end)).ok_or_else(|| {
                    self.fault(Fault { what, offset: usize::try_from(offset).unwrap_or(usize::MAX), end })
                })?
            } else {
                inside.map_or(&[][..], |numbers| numbers.bytes())
            });
        }
        Ok(buffers)
    }

    fn subgraph(
        &mut self,
        table: &Table<'a>,
        codes: &[Code<'a>],
        buffers: usize,
    ) -> Result<Subgraph<'a>, Error> {
        let name = text(table, "subgraph name", 4).map_err(|fault| self.fault(fault))?;
        let tables = self.tables(table, "tensors", 0)?;
        let mut tensors = Vec::with_capacity(tables.len());
        for (index, table) in tables.iter().enumerate() {
            tensors.push(self.tensor(index, table, buffers)?);
        }
        let count = tensors.len();
        let inputs = self.indices(table, "the graph's input list", 1, count)?;
        let outputs = self.indices(table, "the graph's output list", 2, count)?;
        let tables = self.tables(table, "operators", 3)?;
        let mut operators = Vec::with_capacity(tables.len());
        for (index, table) in tables.iter().enumerate() {
            operators.push(self.operator(index, table, codes, count)?);
        }
        Ok(Subgraph { name, tensors, inputs, outputs, operators })
    }

    fn tensor(&mut self, index: usize, table: &Table<'a>, buffers: usize) -> Result<Tensor<'a>, Error> {
        let what = "tensor";
        let shape = self.list(table, "tensor shape", 0)?;
        let shape_signature = self.list(table, "tensor shape signature", 7)?;
        let rank = shape.len().max(shape_signature.len());
        if rank > MAXIMUM_RANK {
            return Err(Error::Rank { tensor: index, rank });
        }
        let scalars = || -> Result<_, Fault> {
            let code = table.number::<i8>(what, 1, 0)?;
            let buffer = table.number::<u32>(what, 2, 0)?;
            let name = text(table, "tensor name", 3)?;
            let is_variable = table.number::<u8>(what, 5, 0)? != 0;
            let quantisation =
                table.table("tensor quantisation", 4)?.map(|table| quantisation(&table)).transpose()?;
            table.table("tensor sparsity", 6)?;
            Ok((code, buffer, name, is_variable, quantisation.flatten()))
        };
        let (code, buffer, name, is_variable, quantisation) = scalars().map_err(|fault| self.fault(fault))?;
        // Buffer 0 is the empty one; a file without buffers may still name it.
        let buffer = checked("a tensor", "buffer", i64::from(buffer), buffers.max(1))?;
        Ok(Tensor {
            name,
            data_type: DataType::from_code(code),
            shape,
            shape_signature,
            buffer,
            quantisation,
            is_variable,
        })
    }

    fn operator(
        &mut self,
        index: usize,
        table: &Table<'a>,
        codes: &[Code<'a>],
        tensors: usize,
    ) -> Result<Operator<'a>, Error> {
        let what = "operator";
        let scalars = || -> Result<_, Fault> {
            let opcode = table.number::<u32>(what, 0, 0)?;
            let kind = table.number::<u8>(what, 3, 0)?;
            let options = table.table("operator options", 4)?;
            let custom_options = table.string("custom options", 5)?.unwrap_or_default();
            table.table("operator options", 12)?;
            Ok((opcode, kind, options, custom_options))
        };
        let (opcode, kind, options, custom_options) = scalars().map_err(|fault| self.fault(fault))?;
        let code = &codes[checked("an operator", "operator code", i64::from(opcode), codes.len())?];
        let inputs = self.list(table, "operator inputs", 1)?;
        let inputs = inputs
            .into_iter()
            .map(|index| match index {
                -1 => Ok(None),
                index => checked("an operator", "input tensor", i64::from(index), tensors).map(Some),
            })
            .collect::<Result<_, _>>()?;
        let outputs = self.indices(table, "operator outputs", 2, tensors)?;
        let intermediates = self.indices(table, "operator intermediates", 8, tensors)?;
        Ok(Operator {
            index,
            code: code.code,
            custom_code: code.custom.clone(),
            version: code.version,
            inputs,
            outputs,
            intermediates,
            options: options.map(|table| Options { kind, table }),
            custom_options,
        })
    }

    fn metadata(&mut self, root: &Table<'a>, buffers: &[&'a [u8]]) -> Result<Vec<Metadata<'a>>, Error> {
        let what = "metadata";
        let tables = self.tables(root, what, 6)?;
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            let name = text(table, what, 0).map_err(|fault| self.fault(fault))?;
            let buffer = table.number::<u32>(what, 1, 0).map_err(|fault| self.fault(fault))?;
            let data = buffers[checked(what, "buffer", i64::from(buffer), buffers.len())?];
            all.push(Metadata { name, data });
        }
        Ok(all)
    }

    fn signatures(
        &mut self,
        root: &Table<'a>,
        subgraphs: &[Subgraph<'a>],
    ) -> Result<Vec<Signature<'a>>, Error> {
        let what = "signature";
        let tables = self.tables(root, "signatures", 7)?;
        let mut all = Vec::with_capacity(tables.len());
        for table in &tables {
            let key = text(table, what, 2).map_err(|fault| self.fault(fault))?;
            let subgraph = table.number::<u32>(what, 4, 0).map_err(|fault| self.fault(fault))?;
            let subgraph = checked(what, "subgraph", i64::from(subgraph), subgraphs.len())?;
            let count = subgraphs[subgraph].tensors.len();
            let mut sides = [Vec::new(), Vec::new()];
            for (slot, side) in sides.iter_mut().enumerate() {
                for map in self.tables(table, what, slot)? {
                    let name = text(&map, what, 0).map_err(|fault| self.fault(fault))?;
                    let tensor = map.number::<u32>(what, 1, 0).map_err(|fault| self.fault(fault))?;
                    side.push((name, checked(what, "tensor", i64::from(tensor), count)?));
                }
            }
            let [inputs, outputs] = sides;
            all.push(Signature { key, subgraph, inputs, outputs });
        }
        Ok(all)
    }
}

fn quantisation<'a>(table: &Table<'a>) -> Result<Option<Quantisation<'a>>, Fault> {
    let what = "tensor quantisation";
    table.numbers::<f32>(what, 0)?;
    table.numbers::<f32>(what, 1)?;
    let scales = table.numbers::<f32>(what, 2)?.unwrap_or(Numbers::EMPTY);
    let zero_points = table.numbers::<i64>(what, 3)?.unwrap_or(Numbers::EMPTY);
    let axis = table.number::<i32>(what, 6, 0)?;
    Ok((!scales.is_empty()).then_some(Quantisation { scales, zero_points, axis }))
}

fn checked(what: &'static str, list: &'static str, index: i64, count: usize) -> Result<usize, Error> {
    match usize::try_from(index) {
        Ok(small) if small < count => Ok(small),
        _ => Err(Error::Index { what, list, index, count }),
    }
}
