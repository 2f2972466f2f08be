//! Type tables found in a binary: which operators a vendor's library accepts, without its source.
//!
//! ovxlib keeps one descriptor for each table, `{inputs, outputs, bytes per row, rows, pointer to the rows}`, and in a
//! position-independent file the pointer carries a relative relocation. So every such relocation is a candidate, and
//! the four words before it decide. On ovxlib 1.2.22's own operator sources, compiled for three machines, this rule found
//! each of the 107 tables that the compilers kept and nothing else.
//!
//! A table's bytes don't name it: several operators share tables. Names come from symbols, from code that passes the
//! descriptor and a string to the checker, and, as a hint only, from tables known by their hash. And a table in a
//! binary doesn't prove that anything reads it (see [`crate::checks`]).
//!
//! ```no_run
//! let bytes = std::fs::read("libovxlib.so")?;
//! let found = npukit_vip::recover::recover(&bytes, "libovxlib.so")?;
//! println!("{found}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aarch64;
mod find;
mod image;
mod names;
mod packed;
mod relocations;
mod render;
mod x86_64;

pub use packed::{AndroidEntry, PackedError, decode_android, decode_relr};

use crate::codes::Cell;
use crate::tables::{self, hex_sha256};
use crate::version::{Certainty, OvxlibVersion};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The bundle's schema.
pub const SCHEMA: &str = "npukit-vip-recovery/1";

/// Why a file can't be searched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// Not an ELF file, or its headers lead outside of it.
    #[error("not a readable ELF file: {0}")]
    Elf(String),
    /// Two loaded segments share addresses, so that an address means two things.
    #[error("the segments at {first:#x} and {second:#x} overlap")]
    SegmentsOverlap {
        /// Address of the first.
        first: u64,
        /// Address of the second.
        second: u64,
    },
    /// A loaded segment leaves the file.
    #[error(
        "the segment at {address:#x} claims {size:#x} bytes at offset {offset:#x}, the file has {length:#x}"
    )]
    Segment {
        /// Its address.
        address: u64,
        /// Its offset in the file.
        offset: u64,
        /// Its size in the file.
        size: u64,
        /// The file's length.
        length: u64,
    },
    /// Nothing is loaded: an object file or a stripped-down debug file.
    #[error("the file has no loaded segments: link it first")]
    NotLinked,
    /// A relocation table leaves the file.
    #[error("the {kind} table claims {size:#x} bytes at address {address:#x}, which isn't in the file")]
    Relocations {
        /// Which table.
        kind: &'static str,
        /// Its address.
        address: u64,
        /// Its size.
        size: u64,
    },
    /// A packed relocation table that can't be decoded.
    #[error("{kind}: {error}")]
    Packed {
        /// Which table.
        kind: &'static str,
        /// What is wrong with it.
        error: PackedError,
    },
    /// More candidates than any library has.
    #[error("more than {limit} {what}: not a library of operators")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// The evidence bundle.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovery {
    /// The bundle's schema.
    pub schema: &'static str,
    /// The file.
    pub file: FileIdentity,
    /// How many relocations of each kind were read.
    pub relocations: BTreeMap<&'static str, usize>,
    /// How candidates were found.
    pub method: Method,
    /// The tables, by address.
    pub tables: Vec<RecoveredTable>,
    /// Candidates that failed the rule late, after their first words had fitted, and why.
    pub rejected: BTreeMap<&'static str, usize>,
    /// What wasn't looked at or couldn't be told.
    pub unknowns: Vec<String>,
}

/// Which file it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileIdentity {
    /// Its name as the caller gave it.
    pub name: String,
    /// Its size.
    pub bytes: usize,
    /// Its SHA-256.
    pub sha256: String,
    /// 32 or 64.
    pub class: u8,
    /// The machine's name, or its number.
    pub machine: String,
    /// Whether it has a symbol table (beside the dynamic one).
    pub symbols: bool,
}

/// How candidates were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Through relative relocations.
    RelativeRelocations,
    /// By looking at every aligned word of the loaded data, because the file has no relative relocations.
    Scan,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveredTable {
    /// Address of the descriptor.
    pub descriptor_address: u64,
    /// Its offset in the file.
    pub descriptor_offset: u64,
    /// Address of the rows.
    pub rows_address: u64,
    /// Their offset in the file.
    pub rows_offset: u64,
    /// The relocation that led to it, or `scan`.
    pub found_by: &'static str,
    /// Inputs of a row.
    pub inputs: u32,
    /// Outputs of a row.
    pub outputs: u32,
    /// How many rows.
    pub row_count: u32,
    /// SHA-256 of the rows as little-endian words.
    pub sha256: String,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
    /// The operator's name, where symbols or code give exactly one.
    pub name: Option<String>,
    /// How sure the name is; a table without a name is unknown.
    pub name_certainty: Certainty,
    /// What speaks for which name.
    pub names: Vec<NameEvidence>,
    /// Tables of the built-in sets with the same bytes. They name the content and not the operator.
    pub same_bytes_as: Vec<KnownTable>,
}

/// Something that speaks for a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameEvidence {
    /// The name.
    pub name: String,
    /// How it was found.
    pub how: &'static str,
    /// The symbol, or the instruction that loads the name.
    pub detail: String,
    /// How sure it is.
    pub certainty: Certainty,
}

/// A built-in table with the same bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnownTable {
    /// Its operator.
    pub op: String,
    /// The ovxlib version of the set.
    pub ovxlib: OvxlibVersion,
    /// Whether it is the form of a build without `VX_TENSOR_STRIDE_X_BITS_SUPPORT`.
    pub without_x_bits: bool,
}

/// Searches a file.
///
/// # Errors
/// Headers, segments or relocation tables that lead outside of the file or contradict each other. A file without
/// tables is no error: the bundle's list is empty.
pub fn recover(bytes: &[u8], name: &str) -> Result<Recovery, RecoverError> {
    let image = image::Image::parse(bytes)?;
    let relocations = relocations::relative(&image)?;
    let mut unknowns = relocations.unknowns;
    let method = if relocations.list.is_empty() { Method::Scan } else { Method::RelativeRelocations };
    let mut rejected = BTreeMap::new();
    let found = match method {
        Method::RelativeRelocations => find::by_relocations(&image, &relocations.list, &mut rejected)?,
        Method::Scan => {
            unknowns.push("no relative relocations: tables were looked for at every aligned word, which position-independent files defeat".into());
            find::by_scan(&image, &mut rejected)?
        }
    };
    let names = names::all(&image, &found, &mut unknowns);
    let tables = found
        .into_iter()
        .zip(names)
        .map(|(table, evidence)| {
            let (name, name_certainty) = names::conclude(&evidence);
            RecoveredTable {
                descriptor_address: table.descriptor,
                descriptor_offset: table.descriptor_offset,
                rows_address: table.rows,
                rows_offset: table.rows_offset,
                found_by: table.found_by,
                inputs: table.inputs,
                outputs: table.outputs,
                row_count: table.row_count,
                same_bytes_as: known(&table.raw),
                sha256: hex_sha256(&table.raw),
                rows: table.cells,
                name,
                name_certainty,
                names: evidence,
            }
        })
        .collect();
    Ok(Recovery {
        schema: SCHEMA,
        file: FileIdentity {
            name: name.to_owned(),
            bytes: bytes.len(),
            sha256: hex_sha256(bytes),
            class: if image.is_64 { 64 } else { 32 },
            machine: image.machine_name(),
            symbols: image.has_symbol_table,
        },
        relocations: relocations.counts,
        method,
        tables,
        rejected,
        unknowns,
    })
}

/// Built-in tables by their bytes, made once: the second form of every table takes a while.
fn known(raw: &[u8]) -> Vec<KnownTable> {
    static BY_BYTES: LazyLock<BTreeMap<Vec<u8>, Vec<KnownTable>>> = LazyLock::new(|| {
        let mut map: BTreeMap<Vec<u8>, Vec<KnownTable>> = BTreeMap::new();
        for set in [tables::newest(), tables::last_with_fcl_table()] {
            for table in &set.tables {
                let (plain, without) = (table.raw(), table.raw_without_x_bits());
                let known =
                    |without_x_bits| KnownTable { op: table.op.clone(), ovxlib: set.ovxlib, without_x_bits };
                if without != plain {
                    map.entry(without).or_default().push(known(true));
                }
                map.entry(plain).or_default().push(known(false));
            }
        }
        map
    });
    BY_BYTES.get(raw).cloned().unwrap_or_default()
}
