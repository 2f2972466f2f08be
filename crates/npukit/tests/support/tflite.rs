//! Writes networks of one operator. Field numbers are those of schema.fbs, in the order of its tables.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, VOffsetT, WIPOffset};

pub const FLOAT32: i8 = 0;
pub const INT32: i8 = 2;
pub const UINT8: i8 = 3;
pub const BOOL: i8 = 6;
pub const INT8: i8 = 9;

#[derive(Clone, Default)]
pub struct Tensor {
    name: &'static str,
    kind: i8,
    shape: Vec<i32>,
    signature: Vec<i32>,
    quantisation: Option<(f32, i64)>,
    data: Vec<u8>,
}

impl Tensor {
    pub fn quantised(name: &'static str, kind: i8, shape: &[i32], scale: f32, zero_point: i64) -> Tensor {
        Tensor {
            name,
            kind,
            shape: shape.into(),
            quantisation: Some((scale, zero_point)),
            ..Tensor::default()
        }
    }

    pub fn float(name: &'static str, shape: &[i32]) -> Tensor {
        Tensor { name, kind: FLOAT32, shape: shape.into(), ..Tensor::default() }
    }

    /// A constant list of integers.
    pub fn integers(name: &'static str, shape: &[i32], values: &[i32]) -> Tensor {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Tensor { name, kind: INT32, shape: shape.into(), data, ..Tensor::default() }
    }

    /// Leaves axes open.
    pub fn open(mut self, signature: &[i32]) -> Tensor {
        self.signature = signature.into();
        self
    }
}

/// The operator: its number, the number of its options' table, and their fields, written as 32-bit integers, whose first byte a flag is.
pub struct Operator {
    pub code: i32,
    pub options: u8,
    pub bytes: &'static [(usize, u8)],
}

/// A network of one operator. The tensors are the operator's inputs, then its output; those without data are the
/// network's inputs.
pub fn network(operator: &Operator, tensors: &[Tensor]) -> Vec<u8> {
    let output = tensors.len() - 1;
    graph(&[(operator, &(0..output).collect::<Vec<_>>(), output)], tensors)
}

/// A network of several operators, each with its inputs and its output among the tensors. Tensors without data that no
/// operator makes are the network's inputs, the last operator's output is its output.
pub fn graph(steps: &[(&Operator, &[usize], usize)], tensors: &[Tensor]) -> Vec<u8> {
    let mut fbb = FlatBufferBuilder::new();
    // Buffer 0 is the empty one.
    let mut buffers = vec![table(&mut fbb, |_| {})];
    let mut written = Vec::new();
    for tensor in tensors {
        let buffer = if tensor.data.is_empty() { 0 } else { buffers.len() as u32 };
        if buffer > 0 {
            let data = fbb.create_vector(&tensor.data);
            buffers.push(table(&mut fbb, |fbb| fbb.push_slot_always(slot(0), data)));
        }
        written.push(write_tensor(&mut fbb, tensor, buffer));
    }
    let (buffers, written) = (fbb.create_vector(&buffers), fbb.create_vector(&written));
    let made = |index: usize| steps.iter().any(|step| step.2 == index);
    let free = (0..tensors.len()).filter(|&index| tensors[index].data.is_empty() && !made(index));
    let free: Vec<i32> = free.map(|index| index as i32).collect();
    let free = fbb.create_vector(&free);
    let output = fbb.create_vector(&[steps[steps.len() - 1].2 as i32]);
    let mut operators = Vec::new();
    for (code, &(operator, inputs, made)) in steps.iter().enumerate() {
        let inputs: Vec<i32> = inputs.iter().map(|&index| index as i32).collect();
        let (inputs, made) = (fbb.create_vector(&inputs), fbb.create_vector(&[made as i32]));
        let options = table(&mut fbb, |fbb| {
            operator
                .bytes
                .iter()
                .for_each(|&(field, value)| fbb.push_slot_always(slot(field), i32::from(value)));
        });
        operators.push(table(&mut fbb, |fbb| {
            fbb.push_slot_always(slot(0), code as u32);
            fbb.push_slot_always(slot(1), inputs);
            fbb.push_slot_always(slot(2), made);
            fbb.push_slot_always(slot(3), operator.options);
            fbb.push_slot_always(slot(4), options);
        }));
    }
    let operators = fbb.create_vector(&operators);
    let graph = table(&mut fbb, |fbb| {
        fbb.push_slot_always(slot(0), written);
        fbb.push_slot_always(slot(1), free);
        fbb.push_slot_always(slot(2), output);
        fbb.push_slot_always(slot(3), operators);
    });
    let codes: Vec<_> = steps
        .iter()
        .map(|(operator, ..)| {
            table(&mut fbb, |fbb| {
                fbb.push_slot_always(slot(0), operator.code.min(127) as i8);
                fbb.push_slot_always(slot(2), 1i32);
                fbb.push_slot_always(slot(3), operator.code);
            })
        })
        .collect();
    let (graphs, codes) = (fbb.create_vector(&[graph]), fbb.create_vector(&codes));
    let root = table(&mut fbb, |fbb| {
        fbb.push_slot_always(slot(0), 3u32);
        fbb.push_slot_always(slot(1), codes);
        fbb.push_slot_always(slot(2), graphs);
        fbb.push_slot_always(slot(4), buffers);
    });
    fbb.finish(root, Some("TFL3"));
    fbb.finished_data().to_vec()
}

fn write_tensor<'f>(
    fbb: &mut FlatBufferBuilder<'f>,
    tensor: &Tensor,
    buffer: u32,
) -> WIPOffset<UnionWIPOffset> {
    let (name, shape) = (fbb.create_string(tensor.name), fbb.create_vector(&tensor.shape));
    let signature = (!tensor.signature.is_empty()).then(|| fbb.create_vector(&tensor.signature));
    let quantisation = tensor.quantisation.map(|(scale, zero_point)| {
        let (scales, zero_points) = (fbb.create_vector(&[scale]), fbb.create_vector(&[zero_point]));
        table(fbb, |fbb| {
            fbb.push_slot_always(slot(2), scales);
            fbb.push_slot_always(slot(3), zero_points);
        })
    });
    table(fbb, |fbb| {
        fbb.push_slot_always(slot(0), shape);
        fbb.push_slot_always(slot(1), tensor.kind);
        fbb.push_slot_always(slot(2), buffer);
        fbb.push_slot_always(slot(3), name);
        if let Some(quantisation) = quantisation {
            fbb.push_slot_always(slot(4), quantisation);
        }
        if let Some(signature) = signature {
            fbb.push_slot_always(slot(7), signature);
        }
    })
}

fn slot(field: usize) -> VOffsetT {
    4 + 2 * field as VOffsetT
}

fn table<'f>(
    fbb: &mut FlatBufferBuilder<'f>,
    fill: impl FnOnce(&mut FlatBufferBuilder<'f>),
) -> WIPOffset<UnionWIPOffset> {
    let start = fbb.start_table();
    fill(fbb);
    fbb.end_table(start).as_union_value()
}
