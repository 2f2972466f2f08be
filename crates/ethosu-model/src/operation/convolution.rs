//! Convolutions and matrix products.

use super::window::Window;
use crate::map::{Extent, FeatureMap};
use crate::rounding::{Rounding, Scaling};
use crate::weights::Order;

/// Where a convolution's weights come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// Compressed streams.
    Streams {
        /// The region they lie in.
        region: u8,
        /// How they are encoded.
        encoding: WeightEncoding,
        /// One for each core, or group of cores, that has output channels.
        streams: Vec<Stream>,
    },
    /// The second input: a map of one row, as many columns as output channels, and as many channels as input channels (U85).
    Map(FeatureMap),
}

/// How weight streams are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightEncoding {
    /// Entropy coded, each stream for itself.
    Standard,
    /// Palette indices or raw bytes (U85): one run of bytes holds all streams, alternating block by block.
    Fast {
        /// Elements of a block.
        block: usize,
    },
}

/// One stream of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// The order of its weights.
    pub order: Order,
    /// First byte in the weight region.
    pub base: u64,
    /// Bytes.
    pub length: u32,
    /// WEIGHT, WEIGHT1, ...
    pub name: &'static str,
}

/// The layout of a scale record, ten bytes a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleFormat {
    /// 40-bit bias, 32-bit multiplier, 6-bit shift (U55, U65).
    Bias40,
    /// 32-bit bias, 31-bit multiplier, 6-bit shift (U85 with 32-bit accumulators).
    Bias32,
    /// 48-bit bias, 15-bit multiplier, 6-bit shift (U85 with 48-bit accumulators).
    Bias48,
}

/// One stream of biases and scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleStream {
    /// First byte in the scale region.
    pub base: u64,
    /// Channels it holds.
    pub channels: usize,
    /// SCALE or SCALE1.
    pub name: &'static str,
}

/// How a convolution's sums are scaled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConvolutionScale {
    /// By streams with a record for each channel; channel `o` is record `o / n` of stream `o % n` of `n`.
    PerChannel {
        /// The region they lie in.
        region: u8,
        /// Their layout.
        format: ScaleFormat,
        /// How results are rounded.
        rounding: Rounding,
        /// The streams.
        streams: Vec<ScaleStream>,
    },
    /// All alike, without bias.
    Global(Scaling),
}

/// A convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    /// Where the kernel goes.
    pub window: Window,
    /// Whether each channel has its own kernel.
    pub depthwise: bool,
    /// Its weights.
    pub kernel: Kernel,
    /// Its scales.
    pub scale: ConvolutionScale,
}

impl Convolution {
    /// The extent that the map of a matrix product's weights has.
    pub(crate) fn weight_map_extent(&self) -> Extent {
        Extent { height: 1, width: self.window.results.extent.depth, depth: self.window.ifm_extent.depth }
    }
}
