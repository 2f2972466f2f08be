//! The output stage: zero point, clamp, activation or table.

use ethosu_isa::{Activation, ActivationFunction, ClipRange, ElementSize};

use crate::native;
use crate::stop::Cause;
use crate::table::{TableMemory, TableShape};

/// What an operation does with a scaled value before it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputStage {
    zero_point: i64,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// 8 or 16 bits: add the zero point, clamp.
    Clamp {
        low: i64,
        high: i64,
    },
    /// 8 or 16 bits clamped, or 8 bits looked up to 32: the clamped value is an index.
    Table {
        low: i64,
        high: i64,
        slot: u8,
        shape: TableShape,
    },
    /// 32 bits without a table: stored as it is. OFM_ZERO_POINT, ACTIVATION_MIN and _MAX have no effect.
    Plain32,
    /// The built-in functions, on a value not clipped before.
    Tanh,
    Sigmoid,
}

/// What the registers say about the output of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputRegisters {
    pub(crate) element: ElementSize,
    pub(crate) signed: bool,
    pub(crate) zero_point: i64,
    pub(crate) activation: Activation,
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl OutputStage {
    /// Checks that the form is one whose result is known.
    pub(crate) fn new(registers: OutputRegisters) -> Result<Self, Cause> {
        let OutputRegisters { element, signed, zero_point, activation, min, max } = registers;
        let wide = element == ElementSize::Bits32;
        let clip = activation.clip;
        if element == ElementSize::Bits64 {
            return Err(Cause::not_modelled("OFM_PRECISION size", 64, "U55 and U65 store 8, 16 or 32 bits"));
        }
        if matches!(clip, ClipRange::U8 | ClipRange::I16) {
            let code = if clip == ClipRange::U8 { 2 } else { 5 };
            return Err(Cause::not_modelled(
                "ACTIVATION clip range",
                code,
                "known are 0, and 3 with a 32-bit table",
            ));
        }
        let type_range = |bits: u32, signed: bool| {
            if signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) }
        };
        let clamp = |bits, signed| -> Result<(i64, i64), Cause> {
            let (lowest, highest) = type_range(bits, signed);
            let (low, high) = (min.max(lowest), max.min(highest));
            if low > high {
                return Err(Cause::not_modelled(
                    "ACTIVATION_MIN",
                    min,
                    "it is above ACTIVATION_MAX or the type's range",
                ));
            }
            Ok((low, high))
        };
        let narrow_clip = || match clip {
            ClipRange::Ofm => Ok(()),
            _ => Err(Cause::not_modelled(
                "ACTIVATION clip range",
                3,
                "8- and 16-bit outputs are known with range 0",
            )),
        };
        let kind = match activation.function {
            ActivationFunction::None if wide => {
                if clip != ClipRange::Ofm {
                    return Err(Cause::not_modelled(
                        "ACTIVATION clip range",
                        3,
                        "32-bit outputs use it with a table only",
                    ));
                }
                Kind::Plain32
            }
            ActivationFunction::None => {
                narrow_clip()?;
                let (low, high) = clamp(8 * element.bytes(), signed)?;
                Kind::Clamp { low, high }
            }
            ActivationFunction::Table(slot) => {
                let (low, high) = if wide {
                    if clip != ClipRange::I8 {
                        return Err(Cause::not_modelled(
                            "ACTIVATION clip range",
                            0,
                            "a 32-bit table is known with range 3",
                        ));
                    }
                    let (low, high) = clamp(8, true)?;
                    if (low, high) != (-128, 127) {
                        return Err(Cause::not_modelled(
                            "ACTIVATION_MIN",
                            min,
                            "a 32-bit table is known with the full range",
                        ));
                    }
                    (low, high)
                } else {
                    narrow_clip()?;
                    clamp(8 * element.bytes(), signed)?
                };
                let shape = match element {
                    ElementSize::Bits8 if signed => TableShape::Signed8,
                    ElementSize::Bits8 => TableShape::Unsigned8,
                    ElementSize::Bits16 if signed => TableShape::Interpolated16,
                    ElementSize::Bits16 => {
                        return Err(Cause::not_modelled(
                            "OFM_PRECISION signed",
                            0,
                            "16-bit tables are known signed",
                        ));
                    }
                    _ => TableShape::Wide32,
                };
                if !TableMemory::holds(slot, shape) {
                    return Err(Cause::not_modelled(
                        "ACTIVATION table",
                        slot,
                        "a table of this size doesn't begin there",
                    ));
                }
                Kind::Table { low, high, slot, shape }
            }
            function @ (ActivationFunction::Tanh | ActivationFunction::Sigmoid) => {
                if element != ElementSize::Bits16 || !signed {
                    return Err(Cause::not_modelled(
                        "OFM_PRECISION",
                        8 * i64::from(element.bytes()),
                        "TANH and SIGMOID are known with signed 16-bit outputs",
                    ));
                }
                if zero_point != 0 {
                    return Err(Cause::not_modelled(
                        "OFM_ZERO_POINT",
                        zero_point,
                        "TANH and SIGMOID are known with 0",
                    ));
                }
                narrow_clip()?;
                if function == ActivationFunction::Tanh { Kind::Tanh } else { Kind::Sigmoid }
            }
        };
        Ok(Self { zero_point, kind })
    }

    /// The stage with its table as the memory holds it now.
    ///
    /// # Errors
    /// [`Cause::NotModelled`] if a part of the table was never loaded.
    pub(crate) fn with_tables<'a>(&self, tables: &'a TableMemory) -> Result<BoundStage<'a>, Cause> {
        let table = match self.kind {
            Kind::Table { slot, shape, .. } => tables.table(slot, shape)?,
            _ => &[],
        };
        Ok(BoundStage { stage: *self, table })
    }

    /// Zero point and limits, where the stage adds the one and clamps to the others (before a table, if it has one).
    pub(crate) fn clamp(&self) -> Option<(i64, i64, i64)> {
        match self.kind {
            Kind::Clamp { low, high } | Kind::Table { low, high, .. } => Some((self.zero_point, low, high)),
            Kind::Plain32 | Kind::Tanh | Kind::Sigmoid => None,
        }
    }

    /// The table the stage reads, if it reads one.
    pub fn table(&self) -> Option<(u8, TableShape)> {
        match self.kind {
            Kind::Table { slot, shape, .. } => Some((slot, shape)),
            _ => None,
        }
    }
}

/// An [`OutputStage`] that can be applied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BoundStage<'a> {
    stage: OutputStage,
    table: &'a [u8],
}

impl BoundStage<'_> {
    /// The stored value of a scaled one.
    ///
    /// # Errors
    /// [`Cause::NotModelled`] if a 32-bit output overflows.
    pub(crate) fn apply(&self, value: i64) -> Result<i64, Cause> {
        let shifted = value.saturating_add(self.stage.zero_point);
        match self.stage.kind {
            Kind::Clamp { low, high } => Ok(shifted.clamp(low, high)),
            Kind::Table { low, high, shape, .. } => Ok(shape.look_up(self.table, shifted.clamp(low, high))),
            Kind::Plain32 => i32::try_from(value).map(i64::from).map_err(|_| {
                Cause::not_modelled(
                    "the 32-bit output",
                    value,
                    "whether hardware wraps or saturates there is unknown",
                )
            }),
            Kind::Tanh => Ok(native::tanh(value)),
            Kind::Sigmoid => Ok(native::sigmoid(value)),
        }
    }
}
