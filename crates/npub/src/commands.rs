//! The command stream, bare or in Arm's payload framing.

use core::fmt;

use crate::layout::{self, cop, word};
use crate::{Accel, ErrorKind};

/// The command words, ready for QBASE and QSIZE.
///
/// NPU1 stores them bare. Other producers leave Arm's COP1 or COP2 payload framing around them; it is taken off here,
/// and [`framing`](CommandStream::framing) says so. The first word tells: no command has the code that the letters
/// `COP` spell.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CommandStream<'a> {
    bytes: &'a [u8],
    offset: usize,
    framing: Framing,
}

/// What was around the command words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Framing {
    /// Nothing.
    Bare,
    /// A list of driver actions, as Arm's core driver takes it.
    Cop1 {
        /// The accelerator's config word, if an action gives it.
        config: Option<u32>,
    },
    /// Vela's newer framing.
    Cop2 {
        /// The accelerator's config word.
        config: u32,
    },
}

/// What is wrong with a wrapped command stream. Offsets are bytes from the first of the wrapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FramingError {
    /// A part ends outside the bytes that are there.
    Truncated {
        /// Where the part should end.
        end: u64,
        /// How many bytes there are.
        bytes: usize,
    },
    /// A driver action without a meaning here.
    Action {
        /// Where it is.
        offset: usize,
        /// The action word.
        found: u32,
    },
    /// The COP2 metadata doesn't start with `VEUM`.
    Metadata {
        /// What it starts with.
        found: u32,
    },
    /// The COP2 stream starts behind its end.
    Order {
        /// Where it starts.
        start: u64,
        /// Where it ends.
        end: u64,
    },
    /// No command stream, or one of length zero.
    Empty,
    /// A second command stream.
    Second {
        /// Where the action is.
        offset: usize,
    },
}

impl<'a> CommandStream<'a> {
    /// Takes the framing off `payload`, if it has one.
    ///
    /// # Errors
    /// A [`FramingError`] when a framing is there and broken.
    pub fn parse(payload: &'a [u8]) -> Result<CommandStream<'a>, FramingError> {
        match word(payload, 0) {
            Some(cop::COP1) => cop1(payload),
            Some(cop::COP2) => cop2(payload),
            _ => Ok(CommandStream { bytes: payload, offset: 0, framing: Framing::Bare }),
        }
    }

    /// The bare bytes. A stream that an NPU takes is a whole number of words; this isn't checked.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The words. Up to three bytes behind the last whole word are left out.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u32> + DoubleEndedIterator + Clone + use<'a> {
        self.bytes.as_chunks::<4>().0.iter().map(|chunk| u32::from_le_bytes(*chunk))
    }

    /// Where the bare bytes start: in the payload that was parsed, or in the blob when it comes from one.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// What was around the words.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    pub(crate) fn moved(self, by: usize) -> CommandStream<'a> {
        CommandStream { offset: self.offset + by, ..self }
    }
}

impl fmt::Debug for CommandStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandStream")
            .field("offset", &format_args!("{:#x}", self.offset))
            .field("bytes", &self.bytes.len())
            .field("framing", &self.framing)
            .finish()
    }
}

impl Framing {
    /// The accelerator that the framing names, if it does.
    pub fn accel(self) -> Option<Accel> {
        match self {
            Framing::Bare => None,
            Framing::Cop1 { config } => config.and_then(Accel::from_config_word),
            Framing::Cop2 { config } => Accel::from_config_word(config),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Framing::Bare => "bare",
            Framing::Cop1 { .. } => "COP1",
            Framing::Cop2 { .. } => "COP2",
        })
    }
}

/// Walks the driver actions. One stream is expected; behind it only fill.
fn cop1(payload: &[u8]) -> Result<CommandStream<'_>, FramingError> {
    let mut at = 4;
    let mut config = None;
    let mut stream = None;
    while at < payload.len() {
        let action = field(payload, at)?;
        match action & 0xFF {
            cop::ACTION_CONFIG => {
                config = Some(field(payload, at + 4)?);
                // The arch word repeats what config says; it only has to be there.
                field(payload, at + 8)?;
                at += 12;
            }
            cop::ACTION_STREAM if stream.is_some() => return Err(FramingError::Second { offset: at }),
            cop::ACTION_STREAM => {
                let words = (action >> 16) as usize | ((action >> 8 & 0xFF) as usize) << 16;
                let start = at + 4;
                let bytes = span(payload, start as u64, (start + words * 4) as u64)?;
                stream = Some((start, bytes));
                at = start + words * 4;
            }
            cop::ACTION_NOP => at += 4,
            _ => return Err(FramingError::Action { offset: at, found: action }),
        }
    }
    match stream {
        Some((offset, bytes)) if !bytes.is_empty() => {
            Ok(CommandStream { bytes, offset, framing: Framing::Cop1 { config } })
        }
        _ => Err(FramingError::Empty),
    }
}

/// Reads the one entry; its stream starts behind the metadata, at a multiple of 16.
fn cop2(payload: &[u8]) -> Result<CommandStream<'_>, FramingError> {
    let low = field(payload, cop::COP2_LENGTH)?;
    let high = field(payload, cop::COP2_LENGTH + 4)?;
    let total = (u64::from(high) << 32 | u64::from(low)).saturating_add(cop::COP2_LENGTH_FROM);
    span(payload, 0, total)?;
    let end = cop::COP2_METADATA_BYTES as u64 + u64::from(field(payload, cop::COP2_ENTRY_BYTES)?);
    let metadata = cop::COP2_METADATA as u64 + u64::from(field(payload, cop::COP2_METADATA_BYTES)?);
    let magic = field(payload, cop::COP2_METADATA)?;
    if magic != cop::VEUM {
        return Err(FramingError::Metadata { found: magic });
    }
    let config_end = cop::COP2_CONFIG as u64 + 4;
    if metadata < config_end {
        return Err(FramingError::Truncated { end: config_end, bytes: metadata as usize });
    }
    let config = field(payload, cop::COP2_CONFIG)?;
    let start = layout::align_up(metadata);
    match start.cmp(&end) {
        core::cmp::Ordering::Less => {}
        core::cmp::Ordering::Equal => return Err(FramingError::Empty),
        core::cmp::Ordering::Greater => return Err(FramingError::Order { start, end }),
    }
    let bytes = span(payload, start, end)?;
    Ok(CommandStream { bytes, offset: start as usize, framing: Framing::Cop2 { config } })
}

fn field(payload: &[u8], offset: usize) -> Result<u32, FramingError> {
    word(payload, offset).ok_or(FramingError::Truncated { end: offset as u64 + 4, bytes: payload.len() })
}

fn span(payload: &[u8], start: u64, end: u64) -> Result<&[u8], FramingError> {
    let truncated = FramingError::Truncated { end, bytes: payload.len() };
    let range =
        usize::try_from(start).map_err(|_| truncated)?..usize::try_from(end).map_err(|_| truncated)?;
    payload.get(range).ok_or(truncated)
}

impl FramingError {
    /// The class the error belongs to.
    pub fn kind(&self) -> ErrorKind {
        match self {
            FramingError::Truncated { .. } | FramingError::Order { .. } => ErrorKind::OutOfRange,
            FramingError::Empty => ErrorKind::InvalidSize,
            FramingError::Action { .. } | FramingError::Metadata { .. } | FramingError::Second { .. } => {
                ErrorKind::InvalidArg
            }
        }
    }
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FramingError::Truncated { end, bytes } => {
                write!(f, "ends at {end:#x}, but only {bytes:#x} bytes are there")
            }
            FramingError::Action { offset, found } => {
                write!(f, "unknown driver action {found:#010x} at {offset:#x}")
            }
            FramingError::Metadata { found } => {
                write!(f, "the metadata starts with {found:#010x}, not {:#010x} (VEUM)", cop::VEUM)
            }
            FramingError::Order { start, end } => {
                write!(f, "the stream starts at {start:#x}, behind its end {end:#x}")
            }
            FramingError::Empty => f.write_str("no commands"),
            FramingError::Second { offset } => write!(f, "a second command stream at {offset:#x}"),
        }
    }
}

impl core::error::Error for FramingError {}
