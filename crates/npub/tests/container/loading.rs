//! From a blob to addresses.

use npub::layout::{header, region};
use npub::{
    Accel, AccelMatch, Arena, Blob, BlobBuilder, Error, ErrorKind, Framing, Packing, Place, Role, load,
    load_with,
};

use crate::sample::{STOP, get, network, seal, set, set_region, slot, small};

const BLOB: u64 = 0x3800_0000;
const ARENA: Arena = Arena { base: 0x2100_0000, bytes: 4096 };

#[test]
fn regions_become_addresses() {
    let blob = network(40);
    let job = load(&blob, BLOB, ARENA, Some(Accel::u55(128))).expect("a valid blob");
    let offset = |slot: usize| u64::from(get(&blob, 32 + 16 * slot + region::DATA_OFFSET));

    assert_eq!(job.region_count, 6);
    assert_eq!(job.region_size, [40, 200, 200, 490, 12, 16 + 2 * 80 + 15, 0, 0]);
    // The runtime regions in their order, each at a multiple of 16; the alias where its target is.
    let at = |offset: u64| ARENA.base + offset;
    let baked = [BLOB + offset(slot::WEIGHTS), BLOB + offset(slot::TENSORS)];
    assert_eq!(job.region_base, [baked[0], at(0), at(0), at(208), at(704), baked[1], 0, 0]);
    assert_eq!(job.arena_bytes, 716);

    assert_eq!(u64::from(job.command_offset), u64::from(get(&blob, header::CMD_OFFSET)));
    assert_eq!(job.command_address, BLOB + u64::from(job.command_offset));
    assert_eq!((job.command_bytes, job.framing), (24, Framing::Bare));
    assert_eq!((job.accel, job.accel_match), (Accel::u55(128), AccelMatch::Same));
    assert_eq!(job.misaligned().count(), 0);

    let parsed = Blob::parse(&blob).expect("a valid blob");
    assert_eq!(parsed.bind(BLOB, ARENA, Some(Accel::u55(128))), Ok(job));
    let output = parsed.tensors().and_then(|tensors| tensors.outputs().next()).expect("one output");
    assert_eq!(job.address(output.place.expect("placed")), Some(at(704)));
    assert_eq!(job.address(Place { region: 6, offset: 0 }), None);
}

#[test]
fn arena_bytes_is_exact() {
    let blob = network(40);
    let needed = Blob::parse(&blob).expect("a valid blob").arena_bytes();
    assert_eq!(needed, 716);
    assert!(load(&blob, BLOB, Arena { bytes: needed, ..ARENA }, None).is_ok());
    let error = load(&blob, BLOB, Arena { bytes: needed - 1, ..ARENA }, None).expect_err("one byte less");
    assert_eq!(error, Error::Arena { region: 4, offset: 704, size: 12, arena_bytes: 715 });
    assert_eq!(
        error.to_string(),
        "runtime region 4, 12 bytes at 704 of the arena, doesn't fit its 715 bytes"
    );
}

#[test]
fn a_blob_without_regions_loads() {
    let mut builder = BlobBuilder::new(Accel::UNKNOWN);
    let blob = builder.commands(&[STOP]).build().expect("regions aren't compulsory");
    let job = load(&blob, BLOB, Arena::default(), None).expect("nothing to place");
    assert_eq!((job.region_count, job.region_base), (0, [0; 8]));
    assert_eq!(job.command_offset, 32);
}

#[test]
fn eight_regions_load() {
    let mut builder = BlobBuilder::new(Accel::UNKNOWN);
    builder.commands(&[STOP]);
    for size in 1..=8 {
        builder.runtime(Role::Scratch, size);
    }
    let blob = builder.build().expect("eight slots");
    let job = load(&blob, BLOB, ARENA, None).expect("eight slots");
    let expected: Vec<u64> = (0..8).map(|slot| ARENA.base + 16 * slot).collect();
    assert_eq!(job.region_base, expected[..]);
}

#[test]
fn another_accelerator_is_reported() {
    let blob = network(40);
    let found = |expected| load(&blob, BLOB, ARENA, expected).expect("a valid blob").accel_match;
    assert_eq!(found(None), AccelMatch::NotAsked);
    assert_eq!(found(Some(Accel::UNKNOWN)), AccelMatch::NotAsked);
    assert_eq!(found(Some(Accel::u55(128))), AccelMatch::Same);
    let differs = found(Some(Accel::u65(256)));
    assert_eq!(differs, AccelMatch::Differs { found: Accel::u55(128), expected: Accel::u65(256) });
    assert_eq!(differs.to_string(), "compiled for ethos-u55-128, this is ethos-u65-256");

    let silent = load(&small(), BLOB, ARENA, Some(Accel::u55(128))).expect("a valid blob");
    assert_eq!(silent.accel_match, AccelMatch::Unknown);
}

#[test]
fn misaligned_addresses_are_reported() {
    let report = |blob: &[u8], base, arena_base| -> Vec<String> {
        let job = load(blob, base, Arena { base: arena_base, ..ARENA }, None).expect("a valid blob");
        job.misaligned().map(|place| place.to_string()).collect()
    };
    let blob = network(40);
    assert_eq!(report(&blob, BLOB, ARENA.base), [""; 0]);

    let by_blob = report(&blob, BLOB + 4, ARENA.base);
    assert_eq!(by_blob.len(), 3, "{by_blob:?}");
    assert_eq!(by_blob[0], "the command stream is at 0x38000084 (0x38000004 + 0x80), not a multiple of 16");
    assert_eq!(by_blob[1], "region 0 is at 0x380000a4 (0x38000004 + 0xa0), not a multiple of 16");

    let by_arena = report(&blob, BLOB, ARENA.base + 8);
    assert_eq!(by_arena.len(), 4, "{by_arena:?}");
    assert_eq!(by_arena[1], "region 2 is at 0x21000008 (0x21000008 + 0x0), not a multiple of 16");

    let mut baked = small();
    let offset = get(&baked, 32 + region::DATA_OFFSET) - 4;
    set_region(&mut baked, 0, region::DATA_OFFSET, offset);
    assert_eq!(
        report(&seal(baked), BLOB, 0),
        ["region 0 is at 0x3800004c (0x38000000 + 0x4c), not a multiple of 16"]
    );

    let mut commands = small();
    let offset = get(&commands, header::CMD_OFFSET) + 4;
    set(&mut commands, header::CMD_OFFSET, offset);
    set(&mut commands, header::CMD_BYTES, 4);
    assert_eq!(
        report(&seal(commands), BLOB, 0),
        ["the command stream is at 0x38000044 (0x38000000 + 0x44), not a multiple of 16"]
    );
}

#[test]
fn addresses_do_not_wrap_around() {
    let blob = network(40);
    let top = u64::MAX - blob.len() as u64;
    assert!(load(&blob, top, ARENA, None).is_ok());
    let error = load(&blob, top + 1, ARENA, None).expect_err("ends beyond");
    assert_eq!(error, Error::Address { base: top + 1, bytes: blob.len() as u64 });
    assert_eq!(error.kind(), ErrorKind::OutOfRange);
    let arena = Arena { base: u64::MAX - 4095, bytes: 4096 };
    assert_eq!(load(&blob, BLOB, arena, None), Err(Error::Address { base: arena.base, bytes: 4096 }));
}

#[test]
fn regions_can_be_packed_for_a_data_cache_and_left_out() {
    let blob = network(40);
    let parsed = Blob::parse(&blob).expect("a valid blob");
    let lines = Packing::new().aligned(32);
    // 200, 490 and 12 bytes in whole lines.
    let needed = 224 + 512 + 32;
    assert_eq!(parsed.arena_bytes_with(lines), needed);
    let job = load_with(&blob, BLOB, Arena { bytes: needed, ..ARENA }, None, lines).expect("fits");
    let at = |offset: u64| ARENA.base + offset;
    assert_eq!(job.region_base[1..5], [at(0), at(0), at(224), at(736)]);
    assert_eq!(job.region_size[1..5], [200, 200, 490, 12], "padding isn't the commands'");
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(|slot| job.room(slot)), [0, 224, 224, 512, 32, 0, 0]);
    assert_eq!(job.packing(), lines);
    let error = load_with(&blob, BLOB, Arena { bytes: needed - 1, ..ARENA }, None, lines).expect_err("short");
    assert_eq!(error, Error::Arena { region: 4, offset: 736, size: 32, arena_bytes: needed - 1 });

    // Without a region, and without the alias of it.
    let rest = lines.without(1);
    assert_eq!(parsed.arena_bytes_with(rest), 512 + 32);
    let job = load_with(&blob, BLOB, ARENA, None, rest).expect("fits");
    assert_eq!(job.region_base[1..5], [0, 0, at(0), at(512)]);
    assert_eq!(
        [0, 1, 2, 3, 4, 5, 6].map(|slot| job.is_dealt(slot)),
        [false, false, false, true, true, false, false]
    );
    assert_eq!([0, 1, 5, 6].map(|slot| job.is_baked(slot)), [true, false, true, false]);
    assert_eq!(job.address(Place { region: 1, offset: 0 }), None);
    assert_eq!(job.misaligned().count(), 0);

    for (asked, alignment) in [(0, 16), (16, 16), (17, 32), (48, 64), (u32::MAX, 1 << 31)] {
        assert_eq!(Packing::new().aligned(asked).alignment(), alignment);
    }
    assert_eq!(Packing::new().without(8), Packing::default());
}
