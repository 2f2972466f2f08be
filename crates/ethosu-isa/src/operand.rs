//! How the operand bits of one command become a typed value, and back.
//!
//! The operand of a command is seen as one number of up to 48 bits: the parameter of the first word (its bits 31..16) in
//! bits 15..0, and the payload word, where the command has one, above it in bits 47..16.

use core::fmt;
use core::marker::PhantomData;

use crate::product::Product;

/// One field's value as a reader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue {
    /// A count or a code.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// An address or a length to compare with a memory map; shown in hex.
    Address(u64),
    /// Sixteen bits whose sign another register decides.
    Either(u16),
    /// Yes or no.
    Flag(bool),
    /// One of a list of names.
    Name(&'static str),
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            FieldValue::Unsigned(value) => write!(f, "{value}"),
            FieldValue::Signed(value) => write!(f, "{value}"),
            FieldValue::Address(value) => write!(f, "{value:#x}"),
            FieldValue::Either(value) if value < 0x8000 => write!(f, "{value}"),
            FieldValue::Either(value) => write!(f, "{value} or {}", value as i16),
            FieldValue::Flag(value) => f.write_str(if value { "yes" } else { "no" }),
            FieldValue::Name(name) => f.write_str(name),
        }
    }
}

/// Receives the fields of a command one by one.
pub(crate) type Visitor<'v> = &'v mut dyn FnMut(&'static str, FieldValue);

/// Why operand bits don't make a value (or a value no bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Bits that no field owns are set.
    Reserved(u64),
    /// The field can't hold this, or nothing is known by this code.
    Field { field: &'static str, value: u64 },
}

/// Reads and writes the operand of one command.
pub(crate) trait Codec {
    type Value: Copy;
    fn read(&self, bits: u64, product: Product) -> Result<Self::Value, Fault>;
    fn write(&self, value: Self::Value, product: Product) -> Result<u64, Fault>;
    fn visit(&self, value: Self::Value, visitor: Visitor<'_>);
}

/// The number of bits a field has on U55, U65 and U85.
#[derive(Clone, Copy)]
pub(crate) struct Width([u32; 3]);

impl Width {
    pub(crate) const fn of(self, product: Product) -> u32 {
        self.0[product as usize]
    }

    pub(crate) const fn mask(self, product: Product) -> u64 {
        (1 << self.of(product)) - 1
    }
}

/// The same width on every product.
pub(crate) const fn all(bits: u32) -> Width {
    Width([bits; 3])
}

/// A width for U55 and U65, and another for U85.
pub(crate) const fn old_new(old: u32, new: u32) -> Width {
    Width([old, old, new])
}

fn reserved(bits: u64, mask: u64) -> Result<(), Fault> {
    match bits & !mask {
        0 => Ok(()),
        extra => Err(Fault::Reserved(extra)),
    }
}

/// An unsigned number in the parameter (`low` 0) or in the payload (`low` 16).
pub(crate) struct Uint<T> {
    field: &'static str,
    low: u32,
    width: Width,
    value: PhantomData<T>,
}

pub(crate) const fn param<T>(field: &'static str, width: Width) -> Uint<T> {
    Uint { field, low: 0, width, value: PhantomData }
}

pub(crate) const fn payload<T>(field: &'static str, bits: u32) -> Uint<T> {
    Uint { field, low: 16, width: all(bits), value: PhantomData }
}

impl<T: Copy + TryFrom<u64> + Into<u64>> Codec for Uint<T> {
    type Value = T;

    fn read(&self, bits: u64, product: Product) -> Result<T, Fault> {
        let mask = self.width.mask(product);
        reserved(bits, mask << self.low)?;
        let value = (bits >> self.low) & mask;
        T::try_from(value).map_err(|_| Fault::Field { field: self.field, value })
    }

    fn write(&self, value: T, product: Product) -> Result<u64, Fault> {
        let value = value.into();
        if value > self.width.mask(product) {
            return Err(Fault::Field { field: self.field, value });
        }
        Ok(value << self.low)
    }

    fn visit(&self, value: T, visitor: Visitor<'_>) {
        visitor(self.field, FieldValue::Unsigned(value.into()));
    }
}

/// Sixteen bits of the parameter whose sign another register decides.
pub(crate) struct Either(pub(crate) &'static str);

impl Codec for Either {
    type Value = u16;

    fn read(&self, bits: u64, _product: Product) -> Result<u16, Fault> {
        u16::try_from(bits).map_err(|_| Fault::Reserved(bits & !0xFFFF))
    }

    fn write(&self, value: u16, _product: Product) -> Result<u64, Fault> {
        Ok(value.into())
    }

    fn visit(&self, value: u16, visitor: Visitor<'_>) {
        visitor(self.0, FieldValue::Either(value));
    }
}

/// A byte address or length: the payload holds bits 31..0, the low byte of the parameter bits 39..32. On U55 there are only
/// 32 bits (Arm's core driver, `ethosu55_interface.h`: the parameter is reserved).
pub(crate) struct Address(pub(crate) &'static str);

const HIGH_BYTE: u64 = 0xFF;
const PAYLOAD: u64 = 0xFFFF_FFFF << 16;

fn address_mask(product: Product) -> u64 {
    match product {
        Product::U55 => PAYLOAD,
        Product::U65 | Product::U85 => PAYLOAD | HIGH_BYTE,
    }
}

fn join(bits: u64) -> u64 {
    (bits >> 16) | ((bits & HIGH_BYTE) << 32)
}

fn split(value: u64) -> u64 {
    ((value & 0xFFFF_FFFF) << 16) | ((value >> 32) & HIGH_BYTE)
}

impl Codec for Address {
    type Value = u64;

    fn read(&self, bits: u64, product: Product) -> Result<u64, Fault> {
        reserved(bits, address_mask(product))?;
        Ok(join(bits))
    }

    fn write(&self, value: u64, product: Product) -> Result<u64, Fault> {
        if value >> product.address_bits() != 0 {
            return Err(Fault::Field { field: self.0, value });
        }
        Ok(split(value))
    }

    fn visit(&self, value: u64, visitor: Visitor<'_>) {
        visitor(self.0, FieldValue::Address(value));
    }
}

/// A distance in bytes between two elements: two's complement in 40 bits, on U55 in the 32 bits of the payload.
///
/// Vela 5.2.0 writes the sign into the high byte on U55 too, where the hardware has no bits for it, so a high byte that only
/// repeats the payload's sign is accepted there; it is also what is written for a negative stride.
pub(crate) struct Stride(pub(crate) &'static str);

impl Codec for Stride {
    type Value = i64;

    fn read(&self, bits: u64, product: Product) -> Result<i64, Fault> {
        reserved(bits, PAYLOAD | HIGH_BYTE)?;
        let value = join(bits);
        match product {
            Product::U55 => {
                let low = value as u32 as i32;
                match bits & HIGH_BYTE {
                    0 => Ok(low.into()),
                    HIGH_BYTE if low < 0 => Ok(low.into()),
                    high => Err(Fault::Reserved(high)),
                }
            }
            Product::U65 | Product::U85 => Ok((value << 24) as i64 >> 24),
        }
    }

    fn write(&self, value: i64, product: Product) -> Result<u64, Fault> {
        let limit = 1_i64 << (product.address_bits() - 1);
        if value < -limit || value >= limit {
            return Err(Fault::Field { field: self.0, value: value as u64 });
        }
        Ok(split(value as u64))
    }

    fn visit(&self, value: i64, visitor: Visitor<'_>) {
        visitor(self.0, FieldValue::Signed(value));
    }
}

/// A two's complement number in the parameter (`low` 0) or in the payload (`low` 16).
pub(crate) struct Int<T> {
    field: &'static str,
    low: u32,
    width: u32,
    value: PhantomData<T>,
}

pub(crate) const fn signed_param<T>(field: &'static str, width: u32) -> Int<T> {
    Int { field, low: 0, width, value: PhantomData }
}

pub(crate) const fn signed_payload<T>(field: &'static str) -> Int<T> {
    Int { field, low: 16, width: 32, value: PhantomData }
}

impl<T: Copy + TryFrom<i64> + Into<i64>> Codec for Int<T> {
    type Value = T;

    fn read(&self, bits: u64, _product: Product) -> Result<T, Fault> {
        let mask = ((1_u64 << self.width) - 1) << self.low;
        reserved(bits, mask)?;
        let unused = u64::BITS - self.low - self.width;
        let value = (bits << unused) as i64 >> (unused + self.low);
        T::try_from(value).map_err(|_| Fault::Field { field: self.field, value: value as u64 })
    }

    fn write(&self, value: T, _product: Product) -> Result<u64, Fault> {
        let value = value.into();
        let limit = 1_i64 << (self.width - 1);
        if value < -limit || value >= limit {
            return Err(Fault::Field { field: self.field, value: value as u64 });
        }
        Ok((value as u64 & ((1 << self.width) - 1)) << self.low)
    }

    fn visit(&self, value: T, visitor: Visitor<'_>) {
        visitor(self.field, FieldValue::Signed(value.into()));
    }
}

/// A value that fits in a few bits of an operand.
pub(crate) trait Field: Copy {
    /// The value these bits stand for; `None` for a code nobody has given a meaning.
    fn from_bits(bits: u64) -> Option<Self>;
    fn to_bits(self) -> u64;
    fn shown(self) -> FieldValue;
}

impl Field for bool {
    fn from_bits(bits: u64) -> Option<bool> {
        match bits {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn to_bits(self) -> u64 {
        self.into()
    }

    fn shown(self) -> FieldValue {
        FieldValue::Flag(self)
    }
}

macro_rules! unsigned_field {
    ($($t:ty),*) => {$(
        impl Field for $t {
            fn from_bits(bits: u64) -> Option<$t> {
                bits.try_into().ok()
            }

            fn to_bits(self) -> u64 {
                self.into()
            }

            fn shown(self) -> FieldValue {
                FieldValue::Unsigned(self.into())
            }
        }
    )*};
}

unsigned_field!(u8, u16, u32);

/// A value with several fields.
pub(crate) trait Packed: Copy {
    fn unpack(bits: u64) -> Result<Self, Fault>;
    fn pack(self) -> Result<u64, Fault>;
    fn visit(self, visitor: Visitor<'_>);

    /// Refuses field combinations that `product` doesn't have.
    fn check(&self, product: Product) -> Result<(), Fault> {
        let _ = product;
        Ok(())
    }
}

/// The operand is one [`Packed`] value.
pub(crate) struct Fields<T>(PhantomData<T>);

pub(crate) const fn fields<T>() -> Fields<T> {
    Fields(PhantomData)
}

impl<T: Packed> Codec for Fields<T> {
    type Value = T;

    fn read(&self, bits: u64, product: Product) -> Result<T, Fault> {
        let value = T::unpack(bits)?;
        value.check(product)?;
        Ok(value)
    }

    fn write(&self, value: T, product: Product) -> Result<u64, Fault> {
        value.check(product)?;
        value.pack()
    }

    fn visit(&self, value: T, visitor: Visitor<'_>) {
        value.visit(visitor);
    }
}

/// The operand is one [`Field`] in the low bits of the parameter.
pub(crate) struct One<T> {
    field: &'static str,
    width: u32,
    value: PhantomData<T>,
}

pub(crate) const fn one<T>(field: &'static str, width: u32) -> One<T> {
    One { field, width, value: PhantomData }
}

impl<T: Field> Codec for One<T> {
    type Value = T;

    fn read(&self, bits: u64, _product: Product) -> Result<T, Fault> {
        reserved(bits, mask(self.width))?;
        take(bits, self.field, 0, self.width)
    }

    fn write(&self, value: T, _product: Product) -> Result<u64, Fault> {
        put(value, self.field, 0, self.width)
    }

    fn visit(&self, value: T, visitor: Visitor<'_>) {
        visitor(self.field, value.shown());
    }
}

pub(crate) const fn mask(width: u32) -> u64 {
    (1 << width) - 1
}

/// Refuses set bits outside `owned`.
pub(crate) fn check_reserved(bits: u64, owned: u64) -> Result<(), Fault> {
    reserved(bits, owned)
}

/// The field at `low`, `width` bits wide.
pub(crate) fn take<T: Field>(bits: u64, field: &'static str, low: u32, width: u32) -> Result<T, Fault> {
    let value = (bits >> low) & mask(width);
    T::from_bits(value).ok_or(Fault::Field { field, value })
}

/// A field's bits, moved to `low`.
pub(crate) fn put<T: Field>(value: T, field: &'static str, low: u32, width: u32) -> Result<u64, Fault> {
    let value = value.to_bits();
    if value > mask(width) {
        return Err(Fault::Field { field, value });
    }
    Ok(value << low)
}

/// An enumeration whose variants have a code and a shown name.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$vmeta])* $variant,)*
        }

        impl crate::operand::Field for $name {
            fn from_bits(bits: u64) -> Option<$name> {
                match bits {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }

            fn to_bits(self) -> u64 {
                match self {
                    $($name::$variant => $code,)*
                }
            }

            fn shown(self) -> crate::operand::FieldValue {
                crate::operand::FieldValue::Name(match self {
                    $($name::$variant => $text,)*
                })
            }
        }
    };
}

/// A struct whose fields lie at fixed places: `name: type = low, width`.
macro_rules! packed {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* $field:ident: $type:ty = $low:literal, $width:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $type,)*
        }

        impl $name {
            fn unpack_fields(bits: u64) -> Result<$name, crate::operand::Fault> {
                let owned = 0 $(| crate::operand::mask($width) << $low)*;
                crate::operand::check_reserved(bits, owned)?;
                Ok($name { $($field: crate::operand::take(bits, stringify!($field), $low, $width)?,)* })
            }

            fn pack_fields(self) -> Result<u64, crate::operand::Fault> {
                Ok(0 $(| crate::operand::put(self.$field, stringify!($field), $low, $width)?)*)
            }

            fn visit_fields(self, visitor: crate::operand::Visitor<'_>) {
                $(visitor(stringify!($field), crate::operand::Field::shown(self.$field));)*
            }
        }
    };
}

/// Gives a [`packed!`] struct its [`Packed`] implementation, with an optional check by product.
macro_rules! packed_impl {
    ($($name:ident $(if $check:expr)?;)*) => {$(
        impl crate::operand::Packed for $name {
            fn unpack(bits: u64) -> Result<$name, crate::operand::Fault> {
                $name::unpack_fields(bits)
            }

            fn pack(self) -> Result<u64, crate::operand::Fault> {
                self.pack_fields()
            }

            fn visit(self, visitor: crate::operand::Visitor<'_>) {
                self.visit_fields(visitor);
            }

            $(fn check(&self, product: crate::product::Product) -> Result<(), crate::operand::Fault> {
                $check(self, product)
            })?
        }
    )*};
}

pub(crate) use {named, packed, packed_impl};
