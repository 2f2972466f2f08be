//! How a job went wrong.

use core::fmt;
use core::time::Duration;

use ethosu_isa::registers::{Channel, Status};
use ethosu_isa::{Product, Words};

use crate::ResetError;
use crate::ports::AxiPort;

/// A job that started and didn't come to a good end. The NPU was reset and is usable, unless `recovery` says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// `STATUS` at that time.
    pub status: Status,
    /// `QREAD` at that time: bytes from the start of the command stream.
    pub qread: u32,
    /// The command at `qread`. The NPU may have been working on one a little before it.
    pub command: Option<Words>,
    /// The NPU's product, which decides what the command means.
    pub product: Product,
    /// How the reset after it went. After an error the next job resets the NPU again before it starts.
    pub recovery: Result<(), ResetError>,
}

/// What went wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// The bus refused an access: no memory there, or not for this security state.
    Bus {
        /// The port.
        port: AxiPort,
        /// What the access was for, if the hardware's number for it is known.
        channel: Option<Channel>,
    },
    /// The NPU can't read a command.
    Parse,
    /// The weight decoder can't follow the compressed weights (U55, U65).
    WeightDecoder,
    /// A branch went wrong (U85).
    Branch,
    /// An internal memory of the NPU failed its check.
    Ecc,
    /// The job didn't end in time.
    TimeOut {
        /// The time it was given.
        limit: Duration,
    },
    /// The caller stopped it.
    Stopped,
    /// Something else changed the NPU's registers while the job ran.
    Interference {
        /// The register.
        register: &'static str,
        /// What is in it.
        found: u64,
        /// What the driver had written.
        expected: u64,
    },
}

impl FaultKind {
    /// The fault that `STATUS` tells of.
    pub(crate) fn from_status(status: Status) -> Option<FaultKind> {
        let has = |bit| status.has(bit);
        if has(Status::BUS) {
            let port = if status.faulting_interface() == 0 { AxiPort::Sram } else { AxiPort::External };
            Some(FaultKind::Bus { port, channel: status.faulting_channel() })
        } else if has(Status::ECC) {
            Some(FaultKind::Ecc)
        } else if has(Status::WEIGHT_DECODER) {
            Some(FaultKind::WeightDecoder)
        } else if has(Status::BRANCH) {
            Some(FaultKind::Branch)
        } else if has(Status::PARSE) {
            Some(FaultKind::Parse)
        } else {
            None
        }
    }
}

impl fmt::Display for Fault {
    /// Such as "bus fault on AXI0 writing an output feature map, at byte 0x58 of the command stream (NPU_OP_CONV), STATUS
    /// 0x00008004".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Bus { port, channel } => {
                write!(f, "bus fault on {}", port.name(self.product))?;
                match channel {
                    Some(channel) => write!(f, " {channel}")?,
                    None => write!(f, " on channel {}", self.status.0 >> 12 & 0xF)?,
                }
            }
            FaultKind::Parse => f.write_str("command parse fault")?,
            FaultKind::WeightDecoder => f.write_str("weight decoder fault")?,
            FaultKind::Branch => f.write_str("branch fault")?,
            FaultKind::Ecc => f.write_str("ECC fault in an internal memory")?,
            FaultKind::TimeOut { limit } => write!(f, "time-out after {limit:?}")?,
            FaultKind::Stopped => f.write_str("stopped by the caller")?,
            FaultKind::Interference { register, found, expected } => {
                write!(f, "something else changed the NPU: {register} is {found:#x}, not {expected:#x}")?;
            }
        }
        write!(f, ", at byte {:#x} of the command stream", self.qread)?;
        match self.command.map(|words| words.decode(self.product)) {
            Some(Ok(command)) => write!(f, " ({})", command.name())?,
            Some(Err(_)) => {
                let word = self.command.map_or(0, |words| words.control);
                write!(f, " (word {word:#010x}, no command)")?;
            }
            None => {}
        }
        write!(f, ", STATUS {:#010x}", self.status.0)?;
        match self.recovery {
            Ok(()) => Ok(()),
            Err(error) => write!(f, "; then {error}"),
        }
    }
}

impl core::error::Error for Fault {}
