//! A blob as source text, for programs that carry their network inside.

mod c;
mod rust;

use npub::{Blob, Place, TensorKind};

use crate::tensor::TensorSpec;

pub use c::c_header;
pub use rust::rust_module;

/// Bytes on one line of an array.
const BYTES_A_LINE: usize = 16;

/// Where a piece of source comes from, for its first lines.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Origin<'a> {
    /// What the network is called. Becomes part of identifiers; other characters than letters and digits become `_`.
    pub name: &'a str,
    /// The version of Vela that compiled it, where that is known.
    pub vela_version: Option<&'a str>,
}

impl<'a> Origin<'a> {
    /// A network of this name.
    pub fn new(name: &'a str) -> Origin<'a> {
        Origin { name, vela_version: None }
    }

    /// A name that C and Rust take: lower case, digits and `_`, not beginning with a digit.
    fn identifier(&self) -> String {
        let mut name: String = self
            .name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name.insert_str(0, "network_");
        }
        name
    }

    /// "compiled for ethos-u55-256 by Vela 5.2.0, packed by npukit 0.1.0".
    fn sentence(&self, blob: &Blob<'_>) -> String {
        // Versions of an own Vela are its own words: only what is harmless in a comment gets into one.
        let plain = |version: &str| {
            version
                .chars()
                .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-'))
                .collect::<String>()
        };
        let vela =
            self.vela_version.map(|version| format!(" by Vela {}", plain(version))).unwrap_or_default();
        format!("compiled for {}{vela}, packed by npukit {}", blob.accel(), env!("CARGO_PKG_VERSION"))
    }
}

/// The tensors a caller deals with, each with a name such as `input_0`.
fn tensors(blob: &Blob<'_>) -> Vec<(String, TensorSpec, Option<Place>)> {
    let mut all = Vec::new();
    let Some(table) = blob.tensors() else { return all };
    for (kind, role) in
        [(TensorKind::Input, "input"), (TensorKind::Output, "output"), (TensorKind::State, "state")]
    {
        for (index, tensor) in table.of_kind(kind).enumerate() {
            all.push((format!("{role}_{index}"), TensorSpec::from_table(&tensor), tensor.place));
        }
    }
    all
}

/// The bytes as lines of numbers.
fn array(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 6);
    for line in bytes.chunks(BYTES_A_LINE) {
        text.push_str("   ");
        for byte in line {
            text.push_str(&format!(" 0x{byte:02x},"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use npub::{Accel, BlobBuilder, DType, Quantisation, Role, Shape, TensorEntry};

    use super::*;

    /// A blob whose names are as awkward as a network's names may be.
    pub(crate) fn sample() -> Vec<u8> {
        let mut builder = BlobBuilder::new(Accel::u55(256));
        builder.commands(&[0xFFFF_0000]);
        builder.baked(Role::Weights, &[0x2A; 37]);
        builder.runtime(Role::Scratch, 64);
        let mut tensor = |kind, name: &str, dtype, shape: &[u32], scale, zero_point, offset| {
            let quantisation = (scale > 0.0).then_some(Quantisation { scale, zero_point });
            let place = Some(Place { region: 1, offset });
            let (name, shape) = (name.to_owned(), Shape::new(shape).unwrap());
            builder.tensor(TensorEntry { kind, name, dtype, shape, quantisation, place, fed_from: None });
        };
        tensor(
            TensorKind::Input,
            "a \"b\" */ \\ ??/\né\u{0}1",
            DType::Int8,
            &[1, 4, 4, 1],
            1.0 / 255.0,
            -128,
            0,
        );
        tensor(TensorKind::Input, "", DType::Int32, &[], 0.0, 0, 16);
        tensor(TensorKind::Output, "out", DType::Int16, &[1, 10], 1e-20, 0, 32);
        builder.build().unwrap()
    }

    #[test]
    fn identifiers_are_identifiers() {
        for (name, identifier) in
            [("kws", "kws"), ("8bit-net.v2", "network_8bit_net_v2"), ("", "network_"), ("Ä", "network__")]
        {
            assert_eq!(Origin::new(name).identifier(), identifier);
        }
    }
}
