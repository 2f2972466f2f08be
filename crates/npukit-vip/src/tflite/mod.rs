//! A `.tflite` model as VeriSilicon's TFLite delegate would hand it to ovxlib: operators, types and quantisations.
//!
//! Only what admission needs is read. Every access is checked, nothing is allocated by a claimed length, and what
//! shared tables can make of a small file is bounded.

mod flatbuffer;
mod operators;

use crate::codes::{Quant, VxType};
use crate::graph::{ModelGraph, Operator, OperatorKind, Place, Quantisation, Tensor};
use flatbuffer::{Buffer, Table};

/// Why a file isn't a readable model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TfliteError {
    /// Not the identifier of a TFLite model.
    #[error("bytes 4 to 7 are {found:02x?}, not `TFL3`")]
    Identifier {
        /// The bytes found.
        found: [u8; 4],
    },
    /// The file ends inside something.
    #[error("{needed} bytes wanted at {offset:#x}, the file has {length:#x}")]
    Short {
        /// Where.
        offset: usize,
        /// How many.
        needed: usize,
        /// The file's length.
        length: usize,
    },
    /// An offset that leads nowhere.
    #[error("the offset at {at:#x} ({offset:#x}) leads out of the file")]
    Offset {
        /// Where it stands.
        at: usize,
        /// The offset.
        offset: u64,
    },
    /// A vector longer than the file.
    #[error("the vector at {at:#x} claims {claimed} elements, which the file doesn't hold")]
    Vector {
        /// Where it starts.
        at: usize,
        /// The claim.
        claimed: usize,
    },
    /// The same bytes described again and again.
    #[error("the model describes far more than its own size")]
    TooMuch,
    /// An index into a list that is shorter.
    #[error("{what} {index}, there are {count}")]
    Index {
        /// Of what.
        what: &'static str,
        /// The index.
        index: i64,
        /// The list's length.
        count: usize,
    },
    /// No graph.
    #[error("the model has no subgraph")]
    NoGraph,
}

/// The types that the delegate tells apart; it takes everything else for F32, and refuses I64 beforehand.
const TYPES: [(u8, VxType); 8] = [
    (0, VxType::F32),
    (1, VxType::F16),
    (2, VxType::I32),
    (3, VxType::U8),
    (4, VxType::I64),
    (6, VxType::I8), // a bool becomes INT8
    (7, VxType::I16),
    (9, VxType::I8),
];

/// Reads a model's first subgraph.
///
/// # Errors
/// See [`TfliteError`].
pub fn read(bytes: &[u8], source: &str) -> Result<ModelGraph, TfliteError> {
    let buffer = Buffer::new(bytes);
    let found = buffer.read::<4>(4)?;
    if &found != b"TFL3" {
        return Err(TfliteError::Identifier { found });
    }
    let model = buffer.root()?;
    let buffers = buffer.tables(model, 4)?;
    let codes = buffer.tables(model, 1)?;
    let graphs = buffer.tables(model, 2)?;
    let Some(graph) = graphs.first().copied() else { return Err(TfliteError::NoGraph) };
    let mut edge = buffer.i32s(graph, 1)?;
    edge.extend(buffer.i32s(graph, 2)?);
    edge.sort_unstable();
    let tensors = buffer
        .tables(graph, 0)?
        .into_iter()
        .zip(0..)
        .map(|(table, index)| tensor(&buffer, table, &buffers, edge.binary_search(&index).is_ok()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut result =
        ModelGraph { source: source.to_owned(), tensors, operators: Vec::new(), through_tim_vx: true };
    if graphs.len() > 1 {
        result.source += &format!(" (first of {} subgraphs)", graphs.len());
    }
    for (number, table) in buffer.tables(graph, 3)?.into_iter().enumerate() {
        operator(&buffer, table, number, &codes, &mut result)?;
    }
    Ok(result)
}

fn tensor(
    buffer: &Buffer<'_>,
    table: Table,
    buffers: &[Table],
    at_edge: bool,
) -> Result<Tensor, TfliteError> {
    let index = buffer.u32(table, 2)?;
    let data = buffers.get(index as usize).copied().ok_or(TfliteError::Index {
        what: "buffer",
        index: i64::from(index),
        count: buffers.len(),
    })?;
    // Large models keep their data behind the FlatBuffer: an offset above 1 means data too.
    let has_data = buffer.vector(data, 0, 1)?.length > 0 || buffer.u64(data, 1)? > 1;
    let variable = buffer.u8(table, 5)? != 0;
    let place = match (has_data && !variable, at_edge || variable) {
        (true, _) => Place::Constant,
        (false, true) => Place::Graph,
        (false, false) => Place::Virtual,
    };
    let number = buffer.u8(table, 1)?;
    let vx_type = TYPES.iter().find(|(n, _)| *n == number).map_or(VxType::F32, |(_, t)| *t);
    let mut shape: Vec<u32> = buffer.i32s(table, 0)?.into_iter().map(|dim| dim.max(0) as u32).collect();
    shape.reverse();
    let quant = match buffer.table(table, 4)? {
        Some(parameters) => quantisation(buffer, parameters)?,
        None => Quantisation::NONE,
    };
    Ok(Tensor { name: buffer.text(table, 3)?, vx_type, quant, shape: Some(shape), place })
}

/// One scale is ASYMMETRIC for the delegate, several are SYMMETRIC_PER_CHANNEL, whatever the zero points.
fn quantisation(buffer: &Buffer<'_>, parameters: Table) -> Result<Quantisation, TfliteError> {
    let scales = buffer.vector(parameters, 2, 4)?;
    let zero_points = buffer.vector(parameters, 3, 8)?;
    if scales.length == 0 || zero_points.length == 0 {
        return Ok(Quantisation::NONE);
    }
    let scheme = if scales.length > 1 { Quant::SYM_PC } else { Quant::ASYM };
    Ok(Quantisation {
        scheme,
        scale: buffer.first(scales)?.map(f32::from_le_bytes),
        zero_point: buffer.first(zero_points)?.map(|bytes| i64::from_le_bytes(bytes) as i32),
        fl: None,
        channels: scales.length,
    })
}

fn operator(
    buffer: &Buffer<'_>,
    table: Table,
    number: usize,
    codes: &[Table],
    graph: &mut ModelGraph,
) -> Result<(), TfliteError> {
    let index = buffer.u32(table, 0)?;
    let code = codes.get(index as usize).copied().ok_or(TfliteError::Index {
        what: "operator code",
        index: i64::from(index),
        count: codes.len(),
    })?;
    // The old field has eight bits and stops at 127; newer operators stand in the new one alone.
    let number_of = i32::from(buffer.u8(code, 0)? as i8).max(buffer.u32(code, 3)? as i32);
    let count = graph.tensors.len();
    let mut all_inputs = Vec::new();
    for index in buffer.i32s(table, 1)? {
        all_inputs.push(match index {
            -1 => None,
            _ => Some(usize::try_from(index).ok().filter(|i| *i < count).ok_or(TfliteError::Index {
                what: "input tensor",
                index: i64::from(index),
                count,
            })?),
        });
    }
    let outputs = buffer
        .i32s(table, 2)?
        .into_iter()
        .map(|index| {
            let wrong = TfliteError::Index { what: "output tensor", index: i64::from(index), count };
            usize::try_from(index).ok().filter(|i| *i < count).ok_or(wrong)
        })
        .collect::<Result<Vec<_>, _>>()?;

    let Some(builtin) = operators::BUILTINS.iter().find(|builtin| builtin.code == number_of) else {
        let custom = buffer.text(code, 1)?;
        let name =
            if custom.is_empty() { format!("builtin {number_of}") } else { format!("custom `{custom}`") };
        graph.operators.push(Operator {
            op: name.clone(),
            label: format!("{name} #{number}"),
            inputs: all_inputs,
            outputs,
            kind: OperatorKind::Plain,
            left_out: Some(format!("the TFLite delegate has no mapping for {name}")),
        });
        return Ok(());
    };

    let left_out = left_out(graph, builtin, &all_inputs, &outputs);
    let inputs: Vec<Option<usize>> = match builtin.inputs {
        [] => all_inputs,
        picked => picked.iter().filter_map(|i| all_inputs.get(*i).copied()).collect(),
    };
    let mut op = builtin.op;
    let mut kind = OperatorKind::Plain;
    match builtin.code {
        operators::DEPTHWISE_CONV_2D => kind = OperatorKind::Depthwise,
        // The delegate makes a grouped convolution where the weight has fewer channels than the input.
        operators::CONV_2D => {
            let channels = |index: usize| {
                inputs
                    .get(index)
                    .copied()
                    .flatten()
                    .and_then(|i| graph.tensors.get(i)?.shape.as_ref()?.first().copied())
            };
            if channels(0) != channels(1) {
                op = "GROUPED_CONV2D";
            }
        }
        _ => {}
    }
    let options = buffer.table(table, 4)?;
    let activation = match (builtin.fused, options) {
        (Some(field), Some(options)) => operators::activation(buffer.u8(options, field)?),
        _ => None,
    };
    let mut node = Operator {
        op: op.to_owned(),
        label: format!("{} #{number}", builtin.name),
        inputs,
        outputs,
        kind,
        left_out: left_out.clone(),
    };
    // A fused activation becomes a node of its own behind a tensor of the output's type.
    if let (Some(activation), [output]) = (activation, node.outputs.as_slice()) {
        let output = *output;
        let between = graph.tensors.len();
        let mut tensor = graph.tensors[output].clone();
        tensor.name += " before its activation";
        tensor.place = Place::Virtual;
        graph.tensors.push(tensor);
        node.outputs = vec![between];
        let label = format!("{} of {}", activation, node.label);
        graph.operators.push(node);
        graph.operators.push(Operator {
            op: activation.to_owned(),
            label,
            inputs: vec![Some(between)],
            outputs: vec![output],
            kind: OperatorKind::FusedActivation,
            left_out,
        });
    } else {
        graph.operators.push(node);
    }
    Ok(())
}

/// The delegate's own conditions (`OpMapperBase::IsSupported`).
fn left_out(
    graph: &ModelGraph,
    builtin: &operators::Builtin,
    inputs: &[Option<usize>],
    outputs: &[usize],
) -> Option<String> {
    if !builtin.delegated {
        return Some(format!("the TFLite delegate has no mapping for {}", builtin.name));
    }
    let refuse =
        |what: &str, tensor: &Tensor| Some(format!("the TFLite delegate refuses {what} (`{}`)", tensor.name));
    for tensor in inputs.iter().flatten().filter_map(|index| graph.tensors.get(*index)) {
        let shape = tensor.shape.as_deref().unwrap_or(&[]);
        if tensor.vx_type == VxType::I64 && builtin.code != operators::BROADCAST_TO {
            return refuse("an I64 input", tensor);
        }
        if shape.len() > 6 {
            return refuse("an input of more than six dimensions", tensor);
        }
        if shape.contains(&0) {
            return refuse("an input with a dimension of 0", tensor);
        }
        // The first dimension, the slowest-running, may be larger.
        if shape.iter().rev().skip(1).any(|dim| *dim > 65535) {
            return refuse("an input dimension above 65535", tensor);
        }
    }
    for tensor in outputs.iter().filter_map(|index| graph.tensors.get(*index)) {
        if tensor.vx_type == VxType::I16 {
            return refuse("an I16 output", tensor);
        }
        if tensor.vx_type == VxType::I64 {
            return refuse("an I64 output", tensor);
        }
        if tensor.shape.as_deref().unwrap_or(&[]).contains(&0) {
            return refuse("an output with a dimension of 0", tensor);
        }
    }
    None
}
