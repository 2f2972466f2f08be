//! The Ethos-U NPU in software.
