//! Writes small `.tflite` networks. Field numbers are those of schema.fbs, in the order of its tables.

use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, VOffsetT, WIPOffset};

use super::Noise;

pub const FLOAT32: i8 = 0;
pub const INT32: i8 = 2;
pub const UINT8: i8 = 3;
pub const INT16: i8 = 7;
pub const INT8: i8 = 9;
pub const RESOURCE: i8 = 13;

pub const CONCATENATION: i32 = 2;
pub const CONV_2D: i32 = 3;
pub const RESHAPE: i32 = 22;
pub const CUSTOM: i32 = 32;
pub const SUB: i32 = 41;
pub const LSTM: i32 = 44;
pub const STRIDED_SLICE: i32 = 45;
pub const CALL_ONCE: i32 = 129;
pub const VAR_HANDLE: i32 = 142;
pub const READ_VARIABLE: i32 = 143;
pub const ASSIGN_VARIABLE: i32 = 144;

/// A field of an operator's options.
#[derive(Clone)]
pub enum Field {
    Byte(u8),
    Int(i32),
    Text(&'static str),
}

#[derive(Clone, Default)]
struct Tensor {
    name: String,
    kind: i8,
    shape: Vec<i32>,
    signature: Vec<i32>,
    buffer: u32,
    scales: Vec<f32>,
    zero_point: i64,
    variable: bool,
}

#[derive(Clone)]
struct Operator {
    code: i32,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
    intermediates: Vec<i32>,
    options: Option<(u8, Vec<(usize, Field)>)>,
}

#[derive(Clone, Default)]
struct Graph {
    tensors: Vec<Tensor>,
    operators: Vec<Operator>,
    inputs: Vec<i32>,
    outputs: Vec<i32>,
}

/// A network in the making. Tensors and operators go to the last subgraph.
#[derive(Clone)]
pub struct Network {
    graphs: Vec<Graph>,
    buffers: Vec<Vec<u8>>,
    codes: Vec<i32>,
    custom_code: Option<&'static str>,
    noise: u64,
}

impl Default for Network {
    fn default() -> Self {
        // Buffer 0 is the empty one.
        Network {
            graphs: vec![Graph::default()],
            buffers: vec![Vec::new()],
            codes: Vec::new(),
            custom_code: None,
            noise: 7,
        }
    }
}

impl Network {
    pub fn new() -> Self {
        Self::default()
    }

    fn graph(&mut self) -> &mut Graph {
        self.graphs.last_mut().expect("there is one from the start")
    }

    pub fn next_graph(&mut self) {
        self.graphs.push(Graph::default());
    }

    fn push(&mut self, tensor: Tensor) -> i32 {
        let tensors = &mut self.graph().tensors;
        tensors.push(tensor);
        tensors.len() as i32 - 1
    }

    /// A quantised tensor that is computed or given.
    pub fn tensor(&mut self, name: &str, kind: i8, shape: &[i32], scale: f32, zero_point: i64) -> i32 {
        self.push(Tensor {
            name: name.into(),
            kind,
            shape: shape.into(),
            scales: vec![scale],
            zero_point,
            ..Tensor::default()
        })
    }

    pub fn unquantised(&mut self, name: &str, kind: i8, shape: &[i32]) -> i32 {
        self.push(Tensor { name: name.into(), kind, shape: shape.into(), ..Tensor::default() })
    }

    pub fn signature(&mut self, tensor: i32, signature: &[i32]) {
        self.graph().tensors[tensor as usize].signature = signature.into();
    }

    pub fn variable(&mut self, name: &str, kind: i8, shape: &[i32], scale: f32, zero_point: i64) -> i32 {
        let tensor = self.tensor(name, kind, shape, scale, zero_point);
        self.graph().tensors[tensor as usize].variable = true;
        tensor
    }

    pub fn constant(&mut self, name: &str, kind: i8, shape: &[i32], scales: &[f32], data: Vec<u8>) -> i32 {
        self.buffers.push(data);
        let buffer = self.buffers.len() as u32 - 1;
        self.push(Tensor {
            name: name.into(),
            kind,
            shape: shape.into(),
            scales: scales.into(),
            buffer,
            ..Tensor::default()
        })
    }

    pub fn ints(&mut self, name: &str, values: &[i32]) -> i32 {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, INT32, &[values.len() as i32], &[], data)
    }

    /// Constant bytes that look random.
    pub fn weights(&mut self, name: &str, shape: &[i32], scale: f32) -> i32 {
        self.noise += 1;
        let count = shape.iter().product::<i32>() as usize;
        let data = Noise(self.noise).bytes(count).iter().map(|&byte| byte.max(0x81)).collect();
        self.constant(name, INT8, shape, &[scale], data)
    }

    pub fn operator(
        &mut self,
        code: i32,
        inputs: &[i32],
        outputs: &[i32],
        options: Option<(u8, Vec<(usize, Field)>)>,
    ) {
        self.graph().operators.push(Operator {
            code,
            inputs: inputs.into(),
            outputs: outputs.into(),
            intermediates: Vec::new(),
            options,
        });
    }

    /// An operator that isn't built in. All custom operators of a network have one name.
    pub fn custom(&mut self, name: &'static str, inputs: &[i32], outputs: &[i32]) {
        self.custom_code = Some(name);
        self.operator(CUSTOM, inputs, outputs, None);
    }

    pub fn intermediates(&mut self, intermediates: &[i32]) {
        self.graph().operators.last_mut().expect("an operator").intermediates = intermediates.into();
    }

    /// A 1 x 1 convolution from `x` to `y`.
    pub fn convolution(&mut self, x: i32, input_channels: i32, y: i32, output_channels: i32) {
        self.convolution_over(x, &[output_channels, 1, 1, input_channels], y);
    }

    pub fn convolution_over(&mut self, x: i32, weights: &[i32; 4], y: i32) {
        let w = self.weights("weights", weights, 0.01);
        let data = (0..weights[0]).flat_map(|channel| (37 * channel - 50).to_le_bytes()).collect();
        let b = self.constant("bias", INT32, &[weights[0]], &[0.0005], data);
        // Conv2DOptions: padding VALID, strides of one.
        let options = vec![(0, Field::Byte(1)), (1, Field::Int(1)), (2, Field::Int(1))];
        self.operator(CONV_2D, &[x, w, b], &[y], Some((1, options)));
    }

    pub fn subtraction(&mut self, a: i32, b: i32, y: i32) {
        self.operator(SUB, &[a, b], &[y], Some((28, Vec::new())));
    }

    pub fn finish_graph(&mut self, inputs: &[i32], outputs: &[i32]) {
        let graph = self.graph();
        graph.inputs = inputs.into();
        graph.outputs = outputs.into();
    }

    /// The file with its constants behind the flatbuffer, as files beyond 2 GiB have them.
    pub fn bytes_with_data_behind(&self) -> Vec<u8> {
        // The offsets don't change the length, so a first attempt with any offset tells where the data will lie.
        let length = self.write(Some(1 << 20)).len();
        let mut file = self.write(Some(length as u64));
        file.extend(self.buffers.iter().flatten());
        file
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.write(None)
    }

    /// Writes the flatbuffer; with `data_at`, constants aren't in it but at that offset one after another.
    fn write(&self, data_at: Option<u64>) -> Vec<u8> {
        let mut network = self.clone();
        let mut fbb = FlatBufferBuilder::new();
        let graphs: Vec<_> = self.graphs.iter().map(|graph| network.write_graph(&mut fbb, graph)).collect();
        let graphs = fbb.create_vector(&graphs);
        let mut next = data_at.unwrap_or_default();
        let buffers: Vec<_> = self
            .buffers
            .iter()
            .map(|data| {
                let inside = (!data.is_empty() && data_at.is_none()).then(|| fbb.create_vector(data));
                let offset = next;
                next += data.len() as u64;
                table(&mut fbb, |fbb| {
                    reference(fbb, 0, inside);
                    if data_at.is_some() && !data.is_empty() {
                        fbb.push_slot_always(slot(1), offset);
                        fbb.push_slot_always(slot(2), data.len() as u64);
                    }
                })
            })
            .collect();
        let buffers = fbb.create_vector(&buffers);
        let codes: Vec<_> = network
            .codes
            .iter()
            .map(|&code| {
                let name = network.custom_code.filter(|_| code == CUSTOM).map(|name| fbb.create_string(name));
                table(&mut fbb, |fbb| {
                    fbb.push_slot::<i8>(slot(0), code.min(127) as i8, 0);
                    reference(fbb, 1, name);
                    fbb.push_slot::<i32>(slot(3), code, 0);
                })
            })
            .collect();
        let codes = fbb.create_vector(&codes);
        let description = fbb.create_string("made by a test");
        let root = table(&mut fbb, |fbb| {
            fbb.push_slot::<u32>(slot(0), 3, 0);
            reference(fbb, 1, Some(codes));
            reference(fbb, 2, Some(graphs));
            reference(fbb, 3, Some(description));
            reference(fbb, 4, Some(buffers));
        });
        fbb.finish(root, Some("TFL3"));
        fbb.finished_data().to_vec()
    }

    fn write_graph<'f>(
        &mut self,
        fbb: &mut FlatBufferBuilder<'f>,
        graph: &Graph,
    ) -> WIPOffset<UnionWIPOffset> {
        let tensors: Vec<_> = graph.tensors.iter().map(|tensor| write_tensor(fbb, tensor)).collect();
        let tensors = fbb.create_vector(&tensors);
        let operators: Vec<_> =
            graph.operators.iter().map(|operator| self.write_operator(fbb, operator)).collect();
        let operators = fbb.create_vector(&operators);
        let inputs = fbb.create_vector(&graph.inputs);
        let outputs = fbb.create_vector(&graph.outputs);
        table(fbb, |fbb| {
            reference(fbb, 0, Some(tensors));
            reference(fbb, 1, Some(inputs));
            reference(fbb, 2, Some(outputs));
            reference(fbb, 3, Some(operators));
        })
    }

    fn write_operator(
        &mut self,
        fbb: &mut FlatBufferBuilder<'_>,
        operator: &Operator,
    ) -> WIPOffset<UnionWIPOffset> {
        let code = self.codes.iter().position(|&code| code == operator.code).unwrap_or_else(|| {
            self.codes.push(operator.code);
            self.codes.len() - 1
        });
        let inputs = fbb.create_vector(&operator.inputs);
        let outputs = fbb.create_vector(&operator.outputs);
        let intermediates =
            (!operator.intermediates.is_empty()).then(|| fbb.create_vector(&operator.intermediates));
        let options = operator.options.as_ref().map(|(_, fields)| {
            let texts: Vec<_> = fields
                .iter()
                .filter_map(|(field, value)| match value {
                    Field::Text(text) => Some((*field, fbb.create_string(text))),
                    _ => None,
                })
                .collect();
            table(fbb, |fbb| {
                for (field, value) in fields {
                    match value {
                        Field::Byte(value) => fbb.push_slot_always(slot(*field), *value),
                        Field::Int(value) => fbb.push_slot_always(slot(*field), *value),
                        Field::Text(_) => {}
                    }
                }
                for (field, text) in texts {
                    reference(fbb, field, Some(text));
                }
            })
        });
        table(fbb, |fbb| {
            fbb.push_slot::<u32>(slot(0), code as u32, 0);
            reference(fbb, 1, Some(inputs));
            reference(fbb, 2, Some(outputs));
            if let Some((kind, _)) = &operator.options {
                fbb.push_slot_always(slot(3), *kind);
            }
            reference(fbb, 4, options);
            reference(fbb, 8, intermediates);
        })
    }
}

fn write_tensor(fbb: &mut FlatBufferBuilder<'_>, tensor: &Tensor) -> WIPOffset<UnionWIPOffset> {
    let name = fbb.create_string(&tensor.name);
    let shape = fbb.create_vector(&tensor.shape);
    let signature = (!tensor.signature.is_empty()).then(|| fbb.create_vector(&tensor.signature));
    let quantisation = (!tensor.scales.is_empty()).then(|| {
        let scales = fbb.create_vector(&tensor.scales);
        let zero_points = fbb.create_vector(&vec![tensor.zero_point; tensor.scales.len()]);
        table(fbb, |fbb| {
            reference(fbb, 2, Some(scales));
            reference(fbb, 3, Some(zero_points));
        })
    });
    table(fbb, |fbb| {
        reference(fbb, 0, Some(shape));
        fbb.push_slot::<i8>(slot(1), tensor.kind, 0);
        fbb.push_slot::<u32>(slot(2), tensor.buffer, 0);
        reference(fbb, 3, Some(name));
        reference(fbb, 4, quantisation);
        fbb.push_slot::<bool>(slot(5), tensor.variable, false);
        reference(fbb, 7, signature);
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

fn reference<T>(fbb: &mut FlatBufferBuilder<'_>, field: usize, to: Option<WIPOffset<T>>) {
    if let Some(to) = to {
        fbb.push_slot_always(slot(field), to.as_union_value());
    }
}

/// `y = a - convolution(b)`: two inputs, used in the other order than they are listed.
pub fn two_inputs() -> Vec<u8> {
    layered().bytes()
}

pub fn layered() -> Network {
    let mut network = Network::new();
    let a = network.tensor("a", INT8, &[1, 8, 8, 4], 0.05, -3);
    let b = network.tensor("b", INT8, &[1, 8, 8, 8], 0.05, -3);
    let c = network.tensor("c", INT8, &[1, 8, 8, 4], 0.05, -3);
    let y = network.tensor("y", INT8, &[1, 8, 8, 4], 0.1, 0);
    network.convolution(b, 8, c, 4);
    network.subtraction(a, c, y);
    network.finish_graph(&[a, b], &[y]);
    network
}

/// A layer over the last three inputs, the two before kept in a resource variable that starts at `initial`.
pub fn streaming(initial: i8) -> Vec<u8> {
    let mut network = Network::new();
    let (scale, zero) = (0.05, -3);
    let x = network.tensor("x", INT8, &[1, 1, 1, 4], scale, zero);
    let handle = network.unquantised("handle", RESOURCE, &[]);
    let previous = network.tensor("previous", INT8, &[1, 2, 1, 4], scale, zero);
    let all = network.tensor("all", INT8, &[1, 3, 1, 4], scale, zero);
    let begin = network.ints("begin", &[0, 1, 0, 0]);
    let end = network.ints("end", &[0, 3, 0, 0]);
    let strides = network.ints("strides", &[1, 1, 1, 1]);
    let next = network.tensor("next", INT8, &[1, 2, 1, 4], scale, zero);
    let y = network.tensor("y", INT8, &[1, 1, 1, 8], 0.1, 5);
    let variable = || Some((111, vec![(1, Field::Text("state"))]));
    // CallOnceOptions: the subgraph.
    network.operator(CALL_ONCE, &[], &[], Some((103, vec![(0, Field::Int(1))])));
    network.operator(VAR_HANDLE, &[], &[handle], variable());
    network.operator(READ_VARIABLE, &[handle], &[previous], Some((112, Vec::new())));
    network.operator(CONCATENATION, &[previous, x], &[all], Some((10, vec![(0, Field::Int(1))])));
    // StridedSliceOptions: all but the second axis begins where the tensor does; all axes end where it does.
    let masks = vec![(0, Field::Int(0b1101)), (1, Field::Int(0b1111))];
    network.operator(STRIDED_SLICE, &[all, begin, end, strides], &[next], Some((32, masks)));
    network.operator(ASSIGN_VARIABLE, &[handle, next], &[], Some((113, Vec::new())));
    network.convolution_over(all, &[8, 3, 1, 4], y);
    network.finish_graph(&[x], &[y]);
    network.next_graph();
    let handle = network.unquantised("handle", RESOURCE, &[]);
    let zeros = network.constant("zeros", INT8, &[1, 2, 1, 4], &[scale], vec![initial.cast_unsigned(); 8]);
    network.operator(VAR_HANDLE, &[], &[handle], variable());
    network.operator(ASSIGN_VARIABLE, &[handle, zeros], &[], Some((113, Vec::new())));
    network.finish_graph(&[], &[]);
    network.bytes()
}

/// A network that is a long short-term memory: two steps of four values in, eight out; state in variable tensors.
pub fn lstm() -> Vec<u8> {
    let mut network = Network::new();
    let (steps, width, units) = (2, 4, 8);
    let hidden = 1.0 / 128.0;
    let x = network.tensor("x", INT8, &[1, steps, width], 0.02, -7);
    let mut inputs = vec![x];
    for gate in ["input", "forget", "cell", "output"] {
        inputs.push(network.weights(&format!("{gate} weights"), &[units, width], 0.01));
    }
    for gate in ["input", "forget", "cell", "output"] {
        inputs.push(network.weights(&format!("{gate} recurrent weights"), &[units, units], 0.008));
    }
    inputs.extend([-1, -1, -1]);
    for gate in ["input", "forget", "cell", "output"] {
        let data = (0..units).flat_map(|unit| (100 * unit - 300).to_le_bytes()).collect();
        inputs.push(network.constant(&format!("{gate} bias"), INT32, &[units], &[0.0002], data));
    }
    inputs.extend([-1, -1]);
    inputs.push(network.variable("hidden state", INT8, &[1, units], hidden, -4));
    inputs.push(network.variable("cell state", INT16, &[1, units], 1.0 / 4096.0, 0));
    inputs.extend([-1, -1, -1, -1]);
    let mut intermediates: Vec<i32> =
        ["i", "f", "c", "o"].iter().map(|name| network.unquantised(name, FLOAT32, &[0])).collect();
    intermediates.push(network.tensor("hidden scale", INT8, &[0], hidden, -4));
    let y = network.tensor("y", INT8, &[1, steps, units], hidden, -4);
    // UnidirectionalSequenceLSTMOptions: activation TANH.
    network.operator(LSTM, &inputs, &[y], Some((71, vec![(0, Field::Byte(4))])));
    network.intermediates(&intermediates);
    network.finish_graph(&[x], &[y]);
    network.bytes()
}
