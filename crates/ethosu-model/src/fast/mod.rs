//! The fast engine: plans a program once for given regions, and runs it many times.
//!
//! Planning decodes the weights, resolves the look-up tables, checks every access against the regions' sizes and picks for each
//! operation a form whose result is the reference engine's to the bit. What has no such form, or would fault, runs as the reference
//! engine runs it.

mod binary;
mod convolution;
mod kernels;
mod map_bytes;
mod matmul;
mod output;
mod packed;
mod plan;
mod pooling;
mod provenance;
mod reach;
mod requant;
mod scratch;
mod stage;
mod store;
mod wide;

pub use kernels::Isa;
pub use plan::{Plan, Workspace};
