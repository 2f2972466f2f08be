//! The framing around a command stream in an `ethos-u` custom operator: custom operator payloads 1 and 2.
//!
//! Sources: Vela 5.2.0's `custom_operator_ethosu.hpp` for both forms; Arm's core driver's `ethosu_driver.c` for what it
//! accepts of the first, and its `ethosu55_interface.h` for the parts of the architecture word.

use core::fmt;

use crate::accelerator::{Accelerator, ConfigWordError};

/// `COP1` as a little-endian word.
const COP1: u32 = u32::from_le_bytes(*b"COP1");
/// `COP2` as a little-endian word.
const COP2: u32 = u32::from_le_bytes(*b"COP2");
/// What begins the metadata of a command stream in a payload 2.
const METADATA_MAGIC: u32 = u32::from_le_bytes(*b"VEUM");

/// Actions of a payload 1, bits 7..0 of a word.
const ACTION_CONFIGURATION: u32 = 1;
const ACTION_STREAM: u32 = 2;
const ACTION_NOP: u32 = 5;

/// The action word Vela 5.2.0 writes before the configuration: release 0, patch 1.
const CONFIGURATION_WORD: u32 = ACTION_CONFIGURATION | 1 << 20;

/// Entries of a payload 2.
const ENTRY_STREAM: u32 = 1;
/// Bytes before the first entry: magic, version, length.
const COP2_HEADER: usize = 16;
/// Bytes of an entry's type and length.
const ENTRY_HEADER: usize = 8;
/// Bytes of the metadata from its magic to the end of the staging size.
const METADATA_BYTES: usize = 32;
/// Bytes of the metadata after its own header.
const METADATA_DATA_BYTES: u32 = 20;

/// Bit of the feature word: regions are laid out for the whole network.
const FEATURE_NETWORK_WIDE: u32 = 1;
/// Bit of the feature word: inputs and outputs have regions of their own.
const FEATURE_LOCAL: u32 = 2;

/// The longest command stream: 16 MiB (Vela 5.2.0 refuses more as the hardware's limit).
pub const MAX_STREAM_WORDS: usize = 1 << 22;

/// Bytes that [`cop1_header`] puts before a stream.
pub const COP1_HEADER_BYTES: usize = 32;

/// The two forms of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadKind {
    /// `COP1`: the form Arm's driver accepts.
    Cop1,
    /// `COP2`: Vela's newer form, needed for separate input and output regions.
    Cop2,
}

impl fmt::Display for PayloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            PayloadKind::Cop1 => "COP1",
            PayloadKind::Cop2 => "COP2",
        })
    }
}

/// A revision of the NPU's architecture, from the architecture word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchVersion {
    /// Bits 31..28.
    pub major: u8,
    /// Bits 27..20.
    pub minor: u8,
    /// Bits 19..16.
    pub patch: u8,
}

impl ArchVersion {
    /// The revision in an architecture word, which is laid out as the NPU's `ID` register.
    pub const fn from_word(word: u32) -> ArchVersion {
        ArchVersion { major: (word >> 28) as u8, minor: (word >> 20) as u8, patch: (word >> 16 & 0xF) as u8 }
    }
}

impl fmt::Display for ArchVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What only a payload 2 says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cop2Metadata {
    /// The feature word.
    pub features: u32,
    /// Bytes of fast scratch memory the stream uses.
    pub staging_bytes: u64,
}

impl Cop2Metadata {
    /// The regions are laid out for the whole network: inputs and outputs lie in the scratch region.
    pub const fn network_wide_addressing(&self) -> bool {
        self.features & FEATURE_NETWORK_WIDE != 0
    }

    /// Inputs and outputs have regions of their own: 3 and 4.
    pub const fn local_addressing(&self) -> bool {
        self.features & FEATURE_LOCAL != 0
    }
}

/// A payload that was read: what it was made for, and where its command stream lies.
///
/// ```
/// use ethosu_isa::{Accelerator, Payload, PayloadKind, cop1_header};
///
/// let stream = 0xFFFF_0000_u32.to_le_bytes();
/// let mut bytes = [0; 36];
/// bytes[..32].copy_from_slice(&cop1_header(Accelerator::U55_128, 1)?);
/// bytes[32..].copy_from_slice(&stream);
///
/// let payload = Payload::parse(&bytes)?;
/// assert_eq!(payload.kind(), PayloadKind::Cop1);
/// assert_eq!(payload.accelerator(), Ok(Accelerator::U55_128));
/// assert_eq!((payload.stream_offset(), payload.stream()), (32, &stream[..]));
/// # Ok::<(), ethosu_isa::PayloadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    kind: PayloadKind,
    config_word: u32,
    arch_word: u32,
    stream_offset: usize,
    stream: &'a [u8],
    metadata: Option<Cop2Metadata>,
}

impl<'a> Payload<'a> {
    /// Reads a payload of either form. `bytes` has to end where the payload ends.
    ///
    /// The stream's commands aren't looked at, and the product isn't checked: see [`Payload::accelerator`].
    ///
    /// # Errors
    /// [`PayloadError`], with the offset of the fault from the start of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Payload<'a>, PayloadError> {
        match word(bytes, 0)? {
            COP1 => parse_cop1(bytes),
            COP2 => parse_cop2(bytes),
            found => Err(PayloadError::Magic { found }),
        }
    }

    /// Whether `bytes` begin as a payload does, as against a bare command stream: no command has these codes.
    pub fn is_payload(bytes: &[u8]) -> bool {
        matches!(word(bytes, 0), Ok(COP1 | COP2))
    }

    /// The form.
    pub const fn kind(&self) -> PayloadKind {
        self.kind
    }

    /// The `CONFIG` word of the NPU it was made for.
    pub const fn config_word(&self) -> u32 {
        self.config_word
    }

    /// The architecture word of the NPU it was made for.
    pub const fn arch_word(&self) -> u32 {
        self.arch_word
    }

    /// The revision in [`arch_word`](Payload::arch_word).
    pub const fn arch_version(&self) -> ArchVersion {
        ArchVersion::from_word(self.arch_word)
    }

    /// The accelerator it was made for.
    ///
    /// # Errors
    /// [`ConfigWordError`] where the configuration word fits none.
    pub fn accelerator(&self) -> Result<Accelerator, ConfigWordError> {
        Accelerator::from_config_word(self.config_word)
    }

    /// Bytes from the start of the payload to the stream.
    pub const fn stream_offset(&self) -> usize {
        self.stream_offset
    }

    /// The bare command stream, a whole number of words.
    pub const fn stream(&self) -> &'a [u8] {
        self.stream
    }

    /// What only a payload 2 says; `None` for a payload 1.
    pub const fn metadata(&self) -> Option<Cop2Metadata> {
        self.metadata
    }
}

/// The 32 bytes that make a stream of `words` words behind them a payload 1, as Vela 5.2.0 writes them. In memory aligned to
/// 16 bytes the stream is too.
///
/// # Errors
/// [`PayloadError::StreamTooLong`] beyond [`MAX_STREAM_WORDS`].
pub fn cop1_header(accelerator: Accelerator, words: usize) -> Result<[u8; COP1_HEADER_BYTES], PayloadError> {
    if words > MAX_STREAM_WORDS {
        return Err(PayloadError::StreamTooLong { words });
    }
    let length = words as u32;
    let header = [
        COP1,
        CONFIGURATION_WORD,
        accelerator.config_word(),
        accelerator.arch_word(),
        ACTION_NOP,
        ACTION_NOP,
        ACTION_NOP,
        // The length's low half is the action's parameter; its high byte lies below that.
        length << 16 | length >> 16 << 8 | ACTION_STREAM,
    ];
    let mut bytes = [0; COP1_HEADER_BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(header) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N], PayloadError> {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().ok_or(PayloadError::Truncated {
        offset,
        needed: N as u64,
        available: bytes.len().saturating_sub(offset),
    })
}

fn word(bytes: &[u8], offset: usize) -> Result<u32, PayloadError> {
    array(bytes, offset).map(u32::from_le_bytes)
}

fn span(bytes: &[u8], offset: usize, length: u64) -> Result<&[u8], PayloadError> {
    let available = bytes.len().saturating_sub(offset);
    usize::try_from(length)
        .ok()
        .and_then(|length| bytes.get(offset..)?.get(..length))
        .ok_or(PayloadError::Truncated { offset, needed: length, available })
}

fn parse_cop1(bytes: &[u8]) -> Result<Payload<'_>, PayloadError> {
    if !bytes.len().is_multiple_of(4) {
        return Err(PayloadError::Length { bytes: bytes.len() });
    }
    let mut configuration = None;
    let mut stream: Option<(usize, &[u8])> = None;
    let mut offset = 4;
    while offset < bytes.len() {
        let action = word(bytes, offset)?;
        let start = offset;
        offset += 4;
        match action & 0xFF {
            ACTION_NOP => {}
            ACTION_CONFIGURATION => {
                let words = (word(bytes, offset)?, word(bytes, offset + 4)?);
                if configuration.replace(words).is_some() {
                    return Err(PayloadError::Repeated { offset: start, what: "configuration" });
                }
                offset += 8;
            }
            ACTION_STREAM => {
                let words = action >> 16 | (action >> 8 & 0xFF) << 16;
                let found = span(bytes, offset, u64::from(words) * 4)?;
                if stream.replace((offset, found)).is_some() {
                    return Err(PayloadError::Repeated { offset: start, what: "command stream" });
                }
                offset += found.len();
            }
            _ => return Err(PayloadError::UnknownAction { offset: start, word: action }),
        }
    }
    let (config_word, arch_word) = configuration.ok_or(PayloadError::Missing { what: "configuration" })?;
    let (stream_offset, stream) = stream.ok_or(PayloadError::Missing { what: "command stream" })?;
    Ok(Payload { kind: PayloadKind::Cop1, config_word, arch_word, stream_offset, stream, metadata: None })
}

fn parse_cop2(bytes: &[u8]) -> Result<Payload<'_>, PayloadError> {
    check_version(bytes, 4)?;
    let declared = u64::from_le_bytes(array(bytes, 8)?);
    let entries = span(bytes, COP2_HEADER, declared)?;
    let end = COP2_HEADER + entries.len();
    if end != bytes.len() {
        return Err(PayloadError::TrailingBytes { offset: end, bytes: bytes.len() - end });
    }
    let mut payload = None;
    let mut offset = COP2_HEADER;
    while offset < end {
        let kind = word(bytes, offset)?;
        let length = word(bytes, offset + 4)?;
        let start = offset + ENTRY_HEADER;
        let entry = span(bytes, start, length.into())?;
        if kind != ENTRY_STREAM {
            return Err(PayloadError::UnknownEntry { offset, kind });
        }
        if payload.replace(parse_stream_entry(bytes, start, entry.len())?).is_some() {
            return Err(PayloadError::Repeated { offset, what: "command stream" });
        }
        offset = start + entry.len();
    }
    payload.ok_or(PayloadError::Missing { what: "command stream" })
}

/// Reads the entry of `length` bytes at `start`: metadata length, metadata, stream.
fn parse_stream_entry(bytes: &[u8], start: usize, length: usize) -> Result<Payload<'_>, PayloadError> {
    // Nothing of the entry may come from what follows it. `start + length` was checked to lie inside.
    let bytes = &bytes[..start + length];
    let metadata_length = word(bytes, start)?;
    let metadata_offset = start + 4;
    let metadata = span(bytes, metadata_offset, metadata_length.into())?;
    if metadata.len() < METADATA_BYTES {
        return Err(PayloadError::Truncated {
            offset: metadata_offset,
            needed: METADATA_BYTES as u64,
            available: metadata.len(),
        });
    }
    let found = word(bytes, metadata_offset)?;
    if found != METADATA_MAGIC {
        return Err(PayloadError::MetadataMagic { offset: metadata_offset, found });
    }
    check_version(bytes, metadata_offset + 4)?;
    let data_length = word(bytes, metadata_offset + 8)?;
    if data_length != METADATA_DATA_BYTES {
        return Err(PayloadError::MetadataLength { offset: metadata_offset + 8, found: data_length });
    }
    let data = metadata_offset + 12;
    let stream_offset = metadata_offset + metadata.len();
    let stream = &bytes[stream_offset..];
    if !stream.len().is_multiple_of(4) {
        return Err(PayloadError::Length { bytes: stream.len() });
    }
    Ok(Payload {
        kind: PayloadKind::Cop2,
        config_word: word(bytes, data)?,
        arch_word: word(bytes, data + 4)?,
        stream_offset,
        stream,
        metadata: Some(Cop2Metadata {
            features: word(bytes, data + 8)?,
            staging_bytes: u64::from_le_bytes(array(bytes, data + 12)?),
        }),
    })
}

/// Both versions of a payload 2 are 1.0 so far.
fn check_version(bytes: &[u8], offset: usize) -> Result<(), PayloadError> {
    let version = word(bytes, offset)?;
    let (major, minor) = (version as u16, (version >> 16) as u16);
    if (major, minor) != (1, 0) {
        return Err(PayloadError::Version { offset, major, minor });
    }
    Ok(())
}

/// Why bytes are not a payload. Offsets count bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadError {
    /// It begins with neither `COP1` nor `COP2`.
    Magic {
        /// The first word.
        found: u32,
    },
    /// Something reaches beyond the end.
    Truncated {
        /// Where it begins.
        offset: usize,
        /// Bytes it takes.
        needed: u64,
        /// Bytes there are.
        available: usize,
    },
    /// The payload or the stream is no whole number of words.
    Length {
        /// Its length.
        bytes: usize,
    },
    /// An action of a payload 1 that isn't known.
    UnknownAction {
        /// Where it stands.
        offset: usize,
        /// Its word; the action is in bits 7..0.
        word: u32,
    },
    /// An entry of a payload 2 that isn't known.
    UnknownEntry {
        /// Where it stands.
        offset: usize,
        /// Its type.
        kind: u32,
    },
    /// A version other than 1.0.
    Version {
        /// Where it stands.
        offset: usize,
        /// Its first half.
        major: u16,
        /// Its second half.
        minor: u16,
    },
    /// The metadata of a payload 2 don't begin with `VEUM`.
    MetadataMagic {
        /// Where they begin.
        offset: usize,
        /// The word found there.
        found: u32,
    },
    /// The metadata of a payload 2 have a length that version 1.0 doesn't: 20.
    MetadataLength {
        /// Where it stands.
        offset: usize,
        /// The length found.
        found: u32,
    },
    /// Something that may occur once occurs again.
    Repeated {
        /// Where it does.
        offset: usize,
        /// What it is.
        what: &'static str,
    },
    /// Something needed isn't there.
    Missing {
        /// What it is.
        what: &'static str,
    },
    /// Bytes follow the end that a payload 2 declares.
    TrailingBytes {
        /// Where they begin.
        offset: usize,
        /// How many they are.
        bytes: usize,
    },
    /// A stream is longer than the hardware takes.
    StreamTooLong {
        /// Its words.
        words: usize,
    },
}

impl fmt::Display for PayloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PayloadError::Magic { found } => {
                write!(
                    f,
                    "not an Ethos-U payload: begins with {found:#010x}, not COP1 ({COP1:#010x}) or COP2 ({COP2:#010x})"
                )
            }
            PayloadError::Truncated { offset, needed, available } => {
                write!(f, "{offset:#x}: payload is cut short: {needed} bytes needed, {available} there")
            }
            PayloadError::Length { bytes } => write!(f, "{bytes} bytes are no whole number of 4-byte words"),
            PayloadError::UnknownAction { offset, word } => {
                write!(f, "{offset:#x}: unknown COP1 action {:#04x} in word {word:#010x}", word & 0xFF)
            }
            PayloadError::UnknownEntry { offset, kind } => {
                write!(f, "{offset:#x}: unknown COP2 entry {kind:#x}")
            }
            PayloadError::Version { offset, major, minor } => {
                write!(f, "{offset:#x}: version {major}.{minor} of the payload, 1.0 expected")
            }
            PayloadError::MetadataMagic { offset, found } => {
                write!(f, "{offset:#x}: metadata begin with {found:#010x}, not VEUM ({METADATA_MAGIC:#010x})")
            }
            PayloadError::MetadataLength { offset, found } => {
                write!(f, "{offset:#x}: {found} bytes of metadata, {METADATA_DATA_BYTES} expected")
            }
            PayloadError::Repeated { offset, what } => {
                write!(f, "{offset:#x}: a second {what} in one payload")
            }
            PayloadError::Missing { what } => write!(f, "payload without a {what}"),
            PayloadError::TrailingBytes { offset, bytes } => {
                write!(f, "{offset:#x}: {bytes} bytes after the end of the payload")
            }
            PayloadError::StreamTooLong { words } => {
                write!(f, "command stream of {words} words, at most {MAX_STREAM_WORDS} fit")
            }
        }
    }
}

impl core::error::Error for PayloadError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    const STREAM: [u32; 2] = [0x0004_0100, 0xFFFF_0000];

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn cop1() -> Vec<u8> {
        let mut all = cop1_header(Accelerator::U55_256, STREAM.len()).unwrap().to_vec();
        all.extend(bytes(&STREAM));
        all
    }

    /// As Vela 5.2.0 lays it out.
    fn cop2(features: u32, staging: u32) -> Vec<u8> {
        let mut all =
            bytes(&[COP2, 1, 56, 0, ENTRY_STREAM, 48, 36, METADATA_MAGIC, 1, 20, 0x2000_251A, 0x2000_7000]);
        all.extend(bytes(&[features, staging, 0, 0xFFFF_FFFF]));
        all.extend(bytes(&STREAM));
        all
    }

    #[test]
    fn payload_1_gives_back_what_went_in() {
        let all = cop1();
        let payload = Payload::parse(&all).unwrap();
        assert_eq!(payload.kind(), PayloadKind::Cop1);
        assert_eq!(payload.accelerator(), Ok(Accelerator::U55_256));
        assert_eq!(payload.arch_version(), ArchVersion { major: 1, minor: 0, patch: 6 });
        assert_eq!(payload.stream_offset(), 32);
        assert_eq!(payload.stream(), bytes(&STREAM));
        assert_eq!(payload.metadata(), None);
        assert!(Payload::is_payload(&all) && !Payload::is_payload(payload.stream()));
    }

    #[test]
    fn payload_1_counts_beyond_sixteen_bits() {
        for words in [0, 0xFFFF, 0x1_0000, 0x12_3456, MAX_STREAM_WORDS] {
            let header = cop1_header(Accelerator::U65_512, words).unwrap();
            let tag = u32::from_le_bytes(*header.last_chunk().unwrap());
            assert_eq!(tag >> 16 | (tag >> 8 & 0xFF) << 16, words as u32);
        }
        let words = MAX_STREAM_WORDS + 1;
        assert_eq!(cop1_header(Accelerator::U65_512, words), Err(PayloadError::StreamTooLong { words }));

        let mut all = cop1_header(Accelerator::U65_512, 0x1_0001).unwrap().to_vec();
        all.resize(32 + 0x1_0001 * 4, 0);
        assert_eq!(Payload::parse(&all).unwrap().stream().len(), 0x1_0001 * 4);
    }

    #[test]
    fn payload_2_gives_its_metadata() {
        let all = cop2(FEATURE_LOCAL, 4096);
        let payload = Payload::parse(&all).unwrap();
        assert_eq!(payload.kind(), PayloadKind::Cop2);
        assert_eq!(payload.accelerator(), Ok(Accelerator::U85_1024));
        assert_eq!(payload.arch_version(), ArchVersion { major: 2, minor: 0, patch: 0 });
        assert_eq!((payload.stream_offset(), payload.stream()), (64, &bytes(&STREAM)[..]));
        let metadata = payload.metadata().unwrap();
        assert!(metadata.local_addressing() && !metadata.network_wide_addressing());
        assert_eq!(metadata.staging_bytes, 4096);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(start in 0..5_usize, tail in prop::collection::vec(any::<u8>(), 0..200)) {
            // Begin well enough to get past the first checks.
            let all = [cop1(), cop2(1, 0)[..60].to_vec(), cop2(2, 7)[..28].to_vec(), b"COP1".to_vec(), Vec::new()];
            let all = [&all[start][..], &tail].concat();
            if let Ok(payload) = Payload::parse(&all) {
                let end = payload.stream_offset() + payload.stream().len();
                prop_assert_eq!(&all[payload.stream_offset()..end], payload.stream());
                prop_assert!(payload.stream().len() % 4 == 0);
            }
        }
    }

    #[test]
    fn every_truncation_is_refused() {
        for all in [cop1(), cop2(1, 0)] {
            for length in 0..all.len() {
                assert!(Payload::parse(&all[..length]).is_err(), "{length} of {} bytes", all.len());
            }
        }
    }

    #[test]
    fn faults_are_named() {
        let refused = |all: &[u8]| Payload::parse(all).unwrap_err();
        let with = |mut all: Vec<u8>, offset: usize, word: u32| {
            all[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
            all
        };
        assert_eq!(refused(b"COP3...."), PayloadError::Magic { found: 0x3350_4F43 });
        assert_eq!(refused(&with(cop1(), 16, 0x77)), PayloadError::UnknownAction { offset: 16, word: 0x77 });
        assert_eq!(refused(&bytes(&[COP1, ACTION_STREAM])), PayloadError::Missing { what: "configuration" });
        assert_eq!(refused(&cop1()[..28]), PayloadError::Missing { what: "command stream" });
        assert_eq!(
            refused(&with(cop1(), 28, 3 << 16 | 2)),
            PayloadError::Truncated { offset: 32, needed: 12, available: 8 }
        );
        let twice = [&cop1()[..], &cop1()[28..]].concat();
        assert_eq!(refused(&twice), PayloadError::Repeated { offset: 40, what: "command stream" });
        assert_eq!(refused(&with(cop2(1, 0), 4, 2)), PayloadError::Version { offset: 4, major: 2, minor: 0 });
        assert_eq!(refused(&with(cop2(1, 0), 16, 9)), PayloadError::UnknownEntry { offset: 16, kind: 9 });
        assert_eq!(refused(&with(cop2(1, 0), 28, 9)), PayloadError::MetadataMagic { offset: 28, found: 9 });
        assert_eq!(
            refused(&with(cop2(1, 0), 36, 24)),
            PayloadError::MetadataLength { offset: 36, found: 24 }
        );
        assert_eq!(
            refused(&with(cop2(1, 0), 24, 8)),
            PayloadError::Truncated { offset: 28, needed: 32, available: 8 }
        );
        assert_eq!(
            refused(&with(cop2(1, 0), 24, 45)),
            PayloadError::Truncated { offset: 28, needed: 45, available: 44 }
        );
        assert_eq!(
            refused(&with(cop2(1, 0), 12, 0xFFFF_FFFF)),
            PayloadError::Truncated { offset: 16, needed: 0xFFFF_FFFF_0000_0038, available: 56 }
        );
        let long = [&cop2(1, 0)[..], &[0; 4]].concat();
        assert_eq!(refused(&long), PayloadError::TrailingBytes { offset: 72, bytes: 4 });
        assert!(refused(b"COP3").to_string().contains("0x33504f43"));
    }
}
