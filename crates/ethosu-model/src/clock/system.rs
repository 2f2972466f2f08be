//! The system around the NPU: clock, memories behind the two kinds of AXI port, and which of them holds what.

use ethosu_isa::{Accelerator, Product};

use super::ClockError;
use crate::memory::REGIONS;

/// The kinds of AXI port. U55 and U65 have one of each; a U85 has one to four SRAM ports and one or two external ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Port {
    /// AXI0 of U55 and U65, the SRAM ports of the U85.
    Axi0,
    /// AXI1 of U55 and U65, the external ports of the U85.
    Axi1,
}

impl Port {
    /// Both.
    pub const ALL: [Port; 2] = [Port::Axi0, Port::Axi1];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        match self {
            Self::Axi0 => 0,
            Self::Axi1 => 1,
        }
    }
}

/// Bytes that one port moves in a beat: 8 on U55, 16 on U65 and U85 (Vela 5.2.0, `ethos_u55.cpp`, `ethos_u65.cpp` and
/// `ethos_u85.cpp`).
pub const fn beat_bytes(product: Product) -> u32 {
    match product {
        Product::U55 => 8,
        Product::U65 | Product::U85 => 16,
    }
}

/// A memory as it is seen through its ports, in the terms of a `vela.ini` system configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Memory {
    /// Beats a port moves in a cycle of the NPU (`clock_scale`).
    pub clock_scale: f64,
    /// Ports that lead to it (`ports_used`).
    pub ports: u32,
    /// Longest burst in bytes (`burst_length`).
    pub burst_bytes: u32,
    /// Cycles until a read's first data (`read_latency`).
    pub read_latency: u32,
    /// Cycles until a write is taken (`write_latency`).
    pub write_latency: u32,
    /// Reads that may be outstanding (`max_reads`).
    pub max_reads: u32,
    /// Writes that may be outstanding (`max_writes`).
    pub max_writes: u32,
}

impl Memory {
    /// A memory behind one port, as fast as the port, without latency and with single-beat bursts.
    pub const fn new() -> Self {
        Self {
            clock_scale: 1.0,
            ports: 1,
            burst_bytes: 1,
            read_latency: 0,
            write_latency: 0,
            max_reads: 1,
            max_writes: 1,
        }
    }

    /// The same with a fraction of the port's speed.
    pub const fn clock_scale(self, clock_scale: f64) -> Self {
        Self { clock_scale, ..self }
    }

    /// The same behind several ports.
    pub const fn ports(self, ports: u32) -> Self {
        Self { ports, ..self }
    }

    /// The same with longer bursts.
    pub const fn burst_bytes(self, burst_bytes: u32) -> Self {
        Self { burst_bytes, ..self }
    }

    /// The same with latencies of reads and writes.
    pub const fn latency(self, read: u32, write: u32) -> Self {
        Self { read_latency: read, write_latency: write, ..self }
    }

    /// The same with more reads and writes outstanding.
    pub const fn outstanding(self, reads: u32, writes: u32) -> Self {
        Self { max_reads: reads, max_writes: writes, ..self }
    }

    /// Bytes that all its ports move in a cycle.
    pub fn bytes_per_cycle(&self, product: Product) -> f64 {
        f64::from(beat_bytes(product)) * self.clock_scale * f64::from(self.ports)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

/// Which port is in front of each kind of data, in the terms of a `vela.ini` memory mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryMode {
    /// Weights, scales and the command stream (`const_mem_area`).
    pub constants: Port,
    /// Feature maps (`arena_mem_area`).
    pub arena: Port,
    /// The fast scratch buffer (`cache_mem_area`).
    pub cache: Port,
}

impl MemoryMode {
    /// Everything behind AXI0.
    pub const SRAM_ONLY: MemoryMode =
        MemoryMode { constants: Port::Axi0, arena: Port::Axi0, cache: Port::Axi0 };
    /// Constants behind AXI1, feature maps behind AXI0.
    pub const SHARED_SRAM: MemoryMode =
        MemoryMode { constants: Port::Axi1, arena: Port::Axi0, cache: Port::Axi0 };
    /// Constants and feature maps behind AXI1, with a buffer behind AXI0.
    pub const DEDICATED_SRAM: MemoryMode =
        MemoryMode { constants: Port::Axi1, arena: Port::Axi1, cache: Port::Axi0 };

    /// The ports of the regions in Vela's own numbering: 0 constants, 1 arena, 2 fast scratch, and separate inputs and outputs
    /// with the arena.
    pub const fn regions(self) -> [Port; REGIONS] {
        let Self { constants, arena, cache } = self;
        [constants, arena, cache, arena, arena, arena, arena, arena]
    }
}

/// A whole system.
///
/// ```
/// use ethosu_model::clock::{Memory, MemoryMode, Port, System};
///
/// // Ethos_U55_High_End_Embedded of Arm's vela.ini, with constants in flash.
/// let sram = Memory::new().burst_bytes(32).latency(32, 32).outstanding(4, 4);
/// let flash = Memory::new().clock_scale(0.125).burst_bytes(128).latency(64, 0).outstanding(2, 0);
/// let mut system = System::new(500e6, sram, flash, MemoryMode::SHARED_SRAM);
/// system.regions[3] = Port::Axi1; // an input that lies in flash
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct System {
    /// The NPU's clock in hertz.
    pub core_clock_hz: f64,
    /// The memory behind each port, by [`Port::index`].
    pub memories: [Memory; 2],
    /// The port in front of each region.
    pub regions: [Port; REGIONS],
    /// The port through which commands are read.
    pub commands: Port,
}

impl System {
    /// A system with Vela's numbering of regions, and the commands where the constants are.
    pub const fn new(core_clock_hz: f64, axi0: Memory, axi1: Memory, mode: MemoryMode) -> Self {
        Self { core_clock_hz, memories: [axi0, axi1], regions: mode.regions(), commands: mode.constants }
    }

    /// What Vela 5.2.0 assumes of an accelerator's system when it is told nothing (its `vela.ini`:
    /// Ethos_U55_High_End_Embedded with Shared_Sram, Ethos_U65_Client_Server and Ethos_U85_SYS_DRAM_Mid with Dedicated_Sram).
    pub fn usual(accelerator: Accelerator) -> Self {
        let memory = Memory::new();
        match accelerator.product() {
            Product::U55 => Self::new(
                500e6,
                memory.burst_bytes(32).latency(32, 32).outstanding(4, 4),
                memory.clock_scale(0.125).burst_bytes(128).latency(64, 0).outstanding(2, 0),
                MemoryMode::SHARED_SRAM,
            ),
            Product::U65 => Self::new(
                1e9,
                memory.burst_bytes(32).latency(32, 32).outstanding(16, 16),
                memory.clock_scale(0.75).burst_bytes(128).latency(500, 250).outstanding(24, 12),
                MemoryMode::DEDICATED_SRAM,
            ),
            Product::U85 => Self::new(
                1e9,
                memory.ports(2).burst_bytes(64).latency(32, 32).outstanding(8, 8),
                memory.clock_scale(0.75).burst_bytes(128).latency(500, 250).outstanding(64, 32),
                MemoryMode::DEDICATED_SRAM,
            ),
        }
    }

    /// The port in front of a region; `None` for the chain buffers inside a U85.
    pub(super) fn port(&self, region: u8) -> Option<Port> {
        self.regions.get(usize::from(region)).copied()
    }

    /// That every memory moves something.
    pub(super) fn check(&self, product: Product) -> Result<(), ClockError> {
        for port in Port::ALL {
            let bytes_per_cycle = self.memory(port).bytes_per_cycle(product);
            if !(bytes_per_cycle.is_finite() && bytes_per_cycle > 0.0) {
                return Err(ClockError::Bandwidth { port, bytes_per_cycle });
            }
        }
        Ok(())
    }

    /// The memory behind a port.
    pub fn memory(&self, port: Port) -> &Memory {
        &self.memories[port.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_move_what_vela_prints_as_their_bandwidth() {
        // GB/s at the core clock, as Vela 5.2.0 lists them.
        let gigabytes = |accelerator: Accelerator, port| {
            let system = System::usual(accelerator);
            system.memory(port).bytes_per_cycle(accelerator.product()) * system.core_clock_hz / 1e9
        };
        assert_eq!(gigabytes(Accelerator::U55_128, Port::Axi0), 4.0);
        assert_eq!(gigabytes(Accelerator::U55_128, Port::Axi1), 0.5);
        assert_eq!(gigabytes(Accelerator::U65_512, Port::Axi0), 16.0);
        assert_eq!(gigabytes(Accelerator::U65_512, Port::Axi1), 12.0);
        assert_eq!(gigabytes(Accelerator::U85_1024, Port::Axi0), 32.0);
        assert_eq!(gigabytes(Accelerator::U85_1024, Port::Axi1), 12.0);
    }

    #[test]
    fn chain_buffers_are_behind_no_port() {
        let system = System::usual(Accelerator::U85_256);
        assert_eq!(system.port(0), Some(Port::Axi1));
        assert_eq!(system.port(2), Some(Port::Axi0));
        assert_eq!(system.port(REGIONS as u8), None);
    }
}
