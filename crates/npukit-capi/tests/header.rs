//! The C header is what the sources say.

use std::fs;
use std::path::Path;

/// Regenerates include/npukit.h in memory and compares; with `NPUKIT_BLESS` set, writes it.
#[test]
fn header_matches_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml is valid");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/types.rs"))
        .with_src(root.join("src/abi.rs"))
        .generate()
        .expect("the sources can be turned into a header");
    let mut generated = Vec::new();
    bindings.write(&mut generated);

    let path = root.join("include/npukit.h");
    if std::env::var_os("NPUKIT_BLESS").is_some() {
        fs::write(&path, &generated).expect("include/npukit.h can be written");
    }
    let committed = fs::read(&path).unwrap_or_default();
    assert!(
        committed == generated,
        "{} isn't what the sources say; run NPUKIT_BLESS=1 cargo test -p npukit-capi --test header and look at the diff",
        path.display()
    );
}
