//! The NPU1 format document's worked example (section 6), byte for byte.

use npub::{Accel, Blob, BlobBuilder, Role, Storage};

use crate::sample::{get, seal};

/// The document's dump. The checksum is its author's invention, as the document says: no payload goes with it.
const HEADER_AND_TABLE: [u8; 64] = [
    0x4E, 0x50, 0x55, 0x31, 0x01, 0x00, 0x00, 0x00, 0x00, 0x40, 0x12, 0x00, 0x02, 0x00, 0x00, 0x00, //
    0x60, 0x00, 0x00, 0x00, 0x20, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xA1, 0x3C, 0x7E, 0x2B, //
    0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x12, 0x00, 0x80, 0x03, 0x00, 0x00, //
    0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, //
];
const CHECKSUM: std::ops::Range<usize> = 28..32;

#[test]
fn header_is_decoded() {
    let header = npub::peek(&HEADER_AND_TABLE).expect("the example has a valid header");
    assert_eq!(header.total_bytes, 1_196_032);
    assert_eq!(header.region_count, 2);
    assert_eq!(header.cmd_offset, 96);
    assert_eq!(header.cmd_bytes, 800);
    assert_eq!(header.accel, Accel::UNKNOWN);
    assert_eq!(header.checksum, 0x2B7E_3CA1);
    assert_eq!(header.to_bytes(), HEADER_AND_TABLE[..32]);
}

#[test]
fn blob_is_decoded() {
    let mut bytes = HEADER_AND_TABLE.to_vec();
    bytes.resize(0x12_4000, 0);
    let bytes = seal(bytes);
    let blob = Blob::parse(&bytes).expect("with a payload and its checksum the example is valid");

    let [weights, scratch] = blob.regions() else { panic!("two regions") };
    assert_eq!((weights.role, weights.size), (Role::Weights, 1_179_648));
    assert_eq!(weights.storage(), Storage::Baked { offset: 0x380 });
    assert_eq!((scratch.role, scratch.size), (Role::Scratch, 262_144));
    assert_eq!(scratch.storage(), Storage::Runtime);
    assert_eq!(weights.to_bytes(), HEADER_AND_TABLE[32..48]);
    assert_eq!(scratch.to_bytes(), HEADER_AND_TABLE[48..64]);

    assert_eq!(blob.command_stream().bytes(), &bytes[96..896]);
    assert_eq!(blob.region_bytes(0), Some(&bytes[896..1_180_544]));
    assert_eq!(blob.region_bytes(1), None);
    assert_eq!(blob.region_bytes(2), None);
    assert_eq!(blob.arena_bytes(), 262_144);
    assert!(blob.tensors().is_none());
}

#[test]
fn blob_is_emitted() {
    let weights = vec![0x55; 0x12_0000];
    let mut builder = BlobBuilder::new(Accel::UNKNOWN);
    builder.commands(&[0x0000_0012; 200]).command_offset(96).total_bytes(0x12_4000);
    builder.baked(Role::Weights, &weights);
    builder.runtime(Role::Scratch, 0x4_0000);
    let blob = builder.build().expect("the example can be built");

    assert_eq!(blob.len(), 0x12_4000);
    assert_eq!(blob[..CHECKSUM.start], HEADER_AND_TABLE[..CHECKSUM.start]);
    assert_eq!(blob[CHECKSUM.end..64], HEADER_AND_TABLE[CHECKSUM.end..]);
    assert_eq!(get(&blob, CHECKSUM.start), npub::checksum(&blob[32..]));
}
