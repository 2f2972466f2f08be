//! Faults that are made to happen.

use ethosu_isa::registers::Protection;

/// A fault to inject. Each happens once, to the next job or reset, and is then used up.
///
/// Offsets are bytes into the command stream; a fault happens at the first operation at or after its offset, or at the end of
/// the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Injection {
    /// The bus aborts the access that touches this address. It waits for a job that does.
    BusError {
        /// The address, as the NPU sees it.
        address: u64,
    },
    /// A command can't be parsed.
    Parse {
        /// Where.
        offset: u32,
    },
    /// The weight decoder loses track.
    WeightDecoder {
        /// Where.
        offset: u32,
    },
    /// An internal memory fails its check.
    Ecc {
        /// Where.
        offset: u32,
    },
    /// The job never ends.
    Hang {
        /// Where it stops getting on.
        offset: u32,
    },
    /// The job ends, but the interrupt stays away.
    MissingInterrupt,
    /// While the job runs, another master writes registers: pairs of offset and value.
    SecondMaster(Vec<(u32, u32)>),
    /// The reset doesn't end.
    EndlessReset,
    /// The reset ends in this state instead of the one that was asked for.
    WrongProtection(Protection),
}
