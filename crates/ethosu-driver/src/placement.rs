//! How Vela's memory modes and system configurations fit a [`Config`](crate::Config): which memory each region lies in, which
//! port leads there, and what the registers hold.
//!
//! A network is compiled for one memory mode and one system configuration of a `vela.ini`. The mode says through which of two
//! logical ports constants, arena and fast scratch are reached; the system configuration says which memory is behind each.
//! The driver's selectors have to agree.
//!
//! ```
//! use ethosu_driver::placement::{MemoryMode, SystemConfig, placement};
//! use ethosu_driver::{Config, Product, target};
//!
//! let mode = MemoryMode::from_name("Sram_Only").unwrap();
//! let system = SystemConfig::from_name("Ethos_U55_High_End_Embedded").unwrap();
//! let placement = placement(mode, system)?;
//! assert_eq!((placement.qconfig(), placement.regioncfg()), (1, 0x5551));
//! let config: Config<target::U55> = Config::new().with_routing(placement.commands, placement.regions);
//! # Ok::<(), ethosu_driver::placement::PlacementError>(())
//! ```

use core::fmt;

use ethosu_isa::Product;
use ethosu_isa::registers::REGIONS;

use crate::ports::{AxiPort, Selector};

/// One of Vela's two logical ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogicalPort {
    /// `Axi0`.
    Axi0,
    /// `Axi1`.
    Axi1,
}

impl LogicalPort {
    /// The NPU's port.
    pub const fn port(self) -> AxiPort {
        match self {
            LogicalPort::Axi0 => AxiPort::Sram,
            LogicalPort::Axi1 => AxiPort::External,
        }
    }
}

/// A kind of memory, by Vela's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// `Sram`.
    Sram,
    /// `Dram`.
    Dram,
    /// `OnChipFlash`.
    OnChipFlash,
    /// `OffChipFlash`.
    OffChipFlash,
}

impl MemoryKind {
    /// Vela's name.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryKind::Sram => "Sram",
            MemoryKind::Dram => "Dram",
            MemoryKind::OnChipFlash => "OnChipFlash",
            MemoryKind::OffChipFlash => "OffChipFlash",
        }
    }

    /// The kind with a name.
    pub fn from_name(name: &str) -> Option<MemoryKind> {
        [MemoryKind::Sram, MemoryKind::Dram, MemoryKind::OnChipFlash, MemoryKind::OffChipFlash]
            .into_iter()
            .find(|kind| kind.name() == name)
    }

    /// Whether an NPU can write it.
    pub const fn is_writable(self) -> bool {
        matches!(self, MemoryKind::Sram | MemoryKind::Dram)
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A `Memory_Mode` section: through which logical port each area is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryMode {
    /// Its name.
    pub name: &'static str,
    /// `const_mem_area`: region 0, and the command stream.
    pub constants: LogicalPort,
    /// `arena_mem_area`: region 1, and regions of inputs and outputs.
    pub arena: LogicalPort,
    /// `cache_mem_area`: region 2, used only where it differs from the arena.
    pub cache: LogicalPort,
    /// `arena_cache_size`, where the section gives it.
    pub cache_bytes: Option<u32>,
}

/// A `System_Config` section: which memory is behind each logical port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemConfig {
    /// Its name.
    pub name: &'static str,
    /// The product it is for.
    pub product: Product,
    /// `axi0_port`.
    pub axi0: MemoryKind,
    /// `axi1_port`.
    pub axi1: MemoryKind,
}

const fn mode(
    name: &'static str,
    (constants, arena, cache): (LogicalPort, LogicalPort, LogicalPort),
    cache_bytes: Option<u32>,
) -> MemoryMode {
    MemoryMode { name, constants, arena, cache, cache_bytes }
}

const fn system(name: &'static str, product: Product, axi1: MemoryKind) -> SystemConfig {
    SystemConfig { name, product, axi0: MemoryKind::Sram, axi1 }
}

/// The sections of `Arm/vela.ini` in Vela 5.2.0.
mod vela_ini {
    use super::LogicalPort::{Axi0, Axi1};
    use super::MemoryKind::{Dram, OffChipFlash};
    use super::{MemoryMode, SystemConfig, mode, system};
    use ethosu_isa::Product::{U55, U65, U85};

    pub(super) static MODES: [MemoryMode; 6] = [
        mode("Sram_Only", (Axi0, Axi0, Axi0), None),
        mode("Shared_Sram", (Axi1, Axi0, Axi0), None),
        mode("Dedicated_Sram", (Axi1, Axi1, Axi0), None),
        mode("Dedicated_Sram_256KB", (Axi1, Axi1, Axi0), Some(262_144)),
        mode("Dedicated_Sram_384KB", (Axi1, Axi1, Axi0), Some(393_216)),
        mode("Dedicated_Sram_512KB", (Axi1, Axi1, Axi0), Some(524_288)),
    ];

    pub(super) static SYSTEMS: [SystemConfig; 11] = [
        system("Ethos_U55_Deep_Embedded", U55, OffChipFlash),
        system("Ethos_U55_High_End_Embedded", U55, OffChipFlash),
        system("Ethos_U65_Embedded", U65, OffChipFlash),
        system("Ethos_U65_Mid_End", U65, Dram),
        system("Ethos_U65_High_End", U65, Dram),
        system("Ethos_U65_Client_Server", U65, Dram),
        system("Ethos_U85_SYS_Flash_Low", U85, OffChipFlash),
        system("Ethos_U85_SYS_Flash_High", U85, OffChipFlash),
        system("Ethos_U85_SYS_DRAM_Low", U85, Dram),
        system("Ethos_U85_SYS_DRAM_Mid", U85, Dram),
        system("Ethos_U85_SYS_DRAM_High", U85, Dram),
    ];
}

impl MemoryMode {
    /// Those of Vela 5.2.0's `Arm/vela.ini`.
    pub fn all() -> &'static [MemoryMode] {
        &vela_ini::MODES
    }

    /// The one with a name.
    pub fn from_name(name: &str) -> Option<MemoryMode> {
        vela_ini::MODES.iter().copied().find(|mode| mode.name == name)
    }
}

impl SystemConfig {
    /// Those of Vela 5.2.0's `Arm/vela.ini`.
    pub fn all() -> &'static [SystemConfig] {
        &vela_ini::SYSTEMS
    }

    /// The one with a name.
    pub fn from_name(name: &str) -> Option<SystemConfig> {
        vela_ini::SYSTEMS.iter().copied().find(|system| system.name == name)
    }

    /// The memory behind a port.
    pub const fn memory(&self, port: LogicalPort) -> MemoryKind {
        match port {
            LogicalPort::Axi0 => self.axi0,
            LogicalPort::Axi1 => self.axi1,
        }
    }
}

/// What the driver has to be set up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The product.
    pub product: Product,
    /// Where constants lie, and the commands with them.
    pub constants: MemoryKind,
    /// Where the arena lies, and inputs and outputs that have regions of their own.
    pub arena: MemoryKind,
    /// Where fast scratch lies, if the mode has any. Then
    /// [`Config::fast_memory`](crate::Config::fast_memory) has to name memory for it.
    pub fast: Option<MemoryKind>,
    /// The bytes of fast scratch that the mode allows the compiler, where it gives a number.
    pub fast_bytes: Option<u32>,
    /// For [`Config::commands`](crate::Config::commands).
    pub commands: Selector,
    /// For [`Config::regions`](crate::Config::regions).
    pub regions: [Selector; REGIONS],
}

impl Placement {
    /// The value of `QCONFIG`.
    pub const fn qconfig(&self) -> u32 {
        self.commands.bits()
    }

    /// The value of `REGIONCFG`.
    pub const fn regioncfg(&self) -> u32 {
        let mut word = 0;
        let mut region = 0;
        while region < REGIONS {
            word |= self.regions[region].bits() << (2 * region);
            region += 1;
        }
        word
    }

    /// The port of a region; `None` for numbers above 7.
    pub fn port(&self, region: u8) -> Option<AxiPort> {
        self.regions.get(usize::from(region)).map(|selector| port(*selector))
    }

    /// The port of the command stream.
    pub fn commands_port(&self) -> AxiPort {
        port(self.commands)
    }
}

fn port(selector: Selector) -> AxiPort {
    match selector {
        Selector::S0 | Selector::S1 => AxiPort::Sram,
        Selector::S2 | Selector::S3 => AxiPort::External,
    }
}

/// Why a memory mode doesn't go with a system configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlacementError {
    /// The arena would lie in memory that can't be written.
    ArenaNotWritable {
        /// The mode.
        mode: &'static str,
        /// The system configuration.
        system: &'static str,
        /// The memory.
        memory: MemoryKind,
    },
    /// The arena would lie behind the port through which a U55 only reads.
    ArenaBehindReadOnlyPort {
        /// The mode.
        mode: &'static str,
        /// The system configuration.
        system: &'static str,
    },
}

impl fmt::Display for PlacementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlacementError::ArenaNotWritable { mode, system, memory } => {
                write!(f, "{mode} with {system} puts the arena into {memory}, which the NPU can't write")
            }
            PlacementError::ArenaBehindReadOnlyPort { mode, system } => {
                write!(f, "{mode} with {system} puts the arena behind AXI1, where an ethos-u55 only reads")
            }
        }
    }
}

impl core::error::Error for PlacementError {}

/// How a network that was compiled for `mode` and `system` has to be run.
///
/// The selectors keep the core driver's habit: commands and constants share a port with selectors of their own (2 and 3, or 1
/// where they lie in SRAM), the arena has 0 in SRAM and 2 outside, fast scratch 1, and regions 3 to 7, which hold inputs and
/// outputs if anything, go where the arena goes.
///
/// # Errors
/// [`PlacementError`]: nothing that is compiled so can run.
pub fn placement(mode: MemoryMode, system: SystemConfig) -> Result<Placement, PlacementError> {
    let (constants, arena) = (system.memory(mode.constants), system.memory(mode.arena));
    let names = (mode.name, system.name);
    if !arena.is_writable() {
        return Err(PlacementError::ArenaNotWritable { mode: names.0, system: names.1, memory: arena });
    }
    if !mode.arena.port().can_write(system.product) {
        return Err(PlacementError::ArenaBehindReadOnlyPort { mode: names.0, system: names.1 });
    }
    let fast = (mode.cache != mode.arena).then(|| system.memory(mode.cache));
    let (commands, region0) = match mode.constants.port() {
        AxiPort::Sram => (Selector::S1, Selector::S1),
        AxiPort::External => (Selector::S2, Selector::S3),
    };
    let (region1, others) = match mode.arena.port() {
        AxiPort::Sram => (Selector::S0, Selector::S1),
        AxiPort::External => (Selector::S2, Selector::S2),
    };
    let region2 = match mode.cache.port() {
        AxiPort::Sram => Selector::S1,
        AxiPort::External => Selector::S2,
    };
    Ok(Placement {
        product: system.product,
        constants,
        arena,
        fast,
        fast_bytes: fast.and(mode.cache_bytes),
        commands,
        regions: [region0, region1, region2, others, others, others, others, others],
    })
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    fn of(mode: &str, system: &str) -> Result<Placement, PlacementError> {
        placement(MemoryMode::from_name(mode).unwrap(), SystemConfig::from_name(system).unwrap())
    }

    #[test]
    fn shared_sram_is_the_core_drivers_default() {
        let config: crate::Config = crate::Config::new();
        for system in SystemConfig::all() {
            let placement = of("Shared_Sram", system.name).unwrap();
            assert_eq!((placement.commands, placement.regions), (config.commands, config.regions));
            assert_eq!((placement.qconfig(), placement.regioncfg()), (2, 0x5553));
            assert_eq!(placement.fast, None);
        }
    }

    #[test]
    fn the_documented_examples() {
        let tables = [
            ("Sram_Only", "Ethos_U55_High_End_Embedded", MemoryKind::Sram, MemoryKind::Sram, None),
            ("Shared_Sram", "Ethos_U55_High_End_Embedded", MemoryKind::OffChipFlash, MemoryKind::Sram, None),
            ("Sram_Only", "Ethos_U85_SYS_DRAM_Mid", MemoryKind::Sram, MemoryKind::Sram, None),
            ("Shared_Sram", "Ethos_U85_SYS_DRAM_Mid", MemoryKind::Dram, MemoryKind::Sram, None),
            (
                "Dedicated_Sram",
                "Ethos_U85_SYS_DRAM_Mid",
                MemoryKind::Dram,
                MemoryKind::Dram,
                Some(MemoryKind::Sram),
            ),
        ];
        for (mode, system, constants, arena, fast) in tables {
            let placement = of(mode, system).unwrap();
            assert_eq!(
                (placement.constants, placement.arena, placement.fast),
                (constants, arena, fast),
                "{mode} {system}"
            );
        }
        let error = of("Dedicated_Sram", "Ethos_U55_High_End_Embedded").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Dedicated_Sram with Ethos_U55_High_End_Embedded puts the arena into OffChipFlash, which the NPU can't write"
        );
    }

    #[test]
    fn every_region_goes_through_the_port_of_its_memory() {
        for mode in MemoryMode::all() {
            for system in SystemConfig::all() {
                let Ok(placement) = placement(*mode, *system) else { continue };
                let leads_to = |port| if port == AxiPort::Sram { system.axi0 } else { system.axi1 };
                assert_eq!(leads_to(placement.commands_port()), placement.constants);
                assert_eq!(leads_to(placement.port(0).unwrap()), placement.constants);
                assert_eq!(leads_to(placement.port(1).unwrap()), placement.arena);
                assert_eq!(leads_to(placement.port(3).unwrap()), placement.arena);
                if let Some(fast) = placement.fast {
                    assert_eq!(leads_to(placement.port(2).unwrap()), fast);
                }
                assert_eq!(placement.port(8), None);
            }
        }
    }

    #[test]
    fn a_u55_never_writes_through_axi1() {
        let writable = SystemConfig {
            axi1: MemoryKind::Dram,
            ..SystemConfig::from_name("Ethos_U55_Deep_Embedded").unwrap()
        };
        let error = placement(MemoryMode::from_name("Dedicated_Sram").unwrap(), writable).unwrap_err();
        assert!(matches!(error, PlacementError::ArenaBehindReadOnlyPort { .. }), "{error}");
    }
}
