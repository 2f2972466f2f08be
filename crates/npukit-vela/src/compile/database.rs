//! Vela's debug database: which layer each command belongs to, and what Vela calls it.
//!
//! It is an XML file with tables of comma-separated values (Vela 5.2.0, `--enable-debug-db`). Columns are found by their names,
//! and what isn't there is left out: the database explains, nothing depends on it.

use std::collections::BTreeMap;

use super::Compiled;
use super::summary::fields;

/// The end of such a file's name.
const FILE_ENDING: &str = "_debug.xml";

/// Vela's argument that makes it write one.
pub const DEBUG_DATABASE_ARGUMENT: &str = "--enable-debug-db";

/// A layer as Vela scheduled it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugLayer {
    /// Vela's number.
    pub id: u32,
    /// What it does, in Vela's words.
    pub operator: String,
    /// The name of the tensor that it computes.
    pub name: String,
    /// Vela's own estimate of its cycles.
    pub cycles: u64,
}

/// The tables that tell of layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugDatabase {
    layers: BTreeMap<u32, DebugLayer>,
    /// By the offset of an operation in the command stream.
    queue: BTreeMap<usize, u32>,
}

impl DebugDatabase {
    /// The one that a compilation left, if it was asked for by [`DEBUG_DATABASE_ARGUMENT`].
    pub fn of(compiled: &Compiled) -> Option<DebugDatabase> {
        let (_, bytes) = compiled.extra_files.iter().find(|(name, _)| name.ends_with(FILE_ENDING))?;
        Some(DebugDatabase::parse(&String::from_utf8_lossy(bytes)))
    }

    /// Reads one. Rows and tables that aren't as expected are passed over.
    ///
    /// ```
    /// use npukit_vela::compile::DebugDatabase;
    /// let database = DebugDatabase::parse(
    ///     "<table name=\"perf\">\n<![CDATA[\n\"id\",\"operator\",\"name\",\"op_cycles\"\n97,\"Conv2D\",\"a, b\",1504\n]]>\n</table>\n\
    ///      <table name=\"queue\">\n<![CDATA[\n\"offset\",\"scheduled_id\"\n288,97\n]]>\n</table>",
    /// );
    /// let layer = database.layer_at(288).unwrap();
    /// assert_eq!((layer.id, layer.name.as_str(), layer.cycles), (97, "a, b", 1504));
    /// assert_eq!(database.layer_at(292), None);
    /// ```
    pub fn parse(text: &str) -> DebugDatabase {
        let mut database = DebugDatabase::default();
        for [id, operator, name, cycles] in rows(text, "perf", ["id", "operator", "name", "op_cycles"]) {
            let (Ok(id), Ok(cycles)) = (id.parse(), cycles.parse()) else { continue };
            database.layers.insert(id, DebugLayer { id, operator, name, cycles });
        }
        for [offset, id] in rows(text, "queue", ["offset", "scheduled_id"]) {
            let (Ok(offset), Ok(id)) = (offset.parse(), id.parse()) else { continue };
            database.queue.insert(offset, id);
        }
        database
    }

    /// The number of the layer of the operation at an offset of the command stream, in bytes.
    pub fn layer_number(&self, offset: usize) -> Option<u32> {
        self.queue.get(&offset).copied()
    }

    /// The layer of the operation at an offset of the command stream, in bytes.
    pub fn layer_at(&self, offset: usize) -> Option<&DebugLayer> {
        self.layers.get(self.queue.get(&offset)?)
    }
}

/// Columns of a table, row by row.
fn rows<const N: usize>(text: &str, table: &str, columns: [&str; N]) -> Vec<[String; N]> {
    let begin = format!("<table name=\"{table}\">");
    let content = text.split_once(&begin).and_then(|(_, rest)| rest.split_once("<![CDATA["));
    let Some((_, rest)) = content else { return Vec::new() };
    let mut lines = rest.split("]]>").next().unwrap_or_default().trim().lines().map(fields);
    let Some(names) = lines.next() else { return Vec::new() };
    let places = columns.map(|column| names.iter().position(|name| name == column));
    let row = |line: Vec<String>| {
        let cells = places.map(|place| line.get(place?).cloned());
        cells.iter().all(Option::is_some).then(|| cells.map(Option::unwrap_or_default))
    };
    lines.filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_there_is_left_out() {
        let table =
            |name: &str, lines: &str| format!("<table name=\"{name}\">\n<![CDATA[\n{lines}\n]]>\n</table>\n");
        let perf = "\"id\",\"operator\",\"name\",\"op_cycles\"\n1,\"Conv2D\",\"a\",7\nx,\"Add\",\"b\",8\n3";
        let text = table("perf", perf) + &table("queue", "\"scheduled_id\",\"offset\"\n1,16\n2,32\n3,x");
        let database = DebugDatabase::parse(&text);
        assert_eq!(database.layer_at(16).map(|layer| layer.operator.as_str()), Some("Conv2D"));
        assert_eq!((database.layer_number(32), database.layer_at(32)), (Some(2), None));
        assert_eq!(database.layer_number(48), None);
        assert_eq!(DebugDatabase::parse(&table("queue", "\"offset\"\n16")), DebugDatabase::default());
        assert_eq!(DebugDatabase::parse("<table name=\"perf\">"), DebugDatabase::default());
    }

    proptest! {
        #[test]
        fn any_text_will_do(text in "(<table name=\"(perf|queue)\">|<!\\[CDATA\\[|\\]\\]>|\"|,|\n|id|offset|scheduled_id|[0-9]|é)*") {
            DebugDatabase::parse(&text);
        }
    }
}
