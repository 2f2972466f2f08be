//! How long a command stream takes, from the stream alone.
//!
//! There are two clocks, for two questions:
//!
//! * [`estimate`] is the *compiler's*: what would Vela 5.2.0 say? It rebuilds Vela's own accounting layer by layer, to a few
//!   tenths of a percent.
//! * [`simulate`] is the *simulating* one: what would a real NPU take? It looks at the blocks that there really are and at the
//!   words that really cross the bus, and lets transfers run beside commands.
//!
//! Both need a [`System`], which says what memory is behind each port, and give a [`Report`] with the [`Cost`] of each layer or
//! command. [`Counters`] turns a report into what a performance monitor counts, and [`Meter`] feeds them to a
//! [register-level NPU](crate::device::Npu). How far each can be trusted is in the repository's docs/clock.md.
//!
//! ```
//! use ethosu_isa::Accelerator;
//! use ethosu_model::clock::{System, estimate, simulate};
//! use ethosu_model::{Limits, Program};
//!
//! let stream = 0xFFFF_0000u32.to_le_bytes(); // NPU_OP_STOP
//! let program = Program::decode(&stream, Accelerator::U55_128, &Limits::default())?;
//! let system = System::usual(Accelerator::U55_128);
//! println!("Vela would say {} cycles", estimate(&program, &system)?.total());
//! for cost in simulate(&program, &system)?.costs {
//!     println!("{:#08x} {:<14} {:>8} cycles, bound by {}", cost.offset, cost.name, cost.cycles, cost.bottleneck);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod beats;
mod compiler;
mod counters;
mod error;
mod layer;
mod pass;
mod rates;
mod report;
mod schedule;
mod sim;
mod system;
mod transfer;
mod units;

pub use beats::{Beats, PortBeats};
pub use compiler::{estimate, estimate_layers};
pub use counters::{Counters, Meter};
pub use error::ClockError;
pub use report::{Bottleneck, Cost, Report};
pub use schedule::{Activation, Schedule, Waits};
pub use sim::{simulate, simulate_steps};
pub use system::{Memory, MemoryMode, Port, System, beat_bytes};
