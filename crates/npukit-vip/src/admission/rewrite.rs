//! What happens to a graph before any check: TIM-VX's bias conversion and ovxlib's I8-to-U8 pass.

use crate::codes::{Quant, VxType};
use crate::graph::{ModelGraph, Operator, OperatorKind, Place, Tensor};
use crate::version::OvxlibVersion;
use serde::Serialize;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rewrite {
    /// The tensor's name.
    pub tensor: String,
    /// What it was.
    pub from: String,
    /// What it became.
    pub to: String,
    /// By which rule.
    pub rule: &'static str,
}

/// The rule by which a constant F16 bias becomes F32 (`src/tim/vx/ops/conv2d.cc`, `fullyconnected.cc`).
pub const BIAS_RULE: &str = "TIM-VX replaces a constant F16 bias of Conv2d and FullyConnected by an F32 one";
/// The rule by which I8 becomes U8 (`vsi_nn_graph_optimization.c`).
pub const I8_RULE: &str =
    "vsi_nn_OptimizeGraph turns I8 asymmetric into U8 asymmetric: data XOR 0x80, zero point + 128";
/// The same for the graph's own tensors.
pub const EDGE_RULE: &str = "a DATACONVERT node is put between an I8 graph tensor and its U8 copy";

/// Applies both passes. `i8_to_u8` is the value of `VSI_NN_ENABLE_I8TOU8`: 0 off, 1 for asymmetric I8, 2 for symmetric
/// I8 too. The operators that were added come last.
pub fn rewrite(graph: &ModelGraph, version: OvxlibVersion, i8_to_u8: u8) -> (ModelGraph, Vec<Rewrite>) {
    let mut graph = graph.clone();
    let mut changes = Vec::new();
    if graph.through_tim_vx {
        let biases: Vec<usize> = graph
            .operators
            .iter()
            .filter(|operator| matches!(operator.op.as_str(), "CONV2D" | "FCL2"))
            .filter_map(|operator| operator.inputs.get(2).copied().flatten())
            .collect();
        for index in biases {
            if let Some(bias) = graph.tensors.get_mut(index)
                && bias.vx_type == VxType::F16
                && bias.is_constant()
            {
                let from = bias.to_string();
                bias.vx_type = VxType::F32;
                changes.push(Rewrite {
                    tensor: bias.name.clone(),
                    from,
                    to: bias.to_string(),
                    rule: BIAS_RULE,
                });
            }
        }
    }
    let holds_nbg = graph.operators.iter().any(|operator| operator.op == "NBG");
    if version < OvxlibVersion::REWRITE || i8_to_u8 == 0 || holds_nbg {
        return (graph, changes);
    }
    let touched = |tensor: &Tensor| {
        tensor.vx_type == VxType::I8
            && (tensor.quant.scheme == Quant::ASYM || (i8_to_u8 == 2 && tensor.quant.scheme == Quant::SYM))
    };
    for index in 0..graph.tensors.len() {
        let Some(tensor) = graph.tensors.get(index).filter(|tensor| touched(tensor)) else { continue };
        let original = tensor.clone();
        let mut changed = original.clone();
        changed.vx_type = VxType::U8;
        changed.quant.scheme = Quant::ASYM;
        changed.quant.zero_point = changed.quant.zero_point.map(|zero| zero.wrapping_add(128));
        let mut rule = I8_RULE;
        if original.place == Place::Graph {
            rule = EDGE_RULE;
            changed.place = Place::Virtual;
            let outer = graph.tensors.len();
            let written = graph.operators.iter().any(|operator| operator.outputs.contains(&index));
            let (label, inputs, outputs) = match written {
                true => (format!("DATACONVERT behind {}", original.name), vec![Some(index)], vec![outer]),
                false => (format!("DATACONVERT after {}", original.name), vec![Some(outer)], vec![index]),
            };
            graph.tensors.push(original.clone());
            let op = "DATACONVERT".to_owned();
            graph.operators.push(Operator {
                op,
                label,
                inputs,
                outputs,
                kind: OperatorKind::Plain,
                left_out: None,
            });
        }
        changes.push(Rewrite {
            tensor: original.name.clone(),
            from: original.to_string(),
            to: changed.to_string(),
            rule,
        });
        graph.tensors[index] = changed;
    }
    (graph, changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typed::TypedOperator;

    fn conv(input: &str, weight: &str, bias: Option<&str>) -> ModelGraph {
        let own = |text: &str| text.to_owned();
        TypedOperator {
            op: own("conv2d"),
            inputs: vec![own(input)],
            weight: Some(own(weight)),
            bias: bias.map(own),
            outputs: vec![own(input)],
        }
        .graph()
        .unwrap()
    }

    fn types(graph: &ModelGraph) -> Vec<String> {
        graph.tensors.iter().map(Tensor::to_string).collect()
    }

    #[test]
    fn asymmetric_i8_becomes_u8_and_per_channel_weights_stay() {
        let graph = conv("i8:asym@0.5,-3", "i8:sym_pc", Some("i32:sym_pc"));
        let (after, changes) = rewrite(&graph, OvxlibVersion::NEWEST, 1);
        assert_eq!(types(&after), ["u8:asym@0.5,125", "i8:sym_pc", "i32:sym_pc", "u8:asym@0.5,125"]);
        assert_eq!(changes.len(), 2);
        let (before, changes) = rewrite(&graph, OvxlibVersion(1, 1, 30), 1);
        assert_eq!((before, changes.len()), (graph.clone(), 0));
        assert_eq!(rewrite(&graph, OvxlibVersion::NEWEST, 0).0, graph);
    }

    #[test]
    fn symmetric_i8_only_where_asked_for() {
        let graph = conv("i8:sym@0.5,0", "i8:sym@0.25,0", None);
        assert_eq!(rewrite(&graph, OvxlibVersion::NEWEST, 1).1, []);
        let (after, _) = rewrite(&graph, OvxlibVersion::NEWEST, 2);
        assert_eq!(types(&after)[..2], ["u8:asym@0.5,128", "u8:asym@0.25,128"]);
    }

    #[test]
    fn graph_tensors_get_a_conversion_node() {
        let mut graph = conv("i8:asym@0.5,0", "i8:sym_pc", None);
        for index in [0, 2] {
            graph.tensors[index].place = Place::Graph;
        }
        let (after, changes) = rewrite(&graph, OvxlibVersion::NEWEST, 1);
        let added: Vec<_> =
            after.operators[1..].iter().map(|o| (o.inputs[0].unwrap(), o.outputs[0])).collect();
        assert_eq!(added, [(3, 0), (2, 4)]);
        assert_eq!(types(&after)[3], "i8:asym@0.5,0");
        assert!(changes.iter().all(|change| change.rule == EDGE_RULE));
    }

    #[test]
    fn a_graph_with_a_compiled_part_is_left_alone() {
        let mut graph = conv("i8:asym@0.5,0", "i8:sym_pc", None);
        graph.operators[0].op = "NBG".into();
        assert_eq!(rewrite(&graph, OvxlibVersion::NEWEST, 1).1, []);
    }

    #[test]
    fn a_constant_f16_bias_becomes_f32() {
        let (after, changes) = rewrite(&conv("f16", "f16", Some("f16")), OvxlibVersion::NEWEST, 1);
        assert_eq!(types(&after), ["f16", "f16", "f32", "f16"]);
        assert_eq!(changes[0].rule, BIAS_RULE);
        let mut graph = conv("f16", "f16", Some("f16"));
        graph.tensors[2].place = Place::Virtual;
        assert_eq!(rewrite(&graph, OvxlibVersion::NEWEST, 1).1, []);
    }
}
