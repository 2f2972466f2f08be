//! The system around an NPU, from Vela's configuration files to the model's clocks.
//!
//! ```
//! use npukit::clock;
//! use npukit_vela::ini::VelaIni;
//!
//! let ini = VelaIni::parse(
//!     "[System_Config.Board]\ncore_clock=400e6\naxi0_port=Sram\naxi1_port=OffChipFlash\nSram_clock_scale=1\n\
//!      OffChipFlash_clock_scale=0.125\n\
//!      [Memory_Mode.Flash]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n",
//! )?;
//! let system = clock::system(&ini, "Board", "Flash")?;
//! assert_eq!((system.core_clock_hz, system.memories[1].clock_scale), (400e6, 0.125));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use ethosu_model::clock::{Memory, MemoryMode, Port, System};
use npukit_vela::ini::{self, IniError, VelaIni};

/// The system that the clocks take, for a system configuration and a memory mode of a file.
///
/// # Errors
/// [`IniError`]: the file doesn't have them, or says what Vela refuses or can't be meant.
pub fn system(file: &VelaIni, system_config: &str, memory_mode: &str) -> Result<System, IniError> {
    let (system, mode) = file.system(system_config, memory_mode)?;
    let port = |area: &str| if area == "Axi0" { Port::Axi0 } else { Port::Axi1 };
    let mode =
        MemoryMode { constants: port(&mode.constants), arena: port(&mode.arena), cache: port(&mode.cache) };
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

    #[test]
    fn every_figure_has_its_place() {
        let text = "[System_Config.S]\ncore_clock=1e9\naxi0_port=Sram\naxi1_port=Dram\nSram_ports_used=2\nDram_clock_scale=0.75\n\
            Dram_burst_length=128\nDram_read_latency=500\nDram_write_latency=250\nDram_max_reads=64\nDram_max_writes=32\n\
            [Memory_Mode.M]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n";
        let found = system(&VelaIni::parse(text).unwrap(), "S", "M").unwrap();
        let dram = Memory::new().clock_scale(0.75).burst_bytes(128).latency(500, 250).outstanding(64, 32);
        assert_eq!(found.memories, [Memory::new().ports(2), dram]);
        assert_eq!(
            (found.commands, found.regions[0], found.regions[1]),
            (Port::Axi1, Port::Axi1, Port::Axi0)
        );
    }
}
