//! Reads an output as a choice between classes.

use npukit_vela::npy::Array;
use serde::Serialize;

use crate::dtype;
use crate::tensor::TensorSpec;

/// The class an output chooses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Choice {
    /// Its position in the output.
    pub class: usize,
    /// Its name.
    pub label: String,
    /// The real number that the output has for it.
    pub score: f64,
}

/// Whether an output has one element for each of so many classes.
pub fn is_choice_between(spec: &TensorSpec, classes: usize) -> bool {
    classes > 0 && spec.elements() == classes
}

/// The class with the highest score; the first of them where several have it. `None` when the output hasn't one element
/// for each label, or its elements aren't integers or floats.
pub fn choose(spec: &TensorSpec, output: &Array, labels: &[String]) -> Option<Choice> {
    if !is_choice_between(spec, labels.len()) {
        return None;
    }
    let scores: Vec<f64> = match dtype::integers(spec.dtype, output.data()) {
        Some(codes) => codes.into_iter().map(|code| spec.real(code)).collect(),
        None => output.to_f64()?,
    };
    let (class, score) =
        scores.iter().copied().enumerate().reduce(|best, next| if next.1 > best.1 { next } else { best })?;
    Some(Choice { class, label: labels.get(class)?.clone(), score })
}

#[cfg(test)]
mod tests {
    use npub::{DType, Quantisation};
    use npukit_vela::npy::Dtype;

    use super::*;

    #[test]
    fn the_highest_score_wins_and_is_real() {
        let spec = TensorSpec::new(
            "p",
            DType::Int8,
            vec![1, 3],
            Some(Quantisation { scale: 1.0 / 256.0, zero_point: -128 }),
        );
        let output = Array::new(Dtype::Int8, vec![1, 3], vec![0x80, 0x40, 0x40]).unwrap();
        let labels = ["cat", "dog", "owl"].map(str::to_owned);
        let choice = choose(&spec, &output, &labels).unwrap();
        assert_eq!((choice.class, choice.label.as_str(), choice.score), (1, "dog", 0.75));
        assert_eq!(choose(&spec, &output, &labels[..2]), None);
    }
}
