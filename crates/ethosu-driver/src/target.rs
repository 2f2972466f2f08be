//! Which products a driver is built for.

use ethosu_isa::Product;

use crate::ports::{AccessProfiles, AnyPorts, MemoryAttributes, PortSetup};

mod sealed {
    pub trait Sealed {}
}

/// A product fixed at compile time, or [`Any`] that is found at run time. The same code serves both.
pub trait Target: sealed::Sealed + Copy + core::fmt::Debug + 'static {
    /// How this target's ports are set up.
    type Ports: PortSetup;
    /// The product, where it is fixed.
    const PRODUCT: Option<Product>;
    /// The ports as the core driver sets them up by default.
    const PORTS: Self::Ports;
}

macro_rules! targets {
    ($($(#[$meta:meta])* $name:ident, $product:expr, $ports:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Target for $name {
            type Ports = $ports;
            const PRODUCT: Option<Product> = $product;
            const PORTS: $ports = $ports::new();
        }
    )*};
}

targets! {
    /// An Ethos-U55 and nothing else.
    U55, Some(Product::U55), AccessProfiles;
    /// An Ethos-U65 and nothing else.
    U65, Some(Product::U65), AccessProfiles;
    /// An Ethos-U85 and nothing else.
    U85, Some(Product::U85), MemoryAttributes;
    /// Whichever product the registers say it is.
    Any, None, AnyPorts;
}
