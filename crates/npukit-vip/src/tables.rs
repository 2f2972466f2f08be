//! The tables of data types that ovxlib's operators accept, for the two revisions of ovxlib that the crate carries.
//!
//! ```
//! use npukit_vip::tables;
//!
//! let set = tables::newest();
//! let conv = set.get("CONV2D").unwrap();
//! assert_eq!(conv.rows.len(), 76);
//! assert_eq!(conv.sha256(), "e9d4cf806b62e0719b26b1e2bd6ec128887324bc8e6bef2ad61c899e1412b790");
//! ```

use crate::codes::{Cell, VxType};
use crate::version::{Certainty, OvxlibVersion};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// All tables of one ovxlib revision.
#[derive(Clone, Debug, Serialize)]
pub struct TableSet {
    /// The ovxlib version of the revision.
    pub ovxlib: OvxlibVersion,
    /// The public repository the tables are from.
    pub source: String,
    /// Its licence.
    pub licence: String,
    /// The git commit.
    pub revision: String,
    /// SHA-256 of the raw export from which the data file was made.
    pub origin_sha256: String,
    /// The tables, in the order of file names and lines.
    pub tables: Vec<Table>,
}

/// One operator's table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// The operator named by the declaration. Not unique: two operators declare two tables each.
    pub op: String,
    /// How many inputs a row describes.
    pub inputs: usize,
    /// How many outputs a row describes, after the inputs.
    pub outputs: usize,
    /// The source file in the repository.
    pub file: String,
    /// The line of the declaration.
    pub line: u32,
    /// The file's git blob.
    pub blob: String,
    /// The commit that last changed the file.
    pub last_change: String,
    /// That commit's date.
    pub last_change_date: String,
    /// The first published ovxlib version from which the rows stood unchanged up to this revision.
    pub since: OvxlibVersion,
    /// The rows, in order. The first that matches wins.
    pub rows: Vec<Row>,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Type and quantisation of each tensor, inputs first.
    pub cells: Vec<Cell>,
    /// The hardware generation that a comment in the source names for this row and those after it. ovxlib itself
    /// doesn't test the hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hw_generation: Option<String>,
}

impl Table {
    /// The rows as a binary holds them: little-endian 32-bit words, row after row.
    pub fn raw(&self) -> Vec<u8> {
        self.rows.iter().flat_map(|row| row.cells.iter().flat_map(|cell| cell.0.to_le_bytes())).collect()
    }

    /// SHA-256 of [`Table::raw`] in hex.
    pub fn sha256(&self) -> String {
        hex_sha256(&self.raw())
    }

    /// [`Table::raw`] as a build without `VX_TENSOR_STRIDE_X_BITS_SUPPORT` holds it, where I4 and U4 are 0x12 and 0x13.
    pub fn raw_without_x_bits(&self) -> Vec<u8> {
        let plain = |cell: Cell| match cell.parts() {
            Some((VxType::I4, quant)) => Cell::new(VxType(0x12), quant),
            Some((VxType::U4, quant)) => Cell::new(VxType(0x13), quant),
            _ => cell,
        };
        self.rows
            .iter()
            .flat_map(|row| row.cells.iter().flat_map(|cell| plain(*cell).0.to_le_bytes()))
            .collect()
    }

    /// How many rows differ from all rows before them.
    pub fn unique_rows(&self) -> usize {
        let mut seen: Vec<&[Cell]> = self.rows.iter().map(|row| row.cells.as_slice()).collect();
        seen.sort();
        seen.dedup();
        seen.len()
    }

    /// The file's name without its folder.
    pub fn file_name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

impl TableSet {
    /// The first table that this operator's name declares.
    pub fn get(&self, op: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.op.eq_ignore_ascii_case(op))
    }

    /// Every table that this operator's name declares.
    pub fn all<'a>(&'a self, op: &str) -> Vec<&'a Table> {
        self.tables.iter().filter(|table| table.op.eq_ignore_ascii_case(op)).collect()
    }

    /// The table of this name in this file; where the name is unique, the file doesn't matter.
    pub fn get_in_file(&self, op: &str, file_name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.op == op && table.file_name() == file_name).or_else(|| {
            match self.all(op).as_slice() {
                [only] => Some(*only),
                _ => None,
            }
        })
    }

    /// Whether a table of this set speaks for the given ovxlib version.
    pub fn certainty(&self, table: &Table, version: OvxlibVersion) -> Certainty {
        if version < table.since {
            Certainty::Unknown
        } else if version <= self.ovxlib {
            Certainty::Known
        } else {
            Certainty::Assumed
        }
    }
}

/// SHA-256 of some bytes, in hex.
pub fn hex_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tables of the newest revision read.
pub fn newest() -> &'static TableSet {
    static SET: LazyLock<TableSet> = LazyLock::new(|| builtin(include_str!("../data/ovxlib-1.2.22.tables")));
    &SET
}

/// The tables of the last revision whose fully-connected check still reads one.
pub fn last_with_fcl_table() -> &'static TableSet {
    static SET: LazyLock<TableSet> = LazyLock::new(|| builtin(include_str!("../data/ovxlib-1.1.88.tables")));
    &SET
}

/// The set to look in for an ovxlib version. None between 1.1.88 and 1.2.2, where nothing was published, and before
/// 1.1.28. Each table then says by [`TableSet::certainty`] whether it speaks for the version.
pub fn for_version(version: OvxlibVersion) -> Option<&'static TableSet> {
    if version >= OvxlibVersion::FCL_TABLE_UNREAD {
        Some(newest())
    } else if (OvxlibVersion::OLDEST..=OvxlibVersion::LAST_WITH_FCL_TABLE).contains(&version) {
        Some(last_with_fcl_table())
    } else {
        None
    }
}

/// A data file that can't be read: the line, counted from one, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct TableFileError {
    /// The line, from one.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

fn builtin(text: &str) -> TableSet {
    parse(text).expect("the built-in data files are parsed by a test")
}

/// Reads a table file (the text form of `data/ovxlib-*.tables`).
///
/// # Errors
/// The first line that doesn't fit the form, a row whose cells don't fit its table's declaration, or a table whose
/// rows don't hash to the SHA-256 beside them.
pub fn parse(text: &str) -> Result<TableSet, TableFileError> {
    let mut set = TableSet {
        ovxlib: OvxlibVersion(0, 0, 0),
        source: String::new(),
        licence: String::new(),
        revision: String::new(),
        origin_sha256: String::new(),
        tables: Vec::new(),
    };
    let mut folder = "";
    let mut generation: Option<String> = None;
    let mut wanted_hash = String::new();
    let mut start = 0;
    for (index, line) in text.lines().enumerate() {
        let fail = |what: String| TableFileError { line: index + 1, what };
        if index == 0 {
            if line != "npukit-ovxlib-tables 1" {
                return Err(fail(format!("`{line}` isn't the first line of a table file")));
            }
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["source", value] => set.source = (*value).to_owned(),
            ["licence", value] => set.licence = (*value).to_owned(),
            ["revision", value] => set.revision = (*value).to_owned(),
            ["origin-sha256", value] => set.origin_sha256 = (*value).to_owned(),
            ["folder", value] => folder = value,
            ["ovxlib", value] => set.ovxlib = value.parse().map_err(|e| fail(format!("{e}")))?,
            ["table", op, inputs, outputs, place] => {
                finish(set.tables.last(), &wanted_hash, start)?;
                let count = |text: &str| text.parse::<usize>().ok().filter(|n| *n <= 16);
                let (file, line) = place.rsplit_once(':').ok_or_else(|| fail("no line number".into()))?;
                set.tables.push(Table {
                    op: (*op).to_owned(),
                    inputs: count(inputs).ok_or_else(|| fail("bad input count".into()))?,
                    outputs: count(outputs).ok_or_else(|| fail("bad output count".into()))?,
                    file: format!("{folder}{file}"),
                    line: line.parse().map_err(|_| fail("bad line number".into()))?,
                    blob: String::new(),
                    last_change: String::new(),
                    last_change_date: String::new(),
                    since: OvxlibVersion(0, 0, 0),
                    rows: Vec::new(),
                });
                generation = None;
                wanted_hash.clear();
                start = index + 1;
            }
            [first, ..] => {
                let table =
                    set.tables.last_mut().ok_or_else(|| fail(format!("`{first}` before any table")))?;
                match words.as_slice() {
                    ["blob", blob, "change", commit, date] => {
                        table.blob = (*blob).to_owned();
                        table.last_change = (*commit).to_owned();
                        table.last_change_date = (*date).to_owned();
                    }
                    ["since", version] => table.since = version.parse().map_err(|e| fail(format!("{e}")))?,
                    ["sha256", hash] => wanted_hash = (*hash).to_owned(),
                    ["hw", label] => generation = Some((*label).to_owned()),
                    rows => {
                        for row in rows {
                            let cells: Result<Vec<Cell>, _> = row.split('/').map(str::parse).collect();
                            let cells = cells.map_err(|e| fail(format!("{e}")))?;
                            if cells.len() != table.inputs + table.outputs {
                                return Err(fail(format!("row `{row}` has {} cells", cells.len())));
                            }
                            table.rows.push(Row { cells, hw_generation: generation.clone() });
                        }
                    }
                }
            }
            [] => {}
        }
    }
    finish(set.tables.last(), &wanted_hash, start)?;
    Ok(set)
}

fn finish(table: Option<&Table>, wanted: &str, line: usize) -> Result<(), TableFileError> {
    match table {
        Some(table) if table.sha256() != wanted => Err(TableFileError {
            line,
            what: format!("{} hashes to {}, not {wanted}", table.op, table.sha256()),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_are_whole() {
        let counts =
            |set: &TableSet| (set.tables.len(), set.tables.iter().map(|t| t.rows.len()).sum::<usize>());
        assert_eq!(counts(newest()), (110, 2990));
        assert_eq!(counts(last_with_fcl_table()), (108, 2864));
        for set in [newest(), last_with_fcl_table()] {
            assert_eq!(set.licence, "MIT");
            assert_eq!(set.revision.len(), 40);
            assert_eq!(set.origin_sha256.len(), 64);
            for table in &set.tables {
                assert!(!table.rows.is_empty() && table.blob.len() == 40 && table.last_change.len() == 40);
                assert!(table.since >= OvxlibVersion::OLDEST && table.since <= set.ovxlib, "{}", table.op);
            }
        }
    }

    /// The two tables that a device's `libovxlib.so` was seen to hold, by their SHA-256.
    #[test]
    fn raw_exports_hash_as_in_the_devices_library() {
        for set in [newest(), last_with_fcl_table()] {
            let conv = set.get("conv2d").unwrap();
            let fcl = set.get("FCL").unwrap();
            assert_eq!((conv.rows.len(), conv.unique_rows(), conv.raw().len()), (76, 70, 608));
            assert_eq!((fcl.rows.len(), fcl.unique_rows(), fcl.raw().len()), (69, 61, 552));
            assert_eq!(conv.sha256(), "e9d4cf806b62e0719b26b1e2bd6ec128887324bc8e6bef2ad61c899e1412b790");
            assert_eq!(fcl.sha256(), "d1149e36ddc8e57d61eb70c50085cacc40b81ee376157646cac2395715e8f11e");
            assert_eq!(set.get("CONV1D").unwrap().sha256(), fcl.sha256());
            assert_eq!(
                [conv, fcl].map(|table| hex_sha256(&table.raw_without_x_bits())),
                [
                    "a6ce8be8b7a2512739cb8f47135a05135504e9e4eca7745871e5a6ebf8a9d613",
                    "77b6f1bedadd19d45769030cc7b913b032d8b1444de2e6e98dc90ff3452052f0"
                ]
            );
        }
    }

    #[test]
    fn hardware_generations_start_where_the_comments_stand() {
        let starts = |op: &str| {
            let rows = &newest().get(op).unwrap().rows;
            let first = |label: &str| rows.iter().position(|r| r.hw_generation.as_deref() == Some(label));
            (first("9.0.1"), first("9.1.1"), first("9.2"))
        };
        assert_eq!(starts("CONV2D"), (Some(10), Some(23), Some(54)));
        assert_eq!(starts("FCL"), (Some(8), Some(16), Some(47)));
        assert_eq!(newest().get("SOFTMAX").unwrap().rows.iter().find(|r| r.hw_generation.is_some()), None);
    }

    #[test]
    fn rows_say_for_which_versions_they_speak() {
        let old = last_with_fcl_table();
        let conv = old.get("CONV2D").unwrap();
        assert_eq!(conv.since, OvxlibVersion(1, 1, 74));
        assert_eq!(old.certainty(conv, OvxlibVersion(1, 1, 57)), Certainty::Unknown);
        assert_eq!(old.certainty(conv, OvxlibVersion(1, 1, 84)), Certainty::Known);
        let conv = newest().get("CONV2D").unwrap();
        assert_eq!(newest().certainty(conv, OvxlibVersion(1, 3, 0)), Certainty::Assumed);
        assert!(for_version(OvxlibVersion(1, 1, 90)).is_none());
        assert!(for_version(OvxlibVersion(1, 0, 0)).is_none());
    }

    #[test]
    fn a_changed_row_does_not_pass() {
        let text = include_str!("../data/ovxlib-1.1.88.tables").replacen("f32/f32", "f32/f16", 1);
        assert!(parse(&text).unwrap_err().what.contains("hashes to"));
        assert!(parse("table X 1 1 a:1").is_err());
        assert!(parse("npukit-ovxlib-tables 1\ntable X 1 1 a:1\nf32").unwrap_err().what.contains("cells"));
        assert!(parse("npukit-ovxlib-tables 1\nsince 1.1.1").is_err());
    }
}
