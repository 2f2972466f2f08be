//! A prediction beside what the compiler did: a compiled file's own list of operations.
//!
//! An NBG doesn't say from which model it was compiled, nor from which operator a layer came. So nothing is paired unless
//! the file's inputs and outputs have the model's dimensions. Then, where the file has as many layers of a kind as the
//! model has operators of that kind, both are taken in order; where it hasn't, nothing of that kind is paired.

use super::{Admission, Stage, Step, Verdict};
use crate::chip::Engine;
use crate::graph::{ModelGraph, Place};
use crate::nbg::{IoTensor, Nbg};
use crate::version::Certainty;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// One line for each operator.
    pub rows: Vec<BesideRow>,
    /// Layers that no operator was paired with.
    pub unpaired_layers: Vec<String>,
    /// What stands in the way of a pairing, or speaks against the file being this model's.
    pub notes: Vec<String>,
}

/// One operator and its layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideRow {
    /// The operator.
    pub operator: String,
    /// What was predicted.
    pub predicted: String,
    /// The layer, if one was paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The layer's engines.
    pub engines: Vec<Engine>,
    /// Whether they agree.
    pub agreement: Agreement,
}

/// Whether prediction and file agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The predicted engine does it.
    Agrees,
    /// Another engine does it, or it was predicted to be refused.
    Differs,
    /// No engine was predicted; the file tells.
    Told,
    /// No layer could be paired.
    Unpaired,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Convolution,
    FullyConnected,
    Pooling,
    Softmax,
    Activation,
    Other,
}

fn kind_of_operator(op: &str) -> Kind {
    match op {
        "CONV2D" | "GROUPED_CONV2D" | "DECONVOLUTION" | "CONV1D" | "GROUPED_CONV1D" | "DEPTHWISE_CONV1D" => {
            Kind::Convolution
        }
        "FCL" | "FCL2" => Kind::FullyConnected,
        "POOL" => Kind::Pooling,
        "SOFTMAX" => Kind::Softmax,
        "RELU" | "RELU1" | "RELU6" | "TANH" | "SIGMOID" | "LEAKY_RELU" => Kind::Activation,
        _ => Kind::Other,
    }
}

/// By the driver's names: `ConvolutionReluPoolingLayer2`, `FullyConnectedReluLayer`, `Max Pooling` and the like.
fn kind_of_layer(name: &str) -> Kind {
    let lower = name.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("convolution") {
        Kind::Convolution
    } else if has("fullyconnected") {
        Kind::FullyConnected
    } else if has("pooling") {
        Kind::Pooling
    } else if has("softmax") {
        Kind::Softmax
    } else if has("activation") {
        Kind::Activation
    } else {
        Kind::Other
    }
}

/// Pairs the operators of a graph's admission with a file's layers. Operators whose engine the file tells become
/// confirmed in the admission.
pub fn beside(admission: &mut Admission, graph: &ModelGraph, nbg: &Nbg) -> Beside {
    let mut notes = Vec::new();
    if let Some(target) = admission.target.filter(|target| *target != nbg.header.target) {
        notes.push(format!(
            "the file is for target {:#x}, the question was about {target:#x}",
            nbg.header.target
        ));
    }
    if nbg.layers.is_empty() {
        notes.push("the file's layers aren't readable (or there are none)".into());
    }
    let same_model = edges_fit(graph, nbg, &mut notes);
    let mut paired: Vec<Option<usize>> = vec![None; admission.operators.len()];
    let mut used = vec![false; nbg.layers.len()];
    for (kind, name) in [
        (Kind::Convolution, "convolutions"),
        (Kind::FullyConnected, "fully-connected layers"),
        (Kind::Pooling, "poolings"),
        (Kind::Softmax, "softmaxes"),
        (Kind::Activation, "activations"),
    ] {
        let indices = |fits: &dyn Fn(usize) -> bool, count: usize| {
            (0..count).filter(|index| fits(*index)).collect::<Vec<_>>()
        };
        let operators =
            indices(&|i| kind_of_operator(&admission.operators[i].op) == kind, admission.operators.len());
        let layers = indices(&|i| kind_of_layer(&nbg.layers[i].name) == kind, nbg.layers.len());
        if !same_model {
            continue;
        }
        if operators.len() == layers.len() {
            for (operator, layer) in operators.into_iter().zip(layers) {
                paired[operator] = Some(layer);
                used[layer] = true;
            }
        } else if !nbg.layers.is_empty() {
            notes.push(format!(
                "{name}: the model has {}, the file {}: not paired",
                operators.len(),
                layers.len()
            ));
        }
    }
    let mut rows = Vec::new();
    for (operator, layer) in admission.operators.iter_mut().zip(paired) {
        let predicted = operator.verdict.to_string();
        let layer = layer.and_then(|index| nbg.layers.get(index));
        let engines = layer.map_or_else(Vec::new, |layer| nbg.engines_of(layer.id));
        let main = engines
            .iter()
            .copied()
            .find(|engine| *engine == Engine::NeuralNetwork)
            .or(engines.first().copied());
        let agreement = match (&operator.verdict, main) {
            (_, None) => Agreement::Unpaired,
            (Verdict::Refused { .. }, Some(_)) => Agreement::Differs,
            (
                Verdict::Confirmed { engine, .. } | Verdict::Conditional { engine: Some(engine), .. },
                Some(main),
            ) => {
                if *engine == main {
                    Agreement::Agrees
                } else {
                    Agreement::Differs
                }
            }
            (Verdict::Conditional { engine: None, .. } | Verdict::Unknown { .. }, Some(_)) => Agreement::Told,
        };
        if let (Some(engine), Some(layer)) = (main, layer) {
            let names: Vec<&str> = engines.iter().map(|engine| engine.name()).collect();
            let by = format!("the NBG's own list: layer {} `{}`, {}", layer.id, layer.name, names.join("+"));
            let rule = "operation list of the compiled file, paired by order";
            operator.steps.push(Step::new(Stage::Nbg, super::Outcome::Pass, Certainty::Known, rule, &by));
            operator.verdict = Verdict::Confirmed { engine, by };
        }
        let layer = layer.map(|layer| format!("{} {}", layer.id, layer.name));
        rows.push(BesideRow { operator: operator.label.clone(), predicted, layer, engines, agreement });
    }
    let unpaired_layers = nbg
        .layers
        .iter()
        .zip(used)
        .filter(|(_, used)| !used)
        .map(|(layer, _)| format!("{} {}", layer.id, layer.name))
        .collect();
    Beside { rows, unpaired_layers, notes }
}

/// Whether the file's inputs and outputs have the dimensions of the graph's, in any order, ones left away.
fn edges_fit(graph: &ModelGraph, nbg: &Nbg, notes: &mut Vec<String>) -> bool {
    let written: BTreeSet<usize> =
        graph.operators.iter().flat_map(|operator| operator.outputs.iter().copied()).collect();
    let model = |outputs: bool| {
        let edge = graph
            .tensors
            .iter()
            .enumerate()
            .filter(|(index, tensor)| tensor.place == Place::Graph && written.contains(index) == outputs);
        let mut dims: Vec<_> =
            edge.map(|(_, tensor)| squeezed(tensor.shape.as_deref().unwrap_or(&[]))).collect();
        dims.sort();
        dims
    };
    let file = |tensors: &[IoTensor]| {
        let mut dims: Vec<_> = tensors.iter().map(|tensor| squeezed(&tensor.dims)).collect();
        dims.sort();
        dims
    };
    let mut fit = true;
    for (what, model, file) in
        [("inputs", model(false), file(&nbg.inputs)), ("outputs", model(true), file(&nbg.outputs))]
    {
        if model != file {
            notes.push(format!(
                "the {what} have other dimensions than the model's ({file:?}, {model:?}): nothing is paired"
            ));
            fit = false;
        }
    }
    fit
}

/// Dimensions without the ones, sorted: compilers change the order of the axes.
fn squeezed(dims: &[u32]) -> Vec<u32> {
    let mut dims: Vec<u32> = dims.iter().copied().filter(|dim| *dim != 1).collect();
    dims.sort_unstable();
    dims
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "prediction beside the compiled file:")?;
        for row in &self.rows {
            let engines: Vec<&str> = row.engines.iter().map(|engine| engine.name()).collect();
            let mark = match row.agreement {
                Agreement::Agrees => "agrees",
                Agreement::Differs => "DIFFERS",
                Agreement::Told => "told",
                Agreement::Unpaired => "unpaired",
            };
            writeln!(
                f,
                "  {mark:<9}{}: {} | layer {} on {}",
                row.operator,
                row.predicted,
                row.layer.as_deref().unwrap_or("none"),
                if engines.is_empty() { "nothing".into() } else { engines.join("+") }
            )?;
        }
        if !self.unpaired_layers.is_empty() {
            writeln!(f, "  layers without an operator: {}", self.unpaired_layers.join(", "))?;
        }
        for note in &self.notes {
            writeln!(f, "  note: {note}")?;
        }
        Ok(())
    }
}
