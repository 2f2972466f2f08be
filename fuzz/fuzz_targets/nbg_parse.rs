//! Any bytes as an NBG file: an error, or a map that covers every byte; and reports that can be made of it.
//!
//! Each input is tried twice: as it is, and with the magic and a version that was met made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npukit_vip::nbg::{Device, Nbg, check, compare};

fn parse(data: &[u8]) {
    let Ok(nbg) = Nbg::parse(data) else { return };
    assert!(nbg.coverage.is_whole(data.len() as u64));
    let _ = nbg.to_string();
    let _ = check(&nbg, &Device { target: nbg.header.target, ..Device::default() });
    assert!(compare((&nbg, data), (&nbg, data)).identical);
}

fuzz_target!(|data: &[u8]| {
    parse(data);
    if data.len() >= 8 {
        let version = [0x1_0009u32, 0x1_000E, 0x1_000F, 0x1_001E, 0x1_0020][usize::from(data[4]) % 5];
        let mut data = data.to_vec();
        data[..4].copy_from_slice(b"VPMN");
        data[4..8].copy_from_slice(&version.to_le_bytes());
        parse(&data);
    }
});
