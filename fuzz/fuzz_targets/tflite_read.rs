//! Any bytes as a `.tflite` file: reading, editing and distilling don't panic, and what was read can be looked at.
//!
//! Each input is tried twice: as it is, and with the file identifier made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use npukit_vela::compile::prepare;
use npukit_vela::distil::from_vela_tflite;
use npukit_vela::tflite::{Model, with_batch_of_one, with_outputs};

fn read(data: &[u8]) {
    let Ok(model) = Model::parse(data) else { return };
    for graph in &model.subgraphs {
        for (index, tensor) in graph.tensors.iter().enumerate() {
            let _ = (graph.describe(index), tensor.bytes(), model.data(tensor));
            if let Some(quantisation) = tensor.quantisation {
                let _ = (quantisation.scale(), quantisation.zero_point());
            }
        }
        for operator in &graph.operators {
            let _ = operator.to_string();
            if let Some(options) = operator.options {
                let _ = (options.number::<i32>(0, 0), options.string(1), options.numbers::<i32>(2));
            }
        }
    }
    if let Ok(edited) = with_outputs(data, &[0]) {
        assert_eq!(Model::parse(&edited).expect("an edit leaves it readable").main().outputs, [0]);
    }
    let _ = with_batch_of_one(data);
    let _ = prepare(data);
    if let Ok(program) = from_vela_tflite(data) {
        let _ = program.to_npub();
    }
}

fuzz_target!(|data: &[u8]| {
    read(data);
    if data.len() >= 8 {
        let mut data = data.to_vec();
        data[4..8].copy_from_slice(b"TFL3");
        read(&data);
    }
});
