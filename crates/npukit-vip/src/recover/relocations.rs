//! The relative relocations of a file, from every kind of table that the dynamic section names.

use super::RecoverError;
use super::image::Image;
use super::packed::{self, PackedError};
use object::elf;
use std::collections::BTreeMap;

/// A place in the image whose word points to `target` when the file is loaded at its own addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relative {
    pub place: u64,
    pub target: u64,
    pub kind: &'static str,
}

#[derive(Default)]
pub(super) struct Relocations {
    /// By place, each once.
    pub list: Vec<Relative>,
    pub counts: BTreeMap<&'static str, usize>,
    pub unknowns: Vec<String>,
}

/// A table's address and size tags. Android's are in no standard: bionic's `linker/linker.h`.
const TABLES: [(&str, u64, u64); 6] = [
    ("REL", elf::DT_REL as u64, elf::DT_RELSZ as u64),
    ("RELA", elf::DT_RELA as u64, elf::DT_RELASZ as u64),
    ("RELR", 36, 35),
    ("ANDROID_REL", 0x6000_000F, 0x6000_0010),
    ("ANDROID_RELA", 0x6000_0011, 0x6000_0012),
    ("ANDROID_RELR", 0x6FFF_E000, 0x6FFF_E001),
];

/// The number of the relative relocation of a machine.
fn relative_type(machine: u16) -> Option<u32> {
    Some(match machine {
        elf::EM_AARCH64 => elf::R_AARCH64_RELATIVE,
        elf::EM_ARM => elf::R_ARM_RELATIVE,
        elf::EM_X86_64 => elf::R_X86_64_RELATIVE,
        _ => return None,
    })
}

pub(super) fn relative(image: &Image<'_>) -> Result<Relocations, RecoverError> {
    let mut found = Relocations::default();
    let Some(relative) = relative_type(image.machine) else {
        found.unknowns.push(format!(
            "{}: the number of its relative relocation isn't known here",
            image.machine_name()
        ));
        return Ok(found);
    };
    let mut places: BTreeMap<u64, Relative> = BTreeMap::new();
    for (kind, address_tag, size_tag) in TABLES {
        let (Some(address), Some(size)) = (image.dynamic.get(&address_tag), image.dynamic.get(&size_tag))
        else {
            continue;
        };
        if *size == 0 {
            continue;
        }
        let table = image.slice(*address, *size).ok_or(RecoverError::Relocations {
            kind,
            address: *address,
            size: *size,
        })?;
        let entries = entries(image, kind, table).map_err(|error| RecoverError::Packed { kind, error })?;
        let mut other = 0;
        let mut count = 0;
        for entry in entries {
            if entry.number.is_some_and(|number| number != relative) {
                other += 1;
                continue;
            }
            count += 1;
            // Without an addend the address stands in the word itself.
            let target = match entry.addend {
                Some(addend) => Some(addend),
                None => image.pointer(entry.place),
            };
            if let Some(target) = target {
                places.entry(entry.place).or_insert(Relative { place: entry.place, target, kind });
            }
        }
        found.counts.insert(kind, count);
        if other > 0 {
            *found.counts.entry("other").or_default() += other;
        }
    }
    found.list = places.into_values().collect();
    Ok(found)
}

struct Entry {
    place: u64,
    /// The relocation's number; none in RELR, which holds relative ones alone.
    number: Option<u32>,
    addend: Option<u64>,
}

fn entries(image: &Image<'_>, kind: &'static str, table: &[u8]) -> Result<Vec<Entry>, PackedError> {
    let width = if image.is_64 { 8 } else { 4 };
    let number = |info: u64| if image.is_64 { info as u32 } else { (info & 0xFF) as u32 };
    let word =
        |bytes: &[u8]| if image.is_64 { Image::word64(bytes) } else { u64::from(Image::word32(bytes)) };
    let plain = |with_addend: bool| -> Vec<Entry> {
        let size = width * if with_addend { 3 } else { 2 };
        table
            .chunks_exact(size)
            .map(|entry| Entry {
                place: word(entry),
                number: Some(number(word(entry.get(width..).unwrap_or(&[])))),
                addend: with_addend.then(|| word(entry.get(2 * width..).unwrap_or(&[]))),
            })
            .collect()
    };
    Ok(match kind {
        "REL" => plain(false),
        "RELA" => plain(true),
        "RELR" | "ANDROID_RELR" => {
            if !table.len().is_multiple_of(width) {
                return Err(PackedError::Words(table.len()));
            }
            packed::decode_relr(table.chunks_exact(width).map(word), width as u64)?
                .into_iter()
                .map(|place| Entry { place, number: None, addend: None })
                .collect()
        }
        _ => {
            let with_addend = kind == "ANDROID_RELA";
            // Each relocation patches a word of its own in the file's image.
            let limit = image.bytes.len() as u64;
            packed::decode_android(table, limit)?
                .into_iter()
                .map(|(place, info, addend)| Entry {
                    place,
                    number: Some(number(info)),
                    addend: with_addend.then_some(addend as u64),
                })
                .collect()
        }
    })
}
