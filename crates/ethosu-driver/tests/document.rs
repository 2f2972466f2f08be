//! The tables of docs/driver.md that are computed are what the driver computes.

use std::fmt::Write;
use std::path::Path;

use ethosu_driver::placement::{MemoryMode, Placement, SystemConfig, placement};
use ethosu_driver::{AxiPort, Selector};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/driver.md");
    std::fs::read_to_string(path).unwrap()
}

/// "OffChipFlash, 3 → AXI1".
fn place(placement: &Placement, memory: impl std::fmt::Display, selector: Selector, port: AxiPort) -> String {
    format!("{memory}, {selector} → {}", port.name(placement.product))
}

fn rows() -> String {
    let mut rows = String::new();
    for system in SystemConfig::all() {
        for mode in MemoryMode::all().iter().filter(|mode| mode.cache_bytes.is_none()) {
            let _ = match placement(*mode, *system) {
                Ok(placement) => {
                    let port = |region: u8| placement.port(region).unwrap();
                    let fast = placement.fast.map_or("not used".to_owned(), |fast| {
                        place(&placement, fast, placement.regions[2], port(2))
                    });
                    writeln!(
                        rows,
                        "| {} | {} | {} | {} | {} | {} | {fast} | {} | {:#06x} |",
                        system.name,
                        mode.name,
                        place(&placement, placement.constants, placement.commands, placement.commands_port()),
                        place(&placement, placement.constants, placement.regions[0], port(0)),
                        place(&placement, placement.arena, placement.regions[1], port(1)),
                        place(&placement, placement.arena, placement.regions[3], port(3)),
                        placement.qconfig(),
                        placement.regioncfg(),
                    )
                }
                Err(error) => writeln!(rows, "| {} | {} | {error} | | | | | | |", system.name, mode.name),
            };
        }
    }
    rows
}

#[test]
fn memory_modes() {
    let rows = rows();
    assert!(document().contains(&rows), "docs/driver.md has other rows than:\n{rows}");
    let sizes: String = MemoryMode::all()
        .iter()
        .filter_map(|mode| Some(format!("| {} | {} |\n", mode.name, mode.cache_bytes?)))
        .collect();
    assert!(document().contains(&sizes), "docs/driver.md has other sizes than:\n{sizes}");
}
