//! What Arm's Ethos-U NPUs speak: commands, payload framing and accelerator configurations of U55, U65 and U85.
//!
//! From the outside in:
//!
//! * [`Accelerator`] is one of the eleven configurations that exist; its [`Product`] decides the dialect.
//! * [`Payload`] is the framing around a command stream in an `ethos-u` custom operator, `COP1` or `COP2`.
//! * [`Decoder`] goes through a bare command stream and gives [`Instruction`]s, which print as a disassembly.
//! * [`Command`] is what an instruction says, with typed operands. [`Command::encode`] gives its words back.
//! * [`registers`] is the register block that a driver sees, and [`PmuEvent`] what its performance monitor counts.
//!
//! Nothing here allocates, and no bytes make it panic.
//!
//! ```
//! use ethosu_isa::{Accelerator, Command, Decoder, ElementwiseMode, Payload, cop1_header};
//!
//! // What a compiler leaves in a model: here an addition, and the end.
//! let stream = [0x06, 0x00, 0x01, 0x00, 0x00, 0x00, 0xFF, 0xFF];
//! let bytes = [&cop1_header(Accelerator::U55_256, 2)?[..], &stream].concat();
//!
//! let payload = Payload::parse(&bytes)?;
//! let accelerator = payload.accelerator()?;
//! assert_eq!(accelerator.to_string(), "ethos-u55-256");
//! for instruction in Decoder::new(payload.stream(), accelerator.product()) {
//!     let instruction = instruction?;
//!     println!("{instruction}"); // 0x000000  00010006           NPU_OP_ELEMENTWISE           mode=add
//!     match instruction.command {
//!         Command::Elementwise(mode) => assert_eq!(mode, ElementwiseMode::Add),
//!         other => assert_eq!(other, Command::Stop { mask: 0xFFFF }),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod accelerator;
mod command;
mod decode;
mod disasm;
mod encode;
mod fields;
mod fields85;
mod operand;
mod payload;
mod pmu;
mod product;
pub mod registers;

pub use accelerator::{Accelerator, Block, ConfigWordError, ParseAcceleratorError};
pub use command::Command;
pub use decode::{DecodeError, Decoder, Instruction, Words};
pub use encode::EncodeError;
pub use fields::*;
pub use fields85::*;
pub use operand::FieldValue;
pub use payload::{
    ArchVersion, COP1_HEADER_BYTES, Cop2Metadata, MAX_STREAM_WORDS, Payload, PayloadError, PayloadKind,
    cop1_header,
};
pub use pmu::PmuEvent;
pub use product::Product;
