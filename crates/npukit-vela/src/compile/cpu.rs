//! Which operators Vela leaves to the CPU, and why: the operators from the files, the reasons from its messages.

use crate::distil::{CpuOperator, UNNAMED, is_bookkeeping, left_to_cpu};
use crate::tflite::{Model, Operator, Subgraph, is_ethos_u};

/// What begins a message about an operator (Vela 5.2.0, `tflite_supported_operators.cpp`).
const WARNING: &str = "Warning (supported operators) operator: ";
/// What stands between the operator's type and its output's name.
const OUTPUT: &str = ", ofm: '";

/// A message about an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    operator: String,
    tensor: String,
    text: String,
}

/// All such messages in Vela's output.
pub(super) fn reasons(output: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let mut lines = output.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((operator, tensor)) = line.strip_prefix(WARNING).and_then(|rest| rest.split_once(OUTPUT))
        else {
            continue;
        };
        let mut text = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.trim().is_empty() && !line.starts_with(WARNING)) {
            text.push(line.strip_prefix("Reason: ").unwrap_or(line).trim().to_owned());
        }
        let tensor = tensor.strip_suffix('\'').unwrap_or(tensor);
        let tensor = if tensor == UNNAMED { "" } else { tensor };
        reasons.push(Reason {
            operator: operator.to_owned(),
            tensor: tensor.to_owned(),
            text: text.join("; "),
        });
    }
    reasons
}

/// How well a message fits an operator. An activation that is fused gives the output a name with something added.
fn fit(reason: &Reason, operator: &CpuOperator) -> Option<u32> {
    let unnamed = operator.tensor.is_empty() && reason.tensor.starts_with(UNNAMED);
    let tensor = if reason.tensor == operator.tensor {
        2
    } else if unnamed || (!operator.tensor.is_empty() && reason.tensor.starts_with(&operator.tensor)) {
        1
    } else {
        return None;
    };
    match reason.operator == operator.operator {
        true => Some(2 + tensor),
        // Custom operators go by another name in the messages; the output's name must do.
        false if tensor == 2 && !operator.tensor.is_empty() => Some(1),
        false => None,
    }
}

/// Gives each operator the message that fits it best; each message goes to one operator as long as there are enough.
fn assign(operators: &mut [CpuOperator], reasons: &[Reason]) {
    let mut used = vec![false; reasons.len()];
    for operator in operators {
        let fitting =
            reasons.iter().enumerate().filter_map(|(index, reason)| Some((index, fit(reason, operator)?)));
        // Not used before the fit; the first of equals.
        let best = fitting.max_by_key(|&(index, fit)| (!used[index], fit, std::cmp::Reverse(index)));
        if let Some((index, _)) = best {
            used[index] = true;
            operator.reason = Some(reasons[index].text.clone()).filter(|text| !text.is_empty());
        }
    }
}

/// The operators that a compiled network leaves to the CPU, by their positions in the network before.
pub(super) fn left(before: &Model<'_>, after: &Model<'_>, reasons: &[Reason]) -> Vec<CpuOperator> {
    let (old, new) = (before.main(), after.main());
    let mut taken = vec![false; old.operators.len()];
    let mut operators = Vec::new();
    for operator in new.operators.iter().filter(|operator| !is_ethos_u(operator) && !is_bookkeeping(operator))
    {
        let original = old.operators.iter().find(|candidate| {
            !taken[candidate.index] && is_same((before, old, candidate), (after, new, operator))
        });
        let mut left = left_to_cpu(new, operator);
        left.index = original.map(|original| original.index);
        if let Some(index) = left.index {
            taken[index] = true;
        }
        operators.push(left);
    }
    operators.sort_by_key(|operator| operator.index.unwrap_or(usize::MAX));
    assign(&mut operators, reasons);
    operators
}

type Placed<'r, 'a> = (&'r Model<'a>, &'r Subgraph<'a>, &'r Operator<'a>);

/// Whether an operator of a compiled network is one of the network before: what it is, what it makes, its constants.
fn is_same(old: Placed<'_, '_>, new: Placed<'_, '_>) -> bool {
    let outputs = |(_, graph, operator): Placed<'_, '_>| -> Vec<(String, Vec<i32>, crate::tflite::DataType)> {
        let tensors = operator.outputs.iter().map(|&tensor| &graph.tensors[tensor]);
        tensors
            .map(|tensor| (tensor.name.replace(UNNAMED, ""), tensor.shape.clone(), tensor.data_type))
            .collect()
    };
    fn constants<'a>((model, graph, operator): Placed<'_, 'a>) -> Vec<&'a [u8]> {
        let tensors = operator.inputs.iter().flatten().map(|&tensor| &graph.tensors[tensor]);
        tensors.filter_map(|tensor| model.data(tensor)).collect()
    }
    old.2.code == new.2.code
        && old.2.custom_code == new.2.custom_code
        && outputs(old) == outputs(new)
        && constants(old) == constants(new)
}

/// The operators of a network that messages are about, where there is no compiled network to look at.
pub(super) fn from_reasons(graph: &Subgraph<'_>, reasons: &[Reason]) -> Vec<CpuOperator> {
    let all: Vec<CpuOperator> = graph.operators.iter().map(|operator| left_to_cpu(graph, operator)).collect();
    let mut operators: Vec<CpuOperator> = Vec::new();
    for (number, reason) in reasons.iter().enumerate() {
        // Vela may say the same of one operator twice, but also of two alike.
        let alike = reasons.iter().filter(|other| *other == reason).count();
        let mut fitting: Vec<&CpuOperator> =
            all.iter().filter(|operator| fit(reason, operator).is_some()).collect();
        let nth = reasons[..number].iter().filter(|other| *other == reason).count();
        if fitting.len() < alike && nth >= fitting.len() && !fitting.is_empty() {
            continue;
        }
        let known = if fitting.len() <= alike { fitting.get(nth).copied().cloned() } else { None };
        let operator = known.unwrap_or_else(|| CpuOperator {
            index: None,
            operator: reason.operator.clone(),
            tensor: fitting.pop().map(|operator| operator.tensor.clone()).unwrap_or_default(),
            reason: None,
        });
        operators.push(CpuOperator { reason: Some(reason.text.clone()), ..operator });
    }
    operators.sort_by_key(|operator| operator.index.unwrap_or(usize::MAX));
    operators
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "Warning: No configuration\n\nWarning (supported operators) operator: QUANTIZE, ofm: '<unnamed>'\n\
        Reason: Unsupported dataType Int32\n32-bit feature-maps are not supported.\n\n\
        Warning (supported operators) operator: SVDF, ofm: 'it's_act'\nReason: Unsupported opType\n";

    #[test]
    fn messages_are_read() {
        let found = reasons(OUTPUT);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].operator, "QUANTIZE");
        assert_eq!(found[0].tensor, "");
        assert_eq!(found[0].text, "Unsupported dataType Int32; 32-bit feature-maps are not supported.");
        assert_eq!((found[1].tensor.as_str(), found[1].text.as_str()), ("it's_act", "Unsupported opType"));
    }

    #[test]
    fn each_operator_gets_its_own_message() {
        let operator = |operator: &str, tensor: &str| CpuOperator {
            index: None,
            operator: operator.to_owned(),
            tensor: tensor.to_owned(),
            reason: None,
        };
        let mut operators = [operator("SVDF", "it's"), operator("QUANTIZE", ""), operator("SVDF", "other")];
        assign(&mut operators, &reasons(OUTPUT));
        assert_eq!(operators[0].reason.as_deref(), Some("Unsupported opType"));
        assert!(
            operators[1].reason.as_deref().is_some_and(|reason| reason.starts_with("Unsupported dataType"))
        );
        assert_eq!(operators[2].reason, None);
    }
}
