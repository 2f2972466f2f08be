//! The one scaling step of the NPU: multiply, shift right, round.

use ethosu_isa::Rounding;

/// How many bits below bit 31 the first rounding of [`Rounding::Double`] sits.
///
/// It is 0 wherever a result is scaled. The operand scaling of ADD and SUB shifts its operand left first, and the
/// position of the rounding moves with it: 20 for 8-bit operands, 15 for 16-bit ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoublingShift(u32);

impl DoublingShift {
    /// For results.
    pub const RESULT: Self = Self(0);
    /// For the scaled operand of an 8-bit ADD or SUB.
    pub const OPERAND_8: Self = Self(20);
    /// For the scaled operand of a 16-bit ADD or SUB.
    pub const OPERAND_16: Self = Self(15);
}

/// A multiplier and the right shift after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Unsigned: the averages of unpadded pools go beyond 2^31.
    pub multiplier: u32,
    /// 0 to 63.
    pub shift: u8,
}

impl Scale {
    /// Leaves a value as it is.
    pub const UNIT: Self = Self { multiplier: 1, shift: 0 };

    /// `value * multiplier / 2^shift`, rounded.
    ///
    /// * `Natural`: half up, towards plus infinity.
    /// * `Truncate`: towards zero.
    /// * `Double`: what TensorFlow Lite's `SaturatingRoundingDoublingHighMul` followed by `RoundingDivideByPOT` gives:
    ///   the first rounding, at bit 31 of the product, goes half up, the second half away from zero. Up to a shift of 31 there
    ///   is no second one and the result is half up.
    pub fn apply(self, value: i64, rounding: Rounding, doubling: DoublingShift) -> i64 {
        let (positive, negative) = self.rounding_terms(rounding, doubling);
        // The sign is the value's, before the multiplication.
        let term = if value < 0 { negative } else { positive };
        let product = i128::from(value) * i128::from(self.multiplier);
        // The quotient leaves 64 bits only for values and shifts that no output could keep anyway: saturate.
        let result = (product + i128::from(term)) >> self.shift;
        i64::try_from(result).unwrap_or(if result < 0 { i64::MIN } else { i64::MAX })
    }

    /// What is added to the product before the shift rounds it down: for values from 0, and for negative ones.
    pub(crate) fn rounding_terms(self, rounding: Rounding, doubling: DoublingShift) -> (i64, i64) {
        let shift = u32::from(self.shift);
        let half = if shift > 0 { 1i64 << (shift - 1) } else { 0 };
        match rounding {
            Rounding::Natural => (half, half),
            Rounding::Truncate => (0, ((1u64 << shift) - 1) as i64),
            Rounding::Double if shift > 31 - doubling.0 => {
                let first = 1i64 << (30 - doubling.0);
                (half + first, half - first)
            }
            Rounding::Double => (half, half),
        }
    }
}

/// `sum / count` with halves away from zero: the division of a padded average pool.
///
/// # Panics
/// If `count` isn't positive.
pub(crate) fn divide_half_away(sum: i64, count: i64) -> i64 {
    assert!(count > 0, "an average over no elements");
    if sum >= 0 { (sum + count / 2) / count } else { -((-sum + count / 2) / count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// TensorFlow Lite's two roundings, written out (tensorflow/lite/kernels/internal/common.h, MultiplyByQuantizedMultiplier).
    fn tflite(value: i32, multiplier: i32, right_shift: u32) -> i64 {
        let product = i64::from(value) * i64::from(multiplier);
        let nudge = if product >= 0 { 1i64 << 30 } else { 1 - (1i64 << 30) };
        let high = (product + nudge) / (1i64 << 31);
        let mask = (1i64 << right_shift) - 1;
        let threshold = (mask >> 1) + i64::from(high < 0);
        (high >> right_shift) + i64::from(high & mask > threshold)
    }

    proptest! {
        #[test]
        fn double_is_what_tensorflow_lite_does(value in any::<i32>(), multiplier in 1 << 30..=i32::MAX, right in 1u32..20) {
            let scale = Scale { multiplier: multiplier as u32, shift: 31 + right as u8 };
            prop_assert_eq!(
                scale.apply(value.into(), Rounding::Double, DoublingShift::RESULT),
                tflite(value, multiplier, right)
            );
        }

        #[test]
        fn roundings_differ_by_one_at_most(value in -(1i64 << 40)..1 << 40, multiplier in any::<u32>(), shift in 17u8..64) {
            let scale = Scale { multiplier, shift };
            let exact = (value as f64) * f64::from(multiplier) / 2f64.powi(shift.into());
            for rounding in [Rounding::Double, Rounding::Natural, Rounding::Truncate] {
                let result = scale.apply(value, rounding, DoublingShift::RESULT) as f64;
                prop_assert!((result - exact).abs() <= 1.0 + exact.abs() * 1e-9, "{rounding:?}: {result} for {exact}");
            }
        }
    }

    #[test]
    fn halves() {
        let half = Scale { multiplier: 1, shift: 1 };
        let of = |value, rounding| half.apply(value, rounding, DoublingShift::RESULT);
        assert_eq!([3, -3, 1, -1].map(|v| of(v, Rounding::Natural)), [2, -1, 1, 0]);
        assert_eq!([3, -3, 1, -1].map(|v| of(v, Rounding::Truncate)), [1, -1, 0, 0]);
        assert_eq!([3, -3, 1, -1].map(|v| of(v, Rounding::Double)), [2, -1, 1, 0]);
        let far = Scale { multiplier: 1 << 31, shift: 32 };
        assert_eq!(
            [3, -3, 1, -1].map(|v| far.apply(v, Rounding::Double, DoublingShift::RESULT)),
            [2, -2, 1, -1]
        );
        assert_eq!([5, -5, 4, -4, 0].map(|v| divide_half_away(v, 2)), [3, -3, 2, -2, 0]);
        assert_eq!([-7, 7, 8].map(|v| divide_half_away(v, 3)), [-2, 2, 3]);
    }

    #[test]
    fn a_large_product_with_no_shift_saturates() {
        let scale = Scale { multiplier: u32::MAX, shift: 0 };
        assert_eq!(scale.apply((1 << 48) - 1, Rounding::Double, DoublingShift::RESULT), i64::MAX);
        assert_eq!(scale.apply(1 - (1 << 48), Rounding::Double, DoublingShift::RESULT), i64::MIN);
    }
}
