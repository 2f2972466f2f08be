//! Accelerator configurations: a product and its size.

use core::fmt;
use core::str::FromStr;

use crate::fields85::Microblock;
use crate::product::Product;

/// The extent of a block of a feature map in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Channels.
    pub depth: u32,
}

impl Block {
    const fn new(height: u32, width: u32, depth: u32) -> Block {
        Block { height, width, depth }
    }
}

/// One of the eleven configurations in which Ethos-U is built.
///
/// There is no way to make an invalid one: take a constant, parse a name or read a `CONFIG` word.
///
/// ```
/// use ethosu_isa::{Accelerator, Product};
/// let accelerator: Accelerator = "Ethos-U55-128".parse()?;
/// assert_eq!(accelerator, Accelerator::U55_128);
/// assert_eq!((accelerator.product(), accelerator.macs()), (Product::U55, 128));
/// assert_eq!(accelerator.to_string(), "ethos-u55-128");
/// # Ok::<(), ethosu_isa::ParseAcceleratorError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Accelerator {
    product: Product,
    macs: u16,
}

/// What differs between two configurations of one product.
struct Row {
    name: &'static str,
    cores: u32,
    /// Zero on the U85, which has separate RAMs.
    shram_banks: u32,
    ifm_ublock: Block,
    ofm_ublocks: &'static [Block],
    config_word: u32,
}

const fn row(
    name: &'static str,
    cores: u32,
    shram_banks: u32,
    ifm_ublock: Block,
    ofm_ublocks: &'static [Block],
    config_word: u32,
) -> Row {
    Row { name, cores, shram_banks, ifm_ublock, ofm_ublocks, config_word }
}

const fn b(height: u32, width: u32, depth: u32) -> Block {
    Block::new(height, width, depth)
}

/// Sources: the configuration tables of Vela 5.2.0's `ethos_u55.cpp`, `ethos_u65.cpp` and `ethos_u85.cpp` (micro-blocks,
/// SHRAM banks, cores); the last column is the `CONFIG` word that Vela writes into its payloads.
static ROWS: [Row; 11] = [
    row("ethos-u55-32", 1, 16, b(1, 1, 8), &[b(1, 1, 4)], 0x0000_1005),
    row("ethos-u55-64", 1, 16, b(1, 1, 8), &[b(1, 1, 8)], 0x0000_1006),
    row("ethos-u55-128", 1, 24, b(1, 2, 8), &[b(1, 2, 8)], 0x0000_1807),
    row("ethos-u55-256", 1, 48, b(2, 2, 8), &[b(2, 2, 8)], 0x0000_3008),
    row("ethos-u65-256", 1, 48, b(2, 2, 8), &[b(2, 2, 8)], 0x1000_3008),
    row("ethos-u65-512", 2, 48, b(2, 2, 8), &[b(2, 2, 8)], 0x1000_6009),
    row("ethos-u85-128", 1, 0, b(1, 2, 8), &[b(1, 2, 8), b(1, 1, 16)], 0x2000_0117),
    row("ethos-u85-256", 1, 0, b(2, 2, 8), &[b(1, 2, 16), b(1, 4, 8), b(2, 2, 8)], 0x2000_0118),
    row("ethos-u85-512", 1, 0, b(2, 2, 16), &[b(2, 2, 16), b(1, 4, 16)], 0x2000_1119),
    row("ethos-u85-1024", 1, 0, b(4, 2, 16), &[b(2, 2, 32), b(1, 4, 32), b(2, 4, 16)], 0x2000_251A),
    row("ethos-u85-2048", 1, 0, b(4, 4, 16), &[b(2, 2, 64), b(1, 4, 64), b(4, 4, 16)], 0x2000_261B),
];

/// Bytes in one bank of SHRAM (Vela 5.2.0, `ethos_u55.cpp`).
const SHRAM_BANK_BYTES: u32 = 1024;

impl Accelerator {
    /// Ethos-U55 with 32 MACs per cycle.
    pub const U55_32: Accelerator = Accelerator { product: Product::U55, macs: 32 };
    /// Ethos-U55 with 64 MACs per cycle.
    pub const U55_64: Accelerator = Accelerator { product: Product::U55, macs: 64 };
    /// Ethos-U55 with 128 MACs per cycle.
    pub const U55_128: Accelerator = Accelerator { product: Product::U55, macs: 128 };
    /// Ethos-U55 with 256 MACs per cycle.
    pub const U55_256: Accelerator = Accelerator { product: Product::U55, macs: 256 };
    /// Ethos-U65 with 256 MACs per cycle.
    pub const U65_256: Accelerator = Accelerator { product: Product::U65, macs: 256 };
    /// Ethos-U65 with 512 MACs per cycle in two cores.
    pub const U65_512: Accelerator = Accelerator { product: Product::U65, macs: 512 };
    /// Ethos-U85 with 128 MACs per cycle.
    pub const U85_128: Accelerator = Accelerator { product: Product::U85, macs: 128 };
    /// Ethos-U85 with 256 MACs per cycle.
    pub const U85_256: Accelerator = Accelerator { product: Product::U85, macs: 256 };
    /// Ethos-U85 with 512 MACs per cycle.
    pub const U85_512: Accelerator = Accelerator { product: Product::U85, macs: 512 };
    /// Ethos-U85 with 1024 MACs per cycle.
    pub const U85_1024: Accelerator = Accelerator { product: Product::U85, macs: 1024 };
    /// Ethos-U85 with 2048 MACs per cycle.
    pub const U85_2048: Accelerator = Accelerator { product: Product::U85, macs: 2048 };

    /// Every valid configuration, by product and size.
    pub const ALL: [Accelerator; 11] = [
        Accelerator::U55_32,
        Accelerator::U55_64,
        Accelerator::U55_128,
        Accelerator::U55_256,
        Accelerator::U65_256,
        Accelerator::U65_512,
        Accelerator::U85_128,
        Accelerator::U85_256,
        Accelerator::U85_512,
        Accelerator::U85_1024,
        Accelerator::U85_2048,
    ];

    /// The configuration of `product` with `macs` MACs per cycle, if it is built.
    pub fn new(product: Product, macs: u32) -> Option<Accelerator> {
        Accelerator::ALL.into_iter().find(|a| a.product == product && a.macs() == macs)
    }

    fn row(self) -> &'static Row {
        // The table follows the order of `ALL`.
        let index = match (self.product, self.macs) {
            (Product::U55, 32) => 0,
            (Product::U55, 64) => 1,
            (Product::U55, 128) => 2,
            (Product::U55, _) => 3,
            (Product::U65, 256) => 4,
            (Product::U65, _) => 5,
            (Product::U85, 128) => 6,
            (Product::U85, 256) => 7,
            (Product::U85, 512) => 8,
            (Product::U85, 1024) => 9,
            (Product::U85, _) => 10,
        };
        &ROWS[index]
    }

    /// The product line.
    pub const fn product(self) -> Product {
        self.product
    }

    /// Multiply-accumulate operations per cycle, all cores together.
    pub const fn macs(self) -> u32 {
        self.macs as u32
    }

    /// The base-2 logarithm of [`macs`](Accelerator::macs), bits 3..0 of the `CONFIG` word.
    pub const fn log2_macs(self) -> u32 {
        self.macs.ilog2()
    }

    /// MAC engines that work on alternate output channels, each with its own weight and scale stream: 2 on
    /// `ethos-u65-512`, else 1. (The U85 splits its weights into [`weight_streams`](Accelerator::weight_streams) instead.)
    pub fn cores(self) -> u32 {
        self.row().cores
    }

    /// Weight streams that one operation may read at once: 2 on `ethos-u65-512` and `ethos-u85-512`, 4 on
    /// `ethos-u85-1024` and `-2048`, else 1.
    pub const fn weight_streams(self) -> u32 {
        match (self.product, self.macs) {
            (Product::U65 | Product::U85, 512) => 2,
            (Product::U85, 1024 | 2048) => 4,
            _ => 1,
        }
    }

    /// The block of the input that one core takes in at once.
    pub fn ifm_ublock(self) -> Block {
        self.row().ifm_ublock
    }

    /// The block of the output that one core computes at once, on products where the configuration decides it. `None` on
    /// the U85, where each operation chooses among [`ofm_ublocks`](Accelerator::ofm_ublocks).
    pub fn ofm_ublock(self) -> Option<Block> {
        match self.product {
            Product::U55 | Product::U65 => self.row().ofm_ublocks.first().copied(),
            Product::U85 => None,
        }
    }

    /// The output micro-blocks this configuration offers: one on U55 and U65, two or three on U85.
    pub fn ofm_ublocks(self) -> &'static [Block] {
        self.row().ofm_ublocks
    }

    /// The output micro-block that a U85 operation with this accumulator format computes; `None` where the
    /// configuration doesn't offer it.
    pub fn ofm_ublock_for(self, microblock: Microblock) -> Option<Block> {
        let wanted = (microblock.height(), microblock.width());
        match self.product {
            Product::U85 => {
                self.row().ofm_ublocks.iter().copied().find(|block| (block.height, block.width) == wanted)
            }
            Product::U55 | Product::U65 => None,
        }
    }

    /// Banks of shared RAM in one core: 16, 16, 24 and 48 on U55, 48 on U65; `None` on U85, which has separate RAMs.
    pub fn shram_banks(self) -> Option<u32> {
        match self.row().shram_banks {
            0 => None,
            banks => Some(banks),
        }
    }

    /// Bytes of shared RAM in one core; `None` on U85.
    pub fn shram_bytes(self) -> Option<u32> {
        self.shram_banks().map(|banks| banks * SHRAM_BANK_BYTES)
    }

    /// The `CONFIG` word Vela writes into the payloads it makes for this configuration.
    pub fn config_word(self) -> u32 {
        self.row().config_word
    }

    /// The architecture word Vela 5.2.0 writes beside the configuration word.
    pub const fn arch_word(self) -> u32 {
        match self.product {
            Product::U55 | Product::U65 => 0x1006_6001,
            Product::U85 => 0x2000_7000,
        }
    }

    /// The configuration a `CONFIG` word stands for. Only the product (bits 31..28) and the MACs (bits 3..0) decide; the
    /// other fields describe the same thing a second time.
    ///
    /// # Errors
    /// [`ConfigWordError`] where no configuration has this product and size.
    pub fn from_config_word(word: u32) -> Result<Accelerator, ConfigWordError> {
        Product::from_code(word >> 28)
            .and_then(|product| Accelerator::new(product, 1 << (word & 0xF)))
            .ok_or(ConfigWordError { word })
    }

    /// Whether a payload with this `CONFIG` word was made for this configuration: the product and MACs agree.
    pub fn matches_config_word(self, word: u32) -> bool {
        Accelerator::from_config_word(word) == Ok(self)
    }

    /// The name Vela's `--accelerator-config` takes.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Accelerator {
    type Err = ParseAcceleratorError;

    /// Reads a name such as `ethos-u55-128`, in any case.
    fn from_str(name: &str) -> Result<Accelerator, ParseAcceleratorError> {
        Accelerator::ALL
            .into_iter()
            .find(|accelerator| accelerator.name().eq_ignore_ascii_case(name))
            .ok_or(ParseAcceleratorError(()))
    }
}

/// A name that no accelerator has. Its text lists those that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseAcceleratorError(());

impl fmt::Display for ParseAcceleratorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown accelerator; known are ")?;
        for (index, accelerator) in Accelerator::ALL.into_iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            f.write_str(accelerator.name())?;
        }
        Ok(())
    }
}

impl core::error::Error for ParseAcceleratorError {}

/// A `CONFIG` word whose product and size no accelerator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigWordError {
    /// The word found.
    pub word: u32,
}

impl fmt::Display for ConfigWordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (product, log2_macs) = (self.word >> 28, self.word & 0xF);
        write!(
            f,
            "configuration word {:#010x} fits no Ethos-U: product {product} (0 U55, 1 U65, 2 U85) with 2^{log2_macs} MACs",
            self.word
        )
    }
}

impl core::error::Error for ConfigWordError {}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_configuration_finds_its_own_row() {
        for (accelerator, row) in Accelerator::ALL.into_iter().zip(&ROWS) {
            assert_eq!(accelerator.row().config_word, row.config_word);
            assert_eq!(accelerator.name(), row.name);
            assert_eq!(accelerator.to_string().to_uppercase().parse(), Ok(accelerator));
            assert_eq!(Accelerator::from_config_word(accelerator.config_word()), Ok(accelerator));
            assert_eq!(Accelerator::new(accelerator.product(), accelerator.macs()), Some(accelerator));
            assert_eq!(1 << accelerator.log2_macs(), accelerator.macs());
        }
    }

    #[test]
    fn the_config_word_repeats_what_the_table_says() {
        for accelerator in Accelerator::ALL {
            let word = accelerator.config_word();
            assert_eq!(word >> 28, accelerator.product().code());
            assert_eq!(word & 0xF, accelerator.log2_macs());
            if let Some(bytes) = accelerator.shram_bytes() {
                assert_eq!(
                    (word >> 8) & 0xFF,
                    accelerator.cores() * bytes / 1024,
                    "{accelerator}: SHRAM in KiB"
                );
            } else {
                // U85: bits 13..12 are the logarithm of the weight streams.
                assert_eq!(1 << ((word >> 12) & 3), accelerator.weight_streams(), "{accelerator}");
            }
        }
    }

    #[test]
    fn micro_blocks_use_all_macs() {
        // Eight input channels meet every output element of a micro-block in one cycle.
        for accelerator in Accelerator::ALL {
            for block in accelerator.ofm_ublocks() {
                let macs = block.height * block.width * block.depth * 8 * accelerator.cores();
                assert_eq!(macs, accelerator.macs(), "{accelerator} {block:?}");
            }
        }
        assert_eq!(Accelerator::U55_32.ofm_ublock().map(|b| b.depth), Some(4));
        assert_eq!(Accelerator::U85_256.ofm_ublock(), None);
        assert_eq!(Accelerator::U85_256.ofm_ublock_for(Microblock::U2x2), Some(Block::new(2, 2, 8)));
        assert_eq!(Accelerator::U85_256.ofm_ublock_for(Microblock::U4x4), None);
    }

    #[test]
    fn unknown_names_and_words_are_refused() {
        for name in ["", "ethos-u55", "ethos-u55-512", "ethos-u65-128", "u55-128", "ethos-u55-128 "] {
            let error = name.parse::<Accelerator>().unwrap_err().to_string();
            assert!(error.contains("ethos-u55-32, ") && error.ends_with("ethos-u85-2048"), "{error}");
        }
        for word in [0x3000_0007, 0x0000_000F, 0x0000_0009, 0x1000_0007, 0xFFFF_FFFF] {
            let error = Accelerator::from_config_word(word).unwrap_err();
            assert!(error.to_string().contains(&std::format!("{word:#010x}")));
        }
    }
}
