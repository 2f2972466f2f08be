//! The one scaling step of the NPU: multiply, shift right, round.

/// How a scaled value is rounded, whichever register of whichever product says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// What TensorFlow Lite's `SaturatingRoundingDoublingHighMul` followed by `RoundingDivideByPOT` gives: the first rounding, at bit
    /// 31 of the product, goes half up, the second half away from zero. Up to a shift of 31 there is no second one and the result is
    /// half up.
    Double,
    /// Half up, towards plus infinity.
    Natural,
    /// Half away from zero (U85).
    Symmetric,
    /// Towards minus infinity (U85).
    Floor,
}

impl Rounding {
    /// The rounding of U55 and U65. `None` for truncation, which nothing has ever been compared with.
    pub(crate) fn new(rounding: ethosu_isa::Rounding) -> Option<Self> {
        match rounding {
            ethosu_isa::Rounding::Double => Some(Self::Double),
            ethosu_isa::Rounding::Natural => Some(Self::Natural),
            ethosu_isa::Rounding::Truncate => None,
        }
    }
}

/// A multiplier, the right shift after it, and the rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaling {
    /// Unsigned: the averages of unpadded pools go beyond 2^31 on U55 and U65.
    pub multiplier: u32,
    /// 0 to 63.
    pub shift: u8,
    /// What happens to the bits shifted out.
    pub rounding: Rounding,
    /// How many bits below bit 31 the first rounding of [`Rounding::Double`] sits, at most 30.
    ///
    /// It is 0 wherever a result is scaled. The operand scaling of ADD and SUB shifts its operand left first, and the position of
    /// the rounding moves with it: 20 for 8-bit operands, 15 for 16-bit ones.
    pub doubling: u8,
}

impl Scaling {
    /// Leaves a value as it is.
    pub const UNIT: Self = Self::by(1);

    /// Multiplies only.
    pub const fn by(multiplier: u32) -> Self {
        Self { multiplier, shift: 0, rounding: Rounding::Natural, doubling: 0 }
    }

    /// Whether it leaves every value as it is.
    pub fn is_unit(&self) -> bool {
        self.multiplier == 1 && self.shift == 0
    }

    /// `value * multiplier / 2^shift`, rounded. What leaves 64 bits saturates.
    pub fn apply(&self, value: i64) -> i64 {
        if self.is_unit() {
            return value;
        }
        let (positive, negative) = self.rounding_terms();
        // The sign is the value's, before the multiplication.
        let term = if value < 0 { negative } else { positive };
        let product = i128::from(value) * i128::from(self.multiplier);
        let result = (product + i128::from(term)) >> self.shift;
        i64::try_from(result).unwrap_or(if result < 0 { i64::MIN } else { i64::MAX })
    }

    /// What is added to the product before the shift rounds it down: for values from 0, and for negative ones.
    pub(crate) fn rounding_terms(&self) -> (i64, i64) {
        let half = if self.shift > 0 { 1i64 << (self.shift - 1) } else { 0 };
        match self.rounding {
            Rounding::Natural => (half, half),
            Rounding::Symmetric => (half, half - i64::from(self.shift > 0)),
            Rounding::Floor => (0, 0),
            Rounding::Double if self.shift > 31 - self.doubling => {
                let first = 1i64 << (30 - self.doubling);
                (half + first, half - first)
            }
            Rounding::Double => (half, half),
        }
    }
}

/// `sum / count` with halves away from zero: the division of an average pool.
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
            let scaling = Scaling {
                multiplier: multiplier as u32, shift: 31 + right as u8, rounding: Rounding::Double, doubling: 0,
            };
            prop_assert_eq!(scaling.apply(value.into()), tflite(value, multiplier, right));
        }

        #[test]
        fn roundings_differ_by_one_at_most(
            value in -(1i64 << 40)..1 << 40, multiplier in any::<u32>(), shift in 17u8..64, doubling in 0u8..=30
        ) {
            let exact = (value as f64) * f64::from(multiplier) / 2f64.powi(shift.into());
            for rounding in [Rounding::Double, Rounding::Natural, Rounding::Symmetric, Rounding::Floor] {
                let result = Scaling { multiplier, shift, rounding, doubling }.apply(value) as f64;
                prop_assert!((result - exact).abs() <= 1.0 + exact.abs() * 1e-9, "{rounding:?}: {result} for {exact}");
            }
        }
    }

    #[test]
    fn halves() {
        let half =
            |value: i64, rounding| Scaling { multiplier: 1, shift: 1, rounding, doubling: 0 }.apply(value);
        assert_eq!([3, -3, 1, -1].map(|v| half(v, Rounding::Natural)), [2, -1, 1, 0]);
        assert_eq!([3, -3, 1, -1].map(|v| half(v, Rounding::Symmetric)), [2, -2, 1, -1]);
        assert_eq!([3, -3, 1, -1].map(|v| half(v, Rounding::Floor)), [1, -2, 0, -1]);
        assert_eq!([3, -3, 1, -1].map(|v| half(v, Rounding::Double)), [2, -1, 1, 0]);
        let far = Scaling { multiplier: 1 << 31, shift: 32, rounding: Rounding::Double, doubling: 0 };
        assert_eq!([3, -3, 1, -1].map(|v| far.apply(v)), [2, -2, 1, -1]);
        assert_eq!([5, -5, 4, -4, 0].map(|v| divide_half_away(v, 2)), [3, -3, 2, -2, 0]);
        assert_eq!([-7, 7, 8].map(|v| divide_half_away(v, 3)), [-2, 2, 3]);
    }

    #[test]
    fn a_large_product_with_no_shift_saturates() {
        let scaling = Scaling::by(u32::MAX);
        assert_eq!(scaling.apply(i64::MAX), i64::MAX);
        assert_eq!(scaling.apply(i64::MIN), i64::MIN);
    }
}
