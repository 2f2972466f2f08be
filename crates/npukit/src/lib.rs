//! Compiles quantised `.tflite` networks for Arm Ethos-U NPUs, packs them into `.npub`, and proves on this machine that the
//! compiled program computes bit for bit what the reference kernels compute.
//!
//! Run a compiled network:
//!
//! ```no_run
//! use npukit::{Array, Dtype, Network};
//!
//! let network = Network::from_npub(&std::fs::read("digits.npub")?)?;
//! let input = Array::new(Dtype::Int8, vec![1, 8, 8, 1], vec![0; 64])?;
//! let outputs = network.session().run(&[input])?;
//! println!("{:?} {:?}", network.outputs()[0].name, outputs[0].data());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! * [`build`] compiles and packs; the toolchain it needs ([`Toolchain`]) installs itself on first need.
//! * [`Network`] is a compiled network, [`Session`] the memory it runs in; an [`Engine`] does the work.
//! * [`verify`] compares with the reference interpreters; [`draw`] makes the inputs, [`mod@batch`] reads the user's.
//! * [`defects`] knows the operators that Vela compiles wrong.
//! * [`profile`] says how long an inference takes and where the time goes; [`clock`] is the system around the NPU.
//! * [`MemoryBill`] says what a blob takes on the device, [`mod@driver`] what a driver has to be set up with; [`emit`] writes it
//!   as C or Rust source.
//!
//! The parts are crates of their own: [`npub`], [`ethosu_isa`], [`ethosu_model`], [`ethosu_driver`] and [`npukit_vela`].
//!
//! # Features
//! * `cli` (default): the program `npukit`. A library user leaves it out.
#![forbid(unsafe_code)]

pub mod batch;
pub mod bench;
mod bill;
pub mod classify;
pub mod clock;
pub mod compare;
pub mod defects;
pub mod draw;
pub mod driver;
mod dtype;
pub mod emit;
mod engine;
mod network;
pub mod profile;
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
