//! Any blob, run by both engines: no panic, the same end, the same bytes in all regions.
//!
//! What the blob's reader checks first (magic, version, length, checksum) is made right, so that the fuzzer gets to the stream.
#![no_main]

#[path = "../../crates/ethosu-model/tests/support/mod.rs"]
mod support;

use ethosu_model::Limits;
use libfuzzer_sys::fuzz_target;
use npub::layout::{self, header};
use support::Fixture;

/// Limits that keep any stream short.
const LIMITS: Limits = Limits { work: 1 << 20, map_elements: 1 << 16 };
/// Bytes of all regions.
const MOST_BYTES: usize = 1 << 18;

fuzz_target!(|data: &[u8]| {
    if data.len() < layout::HEADER_BYTES {
        return;
    }
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
    if let Some(fixture) = Fixture::parse(&blob)
        && fixture.bytes() <= MOST_BYTES
        && let Err(stop) = fixture.agree(&LIMITS, checksum.into())
    {
        assert!(!stop.to_string().is_empty());
    }
});
