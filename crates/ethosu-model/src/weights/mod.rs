//! Weights: their encodings, and the orders their elements come in.

mod bitstream;
mod dense;
mod fast;
mod order;
mod order85;

pub(crate) use bitstream::most_elements;
pub use bitstream::{WeightFault, decode};
pub(crate) use dense::{ChannelScale, Weights};
pub use order::{Traversal, WeightOrder};
pub use order85::WeightOrder85;

/// The order of one stream's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// U55 and U65: core `core` of `cores` computes every `cores`th output channel.
    Cores {
        /// The order of the core's own channels.
        order: WeightOrder,
        /// Which core.
        core: usize,
        /// How many there are.
        cores: usize,
    },
    /// U85.
    Interleaved(WeightOrder85),
}

impl Order {
    /// Weights that aren't padding, a lower limit of [`elements`](Self::elements).
    pub(crate) fn weights(&self) -> u64 {
        let (channels, height, width, depth) = match self {
            Self::Cores { order, .. } => {
                (order.ofm_depth, order.kernel_height, order.kernel_width, order.ifm_depth)
            }
            Self::Interleaved(order) => {
                (order.ofm_depth / order.streams, order.kernel_height, order.kernel_width, order.ifm_depth)
            }
        };
        [height, width, depth]
            .iter()
            .fold(channels as u64, |product, &size| product.saturating_mul(size as u64))
    }

    /// Elements in the stream, padding included.
    pub fn elements(&self) -> u64 {
        match self {
            Self::Cores { order, .. } => order.elements(),
            Self::Interleaved(order) => order.elements(),
        }
    }

    /// Hands each weight of `stream` to `place` as (output channel, kernel row, kernel column, input channel, weight).
    ///
    /// # Errors
    /// [`WeightFault::Short`] if the stream has fewer than [`elements`](Self::elements) weights, [`WeightFault::Padding`] if
    /// padding isn't zero.
    pub fn arrange(
        &self,
        stream: &[i16],
        mut place: impl FnMut(usize, usize, usize, usize, i16),
    ) -> Result<(), WeightFault> {
        match self {
            Self::Cores { order, core, cores } => {
                order.arrange(stream, |o, y, x, i, weight| place(o * cores + core, y, x, i, weight))
            }
            Self::Interleaved(order) => order.arrange(stream, place),
        }
    }
}
