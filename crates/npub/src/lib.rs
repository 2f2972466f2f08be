//! The NPU1 container (`.npub`): a compiled Ethos-U network in one flat file.
//!
//! A blob holds the command stream that Arm's Vela made, a table of up to eight regions (the BASEP slots that the
//! commands address) and the bytes of those regions that are constant. Loading it is a table walk and a few additions:
//! no parsing of models, no copy, no allocation.
//!
//! On the target, or wherever addresses are real:
//!
//! ```
//! # let blob_bytes = { let mut b = npub::BlobBuilder::new(npub::Accel::u55(256)); b.commands(&[0]);
//! #     b.runtime(npub::Role::Scratch, 64); b.build().unwrap() };
//! let arena = npub::Arena { base: 0x2100_0000, bytes: 64 };
//! let job = npub::load(&blob_bytes, 0x3800_0000, arena, Some(npub::Accel::u55(256)))?;
//! assert_eq!(job.region_base[0], 0x2100_0000);
//! assert_eq!(job.misaligned().next(), None);
//! # Ok::<(), npub::Error>(())
//! ```
//!
//! Layers, lowest first: [`layout`] has every number of the format; [`peek`] reads the header alone; [`Blob`] is a
//! checked blob with its [`Region`]s, [`CommandStream`] and [`TensorTable`]; [`load`] turns it into a [`Job`];
//! `BlobBuilder`, with the feature `alloc`, goes the other way.
//!
//! The wire format is that of bsikar/ra8-firmware's docs/formats/NPU1.md; docs/npu1.md in this repository states it as
//! implemented here, with the flags added to it.
//!
//! # Features
//! * `alloc`: the writer. The reader and the loader need no allocator.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod accel;
mod blob;
#[cfg(feature = "alloc")]
mod builder;
mod checksum;
mod commands;
mod error;
mod header;
mod job;
pub mod layout;
mod packing;
mod region;
mod tensor;
mod tensor_error;

pub use accel::{Accel, Product};
pub use blob::Blob;
#[cfg(feature = "alloc")]
pub use builder::{BlobBuilder, BuildError, TensorEntry};
pub use checksum::checksum;
pub use commands::{CommandStream, Framing, FramingError};
pub use error::{Error, ErrorKind};
pub use header::{Header, peek};
pub use job::{AccelMatch, Arena, Job, Misaligned, Misplaced, load, load_with};
pub use packing::Packing;
pub use region::{Flags, Region, Role, Storage};
pub use tensor::{DType, Place, Quantisation, Shape, Tensor, TensorKind, TensorTable};
pub use tensor_error::{TensorError, TensorFault};
