//! What Arm's Ethos-U NPUs speak: commands, payload framing and accelerator configurations of U55, U65 and U85.
//!
//! ```
//! use ethosu_isa::{Accelerator, Command, Decoder};
//!
//! let accelerator: Accelerator = "ethos-u55-256".parse()?;
//! let stream = [0x06, 0x00, 0x01, 0x00, 0x00, 0x00, 0xFF, 0xFF];
//! for instruction in Decoder::new(&stream, accelerator.product()) {
//!     let instruction = instruction?;
//!     if let Command::Elementwise(mode) = instruction.command {
//!         assert_eq!(mode, ethosu_isa::ElementwiseMode::Add);
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
mod product;

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
pub use product::Product;
