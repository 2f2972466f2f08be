//! The registers of the NPU's register block, by offset and field.
//!
//! Source: `ethosu55_interface.h`, `ethosu65_interface.h` and `ethosu85_interface.h` of Arm's core driver 1.0.0. The U55 and
//! the U65 differ only in the width of addresses and limits; the U85 has other memory attributes and its PMU 4 KiB further on.

use core::fmt;

use crate::payload::ArchVersion;
use crate::product::Product;

/// `ID`: architecture and release of the NPU.
pub const ID: u32 = 0x00;
/// `STATUS`: what the NPU is doing and what went wrong. See [`Status`].
pub const STATUS: u32 = 0x04;
/// `CMD`: starts the NPU and clears its interrupt.
pub const CMD: u32 = 0x08;
/// `RESET`: resets the NPU into a security state and privilege level.
pub const RESET: u32 = 0x0C;
/// `QBASE`: address of the command stream, low word first.
pub const QBASE: u32 = 0x10;
/// `QREAD`: bytes from the start of the stream to the command under execution.
pub const QREAD: u32 = 0x18;
/// `QCONFIG`: memory access selector of the command stream, 0 to 3.
pub const QCONFIG: u32 = 0x1C;
/// `QSIZE`: bytes of the command stream.
pub const QSIZE: u32 = 0x20;
/// `PROT`: the security state and privilege level that hold. See [`Protection`].
pub const PROT: u32 = 0x24;
/// `CONFIG`: product and size. See [`Configuration`].
pub const CONFIG: u32 = 0x28;
/// `POWER_CTRL` (U85): cycles of a step when MACs are switched on and off.
pub const POWER_CTRL: u32 = 0x38;
/// `REGIONCFG`: memory access selectors of the regions, two bits each.
pub const REGIONCFG: u32 = 0x3C;
/// `AXI_LIMIT0` to `AXI_LIMIT3` (U55, U65): access profiles, 4 bytes apart.
pub const AXI_LIMIT: u32 = 0x40;
/// `MEM_ATTR[0]` to `MEM_ATTR[3]` (U85): memory attributes, 4 bytes apart.
pub const MEM_ATTR: u32 = 0x40;
/// `AXI_SRAM` (U85): limits of the SRAM ports.
pub const AXI_SRAM: u32 = 0x50;
/// `AXI_EXT` (U85): limits of the external ports.
pub const AXI_EXT: u32 = 0x54;
/// `BASEP[0]` to `BASEP[7]`: addresses of the regions, 8 bytes apart, low word first.
pub const BASEP: u32 = 0x80;

/// Base pointers an NPU has.
pub const REGIONS: usize = 8;

/// Bits of `CMD`.
pub mod command {
    /// Start executing the command stream.
    pub const RUN: u32 = 1 << 0;
    /// Clear the interrupt.
    pub const CLEAR_IRQ: u32 = 1 << 1;
    /// The clock may be stopped when the NPU is idle.
    pub const CLOCK_Q: u32 = 1 << 2;
    /// The power may be cut when the NPU is idle.
    pub const POWER_Q: u32 = 1 << 3;
    /// Lowest of the 16 bits that clear those of the interrupt history.
    pub const CLEAR_HISTORY: u32 = 16;
}

/// Offsets of the performance monitor, which lies at another place on each product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmuBlock {
    base: u32,
}

impl PmuBlock {
    /// Where `product` has it.
    pub const fn of(product: Product) -> PmuBlock {
        PmuBlock {
            base: match product {
                Product::U55 | Product::U65 => 0,
                Product::U85 => 0x1000,
            },
        }
    }

    /// `PMCR`: the monitor's switch. See [`pmcr`].
    pub const fn control(self) -> u32 {
        self.base + 0x180
    }

    /// `PMCNTENSET`: reads as the counters that are on; ones switch counters on.
    pub const fn enable_set(self) -> u32 {
        self.base + 0x184
    }

    /// `PMCNTENCLR`: ones switch counters off.
    pub const fn enable_clear(self) -> u32 {
        self.base + 0x188
    }

    /// `PMOVSSET`: reads as the counters that overflowed; ones set the flags.
    pub const fn overflow_set(self) -> u32 {
        self.base + 0x18C
    }

    /// `PMOVSCLR`: ones clear overflow flags.
    pub const fn overflow_clear(self) -> u32 {
        self.base + 0x190
    }

    /// `PMINTSET`: reads as the counters whose overflow interrupts; ones switch that on.
    pub const fn interrupt_set(self) -> u32 {
        self.base + 0x194
    }

    /// `PMINTCLR`: ones switch the interrupt of an overflow off.
    pub const fn interrupt_clear(self) -> u32 {
        self.base + 0x198
    }

    /// `PMCCNTR`: the 48-bit cycle counter, low word first.
    pub const fn cycles(self) -> u32 {
        self.base + 0x1A0
    }

    /// `PMCCNTR_CFG`: the events that start (bits 9..0) and stop (bits 25..16) the cycle counter.
    pub const fn cycles_config(self) -> u32 {
        self.base + 0x1A8
    }

    /// `PMCAXI_CHAN`: which AXI transactions the latency events look at.
    pub const fn latency_channel(self) -> u32 {
        self.base + 0x1AC
    }

    /// `PMEVCNTR[n]`: an event counter.
    pub const fn counter(self, n: u32) -> u32 {
        self.base + 0x300 + 4 * n
    }

    /// `PMEVTYPER[n]`: what an event counter counts.
    pub const fn event(self, n: u32) -> u32 {
        self.base + 0x380 + 4 * n
    }
}

/// Bits of `PMCR`.
pub mod pmcr {
    /// Counters that are on count.
    pub const ENABLE: u32 = 1 << 0;
    /// Set all event counters to zero.
    pub const RESET_EVENTS: u32 = 1 << 1;
    /// Set the cycle counter to zero.
    pub const RESET_CYCLES: u32 = 1 << 2;
    /// `NPU_OP_PMU_MASK` switches counting.
    pub const MASK_ENABLE: u32 = 1 << 3;
    /// Lowest of the five bits with the number of event counters.
    pub const COUNTERS: u32 = 11;
}

/// The bit of the cycle counter in the PMU's masks; event counter `n` has bit `n`.
pub const CYCLE_COUNTER: u32 = 1 << 31;
/// Bits of the cycle counter.
pub const CYCLE_BITS: u32 = 48;

impl Product {
    /// Event counters of the performance monitor: 4 on U55 and U65, 8 on U85.
    pub const fn event_counters(self) -> u32 {
        match self {
            Product::U55 | Product::U65 => 4,
            Product::U85 => 8,
        }
    }

    /// Bytes of the register block: 4 KiB on U55 and U65, 8 KiB on U85.
    pub const fn register_bytes(self) -> u32 {
        match self {
            Product::U55 | Product::U65 => 0x1000,
            Product::U85 => 0x2000,
        }
    }

    /// What `ID` holds in a release of the product that the interface headers describe.
    pub const fn id_word(self) -> u32 {
        match self {
            Product::U55 => 0x1010_4201,
            Product::U65 => 0x1006_6001,
            Product::U85 => 0x2000_7001,
        }
    }
}

/// A read of `STATUS`.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Status(pub u32);

impl Status {
    /// The NPU is running.
    pub const RUNNING: u32 = 1 << 0;
    /// The interrupt is raised.
    pub const IRQ: u32 = 1 << 1;
    /// A bus access was aborted; only a reset clears this.
    pub const BUS: u32 = 1 << 2;
    /// A reset is under way: all other registers read zero and ignore writes.
    pub const RESETTING: u32 = 1 << 3;
    /// A command could not be parsed; only a reset clears this.
    pub const PARSE: u32 = 1 << 4;
    /// The command stream came to its end; writing `QBASE` or `QSIZE` clears this.
    pub const END: u32 = 1 << 5;
    /// The performance monitor raised the interrupt.
    pub const PMU_IRQ: u32 = 1 << 6;
    /// The weight decoder met an impossible stream (U55, U65); only a reset clears this.
    pub const WEIGHT_DECODER: u32 = 1 << 7;
    /// An internal memory failed its check; only a reset clears this.
    pub const ECC: u32 = 1 << 8;
    /// A branch went wrong (U85); only a reset clears this.
    pub const BRANCH: u32 = 1 << 9;

    /// Whether a bit is set.
    pub const fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    /// The bits that tell of a fault.
    pub const fn faults(self) -> u32 {
        self.0 & (Status::BUS | Status::PARSE | Status::WEIGHT_DECODER | Status::ECC | Status::BRANCH)
    }

    /// Whether a job has come to an end, good or bad.
    pub const fn is_over(self) -> bool {
        !self.has(Status::RESETTING) && (self.has(Status::END) || self.faults() != 0)
    }

    /// The number of the port on which an access was aborted.
    pub const fn faulting_interface(self) -> u8 {
        (self.0 >> 11 & 1) as u8
    }

    /// The channel on which an access was aborted, if the number has a name.
    pub const fn faulting_channel(self) -> Option<Channel> {
        Channel::from_code((self.0 >> 12 & 0xF) as u8)
    }

    /// Masks of the interrupts since the history was cleared.
    pub const fn history(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status({:#010x})", self.0)
    }
}

/// An AXI channel: what an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Commands.
    Commands,
    /// Input feature maps.
    Ifm,
    /// Weights.
    Weights,
    /// Scales and biases.
    Scales,
    /// The reading side of a transfer.
    TransferRead,
    /// Input feature maps that are streamed (U85).
    IfmStream,
    /// The indices of a transfer (U85).
    TransferIndex,
    /// Output feature maps.
    Ofm,
    /// The writing side of a transfer.
    TransferWrite,
}

impl Channel {
    /// All channels.
    pub const ALL: [Channel; 9] = [
        Channel::Commands,
        Channel::Ifm,
        Channel::Weights,
        Channel::Scales,
        Channel::TransferRead,
        Channel::IfmStream,
        Channel::TransferIndex,
        Channel::Ofm,
        Channel::TransferWrite,
    ];

    /// Its number in `STATUS` and `PMCAXI_CHAN`.
    pub const fn code(self) -> u8 {
        match self {
            Channel::Commands => 0,
            Channel::Ifm => 1,
            Channel::Weights => 2,
            Channel::Scales => 3,
            Channel::TransferRead => 4,
            Channel::IfmStream => 5,
            Channel::TransferIndex => 6,
            Channel::Ofm => 8,
            Channel::TransferWrite => 9,
        }
    }

    /// The channel with a number.
    pub const fn from_code(code: u8) -> Option<Channel> {
        Some(match code {
            0 => Channel::Commands,
            1 => Channel::Ifm,
            2 => Channel::Weights,
            3 => Channel::Scales,
            4 => Channel::TransferRead,
            5 => Channel::IfmStream,
            6 => Channel::TransferIndex,
            8 => Channel::Ofm,
            9 => Channel::TransferWrite,
            _ => return None,
        })
    }

    /// Whether `product` has it.
    pub const fn exists_on(self, product: Product) -> bool {
        match self {
            Channel::IfmStream | Channel::TransferIndex => matches!(product, Product::U85),
            _ => true,
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Channel::Commands => "reading commands",
            Channel::Ifm => "reading an input feature map",
            Channel::Weights => "reading weights",
            Channel::Scales => "reading scales",
            Channel::TransferRead => "reading in a transfer",
            Channel::IfmStream => "streaming an input feature map",
            Channel::TransferIndex => "reading the indices of a transfer",
            Channel::Ofm => "writing an output feature map",
            Channel::TransferWrite => "writing in a transfer",
        })
    }
}

/// The security state in which the NPU accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Security {
    /// Secure.
    #[default]
    Secure,
    /// Non-secure.
    NonSecure,
}

/// The privilege level with which the NPU accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Privilege {
    /// User.
    User,
    /// Privileged.
    #[default]
    Privileged,
}

/// Security state and privilege level, as in `RESET` and `PROT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Protection {
    /// Bit 1: set when non-secure.
    pub security: Security,
    /// Bit 0: set when privileged.
    pub privilege: Privilege,
}

impl Protection {
    /// From the word in `RESET` or `PROT`.
    pub const fn from_word(word: u32) -> Protection {
        Protection {
            security: if word & 2 != 0 { Security::NonSecure } else { Security::Secure },
            privilege: if word & 1 != 0 { Privilege::Privileged } else { Privilege::User },
        }
    }

    /// The word for `RESET`.
    pub const fn word(self) -> u32 {
        (matches!(self.security, Security::NonSecure) as u32) << 1
            | matches!(self.privilege, Privilege::Privileged) as u32
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let security = match self.security {
            Security::Secure => "secure",
            Security::NonSecure => "non-secure",
        };
        let privilege = match self.privilege {
            Privilege::User => "user",
            Privilege::Privileged => "privileged",
        };
        write!(f, "{security}, {privilege}")
    }
}

/// The fields of `ID`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Identity(pub u32);

impl Identity {
    /// The architecture's revision, bits 31..16.
    pub const fn architecture(self) -> ArchVersion {
        ArchVersion::from_word(self.0)
    }

    /// The base product's number, bits 15..12.
    pub const fn product_major(self) -> u8 {
        (self.0 >> 12 & 0xF) as u8
    }

    /// The release, `r` and `p` of an `rNpM` number, bits 11..8 and 7..4.
    pub const fn release(self) -> (u8, u8) {
        ((self.0 >> 8 & 0xF) as u8, (self.0 >> 4 & 0xF) as u8)
    }

    /// The release's status, bits 3..0.
    pub const fn status(self) -> u8 {
        (self.0 & 0xF) as u8
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:#010x})", self.0)
    }
}

/// The fields of a `CONFIG` word, in the register or in a payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Configuration(pub u32);

impl Configuration {
    /// The product, bits 31..28, if there is one with this number.
    pub const fn product(self) -> Option<Product> {
        Product::from_code(self.0 >> 28)
    }

    /// Multiply-accumulates per cycle; their logarithm is in bits 3..0.
    pub const fn macs(self) -> u32 {
        1 << (self.0 & 0xF)
    }

    /// The version of the command stream, bits 7..4.
    pub const fn stream_version(self) -> u8 {
        (self.0 >> 4 & 0xF) as u8
    }

    /// Whether there is a custom DMA, bit 27.
    pub const fn custom_dma(self) -> bool {
        self.0 >> 27 & 1 != 0
    }

    /// On U85, the numbers of SRAM and external ports.
    pub fn ports(self) -> Option<(u32, u32)> {
        (self.product()? == Product::U85).then_some((1 << (self.0 >> 8 & 3), 1 << (self.0 >> 10 & 1)))
    }
}

impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Configuration({:#010x})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Accelerator;

    #[test]
    fn protection_survives_the_way_there_and_back() {
        for word in 0..4 {
            assert_eq!(Protection::from_word(word).word(), word);
        }
        // As in the interface headers: privileged is 1, non-secure is 1.
        assert_eq!(Protection::default().word(), 0b01);
    }

    #[test]
    fn channels_survive_the_way_there_and_back() {
        for code in 0..16 {
            let channel = Channel::from_code(code);
            assert_eq!(channel.map(Channel::code), channel.is_some().then_some(code));
        }
        assert!(Channel::ALL.into_iter().all(|channel| Channel::from_code(channel.code()) == Some(channel)));
    }

    #[test]
    fn configuration_words_say_what_an_accelerator_is() {
        for accelerator in Accelerator::ALL {
            let word = Configuration(accelerator.config_word());
            assert_eq!((word.product(), word.macs()), (Some(accelerator.product()), accelerator.macs()));
            assert!(!word.custom_dma());
            // The numbers of ports by size, as in the core driver's README.
            let ports = match (accelerator.product(), accelerator.macs()) {
                (Product::U85, 2048) => Some((4, 2)),
                (Product::U85, 1024) => Some((2, 2)),
                (Product::U85, _) => Some((2, 1)),
                _ => None,
            };
            assert_eq!(word.ports(), ports, "{accelerator}");
        }
    }

    #[test]
    fn identities_hold_the_architecture() {
        let version = |product: Product| Identity(product.id_word()).architecture();
        assert_eq!(version(Product::U55), ArchVersion { major: 1, minor: 1, patch: 0 });
        assert_eq!(version(Product::U65), ArchVersion { major: 1, minor: 0, patch: 6 });
        assert_eq!(version(Product::U85), ArchVersion { major: 2, minor: 0, patch: 0 });
        assert_eq!(Identity(Product::U55.id_word()).release(), (2, 0));
    }
}
