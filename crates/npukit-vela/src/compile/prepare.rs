//! Looks at a network before a compiler runs: refuses what can't work, fixes an open batch size.

use super::CompileError;
use crate::tflite::{self, DataType, Model, Subgraph};

/// A network that can be given to Vela.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Prepared {
    /// The `.tflite` file, with an open batch size fixed to 1.
    pub network: Vec<u8>,
    /// Whether it keeps values from one inference to the next.
    pub stateful: bool,
    /// What was changed, one sentence each.
    pub notes: Vec<String>,
}

/// Checks that a network can be compiled at all, and makes its shapes definite.
///
/// # Errors
///
/// [`CompileError`]: not a `.tflite` file, damaged, compiled already, not quantised, or of open size.
pub fn prepare(network: &[u8]) -> Result<Prepared, CompileError> {
    let model = Model::parse(network)?;
    if model.is_compiled() {
        return Err(CompileError::AlreadyCompiled);
    }
    let graph = model.main();
    let missing = [("operators", graph.operators.is_empty()), ("inputs", graph.inputs.is_empty())];
    for (what, empty) in missing.into_iter().chain([("outputs", graph.outputs.is_empty())]) {
        if empty {
            return Err(CompileError::Empty { what });
        }
    }
    refuse_floats(&model, graph)?;
    let stateful = model.is_stateful();
    let open = open_batches(&model)?;
    if open.is_empty() {
        return Ok(Prepared { network: network.to_vec(), stateful, notes: Vec::new() });
    }
    let network = tflite::with_batch_of_one(network)?;
    let notes = vec![format!("the batch size, which {} leaves open, is fixed to 1", open.join(", "))];
    Ok(Prepared { network, stateful, notes })
}

fn refuse_floats(model: &Model<'_>, graph: &Subgraph<'_>) -> Result<(), CompileError> {
    let computed = || graph.tensors.iter().enumerate().filter(|(_, tensor)| model.data(tensor).is_none());
    let quantised = computed()
        .any(|(_, tensor)| matches!(tensor.data_type, DataType::Int8 | DataType::Uint8 | DataType::Int16));
    let float = graph.inputs.iter().copied().find(|&index| graph.tensors[index].data_type.is_float());
    let float =
        float.or_else(|| computed().find(|(_, tensor)| tensor.data_type.is_float()).map(|(index, _)| index));
    match float {
        Some(index) if !quantised => Err(CompileError::Float {
            tensor: graph.describe(index),
            data_type: graph.tensors[index].data_type,
        }),
        _ => Ok(()),
    }
}

/// The inputs whose batch size is open. An error when anything else is.
fn open_batches(model: &Model<'_>) -> Result<Vec<String>, CompileError> {
    let mut inputs = Vec::new();
    for graph in &model.subgraphs {
        for (index, tensor) in graph.tensors.iter().enumerate() {
            let signature =
                if tensor.shape_signature.is_empty() { &tensor.shape } else { &tensor.shape_signature };
            if model.data(tensor).is_some() || signature.iter().all(|&axis| axis >= 0) {
                continue;
            }
            if signature[1..].iter().any(|&axis| axis < 0) {
                let signature = signature.clone();
                return Err(CompileError::DynamicShape { tensor: graph.describe(index), signature });
            }
            if let Some(&batch) = tensor.shape.first().filter(|&&batch| batch > 1) {
                return Err(CompileError::BatchSize { tensor: graph.describe(index), batch });
            }
            if graph.inputs.contains(&index) || inputs.is_empty() {
                inputs.push(graph.describe(index));
            }
        }
    }
    Ok(inputs)
}
