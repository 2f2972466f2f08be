//! `vsi_nn_QuantCheck`: whether the quantisations of input, weight and bias fit together.
//!
//! It says yes as soon as the three aren't of one kind, so it refuses far less than its name suggests. Per-channel
//! weights are never compared with a bias: beside a per-tensor input they make a mixed pair, which is accepted before
//! any scale is read. Sources: `vsi_nn_dtype_util.c`, `vsi_nn_asymmetric_affine.c`,
//! `vsi_nn_dynamic_fixed_point.c` of ovxlib 1.1.88 and 1.2.22.

use super::Outcome;
use crate::codes::{Quant, VxType};
use crate::graph::Tensor;
use crate::version::OvxlibVersion;

/// The relative part of the tolerance between the scales' product and the bias scale.
pub const RELATIVE_TOLERANCE: f64 = 1e-5;
/// The smallest tolerance; it rules where the product is below 1e-3.
pub const SMALLEST_TOLERANCE: f64 = 1e-8;

/// The check's answer and why.
pub fn quant_check(
    version: OvxlibVersion,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> (Outcome, String) {
    let pass = |why: String| (Outcome::Pass, why);
    let refuse = |why: String| (Outcome::Refuse, why);
    let scheme = input.quant.scheme;
    if input.vx_type != weight.vx_type {
        return pass(format!(
            "input {} and weight {} differ in type: not compared",
            input.vx_type, weight.vx_type
        ));
    }
    if scheme != weight.quant.scheme {
        return pass(format!(
            "input {scheme} and weight {} differ in quantisation: not compared",
            weight.quant.scheme
        ));
    }
    if let Some(bias) = bias.filter(|bias| bias.quant.scheme != scheme) {
        return pass(format!("the bias is {} where the input is {scheme}: not compared", bias.quant.scheme));
    }
    if weight.vx_type == VxType::VDATA {
        return pass("the weight is packed data: not compared".into());
    }
    if !input.vx_type.is_integer() {
        return pass(format!("{} is no integer: not compared", input.vx_type));
    }
    match scheme {
        Quant::DFP => fixed_point(input, weight, bias),
        Quant::ASYM | Quant::SYM | Quant::FP8 => affine(version, input, weight, bias),
        _ => refuse(format!(
            "input and weight are both {} with quantisation {scheme}, which the check doesn't take",
            input.vx_type
        )),
    }
}

fn fixed_point(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> (Outcome, String) {
    if !matches!(input.vx_type, VxType::I8 | VxType::I16 | VxType::I32) {
        return (
            Outcome::Refuse,
            format!("fixed point is taken for i8, i16 and i32, not for {}", input.vx_type),
        );
    }
    let Some(bias) = bias else { return (Outcome::Pass, "no bias to compare with".into()) };
    match (input.quant.fl, weight.quant.fl, bias.quant.fl) {
        (Some(i), Some(w), Some(b)) if i32::from(b) == i32::from(i) + i32::from(w) => {
            (Outcome::Pass, format!("bias fl {b} = {i} + {w}"))
        }
        (Some(i), Some(w), Some(b)) => (
            Outcome::Refuse,
            format!("input fl {i} + weight fl {w} = {}, the bias has fl {b}", i32::from(i) + i32::from(w)),
        ),
        _ => {
            (Outcome::Unknown, "the bias must have fl = input fl + weight fl; not all three are given".into())
        }
    }
}

fn affine(
    version: OvxlibVersion,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
) -> (Outcome, String) {
    use VxType as T;
    let taken: &[VxType] = if version >= OvxlibVersion::FCL_TABLE_UNREAD {
        &[T::U4, T::U8, T::U16, T::U32, T::I4, T::I8, T::I16]
    } else {
        &[T::U8, T::U16, T::U32, T::I8]
    };
    if !taken.contains(&input.vx_type) {
        let names: Vec<String> = taken.iter().map(VxType::to_string).collect();
        let why =
            format!("affine {} isn't taken in ovxlib {version}; taken: {}", input.vx_type, names.join(", "));
        return (Outcome::Refuse, why);
    }
    let Some(bias) = bias else { return (Outcome::Pass, "no bias to compare with".into()) };
    if bias.quant.scale == Some(0.0) {
        return (Outcome::Pass, "the bias scale is 0: not compared".into());
    }
    let (Some(i), Some(w), Some(b)) = (input.quant.scale, weight.quant.scale, bias.quant.scale) else {
        return (
            Outcome::Unknown,
            "the bias scale must be input scale * weight scale; not all three are given".into(),
        );
    };
    let product = f64::from(i) * f64::from(w);
    let b = f64::from(b);
    let difference = (product - b).abs();
    let tolerance = (product.min(b) * RELATIVE_TOLERANCE).max(SMALLEST_TOLERANCE);
    if difference <= tolerance {
        (Outcome::Pass, format!("bias scale {b:e} is input * weight = {product:e} within {tolerance:e}"))
    } else {
        let why = format!(
            "input * weight = {product:e}, the bias scale is {b:e}: off by {difference:e}, {tolerance:e} allowed"
        );
        (Outcome::Refuse, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Place;
    use crate::typed::parse_tensor;

    const NEW: OvxlibVersion = OvxlibVersion::NEWEST;
    const OLD: OvxlibVersion = OvxlibVersion::LAST_WITH_FCL_TABLE;

    fn check(version: OvxlibVersion, input: &str, weight: &str, bias: Option<&str>) -> Outcome {
        let tensor = |text| parse_tensor(text, "t", Place::Constant).unwrap();
        let bias = bias.map(tensor);
        quant_check(version, &tensor(input), &tensor(weight), bias.as_ref()).0
    }

    #[test]
    fn same_integers_without_quantisation_fail_unless_the_bias_is_of_another_kind() {
        assert_eq!(check(NEW, "u8", "u8", None), Outcome::Refuse);
        assert_eq!(check(NEW, "u8", "u8", Some("i32:asym@1,0")), Outcome::Pass);
        assert_eq!(check(NEW, "u8", "u8", Some("i32")), Outcome::Refuse);
    }

    #[test]
    fn types_that_affine_and_fixed_point_do_not_take() {
        assert_eq!(check(NEW, "i32:asym@1,0", "i32:asym@1,0", None), Outcome::Refuse);
        assert_eq!(check(NEW, "i4:dfp@1", "i4:dfp@1", None), Outcome::Refuse);
        assert_eq!(check(NEW, "i16:dfp@1", "i16:dfp@1", None), Outcome::Pass);
    }

    #[test]
    fn i16_affine_pairs_are_refused_up_to_1_1_88_unless_the_bias_is_of_another_kind() {
        for scheme in ["asym", "sym"] {
            let cell = format!("i16:{scheme}@1,0");
            assert_eq!(check(OLD, &cell, &cell, None), Outcome::Refuse);
            assert_eq!(check(OLD, &cell, &cell, Some("i32:dfp@3")), Outcome::Pass);
            assert_eq!(check(OvxlibVersion(1, 2, 2), &cell, &cell, None), Outcome::Pass);
        }
        for four in ["u4:asym@1,0", "i4:asym@1,0"] {
            assert_eq!(check(OLD, four, four, None), Outcome::Refuse);
            assert_eq!(check(NEW, four, four, None), Outcome::Pass);
        }
    }

    #[test]
    fn mixed_pairs_floats_and_packed_weights_are_not_compared() {
        assert_eq!(check(NEW, "u8:asym@1,0", "i8:sym_pc", Some("i32:asym@9,0")), Outcome::Pass);
        assert_eq!(check(NEW, "f16", "f16", Some("f16")), Outcome::Pass);
        assert_eq!(check(NEW, "u8:asym@1,0", "u8:sym_pc", None), Outcome::Pass);
        assert_eq!(check(NEW, "vdata", "vdata", None), Outcome::Pass);
        assert_eq!(check(NEW, "i8:sym_pc", "i8:sym_pc", Some("i32:sym_pc")), Outcome::Refuse);
    }

    #[test]
    fn the_bias_scale_is_compared_with_a_relative_tolerance_and_a_floor() {
        let at =
            |bias: &str| check(NEW, "u8:asym@0.5,0", "u8:asym@0.5,0", Some(&format!("i32:asym@{bias},0")));
        assert_eq!(at("0.25"), Outcome::Pass);
        assert_eq!(at("0.2500024"), Outcome::Pass);
        assert_eq!(at("0.2500026"), Outcome::Refuse);
        assert_eq!(at("0"), Outcome::Pass);
        // A product of 1e-6: five relative millionths would be 1e-11, the floor of 1e-8 is a whole percent.
        let small = |bias: &str| {
            check(NEW, "u8:asym@0.001,0", "u8:asym@0.001,0", Some(&format!("i32:asym@{bias},0")))
        };
        assert_eq!(small("0.00000100999"), Outcome::Pass);
        assert_eq!(small("0.00000102"), Outcome::Refuse);
        assert_eq!(check(NEW, "u8:asym", "u8:asym", Some("i32:asym")), Outcome::Unknown);
        assert_eq!(check(NEW, "u8:asym@NaN,0", "u8:asym@1,0", Some("i32:asym@1,0")), Outcome::Refuse);
    }

    #[test]
    fn fixed_point_positions_add_up_exactly() {
        let at = |bias: &str| check(NEW, "i8:dfp@100", "i8:dfp@27", Some(&format!("i32:dfp@{bias}")));
        assert_eq!(at("127"), Outcome::Pass);
        assert_eq!(at("126"), Outcome::Refuse);
        // The sum is an int: it doesn't wrap round to a bias that would fit in eight bits.
        assert_eq!(check(NEW, "i8:dfp@100", "i8:dfp@100", Some("i32:dfp@-56")), Outcome::Refuse);
        assert_eq!(check(NEW, "i8:dfp", "i8:dfp", Some("i32:dfp@1")), Outcome::Unknown);
        assert_eq!(check(NEW, "i8:dfp", "i8:dfp", None), Outcome::Pass);
    }
}
