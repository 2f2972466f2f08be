//! Both clocks on real networks: the compiler's against Vela's own totals, the simulating one against published counters.

#[path = "../examples/clock_table/measure.rs"]
#[allow(dead_code, reason = "the example has a table that no test compares with")]
#[allow(missing_docs, unreachable_pub, reason = "shared with the example that prints it all")]
mod measure;

use ethosu_isa::{Accelerator, Product};
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Toolchain;

use measure::{NETWORKS, PUBLISHED, SIMULATED, estimated, percent, setups, vela_5_0_0};

/// What the estimate may differ from Vela's total, in percent: on U55 and U65 from the stream alone, on U85 with one layer for
/// each of the debug database's.
fn tolerance(product: Product) -> f64 {
    match product {
        Product::U55 | Product::U65 => 3.0,
        Product::U85 => 7.0,
    }
}

fn estimates_are_close(network: &str) {
    let Some(path) = npukit_testkit::model(network) else { return };
    let toolchain =
        Toolchain::from_environment().unwrap().ensure(&mut Silent).expect("the toolchain is installed");
    for accelerator in Accelerator::ALL {
        for setup in setups(accelerator) {
            let found = estimated(toolchain.vela(), &path, accelerator, setup).unwrap();
            let tolerance = tolerance(accelerator.product());
            for total in [found.stream, found.layered] {
                let difference = percent(total, found.vela);
                assert!(
                    difference.abs() <= tolerance,
                    "{network} on {accelerator}, {setup:?}: {total} cycles, Vela says {} ({difference:+.2} %)",
                    found.vela
                );
            }
            // Layers whose cycles are Vela's to the last one: most of them, on U85 two in five at the least.
            let (share, of) = if accelerator.product() == Product::U85 { (2, 5) } else { (1, 2) };
            assert!(found.layers.1 * of >= found.layers.0 * share, "{network} on {accelerator}: {found:?}");
        }
    }
}

#[test]
fn ad01() {
    estimates_are_close(NETWORKS[0]);
}

#[test]
fn kws() {
    estimates_are_close(NETWORKS[1]);
}

#[test]
fn resnet() {
    estimates_are_close(NETWORKS[2]);
}

#[test]
fn vww() {
    estimates_are_close(NETWORKS[3]);
}

#[test]
fn person_detect() {
    estimates_are_close(NETWORKS[4]);
}

/// Beats are those of the simulators on all products; totals within 7 % on U55 and U65, and on U85 no further off than when the
/// rules for it were written down.
#[test]
fn simulators_counted_the_same() {
    let (Some(path), Some(vela)) = (npukit_testkit::model(SIMULATED), vela_5_0_0().unwrap()) else { return };
    for published in PUBLISHED {
        let accelerator = published.accelerator;
        let report = published.simulated(&vela, &path).unwrap();
        assert!(
            published.has(report.beats()),
            "{accelerator}: {:?}, published {published:?}",
            report.beats()
        );
        let tolerance = if accelerator.product() == Product::U85 { 13.0 } else { 7.0 };
        for published in [published.total, published.active] {
            let difference = percent(report.total(), published);
            assert!(
                difference.abs() <= tolerance,
                "{accelerator}: {} cycles, {difference:+.2} %",
                report.total()
            );
        }
    }
}
