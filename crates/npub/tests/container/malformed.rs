//! Every row of the NPU1 format document's table of malformed input (section 7), in its order and by its name.

use npub::layout::{flag, header, region};
use npub::{Arena, Blob, Error, ErrorKind, Flags, Role, load};

use crate::sample::{get, network, seal, set, set_region, slot, small};

/// Parsing and loading agree on what they refuse, and loading has an arena that would do.
fn refusal(blob: &[u8]) -> Error {
    let error = Blob::parse(blob).expect_err("malformed");
    let arena = Arena { base: 0, bytes: u64::from(u32::MAX) * 8 };
    assert_eq!(load(blob, 0, arena, None), Err(error));
    error
}

#[test]
fn buffer_shorter_than_32_bytes() {
    let blob = small();
    for length in 0..32 {
        let error = refusal(&blob[..length]);
        assert_eq!(error, Error::TooShort { found: length });
        assert_eq!(error.kind(), ErrorKind::InvalidSize);
        assert_eq!(npub::peek(&blob[..length]), Err(error));
    }
}

#[test]
fn wrong_magic() {
    let mut blob = small();
    set(&mut blob, header::MAGIC, u32::from_be_bytes(*b"NPU1"));
    let error = refusal(&blob);
    assert_eq!(error, Error::Magic { found: 0x4E50_5531 });
    assert_eq!(error.kind(), ErrorKind::InvalidArg);
    assert_eq!(error.to_string(), "not an NPU1 blob: the first word is 0x4e505531, not 0x3155504e");
    assert_eq!(npub::peek(&blob), Err(error));
}

#[test]
fn wrong_version() {
    for version in [0, 2, u32::MAX] {
        let mut blob = small();
        set(&mut blob, header::VERSION, version);
        let error = refusal(&blob);
        assert_eq!(error, Error::Version { found: version });
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
        assert_eq!(npub::peek(&blob), Err(error));
    }
}

#[test]
fn total_bytes_is_not_the_real_buffer_length() {
    let blob = small();
    let actual = blob.len() as u32;
    for stated in [0, 31, actual - 1, actual + 1, u32::MAX] {
        let mut blob = blob.clone();
        set(&mut blob, header::TOTAL_BYTES, stated);
        let error = refusal(&blob);
        assert_eq!(error, Error::TotalBytes { found: stated, expected: blob.len() });
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
    let mut longer = blob;
    longer.push(0);
    assert_eq!(refusal(&longer), Error::TotalBytes { found: actual, expected: longer.len() });
}

/// Peeking takes the header alone, so a blob can be stepped over; one that claims to end in its header can't be.
#[test]
fn peeking_looks_at_the_header_only() {
    let mut blob = small();
    let header = *Blob::parse(&blob).expect("valid").header();
    assert_eq!(npub::peek(&blob[..32]), Ok(header));
    blob.push(0);
    assert_eq!(npub::peek(&blob), Ok(header));
    for stated in [0, 31] {
        set(&mut blob, header::TOTAL_BYTES, stated);
        assert_eq!(npub::peek(&blob), Err(Error::TotalBytes { found: stated, expected: 32 }));
    }
}

#[test]
fn region_count_huge() {
    for count in [9, 0x1000_0000, u32::MAX] {
        let mut blob = small();
        set(&mut blob, header::REGION_COUNT, count);
        let error = refusal(&seal(blob));
        assert_eq!(error, Error::RegionCount { found: count });
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
    }
    // Few enough for the hardware, too many for the blob.
    let mut blob = small();
    blob.truncate(32 + 8 * 16 - 1);
    blob.resize(32 + 8 * 16 - 1, 0);
    set(&mut blob, header::REGION_COUNT, 8);
    let error = refusal(&seal(blob));
    assert_eq!(error, Error::RegionTable { regions: 8, end: 160, total_bytes: 159 });
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
}

#[test]
fn cmd_bytes_is_zero() {
    let mut blob = small();
    set(&mut blob, header::CMD_BYTES, 0);
    let error = refusal(&seal(blob));
    assert_eq!(error, Error::NoCommands);
    assert_eq!(error.kind(), ErrorKind::InvalidSize);
}

#[test]
fn command_stream_ends_outside() {
    let total = small().len() as u32;
    for (offset, bytes) in [(total - 7, 8), (total, 1), (u32::MAX, 8), (8, u32::MAX), (u32::MAX, u32::MAX)] {
        let mut blob = small();
        set(&mut blob, header::CMD_OFFSET, offset);
        set(&mut blob, header::CMD_BYTES, bytes);
        let error = refusal(&seal(blob));
        assert_eq!(error, Error::Commands { offset, bytes, total_bytes: total });
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
    let mut blob = small();
    set(&mut blob, header::CMD_OFFSET, total - 8);
    assert!(Blob::parse(&seal(blob)).is_ok(), "ending with the blob is inside");
}

#[test]
fn baked_region_ends_outside() {
    let total = small().len() as u32;
    for (offset, size) in [(total - 7, 8), (total + 1, 0), (u32::MAX, 8), (8, u32::MAX), (u32::MAX, u32::MAX)]
    {
        let mut blob = small();
        set_region(&mut blob, 0, region::DATA_OFFSET, offset);
        set_region(&mut blob, 0, region::SIZE, size);
        let error = refusal(&seal(blob));
        assert_eq!(error, Error::Baked { region: 0, offset, size, total_bytes: total });
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
}

#[test]
fn runtime_size_larger_than_the_arena() {
    let blob = small();
    for bytes in [0, 99] {
        let error = load(&blob, 0, Arena { base: 0, bytes }, None).expect_err("too small");
        assert_eq!(error, Error::Arena { region: 1, offset: 0, size: 100, arena_bytes: bytes });
        assert_eq!(error.kind(), ErrorKind::NoMem);
    }
    assert!(load(&blob, 0, Arena { base: 0, bytes: 100 }, None).is_ok());
    // A size that would wrap a 32-bit cursor around.
    let mut blob = network(40);
    set_region(&mut blob, slot::OUTPUT, region::SIZE, u32::MAX);
    let blob = seal(blob);
    let error = load(&blob, 0, Arena { base: 0, bytes: 4096 }, None).expect_err("too small");
    assert_eq!(error, Error::Arena { region: 4, offset: 704, size: u32::MAX, arena_bytes: 4096 });
}

#[test]
fn bit_rot_in_the_payload() {
    let mut blob = small();
    let last = blob.len() - 1;
    blob[last] ^= 0x10;
    let error = refusal(&blob);
    let (found, expected) = (npub::checksum(&blob[32..]), get(&blob, header::CHECKSUM));
    assert_eq!(error, Error::Checksum { found, expected });
    assert_eq!(error.kind(), ErrorKind::ChecksumMismatch);
}

#[test]
fn deliberately_modified_payload_is_not_defended() {
    let mut blob = small();
    let last = blob.len() - 1;
    blob[last] ^= 0x10;
    assert!(Blob::parse(&seal(blob)).is_ok());
}

#[test]
fn unknown_role_is_harmless() {
    let mut blob = small();
    set_region(&mut blob, 0, region::ROLE, 0xABCD);
    let blob = seal(blob);
    let parsed = Blob::parse(&blob).expect("binding goes by index");
    assert_eq!(parsed.regions()[0].role, Role::Unknown(0xABCD));
    assert_eq!(parsed.region_bytes(0), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
}

#[test]
fn overlapping_baked_regions_are_legal() {
    let mut blob = small();
    let offset = get(&blob, 32 + region::DATA_OFFSET);
    set_region(&mut blob, 1, region::FLAGS, flag::BAKED);
    set_region(&mut blob, 1, region::SIZE, 4);
    set_region(&mut blob, 1, region::DATA_OFFSET, offset + 2);
    let blob = seal(blob);
    let parsed = Blob::parse(&blob).expect("each region is bounded for itself");
    assert_eq!(parsed.region_bytes(1), Some(&[3, 4, 5, 6][..]));
}

// Beyond the table: what the flags added to the format can get wrong.

#[test]
fn unknown_flags_are_harmless() {
    let mut blob = small();
    set_region(&mut blob, 1, region::FLAGS, 0x8000_0010);
    let blob = seal(blob);
    let flags = Blob::parse(&blob).expect("flags are a growth point").regions()[1].flags;
    assert_eq!(flags.unknown(), 0x8000_0010);
    assert_eq!(flags.to_string(), "0x80000010");
}

#[test]
fn contradictory_flags() {
    for word in [flag::BAKED | flag::ALIAS, flag::TENSORS, flag::TENSORS | flag::ALIAS, flag::KNOWN] {
        let mut blob = small();
        set_region(&mut blob, 1, region::FLAGS, word);
        let error = refusal(&seal(blob));
        assert_eq!(error, Error::Flags { region: 1, found: Flags::from_word(word) });
        assert_eq!(error.kind(), ErrorKind::InvalidArg);
    }
}

#[test]
fn alias_of_what_cannot_have_one() {
    // A baked region, itself, a later slot, no slot.
    for target in [slot::WEIGHTS, slot::FAST, slot::INPUT, 6, 0xFFFF_FFFF] {
        let mut blob = network(40);
        set_region(&mut blob, slot::FAST, region::DATA_OFFSET, target as u32);
        let error = refusal(&seal(blob));
        assert_eq!(error, Error::AliasTarget { region: 2, found: target as u32 });
        assert_eq!(error.kind(), ErrorKind::OutOfRange);
    }
}

#[test]
fn alias_of_another_size() {
    let mut blob = network(40);
    set_region(&mut blob, slot::FAST, region::SIZE, 201);
    let error = refusal(&seal(blob));
    assert_eq!(error, Error::AliasSize { region: 2, target: 1, found: 201, expected: 200 });
    assert_eq!(error.kind(), ErrorKind::InvalidArg);
}

#[test]
fn tensor_table_not_last() {
    let mut blob = network(40);
    set_region(&mut blob, slot::WEIGHTS, region::FLAGS, flag::BAKED | flag::TENSORS);
    let error = refusal(&seal(blob));
    assert_eq!(error, Error::TensorsNotLast { region: 0, expected: 5 });
    assert_eq!(error.kind(), ErrorKind::InvalidArg);
}

/// Section 4.2's order: with several things wrong at once, the earlier check speaks.
#[test]
fn the_first_failing_check_names_the_error() {
    let mut blob = network(40);
    let mut wrong = Vec::new();
    let mut also = |blob: &mut Vec<u8>, offset: usize, word: u32| {
        set(blob, offset, word);
        let arena = Arena { base: 0, bytes: 0 };
        wrong.push(load(blob, 0, arena, None).expect_err("one thing more is wrong").kind_name());
    };
    let descriptor = |slot: usize| 32 + 16 * slot;
    // From the last check to the first. The runtime region 1 doesn't fit the arena from the start.
    also(&mut blob, header::ACCEL, 0);
    let checksum = npub::checksum(&{
        set(&mut blob, descriptor(slot::WEIGHTS) + region::SIZE, u32::MAX);
        blob[32..].to_vec()
    });
    also(&mut blob, header::CHECKSUM, checksum);
    also(&mut blob, header::CHECKSUM, !checksum);
    also(&mut blob, header::CMD_OFFSET, u32::MAX);
    also(&mut blob, header::CMD_BYTES, 0);
    also(&mut blob, header::REGION_COUNT, 9);
    also(&mut blob, header::TOTAL_BYTES, 7);
    also(&mut blob, header::VERSION, 7);
    also(&mut blob, header::MAGIC, 7);
    assert_eq!(
        wrong,
        [
            "Arena",
            "Baked",
            "Checksum",
            "Commands",
            "NoCommands",
            "RegionCount",
            "TotalBytes",
            "Version",
            "Magic"
        ]
    );
}

/// The descriptors are checked one after another, the arena check of one before the bounds check of the next.
#[test]
fn a_region_that_does_not_fit_the_arena_speaks_before_a_later_region_out_of_bounds() {
    let mut blob = network(40);
    set_region(&mut blob, slot::TENSORS, region::DATA_OFFSET, u32::MAX);
    let blob = seal(blob);
    let no_arena = load(&blob, 0, Arena::default(), None).expect_err("nothing fits");
    assert_eq!(no_arena.kind(), ErrorKind::NoMem);
    assert_eq!(refusal(&blob).kind(), ErrorKind::OutOfRange);
}

trait KindName {
    fn kind_name(&self) -> String;
}

impl KindName for Error {
    /// The variant's name.
    fn kind_name(&self) -> String {
        format!("{self:?}").split([' ', '{']).next().unwrap_or_default().to_owned()
    }
}
