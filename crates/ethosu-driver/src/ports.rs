//! Memory ports, and how the NPU accesses memory through them.
//!
//! A *selector*, 0 to 3, stands in `QCONFIG` for the command stream and in `REGIONCFG` for each region. On U55 and U65 it
//! picks a port and an access profile (`AXI_LIMIT0` to `3`), on U85 an entry of `MEM_ATTR`, which names the port.

use core::fmt;

use ethosu_isa::{Accelerator, Product, registers};

use crate::{Bus, ConfigError};

/// What stands in `QCONFIG` or in a field of `REGIONCFG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// 0: port AXI0 with profile 0, or entry 0.
    S0,
    /// 1: port AXI0 with profile 1, or entry 1.
    S1,
    /// 2: port AXI1 with profile 2, or entry 2.
    S2,
    /// 3: port AXI1 with profile 3, or entry 3.
    S3,
}

impl Selector {
    /// All of them.
    pub const ALL: [Selector; 4] = [Selector::S0, Selector::S1, Selector::S2, Selector::S3];

    /// The number for the register.
    pub const fn bits(self) -> u32 {
        self as u32
    }

    /// From the number; only its two low bits count.
    pub const fn from_bits(bits: u32) -> Selector {
        match bits & 3 {
            0 => Selector::S0,
            1 => Selector::S1,
            2 => Selector::S2,
            _ => Selector::S3,
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bits())
    }
}

/// A memory port, or a group of them on the U85.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AxiPort {
    /// AXI0 on U55 and U65, AXI_SRAM on U85: meant for SRAM.
    Sram,
    /// AXI1 on U55 and U65, AXI_EXT on U85: meant for DRAM and flash. The U55's can't write.
    External,
}

impl AxiPort {
    /// The port's name on a product.
    pub const fn name(self, product: Product) -> &'static str {
        match (self, product) {
            (AxiPort::Sram, Product::U85) => "AXI_SRAM",
            (AxiPort::External, Product::U85) => "AXI_EXT",
            (AxiPort::Sram, _) => "AXI0",
            (AxiPort::External, _) => "AXI1",
        }
    }

    /// Whether the NPU can write through it.
    pub const fn can_write(self, product: Product) -> bool {
        !matches!((self, product), (AxiPort::External, Product::U55))
    }
}

/// The largest burst: bursts are split where an address is a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Burst {
    /// 64 bytes.
    #[default]
    Bytes64,
    /// 128 bytes.
    Bytes128,
    /// 256 bytes.
    Bytes256,
}

/// The memory type, from which the AxCACHE signals follow. (Core driver 1.0.0, `enum axi_mem_encoding`.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub enum MemoryType {
    #[default]
    DeviceNonBufferable = 0,
    DeviceBufferable = 1,
    NormalNonCacheableNonBufferable = 2,
    NormalNonCacheableBufferable = 3,
    WriteThroughNoAllocate = 4,
    WriteThroughReadAllocate = 5,
    WriteThroughWriteAllocate = 6,
    WriteThroughReadAndWriteAllocate = 7,
    WriteBackNoAllocate = 8,
    WriteBackReadAllocate = 9,
    WriteBackWriteAllocate = 10,
    WriteBackReadAndWriteAllocate = 11,
}

/// The shareability domain of U85 accesses, from which the AxDOMAIN signals follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs)]
pub enum Domain {
    #[default]
    NonSharable = 0,
    InnerSharable = 1,
    OuterSharable = 2,
    System = 3,
}

/// How accesses with one selector look on U55 and U65: an `AXI_LIMIT` register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct AccessProfile {
    /// The largest burst.
    pub burst: Burst,
    /// The memory type.
    pub memory: MemoryType,
    /// Reads under way at once; `None` for the core driver's default, 32 on U55 and 64 on U65, which is also the most.
    pub reads: Option<u8>,
    /// Writes under way at once; `None` for the core driver's default, 16 on U55 and 32 on U65, which is also the most.
    pub writes: Option<u8>,
}

impl AccessProfile {
    /// The core driver's default.
    pub const fn new() -> AccessProfile {
        AccessProfile {
            burst: Burst::Bytes64,
            memory: MemoryType::DeviceNonBufferable,
            reads: None,
            writes: None,
        }
    }

    fn word(self, product: Product) -> u32 {
        let (reads, writes) = profile_limits(product);
        let reads = u32::from(self.reads.unwrap_or(reads)) - 1;
        let writes = u32::from(self.writes.unwrap_or(writes)) - 1;
        // Core driver 1.0.0, `axi_limit0_r`.
        self.burst as u32 | (self.memory as u32) << 4 | reads << 16 | writes << 24
    }
}

impl Default for AccessProfile {
    fn default() -> AccessProfile {
        AccessProfile::new()
    }
}

/// The most reads and writes that a profile's fields hold, which are the defaults of the core driver's configuration headers.
const fn profile_limits(product: Product) -> (u8, u8) {
    match product {
        Product::U55 => (32, 16),
        _ => (64, 32),
    }
}

/// The four access profiles of U55 and U65, by selector. 0 and 1 belong to AXI0, 2 and 3 to AXI1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccessProfiles(pub [AccessProfile; 4]);

impl AccessProfiles {
    /// The core driver's defaults.
    pub const fn new() -> AccessProfiles {
        AccessProfiles([AccessProfile::new(); 4])
    }
}

impl Default for AccessProfiles {
    fn default() -> AccessProfiles {
        AccessProfiles::new()
    }
}

/// An entry of the U85's `MEM_ATTR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAttribute {
    /// The ports.
    pub port: AxiPort,
    /// The shareability domain.
    pub domain: Domain,
    /// The memory type.
    pub memory: MemoryType,
}

impl MemoryAttribute {
    /// Through these ports, otherwise as the core driver does by default.
    pub const fn through(port: AxiPort) -> MemoryAttribute {
        MemoryAttribute { port, domain: Domain::NonSharable, memory: MemoryType::DeviceNonBufferable }
    }

    /// The word for the register. (Core driver 1.0.0, `mem_attr_r`.)
    pub const fn word(self) -> u32 {
        self.domain as u32 | (matches!(self.port, AxiPort::External) as u32) << 2 | (self.memory as u32) << 4
    }
}

/// Limits of a group of U85 ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PortLimits {
    /// Reads under way at once on each port; `None` for the most there can be.
    pub reads: Option<u8>,
    /// Writes under way at once on each port; `None` for the most there can be.
    pub writes: Option<u8>,
    /// The largest burst.
    pub burst: Burst,
}

impl PortLimits {
    /// As many as there can be, in bursts of 256 bytes: the core driver's defaults, capped at what the size has.
    pub const fn new() -> PortLimits {
        PortLimits { reads: None, writes: None, burst: Burst::Bytes256 }
    }

    fn word(self, most: (u8, u8)) -> u32 {
        let reads = u32::from(self.reads.unwrap_or(most.0)) - 1;
        let writes = u32::from(self.writes.unwrap_or(most.1)) - 1;
        // Core driver 1.0.0, `axi_sram_r` and `axi_ext_r`.
        reads | writes << 8 | (self.burst as u32) << 16
    }
}

impl Default for PortLimits {
    fn default() -> PortLimits {
        PortLimits::new()
    }
}

/// The most reads and writes under way on a U85 port. (Core driver's README, "Ethos-U85 AXI information".)
fn most_outstanding(accelerator: Accelerator, port: AxiPort) -> (u8, u8) {
    match (port, accelerator.macs()) {
        (AxiPort::Sram, _) => (12, 16),
        (AxiPort::External, 128 | 256) => (32, 32),
        (AxiPort::External, _) => (64, 32),
    }
}

/// The U85's memory attributes, by selector, and the limits of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MemoryAttributes {
    /// The entries.
    pub entries: [MemoryAttribute; 4],
    /// Limits of the SRAM ports.
    pub sram: PortLimits,
    /// Limits of the external ports.
    pub external: PortLimits,
    /// Cycles of a step when MACs are switched on or off, 0 to 63; 0 switches all at once.
    pub mac_ramp_cycles: u8,
}

impl MemoryAttributes {
    /// The core driver's defaults: entries 0 and 1 through AXI_SRAM, 2 and 3 through AXI_EXT, as on U55 and U65.
    pub const fn new() -> MemoryAttributes {
        let (sram, external) =
            (MemoryAttribute::through(AxiPort::Sram), MemoryAttribute::through(AxiPort::External));
        MemoryAttributes {
            entries: [sram, sram, external, external],
            sram: PortLimits::new(),
            external: PortLimits::new(),
            mac_ramp_cycles: 0,
        }
    }
}

impl Default for MemoryAttributes {
    fn default() -> MemoryAttributes {
        MemoryAttributes::new()
    }
}

/// The ports of whichever product is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct AnyPorts {
    /// For a U55 or U65.
    pub profiles: AccessProfiles,
    /// For a U85.
    pub attributes: MemoryAttributes,
}

impl AnyPorts {
    /// The core driver's defaults.
    pub const fn new() -> AnyPorts {
        AnyPorts { profiles: AccessProfiles::new(), attributes: MemoryAttributes::new() }
    }
}

mod sealed {
    use super::*;

    /// What the driver needs of a target's ports.
    pub trait Setup: Copy + fmt::Debug {
        fn check(&self, accelerator: Accelerator) -> Result<(), ConfigError>;
        fn port(&self, product: Product, selector: Selector) -> AxiPort;
        /// Calls `write` with the offset and value of each register.
        fn words(&self, accelerator: Accelerator, write: &mut dyn FnMut(u32, u32));
    }
}
pub(crate) use sealed::Setup;

/// A way to set up memory ports: [`AccessProfiles`], [`MemoryAttributes`] or [`AnyPorts`].
pub trait PortSetup: Setup {}

impl<S: Setup> PortSetup for S {}

fn within(what: &'static str, value: Option<u8>, most: u8) -> Result<(), ConfigError> {
    match value {
        Some(found) if found == 0 || found > most => {
            Err(ConfigError { what, found: found.into(), most: most.into() })
        }
        _ => Ok(()),
    }
}

impl Setup for AccessProfiles {
    fn check(&self, accelerator: Accelerator) -> Result<(), ConfigError> {
        let (reads, writes) = profile_limits(accelerator.product());
        self.0.iter().try_for_each(|profile| {
            within("outstanding reads of an access profile", profile.reads, reads)?;
            within("outstanding writes of an access profile", profile.writes, writes)
        })
    }

    fn port(&self, _product: Product, selector: Selector) -> AxiPort {
        match selector {
            Selector::S0 | Selector::S1 => AxiPort::Sram,
            Selector::S2 | Selector::S3 => AxiPort::External,
        }
    }

    fn words(&self, accelerator: Accelerator, write: &mut dyn FnMut(u32, u32)) {
        for (offset, profile) in (registers::AXI_LIMIT..).step_by(4).zip(self.0) {
            write(offset, profile.word(accelerator.product()));
        }
    }
}

impl Setup for MemoryAttributes {
    fn check(&self, accelerator: Accelerator) -> Result<(), ConfigError> {
        let (reads, writes) = most_outstanding(accelerator, AxiPort::Sram);
        within("outstanding reads of an SRAM port", self.sram.reads, reads)?;
        within("outstanding writes of an SRAM port", self.sram.writes, writes)?;
        let (reads, writes) = most_outstanding(accelerator, AxiPort::External);
        within("outstanding reads of an external port", self.external.reads, reads)?;
        within("outstanding writes of an external port", self.external.writes, writes)?;
        // `mac_step_cycles` has six bits; 0 is a value of its own.
        within("MAC ramp cycles", Some(self.mac_ramp_cycles.max(1)), 63)
    }

    fn port(&self, _product: Product, selector: Selector) -> AxiPort {
        let [s0, s1, s2, s3] = self.entries;
        match selector {
            Selector::S0 => s0.port,
            Selector::S1 => s1.port,
            Selector::S2 => s2.port,
            Selector::S3 => s3.port,
        }
    }

    fn words(&self, accelerator: Accelerator, write: &mut dyn FnMut(u32, u32)) {
        for (offset, entry) in (registers::MEM_ATTR..).step_by(4).zip(self.entries) {
            write(offset, entry.word());
        }
        write(registers::AXI_SRAM, self.sram.word(most_outstanding(accelerator, AxiPort::Sram)));
        write(registers::AXI_EXT, self.external.word(most_outstanding(accelerator, AxiPort::External)));
        write(registers::POWER_CTRL, self.mac_ramp_cycles.into());
    }
}

impl Setup for AnyPorts {
    fn check(&self, accelerator: Accelerator) -> Result<(), ConfigError> {
        match accelerator.product() {
            Product::U85 => self.attributes.check(accelerator),
            Product::U55 | Product::U65 => self.profiles.check(accelerator),
        }
    }

    fn port(&self, product: Product, selector: Selector) -> AxiPort {
        match product {
            Product::U85 => self.attributes.port(product, selector),
            Product::U55 | Product::U65 => self.profiles.port(product, selector),
        }
    }

    fn words(&self, accelerator: Accelerator, write: &mut dyn FnMut(u32, u32)) {
        match accelerator.product() {
            Product::U85 => self.attributes.words(accelerator, write),
            Product::U55 | Product::U65 => self.profiles.words(accelerator, write),
        }
    }
}

/// Writes the registers of the ports.
pub(crate) fn set_up<S: Setup>(ports: &S, accelerator: Accelerator, bus: &impl Bus) {
    ports.words(accelerator, &mut |offset, value| bus.write(offset, value));
}
