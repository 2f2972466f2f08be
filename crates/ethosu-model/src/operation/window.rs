//! A kernel moving over an input, and where results go.

use ethosu_isa::Upscale;

use crate::map::{Axes, Extent, FeatureMap, Flip};
use crate::output::OutputStage;

/// The output of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Results {
    /// The map, as it is stored.
    pub ofm: FeatureMap,
    /// What is computed, before axes are exchanged.
    pub extent: Extent,
    /// The order in which the axes are stored.
    pub axes: Axes,
    /// The stored axis that is reversed.
    pub flip: Flip,
    /// What follows scaling.
    pub output: OutputStage,
}

impl Results {
    /// The extent of the stored map.
    pub fn stored_extent(&self) -> Extent {
        self.axes.extent(self.extent)
    }

    /// Whether results are stored as they are computed.
    pub fn is_straight(&self) -> bool {
        self.axes == Axes::Hwc && self.flip == Flip::None
    }
}

/// What convolutions and pools have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The input.
    pub ifm: FeatureMap,
    /// Its stored extent; depth is the channels read.
    pub ifm_extent: Extent,
    /// Rows after upscaling: positions outside are padding.
    pub height: i64,
    /// Columns after upscaling.
    pub width: i64,
    /// How stored rows and columns stand for more.
    pub upscale: Upscale,
    /// Kernel rows and columns, not counting dilation.
    pub kernel: (usize, usize),
    /// Vertical and horizontal stride.
    pub stride: (usize, usize),
    /// Vertical and horizontal dilation.
    pub dilation: (usize, usize),
    /// Rows of padding above, columns of padding to the left.
    pub pad: (i64, i64),
    /// Whether any side is padded.
    pub padded: bool,
    /// Bits of the accumulators: 32, 40 or 48.
    pub accumulator_bits: u32,
    /// The output.
    pub results: Results,
}

impl Window {
    /// The multiply-accumulates or comparisons.
    pub(crate) fn work(&self, inputs_per_output: usize) -> u64 {
        let taps = (self.kernel.0 as u64).saturating_mul(self.kernel.1 as u64);
        self.results.extent.elements().saturating_mul(taps).saturating_mul(inputs_per_output as u64)
    }

    /// Whether it looks at one input element for each output element, in order.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.kernel == (1, 1) && self.stride == (1, 1) && !self.padded && self.upscale == Upscale::None
    }
}
