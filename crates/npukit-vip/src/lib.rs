//! VeriSilicon VIP NPUs: why an operator is refused and where it lands, what is in an NBG file, and which type tables
//! a binary holds.
//!
//! * [`tables`] and [`checks`]: what ovxlib accepts, operator by operator, with where each table is from;
//! * [`admission`]: the stack's questions in their order, for a model ([`tflite`]) or signatures typed by hand
//!   ([`typed`]);
//! * [`nbg`]: compiled network files, read whole, with the engine of every operation;
//! * [`recover`]: type tables found in an ELF library, with the evidence.
//!
//! ```
//! use npukit_vip::admission::{Options, admit};
//! use npukit_vip::typed::TypedOperator;
//!
//! let layer = TypedOperator {
//!     op: "conv2d".into(),
//!     inputs: vec!["u8:asym".into()],
//!     weight: Some("i8:sym_pc".into()),
//!     ..Default::default()
//! };
//! let report = admit(&layer.graph().unwrap(), &Options::new("1.2.22".parse().unwrap()));
//! println!("{report}");
//! assert_eq!(report.operators[0].verdict.word(), "conditional");
//! ```
#![forbid(unsafe_code)]

pub mod admission;
pub mod checks;
pub mod chip;
#[cfg(feature = "cli")]
pub mod cli;
pub mod codes;
pub mod graph;
pub mod nbg;
pub mod recover;
pub mod tables;
pub mod tflite;
pub mod typed;
pub mod version;
