//! Any bytes as a blob: parsing and everything behind it stays inside the bytes and doesn't panic.
//!
//! Each input is tried twice: as it is, and with magic, version, length and checksum made right, so that the fuzzer
//! gets to the checks behind those without having to find a hash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npub::layout::{self, header};
use npub::{Accel, Arena, Blob, CommandStream, load};

fuzz_target!(|data: &[u8]| {
    let _ = CommandStream::parse(data);
    exercise(data);
    if data.len() >= layout::HEADER_BYTES {
        exercise(&sealed(data));
    }
});

fn sealed(data: &[u8]) -> Vec<u8> {
    let mut blob = data.to_vec();
    let checksum = npub::checksum(&blob[layout::HEADER_BYTES..]);
    for (offset, word) in [
        (header::MAGIC, layout::MAGIC),
        (header::VERSION, layout::VERSION),
        (header::TOTAL_BYTES, data.len() as u32),
        (header::CHECKSUM, checksum),
    ] {
        blob[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
    }
    blob
}

fn exercise(bytes: &[u8]) {
    let peeked = npub::peek(bytes);
    let blob = match Blob::parse(bytes) {
        Ok(blob) => blob,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert_eq!(peeked.as_ref(), Ok(blob.header()));
    for (index, region) in blob.regions().iter().enumerate() {
        if let Some(bytes) = blob.region_bytes(index) {
            assert_eq!(bytes.len(), region.size as usize);
        }
    }
    assert_eq!(blob.command_stream().words().len(), blob.command_stream().bytes().len() / 4);
    for tensor in blob.tensors().iter().flat_map(|table| table.iter()) {
        if let Some(place) = tensor.place {
            let region = blob.regions()[usize::from(place.region)];
            assert!(u64::from(place.offset) + u64::from(tensor.size) <= u64::from(region.size));
        }
    }
    let arena = Arena { base: 1 << 40, bytes: blob.arena_bytes() };
    let job = load(bytes, 0, arena, Some(Accel::u55(256))).expect("the arena is as long as it must be");
    for (region, base) in blob.regions().iter().zip(job.region_base) {
        let end = base + u64::from(region.size);
        let inside = |start: u64, bytes: u64| base >= start && end <= start + bytes;
        assert!(inside(0, bytes.len() as u64) || inside(arena.base, arena.bytes));
    }
    assert!(job.misaligned().count() <= 1 + layout::MAX_REGIONS);
    if let Some(bytes_short) = arena.bytes.checked_sub(1) {
        assert!(load(bytes, 0, Arena { bytes: bytes_short, ..arena }, None).is_err());
    }
}
