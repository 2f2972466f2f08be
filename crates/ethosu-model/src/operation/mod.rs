//! Operations as values: what a command does, gathered from the registers it consults and checked.
//!
//! They are the same for all products: the front ends turn each product's registers into them, and both engines execute them.
//! Nothing here depends on data, so all that can be refused without it has been refused before.

mod convolution;
mod dma;
mod elementwise;
mod pooling;
mod resize;
mod window;

pub use convolution::{
    Convolution, ConvolutionScale, Kernel, ScaleFormat, ScaleStream, Stream, WeightEncoding,
};
pub use dma::{Dma, Indexed, Target};
pub use elementwise::{Comparison, Elementwise, Function, Operand};
pub use pooling::{PoolFunction, Pooling};
pub use resize::{Axis, Interpolation, Resize};
pub use window::{Results, Window};

/// One step of a command stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// NPU_OP_CONV or NPU_OP_DEPTHWISE.
    Convolution(Convolution),
    /// NPU_OP_POOL.
    Pooling(Pooling),
    /// NPU_OP_ELEMENTWISE.
    Elementwise(Elementwise),
    /// NPU_OP_RESIZE (U85).
    Resize(Resize),
    /// NPU_OP_DMA_START.
    Dma(Dma),
}

impl Operation {
    /// The command's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Convolution(convolution) if convolution.depthwise => "NPU_OP_DEPTHWISE",
            Self::Convolution(_) => "NPU_OP_CONV",
            Self::Pooling(_) => "NPU_OP_POOL",
            Self::Elementwise(_) => "NPU_OP_ELEMENTWISE",
            Self::Resize(_) => "NPU_OP_RESIZE",
            Self::Dma(_) => "NPU_OP_DMA_START",
        }
    }

    /// The work it takes: multiply-accumulates, elements or bytes, whichever the operation is made of.
    pub fn work(&self) -> u64 {
        match self {
            Self::Convolution(convolution) => {
                let window = &convolution.window;
                let inputs = if convolution.depthwise { 1 } else { window.ifm_extent.depth };
                // Weights are decoded even for a single result, and end markers make a stream longer than what it decodes to.
                let weights = match &convolution.kernel {
                    Kernel::Streams { streams, .. } => streams.iter().fold(0u64, |sum, stream| {
                        sum.saturating_add(stream.length.into()).saturating_add(stream.order.elements())
                    }),
                    Kernel::Map(_) => 0,
                };
                window.work(inputs).saturating_add(window.ifm_extent.elements()).saturating_add(weights)
            }
            Self::Pooling(pooling) => {
                let window = &pooling.window;
                let inputs =
                    if pooling.function == PoolFunction::ReduceSum { window.ifm_extent.depth } else { 1 };
                window.work(inputs).saturating_add(window.ifm_extent.elements())
            }
            Self::Elementwise(elementwise) => elementwise.results.extent.elements(),
            Self::Resize(resize) => resize
                .results
                .extent
                .elements()
                .saturating_mul(4)
                .saturating_add(resize.ifm_extent.elements()),
            Self::Dma(dma) => dma.work(),
        }
    }

    /// Elements of the largest map it touches.
    pub(crate) fn largest_map(&self) -> u64 {
        match self {
            Self::Convolution(Convolution { window, .. }) | Self::Pooling(Pooling { window, .. }) => {
                window.ifm_extent.elements().max(window.results.extent.elements())
            }
            Self::Elementwise(elementwise) => elementwise.results.extent.elements(),
            Self::Resize(resize) => resize.ifm_extent.elements().max(resize.results.extent.elements()),
            Self::Dma(_) => 0,
        }
    }

    /// What it writes, if it writes a map.
    pub fn results(&self) -> Option<&Results> {
        match self {
            Self::Convolution(Convolution { window, .. }) | Self::Pooling(Pooling { window, .. }) => {
                Some(&window.results)
            }
            Self::Elementwise(elementwise) => Some(&elementwise.results),
            Self::Resize(resize) => Some(&resize.results),
            Self::Dma(_) => None,
        }
    }
}
