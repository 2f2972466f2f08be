//! Which operator a table belongs to: symbols, else code that hands descriptor and name to the checker.

use super::find::Found;
use super::image::Image;
use super::{NameEvidence, aarch64, x86_64};
use crate::version::Certainty;
use object::elf;
use std::collections::BTreeMap;

/// The suffixes of the two symbols that the declaration macros make.
const DESCRIPTOR_SUFFIX: &str = "_REG";
const ROWS_SUFFIX: &str = "_supported_io_types";

/// A name that code passes together with a descriptor.
pub(super) struct CodeName {
    pub descriptor: u64,
    pub name: String,
    pub instruction: u64,
    pub certainty: Certainty,
    pub how: &'static str,
}

/// The evidence for each table.
pub(super) fn all(image: &Image<'_>, tables: &[Found], unknowns: &mut Vec<String>) -> Vec<Vec<NameEvidence>> {
    let mut evidence: Vec<Vec<NameEvidence>> = tables.iter().map(|table| symbols(image, table)).collect();
    let by_descriptor: BTreeMap<u64, usize> =
        tables.iter().enumerate().map(|(i, table)| (table.descriptor, i)).collect();
    if by_descriptor.is_empty() {
        return evidence;
    }
    let names = match image.machine {
        elf::EM_AARCH64 => aarch64::names(image, &by_descriptor),
        elf::EM_X86_64 => x86_64::names(image, &by_descriptor),
        _ => {
            unknowns.push(format!("{}: code isn't searched for names, symbols are", image.machine_name()));
            Vec::new()
        }
    };
    for found in names {
        let Some(list) = by_descriptor.get(&found.descriptor).and_then(|index| evidence.get_mut(*index))
        else {
            continue;
        };
        if !list.iter().any(|entry| entry.name == found.name && entry.how == found.how) {
            let detail = format!("instruction at {:#x}", found.instruction);
            list.push(NameEvidence { name: found.name, how: found.how, detail, certainty: found.certainty });
        }
    }
    evidence
}

fn symbols(image: &Image<'_>, table: &Found) -> Vec<NameEvidence> {
    let mut list: Vec<NameEvidence> = Vec::new();
    for (address, suffix) in [(table.descriptor, DESCRIPTOR_SUFFIX), (table.rows, ROWS_SUFFIX)] {
        for symbol in image.symbols.get(&address).into_iter().flatten() {
            // A function's statics are CONV2D_REG.3 from GCC and op_check.CONV2D_REG or the like from Clang.
            let mut words = symbol.split('.').filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
            if let Some(name) =
                words.next_back().and_then(|word| word.strip_suffix(suffix)).filter(|name| !name.is_empty())
            {
                let (name, detail) = (name.to_owned(), format!("{symbol} at {address:#x}"));
                list.push(NameEvidence { name, how: "symbol", detail, certainty: Certainty::Known });
            }
        }
    }
    list
}

/// The name that the evidence agrees on. Symbols outweigh code; where the best of either disagree there is none.
pub(super) fn conclude(evidence: &[NameEvidence]) -> (Option<String>, Certainty) {
    let Some(best) = evidence.iter().map(|entry| (entry.how != "symbol", entry.certainty)).min() else {
        return (None, Certainty::Unknown);
    };
    let mut names: Vec<&str> = evidence
        .iter()
        .filter(|entry| (entry.how != "symbol", entry.certainty) == best)
        .map(|e| e.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    match names.as_slice() {
        [name] => (Some((*name).to_owned()), best.1),
        _ => (None, Certainty::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(name: &str, how: &'static str, certainty: Certainty) -> NameEvidence {
        NameEvidence { name: name.into(), how, detail: String::new(), certainty }
    }

    #[test]
    fn symbols_outweigh_code_and_ties_name_nothing() {
        use Certainty::{Assumed, Known, Unknown};
        let symbol = evidence("A", "symbol", Known);
        let code = evidence("B", "code", Known);
        let guess = evidence("C", "code", Assumed);
        assert_eq!(conclude(&[]), (None, Unknown));
        assert_eq!(conclude(&[code.clone(), symbol.clone()]), (Some("A".into()), Known));
        assert_eq!(conclude(&[guess.clone(), code.clone()]), (Some("B".into()), Known));
        assert_eq!(conclude(std::slice::from_ref(&guess)), (Some("C".into()), Assumed));
        assert_eq!(conclude(&[guess, evidence("D", "code", Assumed)]), (None, Unknown));
        assert_eq!(conclude(&[symbol, evidence("E", "symbol", Known)]), (None, Unknown));
    }
}
