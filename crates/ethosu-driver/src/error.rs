//! Why an NPU can't be used, and why a job was refused before it ran.

use core::fmt;

use ethosu_isa::registers::{Configuration, Protection, Status};
use ethosu_isa::{Accelerator, ArchVersion, ConfigWordError, PayloadError, Product};

use crate::Place;
use crate::fault::Fault;

/// A reset that didn't do what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetError {
    /// It didn't come to an end.
    TimeOut {
        /// The last read of `STATUS`.
        status: Status,
        /// How often it was read.
        polls: u32,
    },
    /// The NPU isn't in the security state or privilege level that was asked for.
    Protection {
        /// What `PROT` says.
        found: Protection,
        /// What was asked for.
        expected: Protection,
    },
    /// The NPU runs something that this driver didn't start, so it wasn't reset. [`Npu::reset`](crate::Npu::reset) does it all the
    /// same.
    Occupied {
        /// The NPU's `STATUS`.
        status: Status,
    },
}

impl fmt::Display for ResetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResetError::TimeOut { status, polls } => {
                write!(f, "the NPU's reset isn't over after {polls} reads of STATUS ({:#010x})", status.0)
            }
            ResetError::Protection { found, expected } => {
                write!(f, "after the reset the NPU is {found}, not {expected}")
            }
            ResetError::Occupied { status } => {
                write!(f, "the NPU runs something that this driver didn't start (STATUS {:#010x})", status.0)
            }
        }
    }
}

impl core::error::Error for ResetError {}

/// A value of the set-up that the hardware has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Which value.
    pub what: &'static str,
    /// The value.
    pub found: u32,
    /// The most the hardware takes.
    pub most: u32,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't be {}: 1 to {} are possible on this NPU", self.what, self.found, self.most)
    }
}

impl core::error::Error for ConfigError {}

/// Why an NPU can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// Something else holds it: an [`Npu`](crate::Npu) of it is there, or was forgotten.
    Taken,
    /// It belongs to a [`Pool`](crate::Pool), and is to be had there. One device is in one pool.
    Pooled,
    /// The `CONFIG` register is no Ethos-U's.
    NoNpu(ConfigWordError),
    /// It is another product than the driver is built for.
    Product {
        /// The hardware's.
        found: Product,
        /// The driver's.
        expected: Product,
    },
    /// It is another size than the set-up says.
    Accelerator {
        /// The hardware's.
        found: Accelerator,
        /// The set-up's.
        expected: Accelerator,
    },
    /// The set-up doesn't fit it.
    Config(ConfigError),
    /// It couldn't be reset.
    Reset(ResetError),
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitError::Taken => f.write_str("the NPU is in use already"),
            InitError::Pooled => f.write_str("the NPU belongs to a pool"),
            InitError::NoNpu(error) => write!(f, "there is no Ethos-U at these registers: {error}"),
            InitError::Product { found, expected } => {
                write!(f, "the hardware is an {found}, the driver is built for {expected}")
            }
            InitError::Accelerator { found, expected } => {
                write!(f, "the hardware is an {found}, the set-up is for {expected}")
            }
            InitError::Config(error) => error.fmt(f),
            InitError::Reset(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for InitError {}

impl From<ResetError> for InitError {
    fn from(error: ResetError) -> InitError {
        InitError::Reset(error)
    }
}

impl From<ConfigError> for InitError {
    fn from(error: ConfigError) -> InitError {
        InitError::Config(error)
    }
}

/// Why a job was refused. Nothing ran and no memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobError {
    /// It doesn't say which NPU it was compiled for.
    UnknownAccelerator,
    /// It was compiled for another NPU.
    Accelerator {
        /// The one it was compiled for.
        found: Accelerator,
        /// This one.
        hardware: Accelerator,
    },
    /// It was compiled for something that is no Ethos-U.
    NoAccelerator {
        /// The word that should say for what.
        word: u32,
    },
    /// Its `CONFIG` word differs from the hardware's in something beside product and MACs.
    Configuration {
        /// In what.
        what: &'static str,
        /// The job's word.
        found: Configuration,
        /// The hardware's.
        hardware: Configuration,
    },
    /// It needs another revision of the architecture.
    Architecture {
        /// The one it was compiled for.
        found: ArchVersion,
        /// The hardware's.
        hardware: ArchVersion,
    },
    /// Its command stream can't be one.
    Stream {
        /// Its length in bytes; it has to be a multiple of four from 4 to 16 MiB.
        bytes: u64,
    },
    /// Something isn't where the NPU can read it.
    Misaligned {
        /// What.
        place: Place,
        /// Its address; has to be a multiple of 16.
        address: u64,
    },
    /// Something lies outside the NPU's address space.
    Address {
        /// What.
        place: Place,
        /// Its address, as the NPU sees it.
        address: u64,
        /// Its length.
        bytes: u64,
        /// How wide the NPU's addresses are.
        bits: u32,
    },
    /// The commands use a region that the job doesn't have.
    MissingRegion {
        /// The region.
        region: u8,
    },
    /// The commands use a region of no bytes.
    EmptyRegion {
        /// The region.
        region: u8,
    },
    /// An operation uses bytes outside its region.
    OutsideRegion {
        /// The region.
        region: u8,
        /// The operation that reaches furthest, in bytes from the start of the command stream.
        command: u32,
        /// The first byte it uses there, counted from the region's base.
        start: i64,
        /// Behind the last byte it uses there.
        end: i64,
        /// The bytes that the region has.
        bytes: u64,
    },
    /// The commands go on elsewhere (`NPU_OP_BRANCH` of the U85). No compiler makes such commands, and what they do to memory
    /// can't be told beforehand.
    Branch {
        /// The branch, in bytes from the start of the command stream.
        command: u32,
    },
    /// There isn't as much fast memory as the job needs.
    FastMemory {
        /// What the job needs, in bytes.
        needed: u64,
        /// What there is.
        available: u64,
    },
    /// The commands write a region that is constant.
    Constant {
        /// The region.
        region: u8,
    },
    /// The commands write a region that is routed to a port which can't write: AXI1 of the U55.
    ReadOnlyPort {
        /// The region.
        region: u8,
        /// Its selector in `REGIONCFG`.
        selector: u8,
    },
    /// A region that the NPU writes shares a line of the data cache with something else.
    CacheLine {
        /// The region.
        region: u8,
        /// Its address.
        address: u64,
        /// Its length.
        bytes: u64,
        /// Bytes of a cache line.
        line: u32,
    },
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            JobError::UnknownAccelerator => f.write_str("the job doesn't say which NPU it was compiled for"),
            JobError::Accelerator { found, hardware } => {
                write!(f, "the job was compiled for {found}, this is an {hardware}")
            }
            JobError::NoAccelerator { word } => {
                write!(f, "the job was compiled for something that is no Ethos-U ({word:#010x})")
            }
            JobError::Configuration { what, found, hardware } => {
                write!(
                    f,
                    "the job's {what} differs: CONFIG {:#010x}, the NPU's {:#010x}",
                    found.0, hardware.0
                )
            }
            JobError::Architecture { found, hardware } => {
                write!(f, "the job was compiled for architecture {found}, this is {hardware}")
            }
            JobError::Stream { bytes } => {
                write!(f, "a command stream can't have {bytes} bytes: a multiple of 4 up to 16 MiB is needed")
            }
            JobError::Misaligned { place, address } => {
                write!(f, "{place} is at {address:#x}, not a multiple of 16")
            }
            JobError::Address { place, address, bytes, bits } => {
                write!(
                    f,
                    "{place}, {bytes:#x} bytes at {address:#x}, lies outside the NPU's {bits}-bit addresses"
                )
            }
            JobError::MissingRegion { region } => {
                write!(f, "the commands use region {region}, which has no address")
            }
            JobError::EmptyRegion { region } => {
                write!(f, "the commands use region {region}, which has no bytes")
            }
            JobError::OutsideRegion { region, command, start, end, bytes } => {
                write!(f, "the operation at byte {command:#x} of the command stream uses bytes ")?;
                // A negative number in hexadecimal would be its two's complement.
                match start {
                    0.. => write!(f, "{start:#x}")?,
                    _ => write!(f, "-{:#x}", start.unsigned_abs())?,
                }
                match end {
                    0.. => write!(f, " to {end:#x}")?,
                    _ => write!(f, " to -{:#x}", end.unsigned_abs())?,
                }
                write!(f, " of region {region}, which has {bytes:#x}")
            }
            JobError::Branch { command } => {
                write!(f, "the command at byte {command:#x} is a branch, which nobody can follow beforehand")
            }
            JobError::FastMemory { needed, available } => {
                write!(f, "the job needs {needed:#x} bytes of fast memory, there are {available:#x}")
            }
            JobError::Constant { region } => {
                write!(f, "the commands write region {region}, which is constant")
            }
            JobError::ReadOnlyPort { region, selector } => {
                write!(
                    f,
                    "the commands write region {region}, whose selector {selector} leads to AXI1, where a U55 only reads"
                )
            }
            JobError::CacheLine { region, address, bytes, line } => {
                write!(
                    f,
                    "region {region}, {bytes:#x} bytes at {address:#x}, doesn't fill whole {line}-byte cache lines"
                )
            }
        }
    }
}

impl core::error::Error for JobError {}

/// Why a payload and its addresses make no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadJobError {
    /// The payload can't be read.
    Payload(PayloadError),
    /// As many addresses as an NPU has are possible.
    TooManyRegions {
        /// How many were given.
        found: usize,
    },
}

impl fmt::Display for PayloadJobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PayloadJobError::Payload(error) => error.fmt(f),
            PayloadJobError::TooManyRegions { found } => {
                write!(f, "{found} base addresses, an NPU has {}", ethosu_isa::registers::REGIONS)
            }
        }
    }
}

impl core::error::Error for PayloadJobError {}

impl From<PayloadError> for PayloadJobError {
    fn from(error: PayloadError) -> PayloadJobError {
        PayloadJobError::Payload(error)
    }
}

/// Why a job didn't start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// It was refused.
    Refused(JobError),
    /// The NPU couldn't be switched on. The next attempt resets it again.
    Reset(ResetError),
    /// Something else has started the NPU. Nothing was done to it; [`Npu::reset`](crate::Npu::reset) stops it.
    Occupied {
        /// The NPU's `STATUS`.
        status: Status,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Refused(error) => error.fmt(f),
            SubmitError::Reset(error) => error.fmt(f),
            SubmitError::Occupied { status } => ResetError::Occupied { status: *status }.fmt(f),
        }
    }
}

impl core::error::Error for SubmitError {}

impl From<JobError> for SubmitError {
    fn from(error: JobError) -> SubmitError {
        SubmitError::Refused(error)
    }
}

impl From<ResetError> for SubmitError {
    fn from(error: ResetError) -> SubmitError {
        match error {
            ResetError::Occupied { status } => SubmitError::Occupied { status },
            error => SubmitError::Reset(error),
        }
    }
}

/// Why a job gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvokeError {
    /// It didn't start.
    Submit(SubmitError),
    /// It started and went wrong.
    Fault(Fault),
}

impl fmt::Display for InvokeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeError::Submit(error) => error.fmt(f),
            InvokeError::Fault(fault) => fault.fmt(f),
        }
    }
}

impl core::error::Error for InvokeError {}

impl From<SubmitError> for InvokeError {
    fn from(error: SubmitError) -> InvokeError {
        InvokeError::Submit(error)
    }
}

impl From<Fault> for InvokeError {
    fn from(fault: Fault) -> InvokeError {
        InvokeError::Fault(fault)
    }
}
