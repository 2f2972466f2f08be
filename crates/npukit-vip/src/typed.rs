//! Signatures typed by hand: `u8:asym@0.02,128[16x1]` and the like, and the one-operator graph made of them.

use crate::codes::{Cell, CodeError, Quant};
use crate::graph::{ModelGraph, Operator, OperatorKind, Place, Quantisation, Tensor};
use std::num::{ParseFloatError, ParseIntError};

/// A typed signature that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// A type or quantisation that isn't known.
    #[error("{0}")]
    Code(#[from] CodeError),
    /// A scale that is no number.
    #[error("the scale: {0}")]
    Scale(#[from] ParseFloatError),
    /// A zero point, fixed-point position or dimension that is no number.
    #[error("a number: {0}")]
    Number(#[from] ParseIntError),
    /// Parameters beside a type that has no quantisation.
    #[error("`{0}` has parameters but no quantisation")]
    Parameters(String),
    /// An opening bracket without its closing one, or the other way round.
    #[error("`{0}`: the shape stands at the end in brackets, such as [16x1]")]
    Shape(String),
    /// An operator that ovxlib doesn't have under this name.
    #[error("no operator `{0}` in ovxlib; known short names: {1}")]
    Operator(String, String),
}

/// The names by which an operator may be typed, beside ovxlib's own.
pub const SHORT_NAMES: [(&str, &str); 14] = [
    ("conv2d", "CONV2D"),
    ("depthwise", "CONV2D"),
    ("depthwise_conv2d", "CONV2D"),
    ("grouped_conv2d", "GROUPED_CONV2D"),
    ("conv1d", "CONV1D"),
    ("conv3d", "CONV3D"),
    ("deconv2d", "DECONVOLUTION"),
    ("fc", "FCL2"),
    ("fully_connected", "FCL2"),
    ("matmul", "MATRIXMUL"),
    ("batch_matmul", "MATRIXMUL"),
    ("relu", "RELU"),
    ("softmax", "SOFTMAX"),
    ("add", "ADD"),
];

/// Reads one tensor: `TYPE[:QUANT][@SCALE[,ZERO]|@FL][[DIMxDIM...]]`.
///
/// # Errors
/// Says which part of the text isn't one.
pub fn parse_tensor(text: &str, name: &str, place: Place) -> Result<Tensor, TypedError> {
    let (text, shape) = match text.split_once('[') {
        None if text.contains(']') => return Err(TypedError::Shape(text.to_owned())),
        None => (text, None),
        Some((head, tail)) => {
            let dims = tail.strip_suffix(']').ok_or_else(|| TypedError::Shape(text.to_owned()))?;
            (head, Some(dims.split('x').map(str::parse).collect::<Result<Vec<u32>, _>>()?))
        }
    };
    let (code, parameters) = match text.split_once('@') {
        Some((code, parameters)) => (code, Some(parameters)),
        None => (text, None),
    };
    let (vx_type, scheme) = match code.split_once(':') {
        Some((vx_type, scheme)) => (vx_type.parse()?, scheme.parse()?),
        None => (code.parse()?, Quant::NONE),
    };
    let mut quant = Quantisation::of(scheme);
    match (parameters, scheme) {
        (None, _) => {}
        (Some(_), Quant::NONE | Quant::NA) => return Err(TypedError::Parameters(text.to_owned())),
        (Some(fl), Quant::DFP) => quant.fl = Some(fl.parse()?),
        (Some(parameters), _) => {
            let (scale, zero_point) = match parameters.split_once(',') {
                Some((scale, zero_point)) => (scale, Some(zero_point.parse()?)),
                None => (parameters, None),
            };
            quant.scale = Some(scale.parse()?);
            quant.zero_point = zero_point;
        }
    }
    Ok(Tensor { name: name.to_owned(), vx_type, quant, shape, place })
}

/// The ovxlib operator for a typed name, and whether it is a depthwise convolution.
///
/// # Errors
/// Where neither the short names nor the newest ovxlib know it.
pub fn operator_name(text: &str) -> Result<(String, OperatorKind), TypedError> {
    let lower = text.to_ascii_lowercase();
    if let Some((short, name)) = SHORT_NAMES.iter().find(|(short, _)| *short == lower) {
        let kind = if short.starts_with("depthwise") { OperatorKind::Depthwise } else { OperatorKind::Plain };
        return Ok(((*name).to_owned(), kind));
    }
    let upper = text.to_ascii_uppercase();
    let known = crate::checks::for_version(crate::version::OvxlibVersion::NEWEST);
    match known.and_then(|(checks, _)| checks.get(&upper)) {
        Some(_) => Ok((upper, OperatorKind::Plain)),
        None => {
            let names: Vec<&str> = SHORT_NAMES.iter().map(|(short, _)| *short).collect();
            Err(TypedError::Operator(text.to_owned(), names.join(", ")))
        }
    }
}

/// The tensors of one operator typed by hand. Weights and bias count as constants, the rest as virtual tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TypedOperator {
    /// The operator, by its ovxlib name or a short one.
    pub op: String,
    /// The inputs that aren't weights.
    pub inputs: Vec<String>,
    /// The weight.
    pub weight: Option<String>,
    /// The bias.
    pub bias: Option<String>,
    /// The outputs.
    pub outputs: Vec<String>,
}

impl TypedOperator {
    /// Makes the graph of the one operator, as it would come through TIM-VX.
    ///
    /// # Errors
    /// An operator or a tensor that can't be read.
    pub fn graph(&self) -> Result<ModelGraph, TypedError> {
        let (op, kind) = operator_name(&self.op)?;
        let mut tensors = Vec::new();
        let mut inputs = Vec::new();
        let mut add = |text: &str, name: &str, place| -> Result<usize, TypedError> {
            tensors.push(parse_tensor(text, name, place)?);
            Ok(tensors.len() - 1)
        };
        for (index, text) in self.inputs.iter().enumerate() {
            inputs.push(Some(add(text, &format!("input{index}"), Place::Virtual)?));
        }
        for (text, name) in [(&self.weight, "weight"), (&self.bias, "bias")] {
            if let Some(text) = text {
                inputs.push(Some(add(text, name, Place::Constant)?));
            }
        }
        let mut outputs = Vec::new();
        for (index, text) in self.outputs.iter().enumerate() {
            outputs.push(add(text, &format!("output{index}"), Place::Virtual)?);
        }
        let label = self.op.clone();
        let operator = Operator { op, label, inputs, outputs, kind, left_out: None };
        Ok(ModelGraph {
            source: "typed by hand".into(),
            tensors,
            operators: vec![operator],
            through_tim_vx: true,
        })
    }
}

/// A tensor with the type and quantisation of a cell and no parameters.
pub(crate) fn retyped(tensor: &Tensor, cell: Cell) -> Option<Tensor> {
    let (vx_type, scheme) = cell.parts()?;
    let quant = if scheme == tensor.quant.scheme { tensor.quant.clone() } else { Quantisation::of(scheme) };
    Some(Tensor { vx_type, quant, ..tensor.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_read_back_as_typed() {
        for text in
            ["f16", "u8:asym", "u8:asym@0.5,128", "i8:dfp@7", "u8:asym@1,0[16x4]", "i8:sym_pc[3x3x8x16]"]
        {
            let tensor = parse_tensor(text, "t", Place::Virtual).unwrap();
            assert_eq!(tensor.to_string(), text);
        }
    }

    #[test]
    fn unreadable_tensors_say_what_is_wrong() {
        use TypedError as E;
        let fail = |text: &str| parse_tensor(text, "t", Place::Virtual).unwrap_err();
        assert!(matches!(fail("q7"), E::Code(_)));
        assert!(matches!(fail("u8:asym@x"), E::Scale(_)));
        assert!(matches!(fail("i8:dfp@300"), E::Number(_)));
        assert!(matches!(fail("f16@2"), E::Parameters(_)));
        assert!(matches!(fail("f16[2"), E::Shape(_)));
        assert!(matches!(fail("f16]"), E::Shape(_)));
        assert!(matches!(operator_name("conv9d"), Err(E::Operator(..))));
        assert_eq!(operator_name("Depthwise").unwrap(), ("CONV2D".into(), OperatorKind::Depthwise));
        assert_eq!(operator_name("permute").unwrap().0, "PERMUTE");
    }
}
