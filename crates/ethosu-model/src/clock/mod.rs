//! How long a command stream takes, from the stream alone.

mod beats;
mod compiler;
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
pub use error::ClockError;
pub use report::{Bottleneck, Cost, Report};
pub use schedule::{Activation, Schedule, Waits};
pub use sim::{simulate, simulate_steps};
pub use system::{Memory, MemoryMode, Port, System, beat_bytes};
