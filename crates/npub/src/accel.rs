//! The accelerator a command stream was compiled for.

use core::fmt;

/// The header's `accel` word: 0 when the producer didn't say; else MACs a cycle in the low 16 bits and the product
/// in the high 16 (0 Ethos-U55, 65 Ethos-U65, 85 Ethos-U85), so that an ethos-u55-256 is plain 256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Accel(u32);

/// An NPU family.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Product {
    /// Ethos-U55: 32 to 256 MACs a cycle.
    U55,
    /// Ethos-U65: 256 or 512 MACs a cycle.
    U65,
    /// Ethos-U85: 128 to 2048 MACs a cycle.
    U85,
}

impl Product {
    const ALL: [Product; 3] = [Product::U55, Product::U65, Product::U85];

    /// The high half of the accel word.
    const fn code(self) -> u16 {
        match self {
            Product::U55 => 0,
            Product::U65 => 65,
            Product::U85 => 85,
        }
    }

    /// Bits 31..28 of the config word (Vela 5.2.0, regor/architecture, the `config_r` of the interface headers).
    const fn config_number(self) -> u32 {
        match self {
            Product::U55 => 0,
            Product::U65 => 1,
            Product::U85 => 2,
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Product::U55 => "ethos-u55",
            Product::U65 => "ethos-u65",
            Product::U85 => "ethos-u85",
        })
    }
}

impl Accel {
    /// The producer didn't say.
    pub const UNKNOWN: Accel = Accel(0);

    /// An accelerator by family and MACs a cycle. Any width is representable; 0 MACs of an U55 is [`UNKNOWN`].
    ///
    /// [`UNKNOWN`]: Accel::UNKNOWN
    pub const fn new(product: Product, macs: u16) -> Accel {
        Accel((product.code() as u32) << 16 | macs as u32)
    }

    /// An Ethos-U55 with this many MACs a cycle.
    pub const fn u55(macs: u16) -> Accel {
        Accel::new(Product::U55, macs)
    }

    /// An Ethos-U65 with this many MACs a cycle.
    pub const fn u65(macs: u16) -> Accel {
        Accel::new(Product::U65, macs)
    }

    /// An Ethos-U85 with this many MACs a cycle.
    pub const fn u85(macs: u16) -> Accel {
        Accel::new(Product::U85, macs)
    }

    /// The word as it stands in a header. Every value is taken: the word is informational.
    pub const fn from_word(word: u32) -> Accel {
        Accel(word)
    }

    /// The word as it stands in a header.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// From the config word of Arm's payload framing, which is also the NPU's CONFIG register: bits 31..28 the product,
    /// 3..0 the binary logarithm of the MACs a cycle. None for a product it doesn't name.
    pub fn from_config_word(config: u32) -> Option<Accel> {
        let product = Product::ALL.into_iter().find(|product| product.config_number() == config >> 28)?;
        Some(Accel::new(product, 1 << (config & 0xF)))
    }

    /// From a name as Vela writes it, `ethos-u55-256`. None for a name of another form.
    pub fn from_name(name: &str) -> Option<Accel> {
        let (family, macs) = name.rsplit_once('-')?;
        let product = match family {
            "ethos-u55" => Product::U55,
            "ethos-u65" => Product::U65,
            "ethos-u85" => Product::U85,
            _ => return None,
        };
        // `u16::from_str` takes a sign and leading zeros, a name has neither.
        if !macs.starts_with(|first: char| ('1'..='9').contains(&first)) {
            return None;
        }
        Some(Accel::new(product, macs.parse().ok()?))
    }

    /// Whether the producer said which accelerator.
    pub const fn is_known(self) -> bool {
        self.0 != 0
    }

    /// The family; None when unknown or a code without a meaning.
    pub fn product(self) -> Option<Product> {
        let product = Product::ALL.into_iter().find(|product| u32::from(product.code()) == self.0 >> 16)?;
        self.is_known().then_some(product)
    }

    /// MACs a cycle; 0 when unknown.
    pub const fn macs(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }
}

impl fmt::Display for Accel {
    /// `ethos-u55-256`, `unknown`, or `accelerator 0x00420100` for a product code without a meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.product() {
            Some(product) => write!(f, "{product}-{}", self.macs()),
            None if !self.is_known() => f.write_str("unknown"),
            None => write!(f, "accelerator {:#010x}", self.0),
        }
    }
}

impl fmt::Debug for Accel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Accel({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn words_names_and_config_words_agree() {
        // Config words as Vela 5.2.0 writes them.
        for (accel, word, name, config) in [
            (Accel::u55(128), 128, "ethos-u55-128", 0x0000_1807),
            (Accel::u55(256), 256, "ethos-u55-256", 0x0000_3008),
            (Accel::u65(256), 0x0041_0100, "ethos-u65-256", 0x1000_3008),
            (Accel::u65(512), 0x0041_0200, "ethos-u65-512", 0x1000_6009),
            (Accel::u85(256), 0x0055_0100, "ethos-u85-256", 0x2000_0118),
        ] {
            assert_eq!(accel.word(), word);
            assert_eq!(accel.to_string(), name);
            assert_eq!(Accel::from_name(name), Some(accel));
            assert_eq!(Accel::from_config_word(config), Some(accel));
            assert_eq!(Accel::from_word(word), accel);
        }
    }

    #[test]
    fn what_has_no_meaning_keeps_its_word() {
        assert_eq!(Accel::UNKNOWN.to_string(), "unknown");
        assert_eq!(Accel::UNKNOWN.product(), None);
        let odd = Accel::from_word(0x0042_0100);
        assert_eq!((odd.product(), odd.macs()), (None, 256));
        assert_eq!(odd.to_string(), "accelerator 0x00420100");
        for name in
            ["", "ethos-u55", "ethos-u55-", "ethos-u55-+64", "ethos-u55-064", "ethos-u55-65536", "u55-64"]
        {
            assert_eq!(Accel::from_name(name), None, "{name}");
        }
        assert_eq!(Accel::from_config_word(0x3000_0008), None);
    }
}
