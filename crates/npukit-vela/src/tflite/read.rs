//! Reads a whole `.tflite` file into a [`Model`], checking every reference and index on the way.
//!
//! Field numbers are those of schema.fbs (TensorFlow Lite), in the order of its tables.

use std::borrow::Cow;

use super::flatbuffer::{Fault, Numbers, Table, Tables};
use super::{
    BuiltinOperator, DataType, Error, Metadata, Model, Operator, Options, Quantisation, Signature, Subgraph,
    Tensor,
};

/// The most axes a tensor may have here. TensorFlow Lite's kernels stop at 8.
const MAXIMUM_RANK: usize = 64;

/// A file that is being read.
pub(super) struct Reader<'a> {
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
    pub(super) fn new(data: &'a [u8]) -> Self {
        Reader { data, budget: data.len() }
    }

    /// A fault with the file's length, for a reader's eyes.
    pub(super) fn fault(&self, fault: Fault) -> Error {
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

    /// Reads everything.
    pub(super) fn model(mut self) -> Result<Model<'a>, Error> {
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
