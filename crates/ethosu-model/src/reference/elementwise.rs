//! Element-wise operations.

use super::load;
use crate::map::{Extent, Volume};
use crate::memory::Memory;
use crate::operation::{Comparison, Elementwise, Function, Operand};
use crate::stop::Cause;

/// The scaled results, before the output stage.
pub(super) fn compute(operation: &Elementwise, memory: &Memory) -> Result<Volume, Cause> {
    let extent = operation.results.extent;
    let a = operand(&operation.a, memory)?;
    let b = operation.b.as_ref().map(|b| operand(b, memory)).transpose()?;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for y in 0..extent.height {
        for x in 0..extent.width {
            for c in 0..extent.depth {
                // An extent of 1 stands for all positions.
                let one = |position: usize, size: usize| if size == 1 { 0 } else { position };
                let at = |volume: &Volume| {
                    let size = volume.extent;
                    volume.channels(one(y, size.height), one(x, size.width))[one(c, size.depth)]
                };
                values.push(match &b {
                    None => unary(operation, at(&a))?,
                    Some(b) => binary(operation, at(&a), at(b))?,
                });
            }
        }
    }
    Ok(Volume { extent, values })
}

fn operand(operand: &Operand, memory: &Memory) -> Result<Volume, Cause> {
    match operand {
        Operand::Scalar(value) => {
            Ok(Volume { extent: Extent { height: 1, width: 1, depth: 1 }, values: vec![*value] })
        }
        Operand::Map { map, extent, name } => load(map, *extent, name, memory),
    }
}

/// The result of a function with one operand.
pub(crate) fn unary(operation: &Elementwise, a: i64) -> Result<i64, Cause> {
    let [scale, negative_scale] = &operation.scales;
    let value = match operation.function {
        Function::LeakyRelu if a >= 0 => scale.apply(a),
        Function::LeakyRelu => negative_scale.apply(a),
        Function::Abs => scale.apply(a).saturating_abs(),
        Function::Not => !scale.apply(a),
        _ => match scale.apply(a) as u32 {
            0 => {
                return Err(Cause::not_modelled(
                    "the operand of CLZ",
                    0,
                    "its leading zeros are known for other values",
                ));
            }
            bits => bits.leading_zeros().into(),
        },
    };
    Ok(operation.scale.apply(value))
}

/// The result of a function with two operands.
pub(crate) fn binary(operation: &Elementwise, a: i64, b: i64) -> Result<i64, Cause> {
    let (a, b) = (operation.scales[0].apply(a), operation.scales[1].apply(b));
    if operation.narrow_operands {
        for value in [a, b] {
            if i32::try_from(value).is_err() {
                let known = "whether scaled 32-bit operands may leave 32 bits is unknown";
                return Err(Cause::not_modelled("a scaled operand", value, known));
            }
        }
    }
    let truth = |truth: bool| if truth { -1 } else { 0 };
    let value = match operation.function {
        Function::Mul => a.saturating_mul(b),
        Function::Add => a.saturating_add(b),
        Function::Sub => a.saturating_sub(b),
        Function::Min => a.min(b),
        Function::Max => a.max(b),
        Function::Shr => shift_right(a, b)?,
        Function::Shl => shift_left(a, b)?,
        Function::Div if b == 0 => {
            return Err(Cause::not_modelled(
                "the divisor of DIV",
                0,
                "the result of a division by zero is unknown",
            ));
        }
        Function::Div => a.wrapping_div(b),
        Function::Compare(Comparison::Equal) => truth(a == b),
        Function::Compare(Comparison::NotEqual) => truth(a != b),
        Function::Compare(Comparison::GreaterEqual) => truth(a >= b),
        Function::Compare(Comparison::Greater) => truth(a > b),
        Function::And => a & b,
        Function::Or => a | b,
        Function::AndNot => a & !b,
        Function::LeakyRelu | Function::Abs | Function::Clz | Function::Not => return unary(operation, a),
    };
    Ok(operation.scale.apply(value))
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
