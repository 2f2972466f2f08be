//! What holds for all bytes and all blobs.

use npub::layout::{self, header};
use npub::{
    Accel, Arena, Blob, BlobBuilder, CommandStream, DType, Header, Place, Quantisation, Region, Role, Shape,
    TensorEntry, TensorKind, load,
};
use proptest::prelude::*;

use crate::sample::{seal, set, set_table};

/// Uses every accessor; none may panic or reach outside.
fn exercise(bytes: &[u8]) {
    let _ = npub::peek(bytes);
    let Ok(blob) = Blob::parse(bytes) else { return };
    assert!(blob.regions().len() <= layout::MAX_REGIONS);
    for (index, region) in blob.regions().iter().enumerate() {
        let storage = format!("{region:?} {} {} {:?}", region.role, region.flags, region.storage());
        assert!(!storage.is_empty());
        if let Some(bytes) = blob.region_bytes(index) {
            assert_eq!(bytes.len(), region.size as usize);
        }
    }
    let stream = blob.command_stream();
    assert_eq!(stream.words().len(), stream.bytes().len() / 4);
    for tensor in blob.tensors().iter().flat_map(|tensors| tensors.iter()) {
        if let Some(place) = tensor.place {
            let region = &blob.regions()[usize::from(place.region)];
            assert!(u64::from(place.offset) + u64::from(tensor.size) <= u64::from(region.size));
        }
    }
    let arena = Arena { base: 0x2000_0000, bytes: blob.arena_bytes() };
    let job =
        load(bytes, 0x1000_0000, arena, Some(Accel::u55(128))).expect("the arena is as long as it must be");
    assert_eq!(job.arena_bytes, arena.bytes);
    for (region, base) in blob.regions().iter().zip(job.region_base) {
        let end = base + u64::from(region.size);
        let in_blob = base >= 0x1000_0000 && end <= 0x1000_0000 + bytes.len() as u64;
        let in_arena = base >= arena.base && end <= arena.base + arena.bytes;
        assert!(in_blob || in_arena);
    }
    assert!(job.misaligned().count() <= 9);
    if let Some(less) = arena.bytes.checked_sub(1) {
        assert!(load(bytes, 0x1000_0000, Arena { bytes: less, ..arena }, None).is_err());
    }
}

/// Words that reach the interesting sides of a bound more often than random ones do.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..9, 0u32..700, any::<u32>(), (0u32..16).prop_map(|below| u32::MAX - below)]
}

fn tensor(slots: u8) -> impl Strategy<Value = TensorEntry> {
    let quantisation = proptest::option::of((1e-9f32..1e9, any::<i32>()));
    (0u32..2, ".{0,12}", 0u32..17, proptest::collection::vec(0u32..5, 0..5), quantisation, 0..slots).prop_map(
        |(kind, name, dtype, dims, quantisation, region)| TensorEntry {
            kind: TensorKind::from_word(kind).expect("input or output"),
            name,
            dtype: DType::from_word(dtype).unwrap_or(DType::Int8),
            shape: Shape::new(&dims).expect("few dimensions"),
            quantisation: quantisation.map(|(scale, zero_point)| Quantisation { scale, zero_point }),
            place: Some(Place { region, offset: 0 }),
            fed_from: None,
        },
    )
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
        let _ = CommandStream::parse(&bytes);
    }

    #[test]
    fn random_payloads_behind_a_valid_header_never_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 32..600),
        words in proptest::array::uniform4(word()),
    ) {
        set(&mut bytes, header::MAGIC, layout::MAGIC);
        set(&mut bytes, header::VERSION, layout::VERSION);
        let fields = [header::REGION_COUNT, header::CMD_OFFSET, header::CMD_BYTES, header::ACCEL];
        for (field, word) in fields.into_iter().zip(words) {
            set(&mut bytes, field, word);
        }
        exercise(&seal(bytes));
    }

    #[test]
    fn a_blob_with_changed_words_never_panics(changes in proptest::collection::vec((2usize..200, word()), 1..4)) {
        let mut blob = crate::sample::network(60);
        for (at, word) in changes {
            let words = blob.len() / 4;
            set(&mut blob, at % words * 4, word);
        }
        exercise(&blob);
        exercise(&seal(blob));
    }

    #[test]
    fn a_changed_tensor_table_never_panics(changes in proptest::collection::vec((0usize..44, word()), 1..4)) {
        let mut blob = crate::sample::network(60);
        for (at, word) in changes {
            set_table(&mut blob, at * 4, word);
        }
        exercise(&seal(blob));
    }

    #[test]
    fn wrapped_streams_never_panic(
        magic in prop_oneof![Just(layout::cop::COP1), Just(layout::cop::COP2)],
        words in proptest::collection::vec(prop_oneof![word(), Just(layout::cop::VEUM), Just(0x0001_0002)], 0..20),
    ) {
        let payload: Vec<u8> = std::iter::once(magic).chain(words).flat_map(u32::to_le_bytes).collect();
        if let Ok(stream) = CommandStream::parse(&payload) {
            prop_assert_eq!(&payload[stream.offset()..][..stream.bytes().len()], stream.bytes());
        }
    }

    #[test]
    fn headers_and_descriptors_survive_the_round_trip(bytes in proptest::array::uniform32(any::<u8>())) {
        let mut bytes = bytes;
        set(&mut bytes, header::MAGIC, layout::MAGIC);
        set(&mut bytes, header::VERSION, layout::VERSION);
        if let Ok(header) = npub::peek(&bytes) {
            prop_assert_eq!(header.to_bytes(), bytes);
            prop_assert_eq!(npub::peek(&header.to_bytes()), Ok::<Header, _>(header));
        }
    }

    #[test]
    fn what_is_built_is_read_back(
        accel in word(),
        commands in proptest::collection::vec(0u32..0x400, 1..40),
        baked in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..4),
        runtime in proptest::collection::vec(4096u32..100_000, 1..4),
        tensors in proptest::collection::vec(tensor(3), 0..5),
    ) {
        let build = || {
            let mut builder = BlobBuilder::new(Accel::from_word(accel));
            builder.commands(&commands);
            for size in &runtime {
                builder.runtime(Role::Scratch, *size);
            }
            for bytes in &baked {
                builder.baked(Role::Weights, bytes);
            }
            for tensor in &tensors {
                let place = tensor.place.map(|place| Place { region: place.region % runtime.len() as u8, ..place });
                builder.tensor(TensorEntry { place, ..tensor.clone() });
            }
            builder.build().expect("valid parts")
        };
        let bytes = build();
        prop_assert_eq!(&bytes, &build());
        exercise(&bytes);

        let blob = Blob::parse(&bytes).expect("what the builder makes is valid");
        prop_assert_eq!(blob.header().accel.word(), accel);
        prop_assert!(blob.command_stream().words().eq(commands.iter().copied()));
        prop_assert_eq!(blob.command_stream().offset() % 16, 0);
        for (index, size) in runtime.iter().enumerate() {
            prop_assert_eq!(blob.regions()[index].size, *size);
        }
        for (index, bytes) in baked.iter().enumerate() {
            prop_assert_eq!(blob.region_bytes(runtime.len() + index), Some(&bytes[..]));
        }
        prop_assert_eq!(blob.tensors().map_or(0, |tensors| tensors.len()), tensors.len());
        for (read, written) in blob.tensors().iter().flat_map(|table| table.iter()).zip(&tensors) {
            prop_assert_eq!((read.kind, read.name, read.dtype), (written.kind, written.name.as_str(), written.dtype));
            prop_assert_eq!((read.shape, read.quantisation), (written.shape, written.quantisation));
        }
        // Header and table again from what was read: the same bytes.
        prop_assert_eq!(&blob.header().to_bytes()[..], &bytes[..layout::HEADER_BYTES]);
        let table: Vec<u8> = blob.regions().iter().flat_map(Region::to_bytes).collect();
        prop_assert_eq!(&table[..], &bytes[layout::HEADER_BYTES..][..table.len()]);
        let job = load(&bytes, 0, Arena { base: 0, bytes: blob.arena_bytes() }, None).expect("fits exactly");
        prop_assert_eq!(job.misaligned().count(), 0);
    }
}
