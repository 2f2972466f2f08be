//! The three Ethos-U products.

use core::fmt;

/// An Ethos-U product line. Each speaks its own dialect of the command language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Product {
    /// Ethos-U55: 32-bit addresses, one core.
    U55,
    /// Ethos-U65: the U55's commands with 40-bit addresses and, at 512 MACs, two cores.
    U65,
    /// Ethos-U85: 40-bit addresses, chaining, three weight formats.
    U85,
}

impl Product {
    /// All products, in order.
    pub const ALL: [Product; 3] = [Product::U55, Product::U65, Product::U85];

    /// The product field of a `CONFIG` word, bits 31..28 (Vela 5.2.0, `ConfigRegisters` of each architecture).
    pub const fn code(self) -> u32 {
        match self {
            Product::U55 => 0,
            Product::U65 => 1,
            Product::U85 => 2,
        }
    }

    /// The product with this code in bits 31..28 of a `CONFIG` word.
    pub const fn from_code(code: u32) -> Option<Product> {
        match code {
            0 => Some(Product::U55),
            1 => Some(Product::U65),
            2 => Some(Product::U85),
            _ => None,
        }
    }

    /// The width of an address on this product in bits.
    pub const fn address_bits(self) -> u32 {
        match self {
            Product::U55 => 32,
            Product::U65 | Product::U85 => 40,
        }
    }

    /// Lower-case name as it begins an accelerator's: `ethos-u55`.
    pub const fn name(self) -> &'static str {
        match self {
            Product::U55 => "ethos-u55",
            Product::U65 => "ethos-u65",
            Product::U85 => "ethos-u85",
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of products, as the command table uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Products(u8);

impl Products {
    pub(crate) const ALL: Products = Products(0b111);
    pub(crate) const U55: Products = Products(0b001);
    pub(crate) const U65: Products = Products(0b010);
    pub(crate) const U55_U65: Products = Products(0b011);
    pub(crate) const U65_U85: Products = Products(0b110);
    pub(crate) const U85: Products = Products(0b100);

    pub(crate) const fn has(self, product: Product) -> bool {
        self.0 & (1 << product as u8) != 0
    }
}
