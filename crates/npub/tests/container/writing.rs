//! The writer.

use npub::layout::{header, region};
use npub::{
    Accel, Blob, BlobBuilder, BuildError, DType, Error, Role, Shape, Storage, TensorEntry, TensorKind,
};

use crate::sample::{STOP, get, int8, network};

fn builder<'a>() -> BlobBuilder<'a> {
    let mut builder = BlobBuilder::new(Accel::u55(256));
    builder.commands(&[STOP]);
    builder
}

#[test]
fn the_same_calls_give_the_same_bytes() {
    assert_eq!(network(77), network(77));
}

#[test]
fn commands_and_baked_regions_are_aligned_and_apart() {
    let (odd, empty) = ([1; 33], []);
    let mut builder = builder();
    assert_eq!(builder.baked(Role::Weights, &odd), 0);
    assert_eq!(builder.baked(Role::Other, &empty), 1);
    assert_eq!(builder.baked(Role::Other, &odd[..1]), 2);
    assert_eq!(builder.runtime(Role::Scratch, 5), 3);
    builder.tensor(int8(TensorKind::Output, "o", &[5], 3, 0));
    let bytes = builder.build().expect("valid");
    let blob = Blob::parse(&bytes).expect("valid");
    assert_eq!(get(&bytes, header::CMD_OFFSET), 32 + 5 * 16);
    let offsets: Vec<u32> = (blob.regions().iter())
        .filter_map(|region| match region.storage() {
            Storage::Baked { offset } | Storage::Tensors { offset } => Some(offset),
            _ => None,
        })
        .collect();
    assert_eq!(offsets, [128, 176, 176, 192]);
    assert_eq!(blob.region_bytes(0), Some(&odd[..]));
    assert_eq!(blob.region_bytes(1), Some(&empty[..]));
    // Between the parts, and in the unused word of a runtime region, zeros.
    assert_eq!(bytes[161..176], [0; 15]);
    assert_eq!(get(&bytes, 32 + 3 * 16 + region::DATA_OFFSET), 0);
}

#[test]
fn bytes_and_words_are_the_same_commands() {
    let mut by_bytes = BlobBuilder::new(Accel::u55(256));
    by_bytes.command_bytes(&STOP.to_le_bytes());
    assert_eq!(by_bytes.build(), builder().build());
}

#[test]
fn what_cannot_be_built_is_refused() {
    assert_eq!(BlobBuilder::new(Accel::UNKNOWN).build(), Err(BuildError::Invalid(Error::NoCommands)));
    let mut parts = builder();
    parts.command_bytes(&[1, 2, 3]);
    assert_eq!(parts.build(), Err(BuildError::CommandBytes { found: 3 }));
    parts.command_bytes(b"COP1....");
    assert_eq!(parts.build(), Err(BuildError::Wrapped));
    parts.command_bytes(b"COP2");
    assert_eq!(parts.build(), Err(BuildError::Wrapped));

    let mut parts = builder();
    for _ in 0..8 {
        parts.runtime(Role::Scratch, 16);
    }
    assert!(parts.build().is_ok());
    let mut ninth = parts.clone();
    ninth.runtime(Role::Scratch, 16);
    assert_eq!(ninth.build(), Err(BuildError::Regions { found: 9 }));
    parts.tensor(int8(TensorKind::Input, "i", &[1], 0, 0));
    assert_eq!(parts.build(), Err(BuildError::Regions { found: 9 }), "the tensor table takes a slot");
}

#[test]
fn wished_offsets_are_kept_or_refused() {
    let mut parts = builder();
    parts.command_offset(64);
    assert_eq!(get(&parts.build().expect("valid"), header::CMD_OFFSET), 64);
    assert_eq!(parts.command_offset(72).build(), Err(BuildError::Alignment { found: 72 }));
    assert_eq!(parts.command_offset(16).build(), Err(BuildError::Overlap { found: 16, expected: 32 }));
    let past = 0xFFFF_FFF0;
    parts.baked(Role::Weights, &[1; 32]);
    assert_eq!(parts.command_offset(past).build(), Err(BuildError::TooLong { end: 0x1_0000_0000 }));

    let mut parts = builder();
    assert_eq!(parts.total_bytes(36).build().map(|blob| blob.len()), Ok(36));
    assert_eq!(parts.total_bytes(35).build(), Err(BuildError::Overlap { found: 35, expected: 36 }));
}

#[test]
fn aliases_have_their_target_s_size() {
    let mut parts = builder();
    let scratch = parts.runtime(Role::Scratch, 1234);
    let fast = parts.alias(Role::Scratch, scratch);
    parts.alias(Role::Other, fast);
    let bytes = parts.build().expect("an alias of an alias is one of its target");
    let blob = Blob::parse(&bytes).expect("valid");
    assert_eq!(blob.regions()[1].storage(), Storage::Alias { of: 0 });
    assert_eq!(blob.regions()[2].size, 1234);
    assert_eq!(blob.arena_bytes(), 1234);
    let error = parts.alias(Role::Other, 5);
    assert_eq!(error, 3);
    assert_eq!(parts.build(), Err(BuildError::Invalid(Error::AliasTarget { region: 3, found: 5 })));
}

#[test]
fn a_tensor_longer_than_32_bits_is_refused() {
    let mut parts = builder();
    parts.runtime(Role::Scratch, u32::MAX);
    let huge = Shape::new(&[0x4000_0000]).expect("one dimension");
    parts.tensor(TensorEntry {
        dtype: DType::Int32,
        shape: huge,
        ..int8(TensorKind::Output, "o", &[1], 0, 0)
    });
    let error = parts.build().expect_err("4 GiB");
    assert_eq!(error, BuildError::TensorSize { index: 0 });
    assert_eq!(error.to_string(), "tensor 0 is longer than 32 bits can tell");
}
