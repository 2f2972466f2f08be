//! What a caller has to know about an input or output, and whether an array fits it.

use npub::{DType, Quantisation};
use npukit_vela::npy::Array;
use npukit_vela::tflite;
use serde::{Serialize, Serializer};

use crate::dtype;

/// An input, output or state of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TensorSpec {
    /// Its name in the network; may be empty, needn't be unique.
    pub name: String,
    /// The type of its elements.
    #[serde(serialize_with = "as_text")]
    pub dtype: DType,
    /// Its axes, outermost first. Empty for a single value.
    pub shape: Vec<usize>,
    /// Real value of one step of an integer, where integers stand for reals.
    pub scale: Option<f32>,
    /// The integer that stands for zero, where integers stand for reals.
    pub zero_point: Option<i32>,
}

/// An array that isn't what a tensor needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The number of arrays isn't the number of inputs.
    #[error("{found} arrays were given, the network has {expected} inputs ({names})")]
    Count {
        /// How many were given.
        found: usize,
        /// How many it takes.
        expected: usize,
        /// The inputs' names.
        names: String,
    },
    /// The elements are of another type.
    #[error("{tensor}: the elements are {found}, expected {expected}")]
    Dtype {
        /// Which tensor.
        tensor: String,
        /// The array's.
        found: String,
        /// The tensor's.
        expected: String,
    },
    /// The shape is another.
    #[error("{tensor}: the shape is {}, expected {}", text(found), text(expected))]
    Shape {
        /// Which tensor.
        tensor: String,
        /// The array's.
        found: Vec<usize>,
        /// The tensor's.
        expected: Vec<usize>,
    },
}

/// A shape as NumPy writes it: `(1, 8, 8, 1)`.
pub fn text(shape: &[usize]) -> String {
    let axes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    match axes.as_slice() {
        [only] => format!("({only},)"),
        several => format!("({})", several.join(", ")),
    }
}

fn as_text<T: ToString, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&value.to_string())
}

impl TensorSpec {
    /// A tensor of this description.
    pub fn new(
        name: &str,
        dtype: DType,
        shape: Vec<usize>,
        quantisation: Option<Quantisation>,
    ) -> TensorSpec {
        TensorSpec {
            name: name.to_owned(),
            dtype,
            shape,
            scale: quantisation.map(|quantisation| quantisation.scale),
            zero_point: quantisation.map(|quantisation| quantisation.zero_point),
        }
    }

    /// A tensor as a tensor table describes it.
    pub fn from_table(tensor: &npub::Tensor<'_>) -> TensorSpec {
        let shape = tensor.shape.iter().map(|&axis| axis as usize).collect();
        TensorSpec::new(tensor.name, tensor.dtype, shape, tensor.quantisation)
    }

    /// A tensor as a `.tflite` file describes it; `None` where its type or shape has no place in an `.npub` or
    /// its elements none in an [`Array`] (16-bit floats).
    pub fn from_tflite(tensor: &tflite::Tensor<'_>) -> Option<TensorSpec> {
        let dtype = tensor.data_type.in_npub().filter(|&dtype| dtype::array_type(dtype).is_some())?;
        let shape = tensor.shape.iter().map(|&axis| usize::try_from(axis).ok()).collect::<Option<_>>()?;
        let quantisation =
            tensor.quantisation.filter(|one| !one.is_per_axis() && one.scale() > 0.0).and_then(|one| {
                Some(Quantisation { scale: one.scale(), zero_point: i32::try_from(one.zero_point()).ok()? })
            });
        Some(TensorSpec::new(&tensor.name, dtype, shape, quantisation))
    }

    /// Elements it has.
    pub fn elements(&self) -> usize {
        // An axis of zero makes the product zero however large the others are.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Bytes its elements take.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size() as usize
    }

    /// The real number that a code stands for; the code itself where the tensor isn't quantised.
    pub fn real(&self, code: i64) -> f64 {
        match (self.scale, self.zero_point) {
            (Some(scale), Some(zero_point)) => f64::from(scale) * (code - i64::from(zero_point)) as f64,
            _ => code as f64,
        }
    }

    /// How a person refers to it: its name in quotes, or its position where it has none.
    pub fn label(&self, role: &str, index: usize) -> String {
        if self.name.is_empty() { format!("{role} {index}") } else { format!("{role} '{}'", self.name) }
    }

    /// Whether an array is what this tensor needs.
    ///
    /// # Errors
    /// [`Misfit::Dtype`] or [`Misfit::Shape`]; `label` names the tensor in the message.
    pub fn check(&self, array: &Array, label: &str) -> Result<(), Misfit> {
        self.check_type(array, label)?;
        if array.shape() != self.shape {
            return Err(Misfit::Shape {
                tensor: label.to_owned(),
                found: array.shape().to_vec(),
                expected: self.shape.clone(),
            });
        }
        Ok(())
    }

    /// The part of [`check`](TensorSpec::check) that a batch of any length has to pass too.
    pub(crate) fn check_type(&self, array: &Array, label: &str) -> Result<(), Misfit> {
        if dtype::array_type(self.dtype) != Some(array.dtype()) {
            return Err(Misfit::Dtype {
                tensor: label.to_owned(),
                found: array.dtype().to_string(),
                expected: self.dtype.to_string(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use npukit_vela::npy::Dtype;

    use super::*;

    #[test]
    fn an_array_fits_or_says_why_not() {
        let quantisation = Some(Quantisation { scale: 0.5, zero_point: -3 });
        let spec = TensorSpec::new("in", DType::Int8, vec![1, 4], quantisation);
        let array = |dtype: Dtype, shape: &[usize]| {
            let bytes = dtype.bytes() * shape.iter().product::<usize>();
            Array::new(dtype, shape.to_vec(), vec![0; bytes]).unwrap()
        };
        assert_eq!(spec.check(&array(Dtype::Int8, &[1, 4]), "x"), Ok(()));
        let shape = spec.check(&array(Dtype::Int8, &[4]), "input 'in'").unwrap_err();
        assert_eq!(shape.to_string(), "input 'in': the shape is (4,), expected (1, 4)");
        let dtype = spec.check(&array(Dtype::Float32, &[1, 4]), "input 'in'").unwrap_err();
        assert_eq!(dtype.to_string(), "input 'in': the elements are float32, expected int8");
        assert_eq!((spec.real(-3), spec.real(1)), (0.0, 2.0));
    }
}
