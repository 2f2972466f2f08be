//! Resizing (U85).

use super::window::Results;
use crate::map::{Extent, FeatureMap};
use crate::rounding::Scaling;

/// How values between the input's elements are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interpolation {
    /// From the four neighbours.
    Bilinear,
    /// The nearest one.
    Nearest,
}

/// Where output positions lie on one axis of the input, in units of 1 / `numerator` of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Units in an element.
    pub numerator: i64,
    /// Units from an output position to the next.
    pub step: i64,
    /// Where output position 0 lies.
    pub offset: i64,
}

/// A resize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resize {
    /// The input.
    pub ifm: FeatureMap,
    /// Its extent.
    pub ifm_extent: Extent,
    /// How values are found.
    pub interpolation: Interpolation,
    /// Rows.
    pub y: Axis,
    /// Columns.
    pub x: Axis,
    /// How the result is scaled, from a sum with 16 more bits.
    pub scale: Scaling,
    /// The output.
    pub results: Results,
}
