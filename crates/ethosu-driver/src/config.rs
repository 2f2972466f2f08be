//! How an NPU is set up.

use ethosu_isa::Accelerator;
use ethosu_isa::registers::{Privilege, Protection, REGIONS, Security};

use crate::ports::Selector;
use crate::target::{Any, Target};

/// Memory for the network's fast scratch (Vela's region 2 in the memory modes `Dedicated_Sram`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastMemory {
    /// Its first byte, as the CPU sees it. A multiple of 16.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The region that [`FastMemory`] takes the place of, in jobs from a `.npub` file and from addresses; not in those that give it
/// memory as a [`Region`](crate::Region). (Core driver 1.99, `FAST_MEMORY_BASE_ADDR_INDEX`.)
pub const FAST_MEMORY_REGION: u8 = 2;

/// Reads of `STATUS` that a reset may take, by default the core driver's number.
const RESET_POLLS: u32 = 100_000;

/// How an NPU is set up: everything that has to fit the chip and Vela's memory mode.
///
/// [`new`](Config::new) gives the core driver's defaults. For what a memory mode needs see [`crate::placement`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config<T: Target = Any> {
    /// Security state and privilege level of the NPU's accesses. By default secure and privileged.
    pub protection: Protection,
    /// How the command stream is fetched: `QCONFIG`.
    pub commands: Selector,
    /// How each region is accessed: `REGIONCFG`.
    pub regions: [Selector; REGIONS],
    /// The memory ports.
    pub ports: T::Ports,
    /// Where fast scratch lies, if the chip has memory for it. Takes the place of region 2 in jobs from a `.npub` file
    /// ([`Job::load`](crate::Job::load), [`Job::from_npub`](crate::Job::from_npub)) and from addresses
    /// ([`Job::from_addresses`](crate::Job::from_addresses)), as in Arm's driver. Region 2 given as a
    /// [`Region`](crate::Region) in [`Job::from_payload`](crate::Job::from_payload) stays where it is.
    pub fast_memory: Option<FastMemory>,
    /// Bytes of a line of the CPU's data cache. If given, a region that the NPU writes has to start and end at a line's
    /// boundary, so that invalidating the cache can't drop a neighbour's data. Arm's M55 and M85 have 32. Of a `.npub` file the
    /// runtime regions have to be packed for that: [`Job::load_with`](crate::Job::load_with) with
    /// `npub::Packing::new().aligned(32)`, and an arena that starts at a multiple of 32.
    pub cache_line: Option<u32>,
    /// Reads of `STATUS` before a reset is given up.
    pub reset_polls: u32,
    /// Whether the registers a job was started with, those of the ports among them, are read back when it ends. What differs is
    /// the work of another master: [`FaultKind::Interference`](crate::FaultKind::Interference), and the reset after it puts
    /// everything right. On by default. Off saves some thirty reads a job; while a guard keeps the NPU on, nothing then
    /// restores the ports.
    pub read_back: bool,
    /// The size the NPU has to have, if it must not be another.
    pub accelerator: Option<Accelerator>,
}

impl<T: Target> Config<T> {
    /// The core driver's defaults: commands and region 0 through the external port, everything else through the SRAM port.
    pub const fn new() -> Config<T> {
        use Selector::*;
        Config {
            protection: Protection { security: Security::Secure, privilege: Privilege::Privileged },
            commands: S2,
            regions: [S3, S0, S1, S1, S1, S1, S1, S1],
            ports: T::PORTS,
            fast_memory: None,
            cache_line: None,
            reset_polls: RESET_POLLS,
            read_back: true,
            accelerator: None,
        }
    }

    /// With another security state and privilege level.
    pub const fn with_protection(mut self, security: Security, privilege: Privilege) -> Config<T> {
        self.protection = Protection { security, privilege };
        self
    }

    /// With other selectors for commands and regions.
    pub const fn with_routing(mut self, commands: Selector, regions: [Selector; REGIONS]) -> Config<T> {
        self.commands = commands;
        self.regions = regions;
        self
    }

    /// With another set-up of the ports.
    pub const fn with_ports(mut self, ports: T::Ports) -> Config<T> {
        self.ports = ports;
        self
    }

    /// With memory for fast scratch.
    pub const fn with_fast_memory(mut self, address: u64, bytes: u64) -> Config<T> {
        self.fast_memory = Some(FastMemory { address, bytes });
        self
    }

    /// With a data cache that has lines of this many bytes.
    pub const fn with_cache_line(mut self, bytes: u32) -> Config<T> {
        self.cache_line = Some(bytes);
        self
    }

    /// With another limit for resets.
    pub const fn with_reset_polls(mut self, polls: u32) -> Config<T> {
        self.reset_polls = polls;
        self
    }

    /// Without reading registers back when a job ends.
    pub const fn without_read_back(mut self) -> Config<T> {
        self.read_back = false;
        self
    }

    /// For an NPU of this size and no other.
    pub const fn for_accelerator(mut self, accelerator: Accelerator) -> Config<T> {
        self.accelerator = Some(accelerator);
        self
    }
}

impl<T: Target> Default for Config<T> {
    fn default() -> Config<T> {
        Config::new()
    }
}
