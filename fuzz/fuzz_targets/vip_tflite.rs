//! Any bytes as a `.tflite` file for VIP admission: an error, or a graph that every step can answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npukit_vip::admission::{Options, admit};
use npukit_vip::tflite::read;
use npukit_vip::version::OvxlibVersion;

fn ask(data: &[u8]) {
    let Ok(graph) = read(data, "fuzz") else { return };
    for version in [OvxlibVersion::LAST_WITH_FCL_TABLE, OvxlibVersion::NEWEST] {
        let _ = admit(&graph, &Options { honour_importer: false, ..Options::new(version) }).to_string();
    }
}

fuzz_target!(|data: &[u8]| {
    ask(data);
    if data.len() >= 8 {
        let mut data = data.to_vec();
        data[4..8].copy_from_slice(b"TFL3");
        ask(&data);
    }
});
