//! Any bytes as an ELF library: an error, or tables whose rows lie in the file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npukit_vip::recover::{decode_android, recover};

fuzz_target!(|data: &[u8]| {
    if let Ok(found) = recover(data, "fuzz") {
        for table in &found.tables {
            let bytes = 4 * table.rows.iter().map(Vec::len).sum::<usize>() as u64;
            assert!(table.rows_offset + bytes <= data.len() as u64);
        }
        let _ = found.to_string();
    }
    if let Ok(entries) = decode_android(data, 1000) {
        assert!(entries.len() <= 1000);
    }
});
