//! The one change this crate makes to a network: which of its tensors are its outputs.

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
    let reader = Reader { data, budget: 0 };
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
