//! The output stage: zero point, clamp, activation or table.

use ethosu_isa::{
    Activation, Activation85, ActivationFunction, ActivationFunction85, ClipRange, ClipRange85, ElementSize,
};

use crate::map::type_range;
use crate::native;
use crate::stop::Cause;
use crate::table::{Table, TableMemory, TableShape};

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
    /// The clamped value is an index.
    Table {
        low: i64,
        high: i64,
        table: Table,
    },
    /// 32 bits without a table: stored as it is. OFM_ZERO_POINT, ACTIVATION_MIN and _MAX have no effect.
    Plain32,
    /// The same with 64 bits.
    Plain64,
    /// The built-in functions of U55 and U65, on a value not clipped before.
    Tanh,
    Sigmoid,
    /// The same functions by a table that the stream must load (U85).
    TanhByTable(Table),
    SigmoidByTable(Table),
}

/// What the registers say about the output of an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputRegisters<A> {
    pub(crate) element: ElementSize,
    pub(crate) signed: bool,
    pub(crate) zero_point: i64,
    pub(crate) activation: A,
    pub(crate) min: i64,
    pub(crate) max: i64,
}

impl<A> OutputRegisters<A> {
    /// MIN and MAX, within a type's range.
    fn clamp(&self, bits: u32, signed: bool) -> Result<(i64, i64), Cause> {
        let (lowest, highest) = type_range(bits, signed);
        let (low, high) = (self.min.max(lowest), self.max.min(highest));
        if low > high {
            return Err(Cause::not_modelled(
                "ACTIVATION_MIN",
                self.min,
                "it is above ACTIVATION_MAX or the type's range",
            ));
        }
        Ok((low, high))
    }

    /// For the functions that give signed 16-bit values around zero.
    fn check_native(&self) -> Result<(), Cause> {
        if self.element != ElementSize::Bits16 || !self.signed {
            let bits = 8 * i64::from(self.element.bytes());
            return Err(Cause::not_modelled(
                "OFM_PRECISION",
                bits,
                "TANH and SIGMOID are known with signed 16-bit outputs",
            ));
        }
        if self.zero_point != 0 {
            return Err(Cause::not_modelled(
                "OFM_ZERO_POINT",
                self.zero_point,
                "TANH and SIGMOID are known with 0",
            ));
        }
        Ok(())
    }
}

fn table(start: usize, shape: TableShape) -> Result<Table, Cause> {
    Table::new(start, shape).ok_or_else(|| {
        Cause::not_modelled(
            "the table's first byte",
            start as i64,
            "a table of this size doesn't begin there",
        )
    })
}

/// Bytes from a table slot of U55 and U65 to the next.
const SLOT_BYTES: usize = 256;

impl OutputStage {
    /// The output stage of U55 and U65, if the form is one whose result is known.
    pub(crate) fn new(registers: &OutputRegisters<Activation>) -> Result<Self, Cause> {
        let &OutputRegisters { element, signed, zero_point, activation, .. } = registers;
        let wide = element == ElementSize::Bits32;
        let bits = 8 * element.bytes();
        if element == ElementSize::Bits64 {
            return Err(Cause::not_modelled("OFM_PRECISION size", 64, "U55 and U65 store 8, 16 or 32 bits"));
        }
        match activation.clip {
            ClipRange::Ofm => {}
            ClipRange::I8 if wide && matches!(activation.function, ActivationFunction::Table(_)) => {}
            clip => {
                let code = match clip {
                    ClipRange::U8 => 2,
                    ClipRange::I8 => 3,
                    _ => 5,
                };
                return Err(Cause::not_modelled(
                    "ACTIVATION clip range",
                    code,
                    "known are 0, and 3 with a 32-bit table",
                ));
            }
        }
        let kind = match activation.function {
            ActivationFunction::None if wide => Kind::Plain32,
            ActivationFunction::None => {
                let (low, high) = registers.clamp(bits, signed)?;
                Kind::Clamp { low, high }
            }
            ActivationFunction::Table(slot) => {
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
                let (low, high) =
                    if wide { registers.clamp(8, true)? } else { registers.clamp(bits, signed)? };
                if wide && (activation.clip != ClipRange::I8 || (low, high) != (-128, 127)) {
                    return Err(Cause::not_modelled(
                        "ACTIVATION clip range",
                        activation.clip as i64,
                        "a 32-bit table is known with the range of int8",
                    ));
                }
                Kind::Table { low, high, table: table(usize::from(slot) * SLOT_BYTES, shape)? }
            }
            function @ (ActivationFunction::Tanh | ActivationFunction::Sigmoid) => {
                registers.check_native()?;
                if function == ActivationFunction::Tanh { Kind::Tanh } else { Kind::Sigmoid }
            }
        };
        Ok(Self { zero_point, kind })
    }

    /// The output stage of U85, if the form is one whose result is known.
    pub(crate) fn new85(registers: &OutputRegisters<Activation85>) -> Result<Self, Cause> {
        use ActivationFunction85 as Function;
        let &OutputRegisters { element, signed, zero_point, activation, .. } = registers;
        let bits = 8 * element.bytes();
        let clipped = activation.clip == ClipRange85::MinMax;
        let shape = match activation.function {
            Function::None | Function::Tanh | Function::Sigmoid => None,
            Function::LutU8U8 => Some((TableShape::Unsigned8, ElementSize::Bits8, false)),
            Function::LutS8S8 => Some((TableShape::Signed8, ElementSize::Bits8, true)),
            Function::LutS8S32 => Some((TableShape::Wide32, ElementSize::Bits32, true)),
            Function::LutS16S16 => Some((TableShape::Interpolated16, ElementSize::Bits16, true)),
            Function::LutS8S16 | Function::LutS16S32 => {
                return Err(Cause::not_modelled(
                    "ACTIVATION function",
                    if activation.function == Function::LutS8S16 { 5 } else { 9 },
                    "tables from int8 to int16 and from int16 to int32 are never emitted",
                ));
            }
        };
        let slot = usize::from(activation.table);
        let kind = if let Some((shape, stored, sign)) = shape {
            if element != stored || signed != sign {
                return Err(Cause::not_modelled(
                    "OFM_PRECISION size",
                    bits,
                    "the table's values have another type",
                ));
            }
            if !clipped {
                return Err(Cause::not_modelled(
                    "ACTIVATION clip range",
                    1,
                    "tables are known behind a clamp",
                ));
            }
            let (index_bits, index_signed) = match shape {
                TableShape::Unsigned8 => (8, false),
                TableShape::Interpolated16 => (16, true),
                TableShape::Signed8 | TableShape::Wide32 => (8, true),
            };
            let (low, high) = registers.clamp(index_bits, index_signed)?;
            Kind::Table { low, high, table: table(slot * shape.bytes(), shape)? }
        } else if activation.function != Function::None {
            registers.check_native()?;
            let shape = TableShape::Interpolated16;
            let table = table(slot * shape.bytes(), shape)?;
            if activation.function == Function::Tanh {
                Kind::TanhByTable(table)
            } else {
                Kind::SigmoidByTable(table)
            }
        } else if bits <= 16 {
            let (low, high) = if clipped { registers.clamp(bits, signed)? } else { type_range(bits, signed) };
            Kind::Clamp { low, high }
        } else {
            if clipped {
                return Err(Cause::not_modelled(
                    "ACTIVATION clip range",
                    0,
                    "wide outputs are known without a clamp",
                ));
            }
            if zero_point != 0 {
                return Err(Cause::not_modelled(
                    "OFM_ZERO_POINT",
                    zero_point,
                    "wide outputs are known with 0",
                ));
            }
            if element == ElementSize::Bits32 { Kind::Plain32 } else { Kind::Plain64 }
        };
        Ok(Self { zero_point, kind })
    }

    /// The stage with its table as the memory holds it now.
    ///
    /// # Errors
    /// [`Cause::NotModelled`] if a part of the table was never loaded, or a table for TANH or SIGMOID isn't the one that is
    /// established.
    pub(crate) fn with_tables<'a>(&self, tables: &'a TableMemory) -> Result<BoundStage<'a>, Cause> {
        let table = match self.kind {
            Kind::Table { table, .. } => tables.table(table)?,
            Kind::TanhByTable(table) => native::check_tanh_table(tables.table(table)?)?,
            Kind::SigmoidByTable(table) => native::check_sigmoid_table(tables.table(table)?)?,
            _ => &[],
        };
        Ok(BoundStage { stage: *self, table })
    }

    /// Zero point and limits, where the stage adds the one and clamps to the others (before a table, if it has one).
    pub(crate) fn clamp(&self) -> Option<(i64, i64, i64)> {
        match self.kind {
            Kind::Clamp { low, high } | Kind::Table { low, high, .. } => Some((self.zero_point, low, high)),
            _ => None,
        }
    }

    /// The table the stage reads, if it reads one.
    pub fn table(&self) -> Option<Table> {
        match self.kind {
            Kind::Table { table, .. } | Kind::TanhByTable(table) | Kind::SigmoidByTable(table) => Some(table),
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
            Kind::Table { low, high, table } => Ok(table.shape.look_up(self.table, shifted.clamp(low, high))),
            Kind::Plain32 => i32::try_from(value).map(i64::from).map_err(|_| {
                Cause::not_modelled(
                    "the 32-bit output",
                    value,
                    "whether hardware wraps or saturates there is unknown",
                )
            }),
            Kind::Plain64 => Ok(value),
            Kind::Tanh | Kind::TanhByTable(_) => Ok(native::tanh(value)),
            Kind::Sigmoid | Kind::SigmoidByTable(_) => Ok(native::sigmoid(value)),
        }
    }
}
