//! A blob of a real network.

use npub::{
    Accel, AccelMatch, Arena, Blob, BlobBuilder, DType, Framing, Quantisation, Role, Storage, TensorEntry,
    load,
};

use crate::sample::REAL;

#[test]
fn a_real_blob_is_decoded() {
    let blob = Blob::parse(REAL).expect("a valid blob");
    assert_eq!(blob.accel(), Accel::u55(128));
    let roles: Vec<(Role, u32)> = blob.regions().iter().map(|region| (region.role, region.size)).collect();
    let (scratch, fast) = ((Role::Scratch, 1664), (Role::Scratch, 0));
    assert_eq!(
        roles,
        [(Role::Weights, 4464), scratch, fast, (Role::Input, 64), (Role::Output, 16), (Role::Other, 194)]
    );
    let stream = blob.command_stream();
    assert_eq!((stream.framing(), stream.words().len()), (Framing::Bare, 717));
    assert_eq!(stream.words().next_back(), Some(0xFFFF_0000), "the stream ends with STOP");

    let tensors = blob.tensors().expect("has a table");
    let input = tensors.inputs().next().expect("one input");
    assert_eq!((input.name, input.dtype, &input.shape[..]), ("input", DType::Int8, &[1, 8, 8, 1][..]));
    assert_eq!(input.quantisation, Some(Quantisation { scale: 1.0 / 255.0, zero_point: -128 }));
    let output = tensors.outputs().next().expect("one output");
    assert_eq!((output.name, &output.shape[..]), ("probabilities", &[1, 10][..]));
    assert_eq!(output.quantisation, Some(Quantisation { scale: 1.0 / 256.0, zero_point: -128 }));
    assert_eq!(tensors.len(), 2);

    let arena = Arena { base: 0x2100_0000, bytes: 1744 };
    assert_eq!(blob.arena_bytes(), arena.bytes);
    let job = load(REAL, 0x3800_0000, arena, Some(Accel::u55(128))).expect("fits exactly");
    assert_eq!((job.accel_match, job.misaligned().count()), (AccelMatch::Same, 0));
    assert_eq!(job.address(output.place.expect("placed")), Some(0x2100_0000 + 1664 + 64));
}

/// What was read, written again, is the same file.
#[test]
fn a_real_blob_survives_the_round_trip() {
    let blob = Blob::parse(REAL).expect("a valid blob");
    let mut builder = BlobBuilder::new(blob.accel());
    builder.command_bytes(blob.command_stream().bytes());
    for (index, region) in blob.regions().iter().enumerate() {
        match region.storage() {
            Storage::Baked { .. } => builder.baked(region.role, blob.region_bytes(index).expect("baked")),
            Storage::Runtime => builder.runtime(region.role, region.size),
            Storage::Alias { of } => builder.alias(region.role, of as usize),
            Storage::Tensors { .. } => continue,
        };
    }
    for tensor in blob.tensors().expect("has a table").iter() {
        builder.tensor(TensorEntry {
            kind: tensor.kind,
            name: tensor.name.into(),
            dtype: tensor.dtype,
            shape: tensor.shape,
            quantisation: tensor.quantisation,
            place: tensor.place,
            fed_from: tensor.fed_from,
        });
    }
    assert!(builder.build().expect("valid parts") == REAL);
}
