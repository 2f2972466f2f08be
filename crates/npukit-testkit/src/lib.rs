//! Where the tests find real models.
//!
//! The files are public networks that the repository doesn't carry. They are looked for in the folder that
//! the environment variable `NPUKIT_SHARED` names, else in `../shared` beside the checkout. A test that needs
//! one prints what it skips when it isn't there.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

/// The networks that Vela 5.2.0 places wholly on the NPU.
pub const MODELS: [&str; 7] = [
    "ad01_int8.tflite",
    "hello_world_int8.tflite",
    "kws_ref_model.tflite",
    "micro_speech_quantized.tflite",
    "person_detect.tflite",
    "pretrainedResnet_quant.tflite",
    "vww_96_int8.tflite",
];

/// The root of this checkout.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the crate lies two folders below the root")
}

/// The folder with the shared test files, if there is one.
pub fn shared() -> Option<PathBuf> {
    let folder = match std::env::var_os("NPUKIT_SHARED") {
        Some(path) => PathBuf::from(path),
        None => repository().join("../shared"),
    };
    folder.is_dir().then(|| folder.canonicalize().unwrap_or(folder))
}

/// A file below the shared folder; where it is absent, says so on standard error.
pub fn shared_file(relative: &str) -> Option<PathBuf> {
    let found = shared().map(|folder| folder.join(relative)).filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: {relative} isn't here (set NPUKIT_SHARED to the folder that holds it)");
    }
    found
}

/// A real model by file name; where it is absent, says so on standard error.
pub fn model(name: &str) -> Option<PathBuf> {
    shared_file(&format!("models/{name}"))
}
