//! The two changes this crate makes to a network: which of its tensors are its outputs, and its batch size.

use super::flatbuffer::Table;
use super::{Error, Model, Reader};

/// A copy of a `.tflite` file whose first subgraph has the given tensors as outputs.
///
/// A runtime then computes and shows tensors that are otherwise inside the network. The new list is put behind
/// the file's last byte; nothing else moves.
///
/// # Errors
///
/// As [`Model::parse`], or [`Error::Index`] for a tensor that isn't there.
pub fn with_outputs(data: &[u8], outputs: &[usize]) -> Result<Vec<u8>, Error> {
    let count = Model::parse(data)?.main().tensors.len();
    let reader = Reader::new(data);
    let fault = |fault| reader.fault(fault);
    let root = Table::root(data, "the root table").map_err(fault)?;
    let subgraph = root.tables("subgraphs", 2).map_err(fault)?.and_then(|tables| tables.iter().next());
    let subgraph = subgraph.ok_or(Error::Missing { what: "subgraph" })?.map_err(fault)?;
    let what = "the graph's output list";
    let position = subgraph.reference_position(what, 2).map_err(fault)?.ok_or(Error::Missing { what })?;

    let mut edited = data.to_vec();
    edited.resize(data.len().next_multiple_of(4), 0);
    let list = edited.len();
    let entries = u32::try_from(outputs.len()).unwrap_or(u32::MAX);
    edited.extend_from_slice(&entries.to_le_bytes());
    for &output in outputs {
        let index = u32::try_from(output).ok().filter(|_| output < count);
        let index = index.ok_or(Error::Index { what, list: "tensor", index: output as i64, count })?;
        edited.extend_from_slice(&index.to_le_bytes());
    }
    let too_far = Error::OutOfBounds { what, offset: position, end: list as u64, file_bytes: data.len() };
    let distance = u32::try_from(list - position).map_err(|_| too_far)?;
    edited[position..position + 4].copy_from_slice(&distance.to_le_bytes());
    Ok(edited)
}

/// A copy of a `.tflite` file in which every open first axis is 1.
///
/// Only numbers in the file change; nothing moves.
///
/// # Errors
///
/// As [`Model::parse`], or [`Error::SharedShape`] when the file has one shape for an open tensor and a constant.
pub fn with_batch_of_one(data: &[u8]) -> Result<Vec<u8>, Error> {
    let before = Model::parse(data)?;
    let reader = Reader::new(data);
    let fault = |fault| reader.fault(fault);
    let mut edited = data.to_vec();
    let root = Table::root(data, "the root table").map_err(fault)?;
    let mut all = Vec::new();
    for subgraph in root.tables("subgraphs", 2).map_err(fault)?.into_iter().flat_map(|tables| tables.iter()) {
        let tensors = subgraph.and_then(|table| table.tables("tensors", 0)).map_err(fault)?;
        all.extend(tensors.into_iter().flat_map(|tables| tables.iter()));
    }
    for (table, tensor) in all.into_iter().zip(before.subgraphs.iter().flat_map(|graph| &graph.tensors)) {
        let table = table.map_err(fault)?;
        let open = |axes: &[i32]| axes.first().is_some_and(|&axis| axis < 0);
        if before.data(tensor).is_some() || !(open(&tensor.shape) || open(&tensor.shape_signature)) {
            continue;
        }
        // Where both are there, they are to say the same.
        for (what, slot) in [("tensor shape", 0), ("tensor shape signature", 7)] {
            if let Some(at) = table.numbers_position(what, slot).map_err(fault)?
                && table.numbers::<i32>(what, slot).map_err(fault)?.is_some_and(|numbers| !numbers.is_empty())
            {
                edited[at..at + 4].copy_from_slice(&1i32.to_le_bytes());
            }
        }
    }
    let after = Model::parse(&edited)?;
    for (old, new) in before.subgraphs.iter().zip(&after.subgraphs) {
        for (tensor, (old, new)) in old.tensors.iter().zip(&new.tensors).enumerate() {
            if before.data(old).is_some() && old.shape != new.shape {
                return Err(Error::SharedShape { tensor });
            }
        }
    }
    Ok(edited)
}
