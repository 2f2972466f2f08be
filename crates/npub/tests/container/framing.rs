//! Command streams that other producers leave in Arm's payload framing.

use npub::layout::header;
use npub::{Accel, Arena, Blob, CommandStream, Error, ErrorKind, Framing, FramingError, load};

use crate::sample::{STOP, seal, set};

const WORDS: [u32; 3] = [0x0000_0012, 0x0001_0100, STOP];

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// As Vela 5.2.0 writes it for ethos-u55-256: magic, configuration, fill, stream at byte 32.
fn cop1() -> Vec<u8> {
    let head = [0x3150_4F43, 0x0010_0001, 0x0000_3008, 0x1006_6001, 5, 5, 5, 0x0003_0002];
    bytes(&[&head[..], &WORDS].concat())
}

/// As Vela 5.2.0 writes it for ethos-u85-256: the stream starts at byte 64.
fn cop2() -> Vec<u8> {
    let stream_start = 64;
    let length = stream_start + 4 * WORDS.len() as u32;
    let head = [
        0x3250_4F43,
        1,
        length - 16,
        0,
        1,
        length - 24,
        32,
        0x4D55_4556,
        1,
        20,
        0x2000_0118,
        0x2000_7000,
        1,
        0,
        0,
    ];
    bytes(&[&head[..], &[u32::MAX], &WORDS].concat())
}

/// A blob whose command stream is `payload`.
fn blob(payload: &[u8]) -> Vec<u8> {
    let mut blob = vec![0; 32];
    blob[..8].copy_from_slice(b"NPU1\x01\0\0\0");
    set(&mut blob, header::CMD_OFFSET, 32);
    set(&mut blob, header::CMD_BYTES, payload.len() as u32);
    blob.extend_from_slice(payload);
    seal(blob)
}

#[test]
fn framing_is_taken_off_and_reported() {
    for (payload, framing, accel, offset) in [
        (bytes(&WORDS), Framing::Bare, None, 0),
        (cop1(), Framing::Cop1 { config: Some(0x3008) }, Some(Accel::u55(256)), 32),
        (cop2(), Framing::Cop2 { config: 0x2000_0118 }, Some(Accel::u85(256)), 64),
    ] {
        let stream = CommandStream::parse(&payload).expect("well framed");
        assert_eq!((stream.framing(), stream.framing().accel(), stream.offset()), (framing, accel, offset));
        assert_eq!(stream.bytes(), bytes(&WORDS));
        assert!(stream.words().eq(WORDS));

        let blob = blob(&payload);
        let parsed = Blob::parse(&blob).expect("a valid blob");
        assert_eq!(parsed.command_stream().bytes(), bytes(&WORDS));
        assert_eq!(parsed.accel(), accel.unwrap_or_default());
        let job = load(&blob, 0x1000, Arena::default(), accel).expect("a valid blob");
        assert_eq!(job.framing, framing);
        assert_eq!((job.command_offset as usize, job.command_bytes), (32 + offset, 12));
        assert_eq!(job.command_address, 0x1000 + u64::from(job.command_offset));
        assert_eq!(job.misaligned().count(), 0);
    }
}

#[test]
fn the_header_says_more_than_the_framing() {
    let mut blob = blob(&cop1());
    set(&mut blob, header::ACCEL, Accel::u55(64).word());
    assert_eq!(Blob::parse(&blob).expect("a valid blob").accel(), Accel::u55(64));
}

#[test]
fn long_streams_use_the_length_field_s_high_part() {
    let words = vec![0x0000_0012; 0x1_0002];
    let payload = bytes(&[&[0x3150_4F43, 0x0002_0102][..], &words].concat());
    assert_eq!(CommandStream::parse(&payload).expect("well framed").words().len(), 0x1_0002);
}

#[test]
fn broken_framing_is_refused() {
    let cop1_with = |words: &[u32]| bytes(&[&[0x3150_4F43][..], words].concat());
    let cop2_with = |at: usize, word: u32| {
        let mut payload = cop2();
        set(&mut payload, at, word);
        payload
    };
    for (payload, expected, kind) in [
        (cop1_with(&[]), FramingError::Empty, ErrorKind::InvalidSize),
        (cop1_with(&[0x0000_0002]), FramingError::Empty, ErrorKind::InvalidSize),
        (
            cop1_with(&[0x0002_0002, STOP]),
            FramingError::Truncated { end: 16, bytes: 12 },
            ErrorKind::OutOfRange,
        ),
        (cop1_with(&[0x0010_0001, 8]), FramingError::Truncated { end: 16, bytes: 12 }, ErrorKind::OutOfRange),
        (cop1_with(&[0x0000_0007]), FramingError::Action { offset: 4, found: 7 }, ErrorKind::InvalidArg),
        (
            cop1_with(&[0x0001_0002, STOP, 0x0001_0002, STOP]),
            FramingError::Second { offset: 12 },
            ErrorKind::InvalidArg,
        ),
        (cop2()[..20].to_vec(), FramingError::Truncated { end: 76, bytes: 20 }, ErrorKind::OutOfRange),
        (cop2_with(8, 61), FramingError::Truncated { end: 77, bytes: 76 }, ErrorKind::OutOfRange),
        (cop2_with(12, 1), FramingError::Truncated { end: 76 + (1 << 32), bytes: 76 }, ErrorKind::OutOfRange),
        (cop2_with(20, 53), FramingError::Truncated { end: 77, bytes: 76 }, ErrorKind::OutOfRange),
        (cop2_with(20, 40), FramingError::Empty, ErrorKind::InvalidSize),
        (cop2_with(20, 39), FramingError::Order { start: 64, end: 63 }, ErrorKind::OutOfRange),
        (cop2_with(24, 15), FramingError::Truncated { end: 44, bytes: 43 }, ErrorKind::OutOfRange),
        (cop2_with(28, 1), FramingError::Metadata { found: 1 }, ErrorKind::InvalidArg),
    ] {
        assert_eq!(CommandStream::parse(&payload), Err(expected));
        let error = Blob::parse(&blob(&payload)).expect_err("badly framed");
        assert_eq!(error, Error::Framing { offset: 32, cause: expected });
        assert_eq!(error.kind(), kind);
    }
}
