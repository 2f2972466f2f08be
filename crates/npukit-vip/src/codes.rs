//! The numbers by which ovxlib and TIM-VX name data types and quantisations, and the cell that packs one of each.
//!
//! ovxlib writes a tensor's signature as `vx_type | quantisation << 8`. Types of the 0x8xx range reach into the
//! quantisation's bits, so a cell can't always be taken apart again without a doubt: `0x81C` is I4 with no
//! quantisation and I4 with GROUP_SYM alike. The numbers are those of `vsi_nn_types.h` (TIM-VX, ovxlib 1.2.22).

use core::fmt;
use core::str::FromStr;
use serde::{Serialize, Serializer};

/// A data type by its OpenVX number, known or not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VxType(pub u32);

/// A quantisation by its ovxlib number, known or not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quant(pub u32);

/// One tensor's place in a table row: type and quantisation packed into a word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u32);

/// How far the quantisation is shifted in a cell (`Q_SHIFT` in `vsi_nn_constraint_check.h`).
pub const QUANT_SHIFT: u32 = 8;

macro_rules! codes {
    ($type:ident, $($constant:ident = $value:literal, $name:literal, $doc:literal;)*) => {
        impl $type {
            $(#[doc = $doc] pub const $constant: $type = $type($value);)*

            /// Every number that has a name.
            pub const NAMED: &'static [($type, &'static str)] = &[$(($type::$constant, $name)),*];

            /// The short name used in tables and on the command line, if the number is known.
            pub fn name(self) -> Option<&'static str> {
                Self::NAMED.iter().find(|(code, _)| *code == self).map(|(_, name)| *name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "{:#x}", self.0),
                }
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl FromStr for $type {
            type Err = CodeError;

            fn from_str(text: &str) -> Result<Self, CodeError> {
                let lower = text.to_ascii_lowercase();
                Self::NAMED
                    .iter()
                    .find(|(_, name)| *name == lower)
                    .map(|(code, _)| *code)
                    .ok_or_else(|| CodeError { text: text.to_owned(), known: Self::NAMED.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ") })
            }
        }
    };
}

codes! { VxType,
    NONE = 0, "none", "An absent tensor.";
    I8 = 2, "i8", "Signed 8 bits.";
    U8 = 3, "u8", "Unsigned 8 bits.";
    I16 = 4, "i16", "Signed 16 bits.";
    U16 = 5, "u16", "Unsigned 16 bits.";
    I32 = 6, "i32", "Signed 32 bits.";
    U32 = 7, "u32", "Unsigned 32 bits.";
    I64 = 8, "i64", "Signed 64 bits.";
    U64 = 9, "u64", "Unsigned 64 bits.";
    F32 = 0xA, "f32", "IEEE single precision.";
    F64 = 0xB, "f64", "IEEE double precision.";
    F16 = 0xF, "f16", "IEEE half precision.";
    BOOL8 = 0x11, "bool8", "A truth value in 8 bits.";
    VDATA = 0x101, "vdata", "Weights already packed for the hardware.";
    BF16 = 0x81A, "bf16", "The upper half of a single-precision number.";
    I4 = 0x81C, "i4", "Signed 4 bits (0x012 in builds without VX_TENSOR_STRIDE_X_BITS_SUPPORT).";
    U4 = 0x81D, "u4", "Unsigned 4 bits (0x013 in builds without VX_TENSOR_STRIDE_X_BITS_SUPPORT).";
    FP8_E4M3 = 0x81E, "fp8_e4m3", "8-bit float, 4 exponent bits.";
    FP8_E5M2 = 0x81F, "fp8_e5m2", "8-bit float, 5 exponent bits.";
}

codes! { Quant,
    NONE = 0, "none", "No quantisation.";
    DFP = 1, "dfp", "Dynamic fixed point: value * 2^-fl.";
    ASYM = 2, "asym", "Affine per tensor: scale and zero point.";
    SYM_PC = 3, "sym_pc", "Symmetric per channel.";
    SYM = 4, "sym", "Symmetric per tensor.";
    ASYM_PC = 5, "asym_pc", "Affine per channel.";
    FP8 = 6, "fp8", "Symmetric 8-bit float.";
    FP8_PC = 7, "fp8_pc", "Symmetric 8-bit float per channel.";
    GROUP_SYM = 8, "group_sym", "Symmetric per group.";
    GROUP_ASYM = 9, "group_asym", "Affine per group.";
    NA = 0xFF, "na", "Not applicable.";
}

/// A name that isn't in the list of codes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no known name; known: {known}")]
pub struct CodeError {
    text: String,
    known: String,
}

impl VxType {
    /// Whether ovxlib counts the type as an integer (`type_is_integer` in `vsi_nn_dtype_util_prv.h`).
    pub fn is_integer(self) -> bool {
        use VxType as T;
        matches!(
            self,
            T::I4 | T::I8 | T::I16 | T::I32 | T::I64 | T::U4 | T::U8 | T::U16 | T::U32 | T::U64 | T::BOOL8
        )
    }
}

impl Cell {
    /// Packs a type and a quantisation as ovxlib does.
    pub const fn new(vx_type: VxType, quant: Quant) -> Cell {
        Cell(vx_type.0 | quant.0 << QUANT_SHIFT)
    }

    /// The bits that the matcher takes for the data type.
    pub const fn type_bits(self) -> u32 {
        self.0 & ((1 << QUANT_SHIFT) - 1)
    }

    /// The bits that the matcher takes for the quantisation; the 0x8xx types set some of them.
    pub const fn quant_bits(self) -> u32 {
        self.0 >> QUANT_SHIFT
    }

    /// Type and quantisation, where a known pair packs to this cell; the pair without a group quantisation wins.
    pub fn parts(self) -> Option<(VxType, Quant)> {
        let pairs = VxType::NAMED.iter().flat_map(|(t, _)| Quant::NAMED.iter().map(move |(q, _)| (*t, *q)));
        pairs.filter(|(t, q)| Cell::new(*t, *q) == self).min_by_key(|(t, q)| (q.0, t.0))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            Some((vx_type, Quant::NONE)) => write!(f, "{vx_type}"),
            Some((vx_type, quant)) => write!(f, "{vx_type}:{quant}"),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Cell {
    type Err = CodeError;

    fn from_str(text: &str) -> Result<Self, CodeError> {
        match text.split_once(':') {
            Some((vx_type, quant)) => Ok(Cell::new(vx_type.parse()?, quant.parse()?)),
            None => Ok(Cell::new(text.parse()?, Quant::NONE)),
        }
    }
}

/// TIM-VX's `DataType` numbers and the ovxlib type each becomes (`include/tim/vx/types.h`). They differ from
/// OpenVX's: TIM-VX FLOAT16 is 8, OpenVX's 15; TIM-VX UINT8 is 2, OpenVX's 3. Anything else silently becomes F16.
pub const TIM_VX_TYPES: [(u32, &str, VxType); 13] = [
    (0, "UNKNOWN", VxType::F16),
    (1, "INT8", VxType::I8),
    (2, "UINT8", VxType::U8),
    (3, "INT16", VxType::I16),
    (4, "UINT16", VxType::U16),
    (5, "INT32", VxType::I32),
    (6, "UINT32", VxType::U32),
    (7, "INT64", VxType::I64),
    (8, "FLOAT16", VxType::F16),
    (9, "FLOAT32", VxType::F32),
    (10, "BOOL8", VxType::BOOL8),
    (11, "INT4", VxType::I4),
    (12, "UINT4", VxType::U4),
];

/// TIM-VX's `QuantType` numbers and the ovxlib quantisation each becomes.
pub const TIM_VX_QUANTS: [(u32, &str, Quant); 5] = [
    (0, "NONE", Quant::NONE),
    (1, "ASYMMETRIC", Quant::ASYM),
    (2, "SYMMETRIC_PER_CHANNEL", Quant::SYM_PC),
    (3, "ASYMMETRIC_PER_CHANNEL", Quant::ASYM_PC),
    (4, "DYNAMIC_FIXED_POINT", Quant::DFP),
];

/// The ovxlib type of a TIM-VX `DataType` number; a number it doesn't know becomes F16 as in TIM-VX.
pub fn from_tim_vx_type(number: u32) -> VxType {
    TIM_VX_TYPES.iter().find(|(n, ..)| *n == number).map_or(VxType::F16, |(.., t)| *t)
}

/// The ovxlib quantisation of a TIM-VX `QuantType` number, if TIM-VX has that number.
pub fn from_tim_vx_quant(number: u32) -> Option<Quant> {
    TIM_VX_QUANTS.iter().find(|(n, ..)| *n == number).map(|(.., q)| *q)
}

/// Whether a TIM-VX user can say this cell at all: it has no symmetric per-tensor quantisation, no BF16 and no FP8,
/// so rows with those are reached from ovxlib or Acuity alone.
pub fn tim_vx_can_say(cell: Cell) -> bool {
    cell.0 == 0
        || TIM_VX_TYPES
            .iter()
            .skip(1)
            .any(|(.., t)| TIM_VX_QUANTS.iter().any(|(.., q)| Cell::new(*t, *q) == cell))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_pack_as_ovxlib_does_and_print_back() {
        for (text, number) in [
            ("f16", 0x00F),
            ("f32", 0x00A),
            ("u8:asym", 0x203),
            ("i8:sym_pc", 0x302),
            ("bf16", 0x81A),
            ("i4:dfp", 0x91C),
            ("u4:asym", 0xA1D),
            ("none", 0),
        ] {
            let cell: Cell = text.parse().unwrap();
            assert_eq!(cell.0, number, "{text}");
            assert_eq!(cell.to_string(), text);
        }
        assert!("q8".parse::<Cell>().is_err());
        assert!("u8:half".parse::<Cell>().is_err());
    }

    #[test]
    fn group_quantisation_of_four_bit_types_aliases_other_cells() {
        assert_eq!(Cell::new(VxType::I4, Quant::GROUP_SYM), Cell::new(VxType::I4, Quant::NONE));
        assert_eq!(Cell::new(VxType::I4, Quant::GROUP_ASYM), Cell::new(VxType::I4, Quant::DFP));
    }

    #[test]
    fn tim_vx_numbers_are_not_openvx_numbers() {
        assert_eq!(from_tim_vx_type(8), VxType::F16);
        assert_eq!(from_tim_vx_type(2), VxType::U8);
        assert_eq!((VxType::F16.0, VxType::U8.0), (15, 3));
        assert_eq!(from_tim_vx_type(99), VxType::F16, "unknown types silently become F16");
        assert_eq!(from_tim_vx_quant(2), Some(Quant::SYM_PC));
        assert_eq!(from_tim_vx_quant(5), None);
    }

    #[test]
    fn tim_vx_cannot_say_symmetric_per_tensor() {
        assert!(tim_vx_can_say("u8:asym".parse().unwrap()));
        assert!(!tim_vx_can_say("i8:sym".parse().unwrap()));
        assert!(!tim_vx_can_say("bf16".parse().unwrap()));
    }
}
