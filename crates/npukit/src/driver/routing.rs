//! Registers for each memory mode that a network can have been compiled with.

use ethosu_driver::placement::{self, MemoryMode, Placement, SystemConfig};
use ethosu_driver::{AxiPort, Config};
use npukit_vela::compile::default_names;
use serde::Serialize;

use super::{DriverNeeds, FAST_REGION};

pub(super) const PORTS: [AxiPort; 2] = [AxiPort::Sram, AxiPort::External];

/// Memory modes, those that fit a network and those that don't.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Routings {
    /// Those that it can have been compiled with, and how it then has to be routed.
    pub memory_modes: Vec<Routing>,
    /// Those with which it can't run.
    pub excluded_modes: Vec<ExcludedMode>,
}

/// How commands and regions are routed in one memory mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Routing {
    /// The mode's name in Vela 5.2.0's `Arm/vela.ini`.
    pub memory_mode: &'static str,
    /// Whether npukit and Vela take it for this product when none is named.
    pub vela_default: bool,
    /// Whether the registers are those that the drivers set by themselves.
    pub driver_default: bool,
    /// The bytes of fast scratch that the mode allows, where it gives a number.
    pub fast_memory_limit: Option<u32>,
    /// The value of `QCONFIG`.
    pub qconfig: u32,
    /// The value of `REGIONCFG`.
    pub regioncfg: u32,
    /// The commands' way.
    pub commands: Route,
    /// The way of each region that the commands use.
    pub regions: Vec<RegionRoute>,
    /// Which memory has what, in each system configuration.
    pub system_configs: Vec<MemoryOf>,
}

/// A selector and where it leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Route {
    /// The selector, 0 to 3.
    pub selector: u32,
    /// The port's name.
    pub port: &'static str,
}

/// A region's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RegionRoute {
    /// The region.
    pub region: u8,
    /// Its way.
    #[serde(flatten)]
    pub route: Route,
}

/// The kinds of memory in one system configuration, by Vela's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryOf {
    /// The system configuration's name in Vela 5.2.0's `Arm/vela.ini`.
    pub system_config: &'static str,
    /// Where commands and constants lie.
    pub constants: &'static str,
    /// Where the arena lies, with inputs and outputs.
    pub arena: &'static str,
    /// Where fast scratch lies, if the mode has any.
    pub fast: Option<&'static str>,
}

/// A memory mode with which a network can't run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExcludedMode {
    /// The mode's name.
    pub memory_mode: &'static str,
    /// Why.
    pub reason: String,
}

impl DriverNeeds {
    /// The registers for each memory mode of Vela 5.2.0's `Arm/vela.ini` that the network can have been compiled with. With
    /// `mode` or `system` only for these; a system configuration of another product leaves nothing.
    pub fn routings(&self, mode: Option<MemoryMode>, system: Option<SystemConfig>) -> Routings {
        let mut routings = Routings { memory_modes: Vec::new(), excluded_modes: Vec::new() };
        for &one in MemoryMode::all().iter().filter(|one| mode.is_none_or(|mode| mode == **one)) {
            match self.routing(one, system) {
                Ok(routing) => routings.memory_modes.push(routing),
                Err(reason) => {
                    routings.excluded_modes.push(ExcludedMode { memory_mode: one.name, reason });
                }
            }
        }
        routings
    }

    fn routing(&self, mode: MemoryMode, system: Option<SystemConfig>) -> Result<Routing, String> {
        let product = self.accelerator.product();
        let systems = SystemConfig::all().iter().filter(|one| one.product == product);
        let systems = systems.filter(|one| system.is_none_or(|system| system == **one));
        let mut reason = format!("there is no such system configuration for {product}");
        let mut chosen: Option<Placement> = None;
        let mut system_configs = Vec::new();
        for system in systems {
            match self.placed(mode, *system) {
                Ok(placement) => {
                    system_configs.push(MemoryOf {
                        system_config: system.name,
                        constants: placement.constants.name(),
                        arena: placement.arena.name(),
                        fast: placement.fast.map(|memory| memory.name()),
                    });
                    // Registers go by mode and product: all have the same.
                    chosen = Some(placement);
                }
                Err(why) => reason = why,
            }
        }
        let placement = chosen.ok_or(reason)?;
        let route = |selector: ethosu_driver::Selector, port: AxiPort| Route {
            selector: selector.bits(),
            port: port.name(product),
        };
        let regions = self.regions.iter().filter_map(|need| {
            let port = placement.port(need.region)?;
            let selector = *placement.regions.get(usize::from(need.region))?;
            Some(RegionRoute { region: need.region, route: route(selector, port) })
        });
        let default: Config = Config::new();
        Ok(Routing {
            memory_mode: mode.name,
            vela_default: mode.name == default_names(product).1,
            driver_default: (placement.commands, placement.regions) == (default.commands, default.regions),
            fast_memory_limit: placement.fast_bytes,
            qconfig: placement.qconfig(),
            regioncfg: placement.regioncfg(),
            commands: route(placement.commands, placement.commands_port()),
            regions: regions.collect(),
            system_configs,
        })
    }

    /// Whether the network can have been compiled with a memory mode and a system configuration, and run so.
    ///
    /// # Errors
    /// Why not, in a sentence.
    pub fn fits(&self, mode: MemoryMode, system: SystemConfig) -> Result<(), String> {
        let product = self.accelerator.product();
        if system.product != product {
            return Err(format!("{} is for the {}", system.name, system.product));
        }
        self.placed(mode, system).map(|_| ())
    }

    /// Where everything lies, if the network can run so.
    fn placed(&self, mode: MemoryMode, system: SystemConfig) -> Result<Placement, String> {
        let placement = placement::placement(mode, system).map_err(|error| error.to_string())?;
        if self.fast_memory_bytes.is_some() && placement.fast.is_none() {
            return Err(format!(
                "region {FAST_REGION} is fast scratch of its own, which the mode doesn't have"
            ));
        }
        if self.shared_fast_memory && placement.fast.is_some() {
            return Err(format!(
                "region {FAST_REGION} is in the arena, where the mode doesn't put fast scratch"
            ));
        }
        for need in self.regions.iter().filter(|need| need.written) {
            let port = placement.port(need.region).filter(|port| !port.can_write(placement.product));
            if let Some(port) = port {
                let (region, port) = (need.region, port.name(placement.product));
                return Err(format!(
                    "region {region} is written, and {port} of an {} only reads",
                    placement.product
                ));
            }
            if need.region == 0 && !placement.constants.is_writable() {
                return Err(format!("region 0 is written, and lies in {}", placement.constants));
            }
        }
        Ok(placement)
    }
}
