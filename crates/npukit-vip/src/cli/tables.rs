//! `tables show`, `tables export`, `tables recover`.

use super::{Answer, Exit, finish, in_file, print, read, to_json, write_out};
use crate::checks;
use crate::recover;
use crate::tables::{self, Table, TableSet};
use crate::version::{Certainty, OvxlibVersion};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The data types that ovxlib's operators accept: show them, export them, recover them from a binary.
#[derive(clap::Args, Clone, Debug)]
pub struct TablesArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: TablesCommand,
}

/// The subcommands of `tables`.
#[derive(clap::Subcommand, Clone, Debug)]
pub enum TablesCommand {
    /// List the operators, or show one operator's table with hardware generations and where it is from.
    Show(Select),
    /// Write tables as text, JSON or the raw bytes that a binary holds.
    Export {
        /// Which tables.
        #[command(flatten)]
        select: Select,
        /// The form.
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
        /// The file to write; standard output if absent.
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// With `raw`: as builds without VX_TENSOR_STRIDE_X_BITS_SUPPORT hold it (I4 is 0x12, U4 0x13).
        #[arg(long)]
        without_x_bits: bool,
    },
    /// Find the tables in an ELF library and write what was found with its evidence.
    Recover {
        /// The library.
        library: PathBuf,
        /// Write the evidence bundle (JSON) to this file.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
}

/// Which tables.
#[derive(clap::Args, Clone, Debug)]
pub struct Select {
    /// The operator, by ovxlib's name or by the short ones of `admit`.
    #[arg(long)]
    pub op: Option<String>,
    /// The ovxlib version.
    #[arg(long, default_value_t = OvxlibVersion::NEWEST)]
    pub ovxlib: OvxlibVersion,
}

/// The form of an export.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The rows as text.
    Text,
    /// One JSON object.
    Json,
    /// The rows as little-endian words, one table.
    Raw,
}

#[derive(Serialize)]
struct Shown<'a> {
    ovxlib_asked: OvxlibVersion,
    tables_of: OvxlibVersion,
    source: &'a str,
    licence: &'a str,
    revision: &'a str,
    tables: Vec<ShownTable<'a>>,
}

#[derive(Serialize)]
struct ShownTable<'a> {
    certainty: Certainty,
    sha256: String,
    unique_rows: usize,
    /// Operators whose check reads the table in the version asked about.
    read_by: Vec<&'a str>,
    #[serde(flatten)]
    table: &'a Table,
}

impl TablesArgs {
    /// Runs the command.
    pub fn run(&self, json: bool) -> Exit {
        let answer = match &self.command {
            TablesCommand::Show(select) => show(select, json),
            TablesCommand::Export { select, format, output, without_x_bits } => {
                let format = if json { Format::Json } else { *format };
                export(select, format, output.as_deref(), *without_x_bits)
            }
            TablesCommand::Recover { library, output } => recover(library, output.as_deref(), json),
        };
        finish(answer, json)
    }
}

fn select(select: &Select) -> Result<Shown<'static>, String> {
    let set: &'static TableSet = tables::for_version(select.ovxlib).ok_or_else(|| {
        format!("ovxlib {} was never published; 1.1.28 to 1.1.88 and 1.2.2 on were", select.ovxlib)
    })?;
    let checks = checks::for_version(select.ovxlib).map(|(checks, _)| checks);
    let wanted: Vec<&Table> = match &select.op {
        None => set.tables.iter().collect(),
        Some(op) => by_operator(set, checks, op)?,
    };
    let tables = wanted
        .into_iter()
        .map(|table| ShownTable {
            certainty: set.certainty(table, select.ovxlib),
            sha256: table.sha256(),
            unique_rows: table.unique_rows(),
            read_by: checks.map_or_else(Vec::new, |checks| checks.readers_of(&table.op)),
            table,
        })
        .collect();
    Ok(Shown {
        ovxlib_asked: select.ovxlib,
        tables_of: set.ovxlib,
        source: &set.source,
        licence: &set.licence,
        revision: &set.revision,
        tables,
    })
}

/// A table by its own name, or the one that the named operator's check reads.
fn by_operator(
    set: &'static TableSet,
    checks: Option<&checks::CheckSet>,
    op: &str,
) -> Result<Vec<&'static Table>, String> {
    // `fc` means FCL's table, also where nothing reads it any more.
    let name = match crate::typed::operator_name(op) {
        Ok((name, _)) if name == "FCL2" => "FCL".to_owned(),
        Ok((name, _)) => name,
        Err(_) => op.to_ascii_uppercase(),
    };
    let own = set.all(&name);
    if !own.is_empty() {
        return Ok(own);
    }
    let read: Vec<&Table> = match checks {
        Some(checks) => {
            set.tables.iter().filter(|table| checks.readers_of(&table.op).contains(&name.as_str())).collect()
        }
        None => Vec::new(),
    };
    if read.is_empty() {
        Err(format!("no table is called {name}, and no check of {name} reads one in ovxlib {}", set.ovxlib))
    } else {
        Ok(read)
    }
}

fn show(which: &Select, json: bool) -> Answer {
    let shown = select(which)?;
    if json {
        write_out((to_json(&shown)? + "\n").as_bytes())?;
        return Ok(Exit::Yes);
    }
    let text = if which.op.is_some() { tables_text(&shown) } else { list_text(&shown) };
    write_out(text.as_bytes())?;
    Ok(Exit::Yes)
}

// Writing to a String can't fail; the results are dropped for that reason.
fn list_text(shown: &Shown<'_>) -> String {
    let mut text = head(shown);
    for shown in &shown.tables {
        let table = shown.table;
        let readers = if shown.read_by.is_empty() { "nothing".to_owned() } else { shown.read_by.join(" ") };
        let _ = writeln!(
            text,
            "{:<32}{:>4} rows of {}+{}  {:<8} read by {readers}",
            table.op,
            table.rows.len(),
            table.inputs,
            table.outputs,
            shown.certainty.to_string()
        );
    }
    text
}

fn head(shown: &Shown<'_>) -> String {
    format!(
        "ovxlib {} (tables of {}), {} {}, {}\n",
        shown.ovxlib_asked, shown.tables_of, shown.source, shown.revision, shown.licence
    )
}

fn tables_text(shown: &Shown<'_>) -> String {
    let mut text = head(shown);
    for shown_table in &shown.tables {
        let table = shown_table.table;
        let _ = writeln!(
            text,
            "\n{}: {} rows ({} different) of {} inputs and {} outputs",
            table.op,
            table.rows.len(),
            shown_table.unique_rows,
            table.inputs,
            table.outputs
        );
        let _ = writeln!(
            text,
            "  {}:{}, unchanged since ovxlib {}, for {}: {}",
            table.file, table.line, table.since, shown.ovxlib_asked, shown_table.certainty
        );
        let _ = writeln!(text, "  sha256 {}", shown_table.sha256);
        match shown_table.read_by.as_slice() {
            [] => text.push_str("  no check reads it in this version: it decides nothing\n"),
            readers => {
                let _ = writeln!(text, "  read by {}", readers.join(", "));
            }
        }
        let mut label = None;
        for (index, row) in table.rows.iter().enumerate() {
            if row.hw_generation != label {
                label.clone_from(&row.hw_generation);
                let _ = writeln!(text, "  hardware {} or newer:", label.as_deref().unwrap_or("any"));
            }
            let cells: Vec<String> = row.cells.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "  {index:>4}  {}", cells.join(" / "));
        }
    }
    text
}

fn export(which: &Select, format: Format, output: Option<&Path>, without_x_bits: bool) -> Answer {
    let shown = select(which)?;
    let bytes = match format {
        Format::Text => tables_text(&shown).into_bytes(),
        Format::Json => (to_json(&shown)? + "\n").into_bytes(),
        Format::Raw => match shown.tables.as_slice() {
            [one] if without_x_bits => one.table.raw_without_x_bits(),
            [one] => one.table.raw(),
            several => {
                return Err(format!(
                    "raw is for one table, {} are chosen: name one with --op",
                    several.len()
                ));
            }
        },
    };
    match output {
        Some(path) => std::fs::write(path, bytes).map_err(in_file(path))?,
        None => write_out(&bytes)?,
    }
    Ok(Exit::Yes)
}

fn recover(library: &Path, output: Option<&Path>, json: bool) -> Answer {
    let bytes = read(library)?;
    let name = library.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let found = recover::recover(&bytes, &name).map_err(in_file(library))?;
    if let Some(path) = output {
        std::fs::write(path, to_json(&found)? + "\n").map_err(in_file(path))?;
    }
    print(&found, json)?;
    // None found is an answer: the library has no such tables.
    Ok(Exit::yes_if(!found.tables.is_empty()))
}
