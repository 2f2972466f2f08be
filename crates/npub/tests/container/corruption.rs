//! Accidents: flipped bits, lost tails, added tails.

use npub::{Arena, Blob, load};

use crate::sample::{REAL, network};

const ARENA: Arena = Arena { base: 0, bytes: 4096 };

#[test]
fn every_payload_bit_flip_of_a_real_blob_is_refused() {
    assert!(load(REAL, 0, ARENA, None).is_ok());
    let mut damaged = REAL.to_vec();
    for bit in 32 * 8..damaged.len() * 8 {
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Blob::parse(&damaged).is_err(), "bit {bit} of {}", damaged.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(damaged, REAL);
}

#[test]
fn every_truncation_of_a_real_blob_is_refused() {
    for length in 0..REAL.len() {
        assert!(Blob::parse(&REAL[..length]).is_err(), "{length} of {}", REAL.len());
        assert!(load(&REAL[..length], 0, ARENA, None).is_err());
    }
}

#[test]
fn payload_bit_flips_and_truncations_of_a_large_blob_are_refused() {
    let blob = network(200_000);
    assert!(Blob::parse(&blob).is_ok());
    // A prime stride meets every position within a byte and every part of the blob.
    for bit in (32 * 8..blob.len() * 8).step_by(4999) {
        let mut damaged = blob.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(Blob::parse(&damaged).is_err(), "bit {bit}");
    }
    for length in (0..blob.len()).step_by(1009) {
        assert!(Blob::parse(&blob[..length]).is_err(), "{length}");
    }
}

/// The checksum doesn't cover the header. Its other words are checked against what is there; the accelerator, which is
/// informational, is free, and the command stream may move within the blob.
#[test]
fn header_bit_flips_are_refused_where_the_format_can_tell() {
    let mut accepted = Vec::new();
    for bit in 0..32 * 8 {
        let mut damaged = REAL.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if Blob::parse(&damaged).is_ok() {
            accepted.push(bit / 32);
        }
    }
    accepted.dedup();
    assert!(accepted.iter().all(|word| [3, 4, 5, 6].contains(word)), "{accepted:?}");
}
