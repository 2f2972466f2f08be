//! Weights: the compressed bitstream, and the order its elements come in.

mod bitstream;
mod order;

pub use bitstream::{WeightFault, decode};
pub use order::{Traversal, WeightOrder};
