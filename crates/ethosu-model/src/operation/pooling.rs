//! Pooling.

use super::window::Window;
use crate::rounding::Scaling;

/// What a pool computes of the elements under its kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolFunction {
    /// The largest; padding is ignored.
    Max,
    /// The smallest; padding is ignored.
    Min,
    /// The sum; padding adds nothing.
    Sum,
    /// The sum divided by the number of elements that aren't padding, halves away from zero.
    Mean,
    /// The sum over all channels.
    ReduceSum,
    /// The column of the first largest one, counted in the kernel.
    ArgmaxX,
}

/// A pooling operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pooling {
    /// Where the kernel goes.
    pub window: Window,
    /// What it computes.
    pub function: PoolFunction,
    /// How the result is scaled.
    pub scale: Scaling,
}
