//! What admission looks at: operators with their tensors' types, quantisation, shapes and constness.
//!
//! A graph comes from a `.tflite` file ([`crate::tflite`]), from signatures typed by hand ([`crate::typed`]), or from
//! whatever a caller builds with the types here.

use crate::codes::{Cell, Quant, VxType};
use serde::Serialize;
use std::fmt;

/// A graph as ovxlib would get it: its own operator names, tensors by index.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ModelGraph {
    /// Where it came from, for the report.
    pub source: String,
    /// All tensors.
    pub tensors: Vec<Tensor>,
    /// All operators in the order of execution.
    pub operators: Vec<Operator>,
    /// Whether the graph goes through TIM-VX, whose wrappers change some nodes (an F16 bias becomes F32).
    pub through_tim_vx: bool,
}

/// One operator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operator {
    /// The operator's ovxlib name, such as CONV2D or FCL2.
    pub op: String,
    /// What it is called where the graph came from, such as `CONV_2D #3`.
    pub label: String,
    /// Inputs by tensor index; none for an optional input that is absent.
    pub inputs: Vec<Option<usize>>,
    /// Outputs by tensor index.
    pub outputs: Vec<usize>,
    /// What kind of convolution it is, where it is one.
    pub kind: OperatorKind,
    /// Why the graph's importer wouldn't hand this operator to the NPU, if it wouldn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// What the driver stage needs to know beyond the ovxlib name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorKind {
    /// Nothing more.
    #[default]
    Plain,
    /// A CONV2D node with a depth multiplier.
    Depthwise,
    /// An activation that the importer split off from another operator.
    FusedActivation,
}

/// One tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its data type.
    pub vx_type: VxType,
    /// Its quantisation.
    pub quant: Quantisation,
    /// Its dimensions, the fastest-running first as ovxlib counts them, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u32>>,
    /// Where its data live.
    pub place: Place,
}

/// Where a tensor's data live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the model.
    Constant,
    /// Between two operators.
    Virtual,
    /// The graph's input, output or state.
    Graph,
}

/// A quantisation and its parameters, as far as they are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Quantisation {
    /// The scheme.
    pub scheme: Quant,
    /// The scale; the first channel's, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    /// The zero point; the first channel's, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero_point: Option<i32>,
    /// The fixed-point position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fl: Option<i8>,
    /// How many channels have parameters of their own; one for a per-tensor scheme.
    pub channels: usize,
}

impl Quantisation {
    /// No quantisation.
    pub const NONE: Quantisation = Quantisation::of(Quant::NONE);

    /// A scheme whose parameters aren't known.
    pub const fn of(scheme: Quant) -> Quantisation {
        Quantisation { scheme, scale: None, zero_point: None, fl: None, channels: 1 }
    }

    /// An affine quantisation per tensor.
    pub const fn affine(scheme: Quant, scale: f32, zero_point: i32) -> Quantisation {
        Quantisation { scheme, scale: Some(scale), zero_point: Some(zero_point), fl: None, channels: 1 }
    }

    /// Dynamic fixed point.
    pub const fn dfp(fl: i8) -> Quantisation {
        Quantisation { scheme: Quant::DFP, scale: None, zero_point: None, fl: Some(fl), channels: 1 }
    }
}

impl Tensor {
    /// The tensor's cell in a signature.
    pub fn cell(&self) -> Cell {
        Cell::new(self.vx_type, self.quant.scheme)
    }

    /// Whether the data are part of the model.
    pub fn is_constant(&self) -> bool {
        self.place == Place::Constant
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By its parts and not by its cell: some cells stand for two pairs.
        match self.quant.scheme {
            Quant::NONE => write!(f, "{}", self.vx_type)?,
            scheme => write!(f, "{}:{scheme}", self.vx_type)?,
        }
        if let Some(scale) = self.quant.scale.filter(|_| self.quant.channels <= 1) {
            write!(f, "@{scale}")?;
            if let Some(zero_point) = self.quant.zero_point {
                write!(f, ",{zero_point}")?;
            }
        } else if let Some(fl) = self.quant.fl {
            write!(f, "@{fl}")?;
        }
        if let Some(shape) = &self.shape {
            let dims: Vec<String> = shape.iter().map(u32::to_string).collect();
            write!(f, "[{}]", dims.join("x"))?;
        }
        Ok(())
    }
}

/// The tensors of one operator, resolved.
#[derive(Clone, Debug)]
pub struct Operands<'a> {
    /// The inputs; none where an optional input is absent.
    pub inputs: Vec<Option<&'a Tensor>>,
    /// The outputs.
    pub outputs: Vec<Option<&'a Tensor>>,
}

impl Operands<'_> {
    /// The input at an index, if it is there.
    pub fn input(&self, index: usize) -> Option<&Tensor> {
        self.inputs.get(index).copied().flatten()
    }

    /// The output at an index, if it is there.
    pub fn output(&self, index: usize) -> Option<&Tensor> {
        self.outputs.get(index).copied().flatten()
    }
}

impl ModelGraph {
    /// Resolves an operator's tensors. An index that leads nowhere counts as an absent tensor.
    pub fn operands(&self, operator: &Operator) -> Operands<'_> {
        Operands {
            inputs: operator.inputs.iter().map(|index| index.and_then(|i| self.tensors.get(i))).collect(),
            outputs: operator.outputs.iter().map(|index| self.tensors.get(*index)).collect(),
        }
    }
}
