//! Element-wise operations.

use ethosu_isa::ElementwiseMode as Mode;

use super::load;
use crate::map::{Extent, Volume};
use crate::memory::Memory;
use crate::operation::{Elementwise, Operand, OperandScaling};
use crate::rounding::DoublingShift;
use crate::stop::Cause;

/// The scaled results, before the output stage.
pub(super) fn compute(operation: &Elementwise, memory: &Memory) -> Result<Volume, Cause> {
    let extent = operation.extent;
    let first = load(&operation.ifm, extent, "IFM", memory)?;
    let second = match operation.ifm2 {
        None => None,
        Some(Operand::Scalar(value)) => {
            Some(Volume { extent: Extent { height: 1, width: 1, depth: 1 }, values: vec![value] })
        }
        Some(Operand::Map(map, extent)) => Some(load(&map, extent, "IFM2", memory)?),
    };
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for y in 0..extent.height {
        for x in 0..extent.width {
            for c in 0..extent.depth {
                let a = first.channels(y, x)[c];
                let value = match &second {
                    None => unary(operation, a)?,
                    Some(second) => {
                        // An extent of 1 stands for all positions.
                        let one = |position: usize, size: usize| if size == 1 { 0 } else { position };
                        let size = second.extent;
                        let b = second.channels(one(y, size.height), one(x, size.width))[one(c, size.depth)];
                        if operation.reversed { binary(operation, b, a)? } else { binary(operation, a, b)? }
                    }
                };
                values.push(value);
            }
        }
    }
    Ok(Volume { extent, values })
}

/// The result of a mode with one operand.
pub(crate) fn unary(operation: &Elementwise, a: i64) -> Result<i64, Cause> {
    let scaled = |value| operation.scale.apply(value, operation.rounding, DoublingShift::RESULT);
    Ok(match operation.mode {
        Mode::LeakyRelu if a >= 0 => a,
        Mode::LeakyRelu => scaled(a),
        Mode::Abs => scaled(a.abs()),
        _ => match a as u32 {
            0 => {
                return Err(Cause::not_modelled(
                    "the operand of CLZ",
                    0,
                    "its leading zeros are known for other values",
                ));
            }
            bits => bits.leading_zeros().into(),
        },
    })
}

/// The result of a mode with two operands, A and B in their order.
pub(crate) fn binary(operation: &Elementwise, a: i64, b: i64) -> Result<i64, Cause> {
    let scaled = |value| operation.scale.apply(value, operation.rounding, DoublingShift::RESULT);
    Ok(match operation.mode {
        Mode::Mul => scaled(a * b),
        Mode::Min => a.min(b),
        Mode::Max => a.max(b),
        Mode::Shr => shift_right(a, b)?,
        Mode::Shl => shift_left(a, b)?,
        Mode::Sub => {
            let (a, b) = scale_operands(operation, a, b);
            scaled(a - b)
        }
        _ => {
            let (a, b) = scale_operands(operation, a, b);
            scaled(a + b)
        }
    })
}

fn scale_operands(operation: &Elementwise, a: i64, b: i64) -> (i64, i64) {
    match operation.operand_scaling {
        Some(OperandScaling::Both { a: scale_a, b: scale_b }) => (a * scale_a, b * scale_b),
        Some(OperandScaling::One { scale_a, scale, rounding, left_shift, doubling }) => {
            if scale_a {
                (scale.apply(a, rounding, doubling), b << left_shift)
            } else {
                (a << left_shift, scale.apply(b, rounding, doubling))
            }
        }
        None => (a, b),
    }
}

/// Rounds half up. A negative value exactly half way between two results has never been compared with a reference.
fn shift_right(a: i64, b: i64) -> Result<i64, Cause> {
    if !(0..32).contains(&b) {
        return Err(Cause::not_modelled("the shift of SHR", b, "shifts of 0 to 31 are known"));
    }
    let half = if b > 0 { 1i64 << (b - 1) } else { 0 };
    if a < 0 && b > 0 && a & ((1 << b) - 1) == half {
        return Err(Cause::not_modelled("the operand of SHR", a, "how a negative half rounds is unknown"));
    }
    Ok((a + half) >> b)
}

fn shift_left(a: i64, b: i64) -> Result<i64, Cause> {
    if !(0..32).contains(&b) {
        return Err(Cause::not_modelled("the shift of SHL", b, "shifts of 0 to 31 are known"));
    }
    let result = a << b;
    if i32::try_from(result).is_err() {
        return Err(Cause::not_modelled(
            "the result of SHL",
            result,
            "whether it wraps or saturates beyond 32 bits is unknown",
        ));
    }
    Ok(result)
}
