//! The NPU1 container.
