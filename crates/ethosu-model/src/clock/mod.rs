//! How long a command stream takes, from the stream alone.

mod schedule;

pub use schedule::{Activation, Schedule, Waits};
