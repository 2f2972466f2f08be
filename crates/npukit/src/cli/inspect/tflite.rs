//! What is in a `.tflite` that Vela hasn't seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use npukit::defects::{self, KnownDefect};
use npukit_vela::compile::prepare;
use npukit_vela::tflite::{Model, Subgraph};
use serde::Serialize;

use crate::cli::describe::{self, grouped};
use crate::cli::report::{caution, heading, table};

#[derive(Serialize)]
pub(super) struct Report {
    kind: &'static str,
    file: String,
    description: String,
    bytes: usize,
    constant_bytes: usize,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    stateful: bool,
    operator_counts: BTreeMap<String, usize>,
    operators: Vec<Operator>,
    tensors: usize,
    subgraphs: usize,
    known_defects: Vec<KnownDefect>,
    /// Why Vela wouldn't be started, if so.
    obstacle: Option<String>,
}

/// A tensor as the file has it.
#[derive(Serialize)]
pub(super) struct Tensor {
    name: String,
    dtype: &'static str,
    shape: Vec<i32>,
    /// The shape with -1 for what is open, where something is.
    open_shape: Option<Vec<i32>>,
    scale: Option<f32>,
    zero_point: Option<i64>,
    /// How many scales there are along an axis.
    scales: usize,
}

#[derive(Serialize)]
struct Operator {
    index: usize,
    operator: String,
    output: Option<Tensor>,
    constant_bytes: usize,
}

pub(super) fn report(path: &Path, bytes: &[u8], model: &Model<'_>) -> Report {
    let graph = model.main();
    let mut operator_counts = BTreeMap::new();
    let mut operators = Vec::new();
    for operator in &graph.operators {
        *operator_counts.entry(operator.name().into_owned()).or_default() += 1;
        let constants =
            operator.inputs.iter().flatten().filter_map(|&input| model.data(&graph.tensors[input]));
        operators.push(Operator {
            index: operator.index,
            operator: operator.name().into_owned(),
            output: operator.outputs.first().map(|&output| Tensor::new(graph, output)),
            constant_bytes: constants.map(<[u8]>::len).sum(),
        });
    }
    // A buffer that several tensors share counts once.
    let buffers: BTreeSet<usize> =
        model.subgraphs.iter().flat_map(|graph| &graph.tensors).map(|tensor| tensor.buffer).collect();
    let constant_bytes =
        buffers.iter().filter_map(|&buffer| model.buffers.get(buffer)).map(|bytes| bytes.len()).sum();
    let tensors = |indices: &[usize]| indices.iter().map(|&index| Tensor::new(graph, index)).collect();
    Report {
        kind: "tflite",
        file: path.display().to_string(),
        description: model.description.to_string(),
        bytes: bytes.len(),
        constant_bytes,
        inputs: tensors(&graph.inputs),
        outputs: tensors(&graph.outputs),
        stateful: model.is_stateful(),
        operator_counts,
        operators,
        tensors: graph.tensors.len(),
        subgraphs: model.subgraphs.len(),
        known_defects: defects::find(model),
        obstacle: prepare(bytes).err().map(|error| error.to_string()),
    }
}

impl Tensor {
    pub(super) fn new(graph: &Subgraph<'_>, index: usize) -> Tensor {
        let tensor = &graph.tensors[index];
        let one = tensor.quantisation;
        Tensor {
            name: tensor.name.to_string(),
            dtype: tensor.data_type.name(),
            shape: tensor.shape.clone(),
            open_shape: tensor.shape_signature.contains(&-1).then(|| tensor.shape_signature.clone()),
            scale: one.map(|one| one.scale()).filter(|scale| scale.is_finite()),
            zero_point: one.map(|one| one.zero_point()),
            scales: one.map_or(0, |one| one.scales.len()),
        }
    }

    /// Name, type, shape and quantisation as cells of a table.
    pub(super) fn cells(&self) -> Vec<String> {
        let shape = self.open_shape.as_ref().unwrap_or(&self.shape);
        let quantisation = match (self.scale, self.zero_point) {
            (Some(_), _) if self.scales > 1 => format!("{} scales", self.scales),
            (Some(scale), Some(zero_point)) => format!("scale {scale}, zero point {zero_point}"),
            _ => String::new(),
        };
        vec![describe::name(&self.name), self.dtype.to_owned(), format!("{shape:?}"), quantisation]
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: TensorFlow Lite network ({})",
            heading(&self.file),
            self.description.escape_debug()
        )?;
        writeln!(
            f,
            "  {} bytes, of which constants {}; {} operators, {} tensors{}",
            grouped(self.bytes as u64),
            grouped(self.constant_bytes as u64),
            self.operators.len(),
            self.tensors,
            if self.stateful { "; keeps state from one inference to the next" } else { "" }
        )?;
        if self.subgraphs > 1 {
            writeln!(f, "  {} subgraphs, of which the first is shown", self.subgraphs)?;
        }
        let rows = |role: &str, tensors: &[Tensor]| -> Vec<Vec<String>> {
            tensors.iter().map(|tensor| [vec![role.to_owned()], tensor.cells()].concat()).collect()
        };
        f.write_str(&table(&[rows("input", &self.inputs), rows("output", &self.outputs)].concat(), 2))?;
        writeln!(f, "{}", heading("operators"))?;
        let rows: Vec<Vec<String>> = self
            .operators
            .iter()
            .map(|operator| {
                let output = operator.output.as_ref().map(Tensor::cells).unwrap_or_default();
                [vec![operator.index.to_string(), operator.operator.clone()], output].concat()
            })
            .collect();
        f.write_str(&table(&rows, 2))?;
        for defect in &self.known_defects {
            let products: Vec<&str> = defect.products.iter().map(|product| product.name()).collect();
            writeln!(
                f,
                "{}: Vela compiles this wrong on {}: {defect}",
                caution("warning"),
                products.join(", ")
            )?;
        }
        if let Some(obstacle) = &self.obstacle {
            writeln!(f, "{}: can't be compiled: {obstacle}", caution("warning"))?;
        }
        Ok(())
    }
}
