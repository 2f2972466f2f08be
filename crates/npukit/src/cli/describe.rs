//! Tensors and memory in words, as several commands show them.

use npukit::MemoryBill;
use npukit::tensor::{self, TensorSpec};

use super::report::table;

/// One row a tensor: role, name, type, shape, quantisation.
pub(super) fn tensors<'t>(tensors: impl IntoIterator<Item = (&'t str, &'t TensorSpec)>) -> String {
    let row = |(role, spec): (&str, &TensorSpec)| {
        let quantisation = match (spec.scale, spec.zero_point) {
            (Some(scale), Some(zero_point)) => format!("scale {scale}, zero point {zero_point}"),
            _ => String::new(),
        };
        vec![
            role.to_owned(),
            name(&spec.name),
            spec.dtype.to_string(),
            tensor::text(&spec.shape),
            quantisation,
        ]
    };
    table(&tensors.into_iter().map(row).collect::<Vec<_>>(), 2)
}

/// What a blob takes of flash and RAM, and each region.
pub(super) fn bill(bill: &MemoryBill) -> String {
    let rows = [
        vec![
            "flash".to_owned(),
            format!("{} bytes:", grouped(bill.flash_bytes)),
            format!(
                "commands {}, constants {}, tensor table {}, header and padding {}",
                grouped(bill.command_bytes),
                grouped(bill.constant_bytes),
                grouped(bill.tensor_table_bytes),
                grouped(bill.overhead_bytes)
            ),
        ],
        vec![
            "arena".to_owned(),
            format!("{} bytes:", grouped(bill.arena_bytes)),
            format!("of which padding {}", grouped(bill.arena_padding_bytes)),
        ],
    ];
    let regions: Vec<Vec<String>> = bill
        .regions
        .iter()
        .map(|region| {
            vec![
                format!("region {}", region.slot),
                region.role.clone(),
                region.storage.clone(),
                format!("{} bytes", grouped(region.bytes.into())),
                format!("at {:#x}", region.offset),
            ]
        })
        .collect();
    table(&rows, 2) + &table(&regions, 2)
}

/// A tensor's name in quotes, cut where a converter has joined the names of everything it has merged.
pub(super) fn name(name: &str) -> String {
    const SHOWN: usize = 40;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("'{}...'", name[..end].escape_debug()),
        None => format!("'{}'", name.escape_debug()),
    }
}

/// A number with its thousands apart: `12 345 678`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(name("a\tb"), "'a\\tb'");
        assert_eq!(name(&"é".repeat(40)), format!("'{}'", "é".repeat(40)));
        assert_eq!(name(&"é".repeat(41)), format!("'{}...'", "é".repeat(40)));
    }

    #[test]
    fn thousands_stand_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1 000"), (12_345_678, "12 345 678")] {
            assert_eq!(grouped(number), text);
        }
    }
}
