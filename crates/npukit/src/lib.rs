//! The npukit library facade.
#![forbid(unsafe_code)]

pub mod batch;
mod bill;
pub mod classify;
pub mod compare;
pub mod defects;
pub mod draw;
mod dtype;
pub mod emit;
mod engine;
mod network;
mod session;
pub mod splitmix;
pub mod tensor;
pub mod verify;

pub use bill::{MemoryBill, RegionBill};
pub use engine::Engine;
pub use ethosu_isa::Accelerator;
pub use network::{Network, NetworkError, accelerator_of};
pub use npukit_vela::compile::{BuildOptions, Built, CompileError, build};
pub use npukit_vela::npy::{Array, Dtype};
pub use npukit_vela::progress::Progress;
pub use npukit_vela::toolchain::Toolchain;
pub use session::{RunError, Session};
