//! Any bytes as a `.npy` file or a `.npz` archive: reading doesn't panic, and what was read survives being written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npukit_vela::npy::{Array, Npz};

fn survives(array: &Array) {
    let _ = array.elements();
    let _ = array.to_f64();
    assert_eq!(Array::parse(&array.to_npy()).as_ref(), Ok(array));
}

fuzz_target!(|data: &[u8]| {
    if let Ok(array) = Array::parse(data) {
        survives(&array);
    }
    if let Ok(mut archive) = Npz::open(data) {
        for name in archive.names() {
            if let Ok(array) = archive.read(&name) {
                survives(&array);
            }
        }
    }
});
