//! What ovxlib looks at before it accepts a node: the steps of each operator's check, per ovxlib version.
//!
//! A table in a binary doesn't prove that anything reads it: the fully-connected table is still there in ovxlib
//! 1.2.2 and later, but the operator asked before it (FCL_RELU) has lost its check, and an operator without a check
//! is accepted. So admission walks these steps and not the tables.

use crate::version::{Certainty, OvxlibVersion};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// One step of an operator's check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckStep {
    /// Registered without a check: accepted.
    None,
    /// A check that looks at no data type.
    Free,
    /// A check of dimensions or attributes, beside those of types.
    Shapes,
    /// `vsi_nn_QuantCheck` of the first input, the weight and the bias.
    Quant,
    /// The table's rows must hold the signature.
    Table(String),
    /// Skipped where the stream processor serves the input types, else the table.
    StreamProcessorOrTable(String),
    /// Whatever another operator's check says.
    As(String),
    /// Another operator's check; the table is read only where that said no.
    Either(String, String),
    /// The table, else the list for the tensor processor in `fullconnect_relu.c`.
    TableOrTp(String),
    /// The table, once for each output.
    EachOutput(String),
    /// The table where there are two inputs or more, else another operator's check.
    Slice(String, String),
    /// Not written down in the data file.
    Unmodelled,
}

/// An operator's check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The steps in order; the first that refuses ends it.
    pub steps: Vec<CheckStep>,
    /// The source file of the operator, without its folder; empty for operators without a check.
    pub file: String,
}

/// The checks of all operators in one ovxlib revision.
#[derive(Clone, Debug)]
pub struct CheckSet {
    /// The ovxlib version that was read.
    pub ovxlib: OvxlibVersion,
    checks: BTreeMap<String, Check>,
}

impl CheckSet {
    /// The check of an operator; none if that revision has no operator of this name.
    pub fn get(&self, op: &str) -> Option<&Check> {
        self.checks.get(op)
    }

    /// Every operator's name.
    pub fn operators(&self) -> impl Iterator<Item = &str> {
        self.checks.keys().map(String::as_str)
    }

    /// The operators whose check reads the named table, directly or through other operators' checks.
    pub fn readers_of(&self, table: &str) -> Vec<&str> {
        self.operators().filter(|op| self.reads(op, table, 0)).collect()
    }

    fn reads(&self, op: &str, table: &str, depth: usize) -> bool {
        // No chain of the data files is longer than three; the bound keeps a wrong file from going round in circles.
        depth < 8
            && self.get(op).is_some_and(|check| {
                check.steps.iter().any(|step| match step {
                    CheckStep::Table(name)
                    | CheckStep::StreamProcessorOrTable(name)
                    | CheckStep::TableOrTp(name)
                    | CheckStep::EachOutput(name) => name == table,
                    CheckStep::As(other) => self.reads(other, table, depth + 1),
                    CheckStep::Either(other, name) => {
                        let never_refuses = self.get(other).is_some_and(|c| c.steps == [CheckStep::None]);
                        (name == table && !never_refuses) || self.reads(other, table, depth + 1)
                    }
                    CheckStep::Slice(name, other) => name == table || self.reads(other, table, depth + 1),
                    CheckStep::None
                    | CheckStep::Free
                    | CheckStep::Shapes
                    | CheckStep::Quant
                    | CheckStep::Unmodelled => false,
                })
            })
    }
}

/// The checks for an ovxlib version and how sure it is that they are that version's: two revisions were read, 1.1.88
/// and 1.2.22. None where nothing was published (between 1.1.88 and 1.2.2, before 1.1.28).
pub fn for_version(version: OvxlibVersion) -> Option<(&'static CheckSet, Certainty)> {
    static SETS: LazyLock<Vec<CheckSet>> = LazyLock::new(|| {
        parse(include_str!("../data/ovxlib.checks")).expect("the built-in file is parsed by a test")
    });
    let index = if version >= OvxlibVersion::FCL_TABLE_UNREAD {
        1
    } else if (OvxlibVersion::OLDEST..=OvxlibVersion::LAST_WITH_FCL_TABLE).contains(&version) {
        0
    } else {
        return None;
    };
    let set = SETS.get(index)?;
    Some((set, if set.ovxlib == version { Certainty::Known } else { Certainty::Assumed }))
}

fn parse(text: &str) -> Result<Vec<CheckSet>, String> {
    let mut lines = text.lines();
    if lines.next() != Some("npukit-ovxlib-checks 1") {
        return Err("not a checks file".into());
    }
    let mut sets: Vec<CheckSet> = Vec::new();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(version) = line.strip_prefix("ovxlib ") {
            let ovxlib = version.parse().map_err(|e| format!("{e}"))?;
            sets.push(CheckSet { ovxlib, checks: BTreeMap::new() });
            continue;
        }
        let parts: Vec<&str> = line.split(" | ").collect();
        let ([op, steps, file], Some(set)) = (parts.as_slice(), sets.last_mut()) else {
            return Err(format!("`{line}`"));
        };
        let steps = steps.split(' ').map(parse_step).collect::<Result<_, _>>()?;
        let file = if *file == "-" { String::new() } else { (*file).to_owned() };
        if set.checks.insert((*op).to_owned(), Check { steps, file }).is_some() {
            return Err(format!("{op} twice"));
        }
    }
    Ok(sets)
}

fn parse_step(text: &str) -> Result<CheckStep, String> {
    let own = |text: &&str| (*text).to_owned();
    Ok(match text.split(':').collect::<Vec<_>>().as_slice() {
        ["none"] => CheckStep::None,
        ["free"] => CheckStep::Free,
        ["shapes"] => CheckStep::Shapes,
        ["quant"] => CheckStep::Quant,
        ["unmodelled"] => CheckStep::Unmodelled,
        ["table", table] => CheckStep::Table(own(table)),
        ["sp-or-table", table] => CheckStep::StreamProcessorOrTable(own(table)),
        ["table-or-tp", table] => CheckStep::TableOrTp(own(table)),
        ["each-output", table] => CheckStep::EachOutput(own(table)),
        ["as", op] => CheckStep::As(own(op)),
        ["either", op, table] => CheckStep::Either(own(op), own(table)),
        ["slice", table, op] => CheckStep::Slice(own(table), own(op)),
        _ => return Err(format!("no step `{text}`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;

    #[test]
    fn every_table_named_exists_and_every_operator_named_too() {
        for (version, set) in [(OvxlibVersion::LAST_WITH_FCL_TABLE, 0), (OvxlibVersion::NEWEST, 1)] {
            let (checks, certainty) = for_version(version).unwrap();
            assert_eq!(certainty, Certainty::Known);
            let tables = tables::for_version(version).unwrap();
            let mut seen = 0;
            for op in checks.operators() {
                let check = checks.get(op).unwrap();
                for step in &check.steps {
                    let (table, other) = match step {
                        CheckStep::Table(t)
                        | CheckStep::StreamProcessorOrTable(t)
                        | CheckStep::TableOrTp(t)
                        | CheckStep::EachOutput(t) => (Some(t), None),
                        CheckStep::As(o) => (None, Some(o)),
                        CheckStep::Either(o, t) | CheckStep::Slice(t, o) => (Some(t), Some(o)),
                        _ => (None, None),
                    };
                    if let Some(table) = table {
                        assert!(tables.get_in_file(table, &check.file).is_some(), "{op}: {table}");
                        seen += 1;
                    }
                    if let Some(other) = other {
                        assert!(checks.get(other).is_some(), "{op}: {other}");
                    }
                }
            }
            assert!(seen > 90, "set {set}: {seen}");
        }
    }

    #[test]
    fn the_fcl_table_is_read_up_to_1_1_88_and_never_after() {
        let (old, _) = for_version(OvxlibVersion::LAST_WITH_FCL_TABLE).unwrap();
        assert_eq!(old.readers_of("FCL"), ["FCL", "FCL2"]);
        let (new, _) = for_version(OvxlibVersion::FCL_TABLE_UNREAD).unwrap();
        assert!(new.readers_of("FCL").is_empty());
        assert!(new.readers_of("CONV2D").contains(&"GROUPED_CONV2D"));
        assert!(new.readers_of("CONV2D").contains(&"DECONV3D"));
        assert!(for_version(OvxlibVersion(1, 2, 0)).is_none());
    }

    #[test]
    fn a_file_with_an_unknown_step_or_operator_twice_is_refused() {
        assert!(parse("x").is_err());
        assert!(parse("npukit-ovxlib-checks 1\nA | none | -").is_err());
        assert!(parse("npukit-ovxlib-checks 1\novxlib 1.1.88\nA | maybe | -").is_err());
        assert!(parse("npukit-ovxlib-checks 1\novxlib 1.1.88\nA | none | -\nA | none | -").is_err());
    }
}
