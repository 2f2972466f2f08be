//! Compares what the compiled program computes with what a reference interpreter computes.

use npukit_vela::npy::Array;
use serde::Serialize;

use crate::dtype;
use crate::tensor::TensorSpec;

/// A reference output of which less than this share lies between the lowest and the highest code is saturated.
const ALIVE_SHARE: f64 = 0.01;

/// How one output compares over all samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutputComparison {
    /// The output's name.
    pub name: String,
    /// Elements compared: those of one inference times the samples.
    pub elements: usize,
    /// How many of them differ.
    pub mismatches: usize,
    /// The largest difference; 0 where there is none.
    pub max_abs_diff: Value,
    /// The first element that differs.
    pub first_mismatch: Option<Mismatch>,
    /// Different values in the reference's output. Few of them, and the comparison proves little.
    pub distinct_values: usize,
    /// Why the comparison proves little, where it does.
    pub weak: Option<Weakness>,
}

/// The first element that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Mismatch {
    /// Which sample, from 0.
    pub sample: usize,
    /// Where in the output.
    pub index: Vec<usize>,
    /// What the compiled program gives.
    pub npu: Value,
    /// What the reference gives.
    pub reference: Value,
}

/// A number as the output's type has it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// Of an integer type.
    Integer(i64),
    /// Of a floating-point type.
    Real(f64),
}

/// Why equal outputs prove little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Weakness {
    /// Every sample gives the same.
    Flat,
    /// Nearly every element is the lowest or the highest code.
    Saturated,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Integer(value) => value.fmt(f),
            Value::Real(value) => value.fmt(f),
        }
    }
}

impl std::fmt::Display for Weakness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Weakness::Flat => "every input gives the same output",
            Weakness::Saturated => "nearly every value is the lowest or the highest code",
        })
    }
}

/// Compares the outputs of all samples. `found` and `expected` have a set of outputs for each sample, in the order of `specs`.
///
/// An output whose shape or type is another than the reference's counts as different in every element.
pub fn outputs(specs: &[TensorSpec], found: &[Vec<Array>], expected: &[Vec<Array>]) -> Vec<OutputComparison> {
    specs.iter().enumerate().map(|(index, spec)| output(spec, index, found, expected)).collect()
}

fn output(
    spec: &TensorSpec,
    index: usize,
    found: &[Vec<Array>],
    expected: &[Vec<Array>],
) -> OutputComparison {
    let width = spec.dtype.size() as usize;
    let mut comparison = OutputComparison {
        name: spec.name.clone(),
        elements: spec.elements() * found.len(),
        mismatches: 0,
        max_abs_diff: Value::Integer(0),
        first_mismatch: None,
        distinct_values: 0,
        weak: None,
    };
    let mut seen = Vec::new();
    for (sample, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (found, expected) = (found[index].data(), expected.get(index).map_or(&[][..], Array::data));
        seen.push(expected);
        if found == expected {
            continue;
        }
        if found.len() != expected.len() {
            comparison.mismatches += spec.elements();
            continue;
        }
        let pairs = found.chunks_exact(width).zip(expected.chunks_exact(width)).enumerate();
        for (element, (found, expected)) in pairs.filter(|(_, (found, expected))| found != expected) {
            comparison.mismatches += 1;
            let (npu, reference) = (value(spec, found), value(spec, expected));
            let difference = npu.difference(reference);
            if difference > comparison.max_abs_diff || comparison.mismatches == 1 {
                comparison.max_abs_diff = difference;
            }
            comparison.first_mismatch.get_or_insert_with(|| Mismatch {
                sample,
                index: coordinates(element, &spec.shape),
                npu,
                reference,
            });
        }
    }
    comparison.distinct_values = distinct(&seen, width);
    comparison.weak = weakness(spec, &seen);
    comparison
}

/// How many different elements there are.
fn distinct(samples: &[&[u8]], width: usize) -> usize {
    let mut all: Vec<&[u8]> = samples.iter().flat_map(|bytes| bytes.chunks_exact(width)).collect();
    all.sort_unstable();
    all.dedup();
    all.len()
}

fn weakness(spec: &TensorSpec, samples: &[&[u8]]) -> Option<Weakness> {
    if samples.len() > 1 && samples.windows(2).all(|pair| pair[0] == pair[1]) {
        return Some(Weakness::Flat);
    }
    let (low, high) = dtype::limits(spec.dtype)?;
    let codes: Vec<i64> =
        samples.iter().filter_map(|bytes| dtype::integers(spec.dtype, bytes)).flatten().collect();
    let inside = codes.iter().filter(|&&code| code != low && code != high).count();
    ((inside as f64) < ALIVE_SHARE * codes.len() as f64).then_some(Weakness::Saturated)
}

fn value(spec: &TensorSpec, bytes: &[u8]) -> Value {
    if let Some(value) = dtype::integers(spec.dtype, bytes).and_then(|all| all.first().copied()) {
        return Value::Integer(value);
    }
    let real = dtype::array_type(spec.dtype)
        .and_then(|dtype| Array::new(dtype, Vec::new(), bytes.to_vec()).ok())
        .and_then(|array| array.to_f64()?.first().copied());
    Value::Real(real.unwrap_or(f64::NAN))
}

impl Value {
    fn difference(self, other: Value) -> Value {
        match (self, other) {
            (Value::Integer(a), Value::Integer(b)) => {
                Value::Integer(i64::try_from(a.abs_diff(b)).unwrap_or(i64::MAX))
            }
            (Value::Real(a), Value::Real(b)) => Value::Real((a - b).abs()),
            (Value::Integer(_), Value::Real(_)) | (Value::Real(_), Value::Integer(_)) => {
                Value::Real(f64::NAN)
            }
        }
    }
}

/// Where in a tensor of this shape an element lies.
fn coordinates(element: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = element;
    let mut index = vec![0; shape.len()];
    for (place, &axis) in index.iter_mut().zip(shape).rev() {
        *place = rest % axis.max(1);
        rest /= axis.max(1);
    }
    index
}

#[cfg(test)]
mod tests {
    use npub::DType;
    use npukit_vela::npy::Dtype;

    use super::*;

    fn int8(values: &[i8]) -> Vec<Array> {
        let data = values.iter().map(|&value| value.cast_unsigned()).collect();
        vec![Array::new(Dtype::Int8, vec![1, 2, values.len() / 2], data).unwrap()]
    }

    fn spec(columns: usize) -> TensorSpec {
        TensorSpec::new("out", DType::Int8, vec![1, 2, columns], None)
    }

    #[test]
    fn the_first_difference_has_its_coordinate() {
        let expected = [int8(&[1, 2, 3, 4, 5, 6]), int8(&[1, 2, 3, 4, 5, 6])];
        let found = [int8(&[1, 2, 3, 4, 5, 6]), int8(&[1, 2, 3, 4, 7, -94])];
        let compared = &outputs(&[spec(3)], &found, &expected)[0];
        assert_eq!((compared.elements, compared.mismatches), (12, 2));
        assert_eq!(compared.max_abs_diff, Value::Integer(100));
        let first = compared.first_mismatch.clone().unwrap();
        assert_eq!((first.sample, first.index), (1, vec![0, 1, 1]));
        assert_eq!((first.npu, first.reference), (Value::Integer(7), Value::Integer(5)));
        assert_eq!((compared.distinct_values, compared.weak), (6, Some(Weakness::Flat)));
    }

    #[test]
    fn weak_evidence_is_told() {
        let weak = |samples: &[Vec<Array>]| outputs(&[spec(1)], samples, samples)[0].weak;
        assert_eq!(weak(&[int8(&[127, -128]), int8(&[-128, 127])]), Some(Weakness::Saturated));
        assert_eq!(weak(&[int8(&[0, 1]), int8(&[0, 1])]), Some(Weakness::Flat));
        assert_eq!(weak(&[int8(&[0, 1]), int8(&[1, 0])]), None);
        assert_eq!(weak(&[int8(&[0, 1])]), None);
    }

    #[test]
    fn another_length_is_different_everywhere() {
        let compared = &outputs(&[spec(2)], &[int8(&[1, 2, 3, 4])], &[int8(&[1, 2])])[0];
        assert_eq!(compared.mismatches, 4);
    }

    #[test]
    fn floats_compare_by_their_bits() {
        let spec = TensorSpec::new("f", DType::Float32, vec![1], None);
        let array = |value: f32| {
            vec![vec![Array::new(Dtype::Float32, vec![1], value.to_le_bytes().to_vec()).unwrap()]]
        };
        let compared = outputs(std::slice::from_ref(&spec), &array(1.5), &array(1.0)).remove(0);
        assert_eq!((compared.mismatches, compared.max_abs_diff), (1, Value::Real(0.5)));
        assert_eq!(outputs(&[spec], &array(f32::NAN), &array(f32::NAN))[0].mismatches, 0);
    }
}
