//! npukit's conformance suite: generated networks, compiled by Vela, run on both engines, compared to the bit with the reference
//! interpreters.
//!
//! The program `conformance` runs it from the command line; `cargo test -p npukit-conformance` runs a part of it.
#![forbid(unsafe_code)]

pub mod cli;
pub mod inputs;
pub mod judge;
pub mod measure;
pub mod record;
pub mod server;
pub mod shrink;
pub mod suite;
pub mod table;
