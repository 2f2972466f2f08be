//! Element-wise operations.

use super::window::Results;
use crate::map::{Extent, FeatureMap};
use crate::rounding::Scaling;

/// A comparison. True is a value of all ones, -1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// A = B.
    Equal,
    /// A != B.
    NotEqual,
    /// A >= B.
    GreaterEqual,
    /// A > B.
    Greater,
}

/// What an element-wise operation computes of A and B, both scaled before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// A times B.
    Mul,
    /// A plus B.
    Add,
    /// A minus B.
    Sub,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// A with its own scale where it isn't negative, else A with the scale of operand B, which doesn't exist otherwise.
    LeakyRelu,
    /// The absolute value of A.
    Abs,
    /// Leading zeros of A as a 32-bit value.
    Clz,
    /// A shifted right by B, rounded half up.
    Shr,
    /// A shifted left by B.
    Shl,
    /// A divided by B, towards zero.
    Div,
    /// A compared with B.
    Compare(Comparison),
    /// Bitwise A and B.
    And,
    /// Bitwise A or B.
    Or,
    /// Bitwise not A.
    Not,
    /// Bitwise A and not B.
    AndNot,
}

impl Function {
    /// Whether it has a second operand.
    pub fn is_binary(self) -> bool {
        !matches!(self, Self::LeakyRelu | Self::Abs | Self::Clz | Self::Not)
    }
}

/// An operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// One value, its zero point already subtracted.
    Scalar(i64),
    /// A map; an extent of 1 is broadcast.
    Map {
        /// The map.
        map: FeatureMap,
        /// Its extent.
        extent: Extent,
        /// IFM or IFM2.
        name: &'static str,
    },
}

/// An element-wise operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elementwise {
    /// What it computes.
    pub function: Function,
    /// Operand A.
    pub a: Operand,
    /// Operand B, for functions that have one.
    pub b: Option<Operand>,
    /// How A and B are scaled first.
    pub scales: [Scaling; 2],
    /// Set where A and B, once scaled, are known to work only as far as they fit 32 bits.
    pub narrow_operands: bool,
    /// How the result is scaled.
    pub scale: Scaling,
    /// The output.
    pub results: Results,
}
