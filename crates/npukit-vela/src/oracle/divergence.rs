//! Where in a network two interpreters part ways.

use super::{Loaded, Oracle, OracleError, OracleOptions, Reference, RoundingExplanation, rounding};
use crate::npy::{Array, Dtype};
use crate::tflite::Model;
use crate::toolchain::Environment;

/// The first layer whose output differs between two interpreters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Divergence {
    /// Which set of inputs shows it.
    pub sample: usize,
    /// The operator's position in the network.
    pub operator: usize,
    /// Which operator, such as `FULLY_CONNECTED`.
    pub operator_name: String,
    /// The output tensor's index.
    pub tensor: usize,
    /// The output tensor's name.
    pub tensor_name: String,
    /// The first place where the two differ.
    pub coordinate: Vec<usize>,
    /// What each of the two has there, in the order they were named.
    pub values: [f64; 2],
    /// In how many places they differ.
    pub mismatches: usize,
    /// Of how many.
    pub elements: usize,
    /// The largest difference.
    pub max_abs_diff: f64,
    /// The rounding that causes it, where it could be shown to.
    pub rounding: Option<RoundingExplanation>,
}

/// Runs a network in two interpreters and compares what comes out of every operator, in order. Returns the first
/// that differs on any of the samples, or `None` when all are equal.
///
/// # Errors
///
/// [`OracleError`]; an interpreter that doesn't run the network is [`OracleError::Failed`] here.
pub fn first_divergent_layer(
    environment: &Environment,
    network: &[u8],
    samples: &[Vec<Array>],
    references: [Reference; 2],
) -> Result<Option<Divergence>, OracleError> {
    let model = Model::parse(network)?;
    let graph = model.main();
    let options = OracleOptions { keep_tensors: true, ..OracleOptions::default() };
    let load = |reference| match Oracle::load(environment, reference, network, &options)? {
        Loaded::Ready(oracle) => Ok(oracle),
        Loaded::Refused(reason) => Err(OracleError::Failed { reference, reason }),
    };
    let [mut first, mut second] = [load(references[0])?, load(references[1])?];
    let outputs = graph
        .operators
        .iter()
        .flat_map(|operator| operator.outputs.iter().map(move |&tensor| (operator, tensor)));
    // Handles of resource variables have no values to compare.
    let outputs: Vec<_> = outputs
        .filter(|&(_, tensor)| {
            graph.tensors[tensor].data_type.bytes().is_some() && !graph.tensors[tensor].is_variable
        })
        .collect();
    let tensors: Vec<usize> = outputs.iter().map(|&(_, tensor)| tensor).collect();
    for (number, sample) in samples.iter().enumerate() {
        let (one, other) = (first.tensors(sample, &tensors)?, second.tensors(sample, &tensors)?);
        for (position, &(operator, tensor)) in outputs.iter().enumerate() {
            let Some(difference) = difference(&one[position], &other[position]) else { continue };
            // The layer's input is equal in both: an output of an earlier operator, or an input of the network.
            let input = operator.inputs.first().copied().flatten().and_then(|input| {
                let computed = tensors.iter().position(|&known| known == input).map(|at| &one[at]);
                computed.or_else(|| {
                    graph.inputs.iter().position(|&known| known == input).and_then(|at| sample.get(at))
                })
            });
            let explanation =
                input.and_then(|input| rounding::explain(&model, operator, input, &difference.coordinate));
            // Only an explanation that reproduces both values is one.
            let rounding = explanation.filter(|explanation| {
                let both = [explanation.rounded_twice as f64, explanation.rounded_once as f64];
                difference.values == both || difference.values == [both[1], both[0]]
            });
            return Ok(Some(Divergence {
                sample: number,
                operator: operator.index,
                operator_name: operator.name().into_owned(),
                tensor,
                tensor_name: graph.tensors[tensor].name.to_string(),
                coordinate: difference.coordinate,
                values: difference.values,
                mismatches: difference.mismatches,
                elements: one[position].elements(),
                max_abs_diff: difference.max_abs_diff,
                rounding,
            }));
        }
    }
    Ok(None)
}

struct Difference {
    coordinate: Vec<usize>,
    values: [f64; 2],
    mismatches: usize,
    max_abs_diff: f64,
}

/// How two arrays differ; `None` when they are equal to the bit. Shapes may differ in axes of one.
fn difference(one: &Array, other: &Array) -> Option<Difference> {
    if one.data() == other.data() || matches!(one.dtype(), Dtype::Bytes(_)) {
        return None;
    }
    let (left, right) = (one.to_f64()?, other.to_f64()?);
    let pairs = left.iter().zip(&right).enumerate();
    let differing: Vec<(usize, f64, f64)> = pairs
        .filter(|(_, (left, right))| left.to_bits() != right.to_bits())
        .map(|(index, (&left, &right))| (index, left, right))
        .collect();
    let &(index, left, right) = differing.first()?;
    Some(Difference {
        coordinate: coordinate(one.shape(), index),
        values: [left, right],
        mismatches: differing.len(),
        max_abs_diff: differing.iter().map(|(_, left, right)| (left - right).abs()).fold(0.0, f64::max),
    })
}

fn coordinate(shape: &[usize], mut index: usize) -> Vec<usize> {
    let mut coordinate = vec![0; shape.len()];
    for (axis, &extent) in shape.iter().enumerate().rev() {
        coordinate[axis] = index % extent;
        index /= extent;
    }
    coordinate
}
