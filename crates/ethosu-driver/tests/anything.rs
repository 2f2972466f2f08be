//! The NPU at register level and the driver on top of it against anything at all: the body of the fuzz target `device_run`, on
//! its seeds, and on what random bytes make of them.

mod adversary;
mod common;

use std::fs;
use std::path::PathBuf;

use adversary::{SRAM, STREAM_BYTES, Script};
use ethosu_driver::Accelerator;
use npub::{Blob, Storage};
use proptest::prelude::*;

fn folder(target: &str) -> PathBuf {
    npukit_testkit::repository().join("fuzz/seeds").join(target)
}

/// Runs a blob's commands by registers and through the driver. Regions lie one behind the other.
fn of_blob(bytes: &[u8]) -> Option<Vec<u8>> {
    let blob = Blob::parse(bytes).ok()?;
    let config = match blob.accel().product()? {
        npub::Product::U55 => ethosu_driver::Product::U55,
        npub::Product::U65 => ethosu_driver::Product::U65,
        npub::Product::U85 => ethosu_driver::Product::U85,
        _ => return None,
    };
    let accelerator = Accelerator::new(config, blob.accel().macs().into())?;
    let index = Accelerator::ALL.iter().position(|one| *one == accelerator)?;
    let mut script = Script::new(index as u8, 0);
    let (mut bases, mut next) = ([SRAM; 8], 0);
    for (slot, region) in blob.regions().iter().enumerate() {
        match region.storage() {
            Storage::Baked { .. } => script = script.fill(next, blob.region_bytes(slot)?),
            Storage::Runtime => {}
            Storage::Alias { of } => {
                bases[slot] = bases[of as usize];
                continue;
            }
            Storage::Tensors { .. } => continue,
        }
        bases[slot] = SRAM + u64::from(next);
        next = next.checked_add(region.size as u16)?.checked_next_multiple_of(16)?;
        if next > 0x4000 || region.size > 0x1FFF {
            return None;
        }
    }
    let stream = blob.command_stream().bytes();
    (stream.len() < STREAM_BYTES).then(|| {
        script.stream(stream).run_raw(bases).invoke(bases, 0x2000).run_raw(bases).op(19, &[]).bytes()
    })
}

/// Everything that the driver can be asked for, with faults and another master in between.
fn calls() -> Vec<u8> {
    let (polls, forget, event) = (2, 0, 7);
    let mut script = Script::new(3, 1).op(19, &[]).op(11, &[1]);
    for end in 0..4 {
        script = script.op(15, &[polls, end]).op(12, &[]).op(10, &[]);
    }
    script = script.op(17, &[forget]).op(18, &[event]).op(16, &[]).op(13, &[]);
    for kind in 0..7 {
        script = script.op(8, &[0x20, 0, kind]).op(19, &[]);
    }
    script = script.op(8, &[0, 0, 7, 0]).op(19, &[]).op(8, &[0, 0, 7, 3]).op(19, &[]);
    script.op(8, &[0, 0, 8, 1, 8, 0, 0, 0, 0, 0]).op(19, &[]).op(9, &[]).op(13, &[]).op(2, &[1]).bytes()
}

fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = vec![("calls".to_owned(), calls())];
    let mut blobs: Vec<PathBuf> =
        fs::read_dir(folder("stream_engines")).unwrap().map(|entry| entry.unwrap().path()).collect();
    blobs.sort();
    for path in blobs {
        if let Some(seed) = of_blob(&fs::read(&path).unwrap()) {
            seeds.push((path.file_stem().unwrap().to_string_lossy().into_owned(), seed));
        }
    }
    seeds
}

#[test]
#[ignore = "writes files: run it when a script's bytes mean something else"]
fn write_the_seeds() {
    let _ = fs::remove_dir_all(folder("device_run"));
    fs::create_dir_all(folder("device_run")).unwrap();
    for (name, bytes) in seeds() {
        fs::write(folder("device_run").join(name), bytes).unwrap();
    }
}

#[test]
fn the_seeds_are_what_is_made_here() {
    let seeds = seeds();
    assert!(seeds.len() > 10, "{}", seeds.len());
    assert_eq!(fs::read_dir(folder("device_run")).unwrap().count(), seeds.len());
    for (name, bytes) in seeds {
        let there = fs::read(folder("device_run").join(&name)).unwrap();
        assert!(there == bytes, "{name} is out of date: run `write_the_seeds`");
    }
}

#[test]
fn seeds_break_nothing() {
    for (_, bytes) in seeds() {
        adversary::run(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_breaks(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        adversary::run(&bytes);
    }

    #[test]
    fn nothing_near_a_seed_breaks(
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        tail in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let seeds = seeds();
        let mut bytes = seeds[seed.index(seeds.len())].1.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.extend(tail);
        adversary::run(&bytes);
    }
}
