//! Arm's Vela compiler and the TensorFlow Lite reference interpreters as tools.
#![forbid(unsafe_code)]

pub mod ini;
pub mod npy;
pub mod progress;
pub mod tflite;
pub mod toolchain;
mod process;
