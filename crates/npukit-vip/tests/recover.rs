//! Recovery from the committed fixtures (three machines, stripped and not, every kind of relocation) and, where the
//! machine has a C compiler, from a library compiled here.

use npukit_vip::recover::{Method, RecoverError, Recovery, recover};
use npukit_vip::version::Certainty;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str) -> Recovery {
    let bytes = std::fs::read(fixtures().join(name)).unwrap();
    recover(&bytes, name).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The rows of `demo.c`, in its order.
fn expected() -> BTreeMap<&'static str, (u32, u32, Vec<Vec<&'static str>>)> {
    BTreeMap::from([
        (
            "DEMO_CONV",
            (
                2,
                0,
                vec![
                    vec!["f16", "f16"],
                    vec!["u8:asym", "u8:asym"],
                    vec!["u8:asym", "i8:sym_pc"],
                    vec!["bf16", "bf16"],
                    vec!["i4:asym", "i8:asym"],
                ],
            ),
        ),
        ("DEMO_TWIN_A", (2, 1, vec![vec!["u8:asym"; 3], vec!["f16"; 3]])),
        ("DEMO_TWIN_B", (2, 1, vec![vec!["u8:asym"; 3], vec!["f16"; 3]])),
        ("DEMO_PLANE_ONE", (1, 1, vec![vec!["u8", "u8:asym"], vec!["u8", "f16"]])),
        ("DEMO_PLANE_THREE", (3, 1, vec![vec!["u8", "u8", "u8", "u8:asym"]])),
        (
            "DEMO_BIAS",
            (
                3,
                2,
                vec![
                    vec!["i8:dfp", "i8:dfp", "i32:dfp", "i8:dfp", "i32"],
                    vec!["i8:dfp", "i8:dfp", "none", "i8:dfp", "i32"],
                    vec!["f32", "f32", "f32", "f32", "i32"],
                ],
            ),
        ),
    ])
}

fn rows(table: &npukit_vip::recover::RecoveredTable) -> Vec<Vec<String>> {
    table.rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

/// All six tables with the right rows, whatever they are called, and no decoy.
fn assert_all_found(recovery: &Recovery, name: &str) {
    let mut found: Vec<_> = recovery.tables.iter().map(|t| (t.inputs, t.outputs, rows(t))).collect();
    let mut wanted: Vec<_> = expected()
        .into_values()
        .map(|(inputs, outputs, rows)| {
            let rows: Vec<Vec<String>> =
                rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect();
            (inputs, outputs, rows)
        })
        .collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted, "{name}");
}

fn assert_names_are_right(recovery: &Recovery, name: &str) -> usize {
    let expected = expected();
    let mut named = 0;
    for table in &recovery.tables {
        if let Some(op) = &table.name {
            let (inputs, outputs, wanted) =
                expected.get(op.as_str()).unwrap_or_else(|| panic!("{name}: {op}"));
            assert_eq!((table.inputs, table.outputs), (*inputs, *outputs), "{name}: {op}");
            assert_eq!(&rows(table), wanted, "{name}: {op}");
            named += 1;
        }
    }
    named
}

#[test]
fn every_fixture_yields_all_tables() {
    for machine in ["aarch64", "arm", "x86_64"] {
        for variant in ["", "-stripped", "-relr", "-android", "-android-relr"] {
            let name = format!("demo-{machine}{variant}.so");
            let recovery = fixture(&name);
            assert_eq!(recovery.file.machine, machine);
            assert_eq!(recovery.file.class, if machine == "arm" { 32 } else { 64 });
            assert_eq!(recovery.method, Method::RelativeRelocations);
            assert_all_found(&recovery, &name);
            assert_names_are_right(&recovery, &name);
            let kind = match (variant, machine) {
                ("-relr", _) => "RELR",
                ("-android", "arm") => "ANDROID_REL",
                ("-android", _) => "ANDROID_RELA",
                ("-android-relr", _) => "ANDROID_RELR",
                (_, "arm") => "REL",
                _ => "RELA",
            };
            assert!(
                recovery.tables.iter().all(|table| table.found_by == kind),
                "{name}: {:?}",
                recovery.relocations
            );
            // The decoys: one with a row size that doesn't fit and one without inputs fail at once.
            assert_eq!(
                recovery.rejected,
                BTreeMap::from([("a cell is no type", 1), ("row count out of range", 1)])
            );
        }
    }
}

#[test]
fn symbols_name_every_table() {
    for machine in ["aarch64", "arm", "x86_64"] {
        let name = format!("demo-{machine}.so");
        let recovery = fixture(&name);
        assert!(recovery.file.symbols);
        assert_eq!(assert_names_are_right(&recovery, &name), 6);
        assert!(recovery.tables.iter().all(|table| table.name_certainty == Certainty::Known));
    }
}

#[test]
fn code_names_tables_of_stripped_files_and_twins_too() {
    for (machine, certainty) in [("aarch64", Certainty::Known), ("x86_64", Certainty::Assumed)] {
        let name = format!("demo-{machine}-stripped.so");
        let recovery = fixture(&name);
        assert!(!recovery.file.symbols);
        let named: Vec<(&str, Certainty)> = recovery
            .tables
            .iter()
            .filter_map(|table| table.name.as_deref().map(|name| (name, table.name_certainty)))
            .collect();
        for op in ["DEMO_CONV", "DEMO_TWIN_A", "DEMO_TWIN_B", "DEMO_BIAS"] {
            assert!(named.contains(&(op, certainty)), "{name}: {named:?}");
        }
        assert_names_are_right(&recovery, &name);
    }
    let arm = fixture("demo-arm-stripped.so");
    assert!(
        arm.tables.iter().all(|table| table.name.is_none() && table.name_certainty == Certainty::Unknown)
    );
    assert!(arm.unknowns.iter().any(|text| text.contains("code isn't searched")));
}

#[test]
fn the_bundle_says_where_everything_lies() {
    let name = "demo-aarch64.so";
    let bytes = std::fs::read(fixtures().join(name)).unwrap();
    for table in &fixture(name).tables {
        let rows = &bytes[table.rows_offset as usize..][..table.rows.iter().flatten().count() * 4];
        assert_eq!(npukit_vip::tables::hex_sha256(rows), table.sha256);
        assert_ne!(
            table.descriptor_offset, table.descriptor_address,
            "data lie at another address than offset"
        );
        let word = &bytes[table.descriptor_offset as usize..][..4];
        assert_eq!(word, table.inputs.to_le_bytes());
    }
    let json = serde_json::to_value(fixture(name)).unwrap();
    assert_eq!(json["schema"], "npukit-vip-recovery/1");
    assert_eq!(json["tables"][0]["rows"][1][1], "u8:asym");
}

/// A library compiled here at two levels of optimisation, with whatever relocations the toolchain makes.
#[test]
fn a_library_compiled_here() {
    let folder = tempfile::tempdir().unwrap();
    for level in ["-O0", "-O2"] {
        let output = folder.path().join("demo.so");
        let arguments = [level, "-fPIC", "-ffreestanding", "-nostdlib", "-shared", "-s", "-o"];
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let status = std::process::Command::new(compiler)
            .args(arguments)
            .arg(&output)
            .arg(fixtures().join("demo.c"))
            .status();
        match status {
            Ok(status) if status.success() => {}
            other => {
                eprintln!("skipped: no C compiler that makes a shared library here ({other:?})");
                return;
            }
        }
        let bytes = std::fs::read(&output).unwrap();
        let recovery = recover(&bytes, "demo.so").unwrap();
        assert_all_found(&recovery, level);
        assert_names_are_right(&recovery, level);
        if recovery.file.machine == "x86_64" {
            assert!(
                recovery.tables.iter().filter(|table| table.name.is_some()).count() >= 4,
                "{level}: {recovery}"
            );
        }
    }
}

#[test]
fn a_file_without_tables_is_a_normal_answer() {
    let this = std::env::current_exe().unwrap();
    let recovery = recover(&std::fs::read(this).unwrap(), "test").unwrap();
    assert!(recovery.tables.is_empty(), "{recovery}");
    assert!(recovery.to_string().contains("no type tables"));
}

#[test]
fn what_is_no_linked_elf_file_is_an_error() {
    assert!(matches!(recover(b"", "x"), Err(RecoverError::Elf(_))));
    assert!(matches!(recover(b"MZ\x90\0", "x"), Err(RecoverError::Elf(_))));
    let bytes = std::fs::read(fixtures().join("demo-aarch64.so")).unwrap();
    for length in 0..bytes.len() {
        let _ = recover(&bytes[..length], "cut");
    }
    // No program headers: nothing is loaded.
    let mut unlinked = bytes.clone();
    unlinked[56..58].fill(0);
    assert_eq!(recover(&unlinked, "x"), Err(RecoverError::NotLinked));
}

/// Every word of the headers and of the dynamic section replaced by lies: errors or answers, never a panic.
#[test]
fn lying_headers() {
    for name in ["demo-aarch64-android.so", "demo-arm-relr.so", "demo-x86_64.so", "demo-arm-android.so"] {
        let bytes = std::fs::read(fixtures().join(name)).unwrap();
        let mut refused = 0;
        for offset in (0..bytes.len()).step_by(4) {
            for lie in [0, 1, 0x20, 0x7FFF_FFFF, 0xFFFF_FFF0, u32::MAX] {
                let mut changed = bytes.clone();
                let end = (offset + 4).min(changed.len());
                changed[offset..end].copy_from_slice(&u32::to_le_bytes(lie)[..end - offset]);
                refused += usize::from(recover(&changed, name).is_err());
            }
        }
        assert!(refused > 20, "{name}: {refused}");
    }
}

#[test]
fn overlapping_segments_and_four_gigabyte_claims_are_errors() {
    let bytes = std::fs::read(fixtures().join("demo-aarch64.so")).unwrap();
    let loads: Vec<usize> = (0..usize::from(bytes[56]))
        .map(|index| 64 + 56 * index)
        .filter(|at| bytes[*at..at + 4] == [1, 0, 0, 0])
        .collect();
    let mut changed = bytes.clone();
    let first: Vec<u8> = bytes[loads[0] + 16..loads[0] + 24].to_vec();
    changed[loads[1] + 16..loads[1] + 24].copy_from_slice(&first);
    assert!(matches!(recover(&changed, "x"), Err(RecoverError::SegmentsOverlap { .. })));
    let mut changed = bytes.clone();
    changed[loads[0] + 32..loads[0] + 40].copy_from_slice(&(4u64 << 30).to_le_bytes());
    assert!(matches!(recover(&changed, "x"), Err(RecoverError::Segment { size: 0x1_0000_0000, .. })));
}

mod property {
    use super::fixtures;
    use npukit_vip::recover::{decode_android, decode_relr, recover};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn changed_libraries(
            which in 0usize..4,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..16),
        ) {
            let name = ["demo-aarch64-android.so", "demo-arm-relr.so", "demo-x86_64.so", "demo-arm-android.so"][which];
            let mut bytes = std::fs::read(fixtures().join(name)).unwrap();
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
            if let Ok(found) = recover(&bytes, name) {
                for table in &found.tables {
                    let end = table.rows_offset as usize + 4 * table.rows.iter().map(Vec::len).sum::<usize>();
                    prop_assert!(end <= bytes.len());
                }
                let _ = found.to_string();
            }
        }

        #[test]
        fn packed_tables_stay_within_their_limits(table in prop::collection::vec(any::<u8>(), 0..400), limit in 0u64..10_000) {
            let table = [b"APS2".as_slice(), &table].concat();
            if let Ok(entries) = decode_android(&table, limit) {
                prop_assert!(entries.len() as u64 <= limit);
            }
            let words: Vec<u64> = table.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            if let Ok(places) = decode_relr(words.iter().copied(), 8) {
                prop_assert!(places.len() <= 64 * words.len());
            }
        }
    }
}

/// A file whose only segment ends at the end of the address space, executable and too short for an aligned word.
#[test]
fn segments_at_the_end_of_the_address_space() {
    for (name, machine) in [("demo-aarch64.so", 183u16), ("demo-x86_64.so", 62)] {
        let original = std::fs::read(fixtures().join(name)).unwrap();
        assert_eq!(u16::from_le_bytes([original[18], original[19]]), machine);
        for (back, size) in [(2u64, 1u64), (4, 3), (8, 7), (64, 63), (2048, 2047)] {
            let mut bytes = original.clone();
            for index in 0..usize::from(bytes[56]) {
                let at = 64 + 56 * index;
                bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(if index == 0 { 1 } else { 0 }));
            }
            bytes[64 + 4..64 + 8].copy_from_slice(&7u32.to_le_bytes());
            bytes[64 + 16..64 + 24].copy_from_slice(&0u64.wrapping_sub(back).to_le_bytes());
            bytes[64 + 32..64 + 40].copy_from_slice(&size.to_le_bytes());
            let found = recover(&bytes, name).unwrap();
            assert_eq!(found.method, Method::Scan);
        }
    }
}

/// A file linked to fixed addresses has no relocations and its pointers in place, as this one without its dynamic tags.
#[test]
fn files_without_relocations_are_searched_word_by_word() {
    let mut bytes = std::fs::read(fixtures().join("demo-arm.so")).unwrap();
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    // DT_REL, DT_RELSZ, DT_RELENT, DT_RELCOUNT one after another, as lld writes them.
    let at = words.windows(7).position(|w| (w[0], w[2], w[4], w[6]) == (17, 18, 19, 0x6FFF_FFFA)).unwrap();
    for entry in 0..4 {
        bytes[4 * (at + 2 * entry)..][..4].copy_from_slice(&0x6FFF_0000u32.to_le_bytes());
    }
    let recovery = recover(&bytes, "fixed").unwrap();
    assert_eq!(recovery.method, Method::Scan);
    assert_all_found(&recovery, "fixed");
    assert_eq!(assert_names_are_right(&recovery, "fixed"), 6, "symbols are still there");
    assert!(recovery.unknowns.iter().any(|text| text.contains("no relative relocations")));
}

#[test]
fn big_endian_files_are_refused() {
    let mut bytes = std::fs::read(fixtures().join("demo-arm.so")).unwrap();
    bytes[5] = 2;
    assert!(matches!(recover(&bytes, "x"), Err(RecoverError::Elf(_))));
}
