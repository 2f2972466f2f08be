//! The Arm Ethos-U NPU in software: executes the command streams that Arm's Vela compiler emits, bit for bit.
//!
//! A stream is decoded once into a [`Program`], whose operations carry everything the registers say about them, checked as far as
//! that is possible without data. The reference engine then runs it on a [`Memory`] of up to eight regions:
//!
//! ```
//! use ethosu_isa::Accelerator;
//! use ethosu_model::{Limits, Memory, Program, reference};
//!
//! let stream = 0xFFFF_0000u32.to_le_bytes(); // NPU_OP_STOP
//! let program = Program::decode(&stream, Accelerator::U55_128, &Limits::default())?;
//! let mut memory = Memory::new();
//! memory.bind_writable(1, 1024);
//! reference::run(&program, &mut memory)?;
//! # Ok::<(), ethosu_model::Stop>(())
//! ```
//!
//! What the model does not know it refuses by name ([`Stop`], [`NotModelled`]); it never computes something plausible instead. What
//! a real NPU would report as a bus, parse or weight-decoder fault is told apart from that by [`Stop::is_fault`].
#![deny(unsafe_code)]

pub mod clock;
pub mod device;
pub mod fast;
mod footprint;
mod front;
mod map;
mod memory;
mod native;
pub mod operation;
mod output;
mod program;
pub mod reference;
mod rounding;
mod stop;
mod table;
pub mod weights;

pub use footprint::RegionUse;
pub use map::{Axes, Extent, FeatureMap, Flip, Volume};
pub use memory::{BusFault, Memory, REGIONS, Side};
pub use operation::Operation;
pub use output::OutputStage;
pub use program::{Limits, Program, Step};
pub use rounding::{Rounding, Scaling};
pub use stop::{Cause, NotModelled, Stop};
pub use table::{Table, TableShape};
