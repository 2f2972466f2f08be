//! Whether a compiled network can run with a memory mode in a system configuration: one answer for all commands.

use std::path::Path;

use ethosu_driver::placement::{LogicalPort, MemoryKind, MemoryMode, SystemConfig};
use ethosu_isa::Product;
use npukit::Accelerator;
use npukit::driver::DriverNeeds;
use npukit_vela::ini;

use super::failure::{Failure, Outcome};

/// Looks names up among those of Vela 5.2.0. `product` is the one whose names are offered where there is no such.
pub(super) fn look_up(
    mode: Option<&str>,
    system: Option<&str>,
    product: Option<Product>,
) -> Outcome<(Option<MemoryMode>, Option<SystemConfig>)> {
    let unknown = |name: &str, what: &str, known: Vec<&str>| {
        let message = format_args!("{name:?} is no {what} of Vela 5.2.0's Arm/vela.ini");
        Failure::new("configuration", message).advise(format!(
            "There are {}. One of an own file has the settings of the one that puts constants, arena and fast scratch behind \
             the same ports.",
            known.join(", ")
        ))
    };
    let modes = || MemoryMode::all().iter().map(|mode| mode.name).collect();
    let mode = mode
        .map(|name| MemoryMode::from_name(name).ok_or_else(|| unknown(name, "memory mode", modes())))
        .transpose()?;
    let systems = || systems_of(product);
    let system = system
        .map(|name| {
            SystemConfig::from_name(name).ok_or_else(|| unknown(name, "system configuration", systems()))
        })
        .transpose()?;
    Ok((mode, system))
}

fn systems_of(product: Option<Product>) -> Vec<&'static str> {
    let all = SystemConfig::all().iter();
    all.filter(|one| product.is_none_or(|product| one.product == product)).map(|one| one.name).collect()
}

/// Refuses a system configuration for another product.
pub(super) fn fits_product(path: &Path, accelerator: Accelerator, system: SystemConfig) -> Outcome<()> {
    let product = accelerator.product();
    if system.product == product {
        return Ok(());
    }
    let message = format_args!("it is for {accelerator}, and {} is for the {}", system.name, system.product);
    let advice = format!("The {product} has {}.", systems_of(Some(product)).join(", "));
    Err(Failure::of_file("configuration", path, message).advise(advice))
}

/// Refuses a memory mode and a system configuration that a network can't have been compiled with.
pub(super) fn fits(path: &Path, needs: &DriverNeeds, mode: MemoryMode, system: SystemConfig) -> Outcome<()> {
    fits_product(path, needs.accelerator(), system)?;
    let Err(reason) = needs.fits(mode, system) else { return Ok(()) };
    let message = format_args!("it can't have been compiled with {}: {reason}", mode.name);
    let fitting = |system| MemoryMode::all().iter().filter(move |mode| needs.fits(**mode, system).is_ok());
    let modes: Vec<&str> = fitting(system).map(|mode| mode.name).collect();
    let systems = SystemConfig::all().iter().filter(|system| needs.fits(mode, **system).is_ok());
    let systems: Vec<&str> = systems.map(|system| system.name).collect();
    let advice = if modes.is_empty() {
        format!("With this memory mode there are {}: name one with --system-config.", systems.join(", "))
    } else {
        format!("Name the memory mode with --memory-mode: {}.", modes.join(", "))
    };
    let failure = Failure::of_file("configuration", path, message);
    Err(if modes.is_empty() && systems.is_empty() { failure } else { failure.advise(advice) })
}

/// The same for sections of an own file, where a name may mean something else.
pub(super) fn fits_own(
    path: &Path,
    needs: &DriverNeeds,
    (mode_name, mode): (&str, &ini::MemoryMode),
    system: &ini::SystemConfig,
) -> Outcome<()> {
    let port = |area: &str| if area == "Axi0" { LogicalPort::Axi0 } else { LogicalPort::Axi1 };
    let mode = MemoryMode {
        name: "this memory mode",
        constants: port(&mode.constants),
        arena: port(&mode.arena),
        cache: port(&mode.cache),
        cache_bytes: None,
    };
    let memory = |port: &ini::Port| MemoryKind::from_name(&port.memory);
    let (Some(axi0), Some(axi1)) = (memory(&system.axi0), memory(&system.axi1)) else { return Ok(()) };
    let product = needs.accelerator().product();
    let system = SystemConfig { name: "this system configuration", product, axi0, axi1 };
    needs.fits(mode, system).map_err(|reason| {
        let message = format_args!("it can't have been compiled with {mode_name}: {reason}");
        Failure::of_file("configuration", path, message).advise("Name another one with --memory-mode.")
    })
}
