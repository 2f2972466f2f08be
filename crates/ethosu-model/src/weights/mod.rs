//! Weights: the compressed bitstream, and the order its elements come in.

mod bitstream;
mod dense;
mod order;

pub use bitstream::{WeightFault, decode};
pub(crate) use dense::{ChannelScale, Weights};
pub use order::{Traversal, WeightOrder};
