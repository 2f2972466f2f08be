//! A blob as a C header that also works in C++.

use std::fmt::Write;

use npub::{Blob, DType, Error};

use super::{Origin, array, tensors};

/// A header with the blob and descriptions of its tensors.
///
/// The bytes are defined only where `NAME_IMPLEMENTATION` is, so that a program has them once however many of its files
/// include the header.
///
/// # Errors
/// What [`Blob::parse`] finds wrong with the blob.
pub fn c_header(blob: &[u8], origin: Origin<'_>) -> Result<String, Error> {
    let blob = Blob::parse(blob)?;
    let name = origin.identifier();
    let macros = name.to_uppercase();
    let mut text = String::new();
    let out = &mut text;
    let done = write_header(out, &blob, &name, &macros, &origin.sentence(&blob));
    debug_assert!(done.is_ok(), "writing to a string doesn't fail");
    Ok(text)
}

fn write_header(
    out: &mut String,
    blob: &Blob<'_>,
    name: &str,
    macros: &str,
    sentence: &str,
) -> std::fmt::Result {
    let bytes = blob.bytes().len();
    write!(
        out,
        "/*
 * {name}: {sentence}.
 * Made by a tool: make it again rather than change it.
 *
 * In exactly one file of the program, before the others' plain #include:
 *
 *     #define {macros}_IMPLEMENTATION
 *     #include \"{name}.h\"
 */
#ifndef {macros}_NPUB_H
#define {macros}_NPUB_H

#include <stdint.h>

/* The blob's length in bytes. */
#define {macros}_NPUB_BYTES {bytes}u
/* The arena that loading it takes, in bytes, at a multiple of 16. */
#define {macros}_ARENA_BYTES {arena}u
/* The NPU it is for, {accel}, as the blob's header has it. */
#define {macros}_ACCEL {word}u
",
        arena = blob.arena_bytes(),
        accel = blob.accel(),
        word = blob.accel().word(),
    )?;
    let tensors = tensors(blob);
    for role in ["input", "output", "state"] {
        let count = tensors.iter().filter(|(label, ..)| label.starts_with(role)).count();
        writeln!(out, "#define {macros}_{}S {count}", role.to_uppercase())?;
    }
    for (label, spec, place) in &tensors {
        let prefix = format!("{macros}_{}", label.to_uppercase());
        writeln!(out, "\n#define {prefix}_NAME \"{}\"", escaped(&spec.name))?;
        writeln!(out, "#define {prefix}_TYPE {}", c_type(spec.dtype))?;
        writeln!(out, "#define {prefix}_RANK {}", spec.shape.len())?;
        let axes: Vec<String> = spec.shape.iter().map(ToString::to_string).collect();
        if !axes.is_empty() {
            writeln!(out, "#define {prefix}_SHAPE {{{}}}", axes.join(", "))?;
        }
        writeln!(out, "#define {prefix}_BYTES {}u", spec.bytes())?;
        if let (Some(scale), Some(zero_point)) = (spec.scale, spec.zero_point) {
            writeln!(out, "/* real = scale * (code - zero point) */")?;
            writeln!(out, "#define {prefix}_SCALE {scale:?}f")?;
            writeln!(out, "#define {prefix}_ZERO_POINT ({zero_point})")?;
        }
        if let Some(place) = place {
            writeln!(out, "#define {prefix}_REGION {}u", place.region)?;
            writeln!(out, "#define {prefix}_OFFSET {}u", place.offset)?;
        }
    }
    write!(
        out,
        "
#ifdef __cplusplus
extern \"C\" {{
#endif

extern const uint8_t {name}_npub[{macros}_NPUB_BYTES];

#ifdef {macros}_IMPLEMENTATION
/* The NPU takes the command stream and the constants from here, at multiples of 16. */
#if defined(__cplusplus)
alignas(16)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
alignas(16)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Alignas(16)
#else
__attribute__((aligned(16)))
#endif
const uint8_t {name}_npub[{macros}_NPUB_BYTES] = {{
{}}};
#endif

#ifdef __cplusplus
}}
#endif

#endif
",
        array(blob.bytes())
    )
}

/// Text inside a string literal. Octal escapes end after three digits, so nothing behind one joins it; a question mark is
/// escaped because two begin a trigraph.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => escaped.extend(['\\', byte.into()]),
            b' '..=b'~' => escaped.push(byte.into()),
            _ => escaped.push_str(&format!("\\{byte:03o}")),
        }
    }
    escaped
}

fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::Int8 => "int8_t",
        DType::UInt8 | DType::Bool => "uint8_t",
        DType::Int16 => "int16_t",
        DType::UInt16 => "uint16_t",
        DType::Int32 => "int32_t",
        DType::UInt32 => "uint32_t",
        DType::Int64 => "int64_t",
        DType::UInt64 => "uint64_t",
        DType::Float32 => "float",
        DType::Float64 => "double",
        // C has no type for the rest; 16-bit floats are carried as their bits.
        _ => "uint16_t",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::tests::sample;

    #[test]
    fn tensors_are_described() {
        let text = c_header(&sample(), Origin::new("My net")).unwrap();
        for line in [
            "#define MY_NET_INPUTS 2",
            "#define MY_NET_OUTPUTS 1",
            "#define MY_NET_STATES 0",
            "#define MY_NET_ACCEL 256u",
            "#define MY_NET_INPUT_0_NAME \"a \\\"b\\\" */ \\\\ \\?\\?/\\012\\303\\251\\0001\"",
            "#define MY_NET_INPUT_0_SHAPE {1, 4, 4, 1}",
            "#define MY_NET_INPUT_0_ZERO_POINT (-128)",
            "#define MY_NET_INPUT_1_TYPE int32_t",
            "#define MY_NET_OUTPUT_0_SCALE 1e-20f",
            "#define MY_NET_OUTPUT_0_OFFSET 32u",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} isn't in:\n{text}");
        }
    }

    #[test]
    fn damaged_blobs_are_not_printed() {
        let mut blob = sample();
        blob[40] ^= 1;
        assert!(c_header(&blob, Origin::new("x")).is_err());
    }
}
