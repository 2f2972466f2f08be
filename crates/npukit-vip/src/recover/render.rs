//! The recovery's evidence as text.

use super::{Method, Recovery};
use std::fmt;

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        writeln!(
            f,
            "{}: ELF{} {}, {} bytes, sha256 {}",
            file.name, file.class, file.machine, file.bytes, file.sha256
        )?;
        let counts: Vec<String> =
            self.relocations.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let method = match self.method {
            Method::RelativeRelocations => "found through relocations",
            Method::Scan => "looked for at every aligned word",
        };
        writeln!(
            f,
            "  relocations: {}; {method}",
            if counts.is_empty() { "none".into() } else { counts.join(", ") }
        )?;
        if self.tables.is_empty() {
            writeln!(f, "  no type tables")?;
        }
        for table in &self.tables {
            writeln!(
                f,
                "  {} [{}]: {} rows of {}+{}, descriptor {:#x} (file {:#x}), rows {:#x} (file {:#x}), by {}",
                table.name.as_deref().unwrap_or("unnamed"),
                table.name_certainty,
                table.row_count,
                table.inputs,
                table.outputs,
                table.descriptor_address,
                table.descriptor_offset,
                table.rows_address,
                table.rows_offset,
                table.found_by
            )?;
            writeln!(f, "    sha256 {}", table.sha256)?;
            for entry in &table.names {
                writeln!(
                    f,
                    "    name {} [{}]: {}, {}",
                    entry.name, entry.certainty, entry.how, entry.detail
                )?;
            }
            if !table.same_bytes_as.is_empty() {
                let same: Vec<String> = table
                    .same_bytes_as
                    .iter()
                    .map(|known| {
                        format!(
                            "{} of {}{}",
                            known.op,
                            known.ovxlib,
                            if known.without_x_bits { " (without x-bits)" } else { "" }
                        )
                    })
                    .collect();
                writeln!(f, "    same bytes as {}", same.join(", "))?;
            }
        }
        for (why, count) in &self.rejected {
            writeln!(f, "  rejected: {count} ({why})")?;
        }
        for unknown in &self.unknowns {
            writeln!(f, "  note: {unknown}")?;
        }
        Ok(())
    }
}
