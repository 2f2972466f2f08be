//! The system around an NPU, from Vela's configuration files to the model's clocks.
//!
//! ```
//! use npukit::clock;
//! use npukit_vela::ini::VelaIni;
//!
//! let ini = VelaIni::parse(
//!     "[System_Config.Board]\ncore_clock=400e6\naxi0_port=Sram\naxi1_port=OffChipFlash\nOffChipFlash_clock_scale=0.125\n\
//!      [Memory_Mode.Flash]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n",
//! )?;
//! let system = clock::system(&ini, "Board", "Flash")?;
//! assert_eq!((system.core_clock_hz, system.memories[1].clock_scale), (400e6, 0.125));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ethosu_model::clock::{Memory, MemoryMode, Port, System};
use npukit_vela::ini::{self, IniError, VelaIni};

/// Why a configuration file doesn't tell a system.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SystemError {
    /// A section isn't there, or has a value that is no number.
    #[error(transparent)]
    Ini(#[from] IniError),
    /// The configuration has no clock: only its name is known, or the file leaves it out.
    #[error("[System_Config.{section}] core_clock={found}: a clock in hertz is needed")]
    CoreClock {
        /// The system configuration.
        section: String,
        /// The clock it has, 1 where it has none.
        found: f64,
    },
    /// A kind of data is behind a port that there isn't.
    #[error("[Memory_Mode.{section}] {key}={found}: expected Axi0 or Axi1")]
    Port {
        /// The memory mode.
        section: String,
        /// The key.
        key: &'static str,
        /// What stands there.
        found: String,
    },
}

/// The system that the clocks take, for a system configuration and a memory mode of a file.
///
/// # Errors
/// [`SystemError`]: the file doesn't have them, or not all that is needed.
pub fn system(file: &VelaIni, system_config: &str, memory_mode: &str) -> Result<System, SystemError> {
    let system = file.system_config(system_config)?;
    let mode = file.memory_mode(memory_mode)?;
    // Vela counts in cycles of this clock, so one hertz, which stands for none, can't be meant.
    if !(system.core_clock_hz.is_finite() && system.core_clock_hz > 1.0) {
        return Err(SystemError::CoreClock {
            section: system_config.to_owned(),
            found: system.core_clock_hz,
        });
    }
    let port = |key, area: &str| match area.to_ascii_lowercase().as_str() {
        "axi0" => Ok(Port::Axi0),
        "axi1" => Ok(Port::Axi1),
        _ => Err(SystemError::Port { section: memory_mode.to_owned(), key, found: area.to_owned() }),
    };
    let mode = MemoryMode {
        constants: port("const_mem_area", &mode.constants)?,
        arena: port("arena_mem_area", &mode.arena)?,
        cache: port("cache_mem_area", &mode.cache)?,
    };
    Ok(System::new(system.core_clock_hz, memory(&system.axi0), memory(&system.axi1), mode))
}

fn memory(port: &ini::Port) -> Memory {
    Memory {
        clock_scale: port.clock_scale,
        ports: port.ports_used,
        burst_bytes: port.burst_bytes,
        read_latency: port.read_latency_cycles,
        write_latency: port.write_latency_cycles,
        // Without a number one access is under way at a time.
        max_reads: port.maximum_reads.unwrap_or(1),
        max_writes: port.maximum_writes.unwrap_or(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: &str = "[Memory_Mode.M]\nconst_mem_area=Axi1\narena_mem_area=AXI0\ncache_mem_area=Axi0\n";

    fn of(text: &str) -> Result<System, SystemError> {
        system(&VelaIni::parse(text).unwrap(), "S", "M")
    }

    #[test]
    fn every_figure_has_its_place() {
        let text = "[System_Config.S]\ncore_clock=1e9\naxi0_port=Sram\naxi1_port=Dram\nSram_ports_used=2\nDram_clock_scale=0.75\n\
            Dram_burst_length=128\nDram_read_latency=500\nDram_write_latency=250\nDram_max_reads=64\nDram_max_writes=32\n";
        let found = of(&format!("{text}{MODE}")).unwrap();
        let dram = Memory::new().clock_scale(0.75).burst_bytes(128).latency(500, 250).outstanding(64, 32);
        assert_eq!(found.memories, [Memory::new().ports(2), dram]);
        assert_eq!(
            (found.commands, found.regions[0], found.regions[1]),
            (Port::Axi1, Port::Axi1, Port::Axi0)
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = of(MODE).unwrap_err();
        assert_eq!(error.to_string(), "no section [System_Config.S]");
        let error = of(&format!("[System_Config.S]\n{MODE}")).unwrap_err();
        assert_eq!(error.to_string(), "[System_Config.S] core_clock=1: a clock in hertz is needed");
        for clock in ["-5e8", "inf", "nan", "0"] {
            let error = of(&format!("[System_Config.S]\ncore_clock={clock}\n{MODE}")).unwrap_err();
            assert!(matches!(error, SystemError::CoreClock { .. }), "{clock}: {error}");
        }
        let error =
            of(&format!("[System_Config.S]\ncore_clock=1e9\n{}", MODE.replace("AXI0", "Axi2"))).unwrap_err();
        assert_eq!(error.to_string(), "[Memory_Mode.M] arena_mem_area=Axi2: expected Axi0 or Axi1");
    }
}
