//! A blob as a Rust module without dependencies, for `no_std` programs too.

use std::fmt::Write;

use npub::{Blob, Error};

use super::{Origin, array, tensors};

/// A module with the blob and descriptions of its tensors. The names are the same for every network: the module that
/// holds the file tells networks apart.
///
/// # Errors
/// What [`Blob::parse`] finds wrong with the blob.
pub fn rust_module(blob: &[u8], origin: Origin<'_>) -> Result<String, Error> {
    let blob = Blob::parse(blob)?;
    let mut text = String::new();
    let done = write_module(&mut text, &blob, &origin);
    debug_assert!(done.is_ok(), "writing to a string doesn't fail");
    Ok(text)
}

fn write_module(out: &mut String, blob: &Blob<'_>, origin: &Origin<'_>) -> std::fmt::Result {
    let bytes = blob.bytes().len();
    write!(
        out,
        "// {name}: {sentence}.
// Made by a tool: make it again rather than change it.

/// Bytes at a multiple of 16, from where the NPU takes the command stream and the constants.
#[repr(C, align(16))]
pub struct Aligned<const N: usize>(pub [u8; N]);

/// The NPU it is for, as the blob's header has it.
pub const ACCEL: u32 = {word};
/// The arena that loading it takes, in bytes, at a multiple of 16.
pub const ARENA_BYTES: usize = {arena};
",
        name = origin.identifier(),
        sentence = origin.sentence(blob),
        word = blob.accel().word(),
        arena = blob.arena_bytes(),
    )?;
    for (label, spec, place) in tensors(blob) {
        writeln!(out, "\n/// A tensor, and where its bytes are.\npub mod {label} {{")?;
        writeln!(out, "    pub const NAME: &str = {:?};", spec.name)?;
        writeln!(out, "    pub const DTYPE: &str = \"{}\";", spec.dtype)?;
        writeln!(out, "    pub const SHAPE: [usize; {}] = {:?};", spec.shape.len(), spec.shape)?;
        writeln!(out, "    pub const BYTES: usize = {};", spec.bytes())?;
        if let (Some(scale), Some(zero_point)) = (spec.scale, spec.zero_point) {
            writeln!(out, "    /// real = SCALE * (code - ZERO_POINT)")?;
            writeln!(out, "    pub const SCALE: f32 = {scale:?};")?;
            writeln!(out, "    pub const ZERO_POINT: i32 = {zero_point};")?;
        }
        if let Some(place) = place {
            writeln!(out, "    pub const REGION: usize = {};", place.region)?;
            writeln!(out, "    pub const OFFSET: usize = {};", place.offset)?;
        }
        writeln!(out, "}}")?;
    }
    write!(
        out,
        "
/// The blob.
pub static NPUB: &[u8] = &BLOB.0;

#[rustfmt::skip]
static BLOB: Aligned<{bytes}> = Aligned([
{}]);
",
        array(blob.bytes())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::tests::sample;

    #[test]
    fn tensors_are_described() {
        let text = rust_module(&sample(), Origin::new("net")).unwrap();
        for line in [
            "pub const ARENA_BYTES: usize = 64;",
            "pub mod input_1 {",
            "    pub const NAME: &str = \"a \\\"b\\\" */ \\\\ ??/\\né\\01\";",
            "    pub const SHAPE: [usize; 4] = [1, 4, 4, 1];",
            "    pub const SHAPE: [usize; 0] = [];",
            "    pub const SCALE: f32 = 1e-20;",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} isn't in:\n{text}");
        }
    }
}
