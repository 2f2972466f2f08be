//! What the fuzzers of this crate's parsers begin with. The files are kept in the repository; this writes them.

mod common;

use std::fs;

use npukit_vela::Accelerator;
use npukit_vela::compile::{BuildOptions, compile};
use npukit_vela::distil::IoMode;
use npukit_vela::npy::{Array, Dtype, write_npz};
use npukit_vela::progress::Silent;
use npukit_vela::tflite::Model;

fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let array = Array::new(Dtype::Int16, vec![2, 3], (0..12).collect()).unwrap();
    let scalar = Array::new(Dtype::Bytes(3), vec![], b"a\0\0".to_vec()).unwrap();
    vec![
        ("tflite_read/two_inputs.tflite", common::network::two_inputs()),
        ("tflite_read/lstm.tflite", common::network::lstm()),
        ("tflite_read/streaming.tflite", common::network::streaming(-3)),
        ("npy_read/int16.npy", array.to_npy()),
        ("npy_read/two.npz", write_npz([("first", &array), ("second", &scalar)]).unwrap()),
    ]
}

#[test]
#[ignore = "writes files: run it when the networks that the tests make have changed"]
fn write_the_seeds() {
    let folder = npukit_testkit::repository().join("fuzz/seeds");
    let mut all = seeds();
    for (name, network) in
        [("streaming", common::network::streaming(-3)), ("two_inputs", common::network::two_inputs())]
    {
        let mut options = BuildOptions::new(Accelerator::U55_128);
        options.io = if name == "streaming" { IoMode::Arena } else { IoMode::Separate };
        let compiled = compile(common::environment().vela(), &network, &options, &mut Silent).unwrap();
        let name = if name == "streaming" {
            "tflite_read/streaming_vela.tflite"
        } else {
            "tflite_read/two_inputs_vela.tflite"
        };
        all.push((name, compiled.output));
    }
    for (name, bytes) in all {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn the_seeds_are_what_the_tests_make() {
    let folder = npukit_testkit::repository().join("fuzz/seeds");
    for (name, bytes) in seeds() {
        assert!(
            fs::read(folder.join(name)).unwrap() == bytes,
            "{name} is out of date: run `write_the_seeds`"
        );
    }
    for name in ["streaming_vela", "two_inputs_vela"] {
        let bytes = fs::read(folder.join(format!("tflite_read/{name}.tflite"))).unwrap();
        assert!(Model::parse(&bytes).unwrap().is_compiled(), "{name}");
    }
}
