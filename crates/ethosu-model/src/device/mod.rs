//! The NPU at register level: what a driver sees of it, with the model behind it.
//!
//! [`Npu`] is the register block with its interrupt line. It accesses a [`SystemMemory`], such as [`Banks`], on its own, and
//! runs each job on the model: exactly, or not at all. [`Injection`] makes it fail on demand, [`Activity`] tells its performance
//! monitor what a job costs.

mod execution;
mod injection;
mod memory;
mod npu;
mod pmu;

pub use execution::Refusal;
pub use injection::Injection;
pub use memory::{Banks, SystemMemory};
pub use npu::{Npu, Timing};
pub use pmu::{Activity, Counts, JobView, NoClock};

#[cfg(test)]
mod tests;
