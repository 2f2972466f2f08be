//! Why a command stream stopped before its end.

use std::fmt;

use ethosu_isa::DecodeError;
use thiserror::Error;

use crate::memory::BusFault;
use crate::weights::WeightFault;

/// A command stream that did not run to its NPU_OP_STOP.
///
/// Two very different things end a run early. A *fault* is what a real NPU would report too: the stream asks for something
/// impossible. Everything else is the model's refusal to guess: nothing it could compute there would be known to be right.
/// [`is_fault`](Self::is_fault) tells them apart.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{operation} at byte {offset:#x} of the command stream: {cause}")]
pub struct Stop {
    /// Where the command that stopped the run begins, in bytes from the start of the stream.
    pub offset: usize,
    /// The command's name.
    pub operation: &'static str,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What is wrong with a command.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Cause {
    /// The words aren't a command (parse fault).
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The stream ends without NPU_OP_STOP.
    #[error("the stream ends here without NPU_OP_STOP")]
    Endless,
    /// An access outside the regions (bus fault).
    #[error("{access}: {fault}")]
    Bus {
        /// What was accessed, by the field's name (IFM, OFM, WEIGHT ...).
        access: &'static str,
        /// The refusal.
        fault: BusFault,
    },
    /// The weight decoder can't follow a stream (weight-decoder fault).
    #[error("{stream}: {fault}")]
    Weights {
        /// WEIGHT or WEIGHT1.
        stream: &'static str,
        /// What it met.
        fault: WeightFault,
    },
    /// The operation depends on a register that no command has set.
    #[error("it needs {register}, which no command has set before")]
    NeverSet {
        /// The register.
        register: &'static str,
    },
    /// A form whose result is not established, so the model doesn't make one up.
    #[error("{0}")]
    NotModelled(#[from] NotModelled),
    /// The stream asks for more work than the caller allows.
    #[error(
        "{what} would take the run beyond its limit of {limit}; raise the limit if the stream is to be trusted"
    )]
    WorkLimit {
        /// What exceeds it, with its size.
        what: String,
        /// The limit.
        limit: u64,
    },
}

/// A form that the model refuses to guess at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotModelled {
    /// The register field or value concerned.
    pub field: &'static str,
    /// What it holds.
    pub found: i64,
    /// What the model knows how to compute, and why it stops there.
    pub known: &'static str,
}

impl fmt::Display for NotModelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}: not modelled ({})", self.field, self.found, self.known)
    }
}

impl std::error::Error for NotModelled {}

impl Stop {
    /// Whether a real NPU would fault here too, as opposed to the model declining to compute something.
    pub fn is_fault(&self) -> bool {
        matches!(self.cause, Cause::Decode(_) | Cause::Endless | Cause::Bus { .. } | Cause::Weights { .. })
    }
}

impl Cause {
    pub(crate) fn not_modelled(field: &'static str, found: impl Into<i64>, known: &'static str) -> Self {
        Self::NotModelled(NotModelled { field, found: found.into(), known })
    }

    pub(crate) fn bus(access: &'static str) -> impl Fn(BusFault) -> Self {
        move |fault| Self::Bus { access, fault }
    }
}
