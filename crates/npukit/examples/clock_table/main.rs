//! Prints the tables of docs/clock.md: both clocks against Vela's totals and against published counters of Arm's simulators.
//!
//!     cargo run --release -p npukit --example clock_table
//!
//! The networks are looked for as the tests do (`NPUKIT_SHARED`). For the second part, `NPUKIT_VELA_5_0_0` has to name a
//! Vela 5.0.0, whose streams the simulators ran.

#[allow(missing_docs, unreachable_pub, reason = "shared with the test")]
mod measure;

use ethosu_isa::Accelerator;
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Toolchain;

use measure::{Failure, NETWORKS, PUBLISHED, SIMULATED, estimated, percent, setups, vela_5_0_0};

fn main() -> Result<(), Failure> {
    estimates()?;
    println!();
    simulations()
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
