//! Prints the tables of docs/clock.md: both clocks against Vela's totals and against published counters of Arm's simulators.
//!
//!     cargo run --release -p npukit --example clock_table [-- MOBILENET.tflite]
//!
//! MOBILENET.tflite is the network that `python -m conformance.mobilenet` writes. The networks are looked for as the tests do (`NPUKIT_SHARED`). For the second part, `NPUKIT_VELA_5_0_0` has to name a
//! Vela 5.0.0, whose streams the simulators ran.

#[allow(missing_docs, unreachable_pub, reason = "shared with the test")]
mod measure;

use std::path::Path;

use ethosu_isa::{Accelerator, Product};
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Toolchain;

use measure::{
    Failure, MOBILENET, NETWORKS, PUBLISHED, SIMULATED, estimated, percent, setups, simulated, vela_5_0_0,
};

fn main() -> Result<(), Failure> {
    estimates()?;
    println!();
    simulations()?;
    if let Some(path) = std::env::args_os().nth(1) {
        println!();
        mobilenet(Path::new(&path))?;
    }
    Ok(())
}

fn estimates() -> Result<(), Failure> {
    let toolchain = Toolchain::from_environment()?.ensure(&mut Silent)?;
    println!(
        "| network | NPU | configuration | Vela {} | stream alone | % | layers given | % | exact layers |",
        toolchain.vela().version()
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for network in NETWORKS {
        let Some(path) = npukit_testkit::model(network) else { continue };
        for accelerator in Accelerator::ALL {
            for setup in setups(accelerator) {
                let found = estimated(toolchain.vela(), &path, accelerator, setup)?;
                println!(
                    "| {} | {} | {}, {} | {} | {} | {:+.2} | {} | {:+.2} | {}/{} |",
                    network.trim_end_matches(".tflite"),
                    accelerator.name().trim_start_matches("ethos-"),
                    setup.system_config.trim_start_matches("Ethos_"),
                    setup.memory_mode,
                    found.vela,
                    found.stream,
                    percent(found.stream, found.vela),
                    found.layered,
                    percent(found.layered, found.vela),
                    found.layers.1,
                    found.layers.0,
                );
            }
        }
    }
    Ok(())
}

fn simulations() -> Result<(), Failure> {
    let (Some(path), Some(vela)) = (npukit_testkit::model(SIMULATED), vela_5_0_0()?) else { return Ok(()) };
    println!(
        "| NPU | published total | active | clock *sim* | % of total | beats AXI0 rd / wr, AXI1 rd / wr | as published |"
    );
    println!("|---|---|---|---|---|---|---|");
    for published in PUBLISHED {
        let report = published.simulated(&vela, &path)?;
        let beats = report.beats();
        println!(
            "| {} | {} | {} | {} | {:+.1} | {} / {}, {} / {} | {} |",
            published.accelerator.name().trim_start_matches("ethos-"),
            published.total,
            published.active,
            report.total(),
            percent(report.total(), published.total),
            beats.axi0.read,
            beats.axi0.written,
            beats.axi1.read,
            beats.axi1.written,
            if published.has(beats) { "all" } else { "no" },
        );
    }
    Ok(())
}

/// A network that differs from the one with published totals in its weights.
fn mobilenet(path: &Path) -> Result<(), Failure> {
    let Some(old) = vela_5_0_0()? else { return Ok(()) };
    let toolchain = Toolchain::from_environment()?.ensure(&mut Silent)?;
    println!("| NPU | published total of MobileNetV2 | clock *sim* of a network of its size | % |");
    println!("|---|---|---|---|");
    for (accelerator, setup, total) in MOBILENET {
        // The model refuses the form of average that the older Vela gives a U85.
        let vela = if accelerator.product() == Product::U85 { toolchain.vela() } else { &old };
        let report = simulated(vela, path, accelerator, setup)?;
        let name = accelerator.name().trim_start_matches("ethos-");
        println!("| {name} | {total} | {} | {:+.1} |", report.total(), percent(report.total(), total));
    }
    Ok(())
}
