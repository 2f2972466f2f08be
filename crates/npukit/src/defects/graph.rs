//! A network as the recognisers look at it: who makes a tensor, what a constant holds.

use npukit_vela::tflite::{DataType, Model, Operator, Subgraph, Tensor};

/// A network.
pub(super) struct Graph<'m, 'a> {
    model: &'m Model<'a>,
    main: &'m Subgraph<'a>,
    /// The operator that makes each tensor.
    makers: Vec<Option<usize>>,
    /// The operators that read each tensor.
    readers: Vec<Vec<usize>>,
}

impl<'m, 'a> Graph<'m, 'a> {
    pub(super) fn new(model: &'m Model<'a>) -> Graph<'m, 'a> {
        let main = model.main();
        let mut makers = vec![None; main.tensors.len()];
        let mut readers = vec![Vec::new(); main.tensors.len()];
        for (index, operator) in main.operators.iter().enumerate() {
            for &output in &operator.outputs {
                if let Some(maker) = makers.get_mut(output) {
                    *maker = Some(index);
                }
            }
            for &input in operator.inputs.iter().flatten() {
                if let Some(readers) = readers.get_mut(input) {
                    readers.push(index);
                }
            }
        }
        Graph { model, main, makers, readers }
    }

    pub(super) fn main(&self) -> &'m Subgraph<'a> {
        self.main
    }

    /// An operator's input.
    pub(super) fn input(&self, operator: &Operator<'a>, position: usize) -> Option<&'m Tensor<'a>> {
        self.main.tensors.get((*operator.inputs.get(position)?)?)
    }

    /// An operator's first output.
    pub(super) fn output(&self, operator: &Operator<'a>) -> Option<&'m Tensor<'a>> {
        self.main.tensors.get(*operator.outputs.first()?)
    }

    /// The operator that makes an input.
    pub(super) fn maker(&self, operator: &Operator<'a>, position: usize) -> Option<&'m Operator<'a>> {
        let maker = *self.makers.get((*operator.inputs.get(position)?)?)?;
        self.main.operators.get(maker?)
    }

    /// The operators that read an operator's first output.
    pub(super) fn readers(&self, operator: &Operator<'a>) -> impl Iterator<Item = &'m Operator<'a>> {
        let readers = operator.outputs.first().and_then(|&output| self.readers.get(output));
        readers.into_iter().flatten().filter_map(|&reader| self.main.operators.get(reader))
    }

    /// Whether an operator's first output has one reader and isn't an output of the network.
    pub(super) fn is_read_once(&self, operator: &Operator<'a>) -> bool {
        let output = operator.outputs.first();
        let once =
            output.and_then(|&output| self.readers.get(output)).is_some_and(|readers| readers.len() == 1);
        once && output.is_some_and(|output| !self.main.outputs.contains(output))
    }

    /// The integers of a constant input, such as axes, permutations and paddings: constants in every network that Vela
    /// compiles.
    pub(super) fn integers(&self, operator: &Operator<'a>, position: usize) -> Option<Vec<i64>> {
        let tensor = self.input(operator, position)?;
        let bytes = self.model.data(tensor)?;
        match tensor.data_type {
            DataType::Int32 => {
                Some(bytes.as_chunks().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect())
            }
            DataType::Int64 => Some(bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect()),
            _ => None,
        }
    }

    /// The one code of a constant input of 8 or 16 bits.
    pub(super) fn code(&self, operator: &Operator<'a>, position: usize) -> Option<i64> {
        let tensor = self.input(operator, position)?;
        match (tensor.data_type, self.model.data(tensor)?) {
            (DataType::Int8, &[byte]) => Some((byte as i8).into()),
            (DataType::Uint8, &[byte]) => Some(byte.into()),
            (DataType::Int16, &[low, high]) => Some(i16::from_le_bytes([low, high]).into()),
            _ => None,
        }
    }

    /// Whether a tensor is constant.
    pub(super) fn is_constant(&self, tensor: &Tensor<'a>) -> bool {
        self.model.data(tensor).is_some()
    }

    /// An operator and its output.
    pub(super) fn describe(&self, operator: &Operator<'a>) -> String {
        let output = operator.outputs.first().map(|&tensor| self.main.describe(tensor)).unwrap_or_default();
        format!("{operator} (output {output})")
    }
}

/// Axes counted from the front, each once, in order.
pub(super) fn axes(parameter: &[i64], rank: usize) -> Vec<usize> {
    let rank = rank as i64;
    let front = |&axis: &i64| if axis < 0 { axis + rank } else { axis };
    let mut all: Vec<usize> = parameter
        .iter()
        .map(front)
        .filter(|axis| (0..rank).contains(axis))
        .map(|axis| axis as usize)
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_count_from_either_end() {
        assert_eq!(axes(&[-1, 1, 3, -3], 4), [1, 3]);
        assert!(axes(&[4, -5], 4).is_empty());
    }
}
