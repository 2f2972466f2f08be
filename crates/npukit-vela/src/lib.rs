//! Arm's Vela compiler and the TensorFlow Lite reference interpreters as tools.
//!
//! * [`toolchain`] installs them, in a private Python environment, or finds those the user names.
//! * [`compile`] looks at a network, runs Vela on it and says in plain words what stands in the way.
//! * [`distil`] turns what Vela wrote into an NPU1 file, `.npub`.
//! * [`oracle`] runs the reference interpreters, in processes of their own.
//! * [`tflite`], [`npy`] and [`ini`] read the files all this is about.
//!
//! From a network to a file for the NPU:
//!
//! ```no_run
//! use npukit_vela::compile::{BuildOptions, build};
//! use npukit_vela::toolchain::Toolchain;
//!
//! let mut progress = |line: &str| eprintln!("{line}");
//! let (vela, _environment) = Toolchain::from_environment()?.vela(&mut progress)?;
//! let options = BuildOptions::new("ethos-u55-128".parse()?);
//! let built = build(&vela, &std::fs::read("kws.tflite")?, &options, &mut progress)?;
//! std::fs::write("kws.npub", &built.npub)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod compile;
pub mod distil;
pub mod ini;
pub mod interrupt;
pub mod npy;
pub mod oracle;
mod process;
pub mod progress;
pub mod tflite;
pub mod toolchain;

pub use ethosu_isa::{Accelerator, PayloadKind};
