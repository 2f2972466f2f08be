//! What differs between two files.

use super::{IoTensor, Nbg};
use crate::chip::Engine;
use serde::Serialize;
use std::fmt::Display;

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs.
    pub what: String,
    /// In the first file.
    pub first: String,
    /// In the second.
    pub second: String,
}

/// The comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// Whether the files are the same, byte for byte.
    pub identical: bool,
    /// The differences, coarse ones first. Files that differ only in bytes that aren't read have one line for each
    /// section.
    pub differences: Vec<Difference>,
}

/// Compares two files, given parsed and as bytes.
pub fn compare(first: (&Nbg, &[u8]), second: (&Nbg, &[u8])) -> Comparison {
    let ((a, a_bytes), (b, b_bytes)) = (first, second);
    let mut list = List(Vec::new());
    list.add("size in bytes", a_bytes.len(), b_bytes.len());
    list.add("version", format!("{:#x}", a.header.version), format!("{:#x}", b.header.version));
    list.add("target", format!("{:#x}", a.header.target), format!("{:#x}", b.header.target));
    list.add("network name", &a.header.name, &b.header.name);
    list.add("layers", a.header.layer_count, b.header.layer_count);
    list.add("operations", a.header.operation_count, b.header.operation_count);
    for engine in [Engine::NeuralNetwork, Engine::TensorProcessor, Engine::Shader, Engine::Software] {
        list.add(&format!("{engine} operations"), a.count(engine), b.count(engine));
    }
    list.add("feature words", format!("{:?}", a.features), format!("{:?}", b.features));
    match (a.memory, b.memory) {
        (Some(a), Some(b)) => {
            list.add("pool bytes", a.pool_bytes, b.pool_bytes);
            list.add("AXI SRAM bytes", a.axi_sram_bytes, b.axi_sram_bytes);
            list.add("VIP SRAM bytes", format!("{:?}", a.vip_sram_bytes), format!("{:?}", b.vip_sram_bytes));
        }
        (a, b) => list.add("memory needs", format!("{a:?}"), format!("{b:?}")),
    }
    list.tensors("input", &a.inputs, &b.inputs);
    list.tensors("output", &a.outputs, &b.outputs);
    let layer = |nbg: &Nbg, index: usize| match nbg.layers.get(index) {
        Some(layer) => {
            let engines: Vec<&str> = nbg.engines_of(layer.id).into_iter().map(Engine::name).collect();
            format!("{} on {}", layer.name, engines.join("+"))
        }
        None => "none".to_owned(),
    };
    for index in 0..a.layers.len().max(b.layers.len()) {
        list.add(&format!("layer {index}"), layer(a, index), layer(b, index));
    }
    for index in 0..a.sections.len().max(b.sections.len()) {
        let content = |nbg: &Nbg, bytes: &[u8]| {
            let Some(section) = nbg.sections.get(index) else { return "none".to_owned() };
            let start = section.offset as usize;
            match bytes.get(start..start.saturating_add(section.size as usize)) {
                Some(content) if section.size > 0 => {
                    format!("{} bytes, sha256 {:.16}", section.size, crate::tables::hex_sha256(content))
                }
                _ => "empty".to_owned(),
            }
        };
        list.add(&super::section_name(index), content(a, a_bytes), content(b, b_bytes));
    }
    let identical = a_bytes == b_bytes;
    if !identical && list.0.is_empty() {
        let at =
            a_bytes.iter().zip(b_bytes).position(|(a, b)| a != b).unwrap_or(a_bytes.len().min(b_bytes.len()));
        let byte = |bytes: &[u8]| {
            bytes.get(at).map_or_else(|| "end of file".to_owned(), |byte| format!("{byte:#04x}"))
        };
        list.add(&format!("first differing byte, at {at:#x}"), byte(a_bytes), byte(b_bytes));
    }
    Comparison { identical, differences: list.0 }
}

struct List(Vec<Difference>);

impl List {
    fn add<T: Display + PartialEq>(&mut self, what: &str, first: T, second: T) {
        if first != second {
            self.0.push(Difference {
                what: what.to_owned(),
                first: first.to_string(),
                second: second.to_string(),
            });
        }
    }

    fn tensors(&mut self, what: &str, first: &[IoTensor], second: &[IoTensor]) {
        self.add(&format!("{what}s"), first.len(), second.len());
        for (index, (a, b)) in first.iter().zip(second).enumerate() {
            self.add(&format!("{what} {index}"), a.to_string(), b.to_string());
        }
    }
}
