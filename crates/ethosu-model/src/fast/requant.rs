//! Scaling prepared for vectors of sixteen channels.

use crate::rounding::Scaling;

/// Channels that a vector kernel computes together.
pub(crate) const LANES: usize = 16;

/// Bias and scaling of sixteen channels.
///
/// A scaled value is `(v * scale + (v < 0 ? negative : positive)) >> shift`, which all roundings can be written as. 64-bit constants
/// are split into those of the even and of the odd channels, the order in which 32-bit lanes multiply to 64 bits.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct RequantBlock {
    pub(crate) bias: [i32; LANES],
    pub(crate) scale: [i32; LANES],
    /// The odd channels' scales, each one lane lower.
    pub(crate) scale_odd: [i32; LANES],
    pub(crate) positive: [[i64; LANES / 2]; 2],
    pub(crate) negative: [[i64; LANES / 2]; 2],
    pub(crate) shift: [[i64; LANES / 2]; 2],
    pub(crate) twice_positive: [[i64; LANES / 2]; 2],
    /// 31 where negative values are rounded another way than positive ones, 32 where they aren't.
    pub(crate) sign_shift: [i32; LANES],
    /// The shift after the 32 bits that are cut off.
    pub(crate) high_shift: [i32; LANES],
    /// Whether [`apply_narrow`](Self::apply_narrow) gives the same, with the three constants above.
    pub(crate) narrow: bool,
}

impl RequantBlock {
    /// A block that gives 0 for every value.
    pub(crate) const ZERO: Self = Self {
        bias: [0; LANES],
        scale: [0; LANES],
        scale_odd: [0; LANES],
        positive: [[0; LANES / 2]; 2],
        negative: [[0; LANES / 2]; 2],
        shift: [[0; LANES / 2]; 2],
        narrow: true,
        twice_positive: [[0; LANES / 2]; 2],
        sign_shift: [32; LANES],
        high_shift: [0; LANES],
    };

    /// Sets one channel. False if the vector form can't hold it: the multiplier has 32 bits, or a value of up to `bound` could
    /// leave 30 bits when scaled.
    pub(crate) fn set(&mut self, lane: usize, bias: i32, scale: &Scaling, bound: i64) -> bool {
        let Ok(multiplier) = i32::try_from(scale.multiplier) else { return false };
        let (positive, negative) = scale.rounding_terms();
        let most =
            (i128::from(bound) * i128::from(multiplier) + i128::from(positive.max(negative))) >> scale.shift;
        if bound > i64::from(i32::MAX) || most >= 1 << 30 {
            return false;
        }
        let (half, odd) = (lane / 2, lane % 2);
        self.bias[lane] = bias;
        self.scale[lane] = multiplier;
        if odd == 1 {
            self.scale_odd[lane - 1] = multiplier;
        }
        self.positive[odd][half] = positive;
        self.negative[odd][half] = negative;
        self.shift[odd][half] = scale.shift.into();
        // Twice the value must fit 32 bits, and twice the product and the term 64.
        let nudge = positive - negative;
        self.narrow &=
            bound < 1 << 30 && (31..=61).contains(&scale.shift) && (nudge == 0 || nudge == 1 << 31);
        if self.narrow {
            self.twice_positive[odd][half] = 2 * positive;
            self.sign_shift[lane] = if nudge == 0 { 32 } else { 31 };
            self.high_shift[lane] = i32::from(scale.shift) - 31;
        }
        true
    }

    /// All sixteen channels alike, without bias.
    pub(crate) fn uniform(scale: &Scaling, bound: i64) -> Option<Self> {
        let mut block = Self::ZERO;
        (0..LANES).all(|lane| block.set(lane, 0, scale, bound)).then_some(block)
    }

    /// Scales one value (bias already added).
    pub(crate) fn apply(&self, lane: usize, value: i32) -> i32 {
        let (half, odd) = (lane / 2, lane % 2);
        let product = i64::from(value) * i64::from(self.scale[lane]);
        let term = if value < 0 { self.negative[odd][half] } else { self.positive[odd][half] };
        ((product + term) >> self.shift[odd][half]) as i32
    }

    /// The same for a [`narrow`](Self::narrow) block and a value within the bounds given to [`set`](Self::set), in fewer 64-bit
    /// steps.
    ///
    /// With everything doubled, the two terms of the rounding that all of TensorFlow Lite's convolutions have differ by 2^32. That
    /// is 1 after the low 32 bits are cut off, and rounding down twice is rounding down once: what remains can be done in 32 bits.
    #[cfg(test)]
    pub(crate) fn apply_narrow(&self, lane: usize, value: i32) -> i32 {
        let twice =
            i64::from(value) * 2 * i64::from(self.scale[lane]) + self.twice_positive[lane % 2][lane / 2];
        let high = (twice >> 32) as i32;
        let nudge = if self.sign_shift[lane] == 31 && value < 0 { 1 } else { 0 };
        (high - nudge) >> self.high_shift[lane]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounding::Rounding;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_block_scales_as_the_reference_does(
            value in any::<i32>(), multiplier in any::<u32>(), shift in 0u8..64, lane in 0..LANES, mode in 0usize..4, doubling in 0u8..=30
        ) {
            let rounding = [Rounding::Double, Rounding::Natural, Rounding::Symmetric, Rounding::Floor][mode];
            let scale = Scaling { multiplier, shift, rounding, doubling };
            let mut block = RequantBlock::ZERO;
            if block.set(lane, 0, &scale, i64::from(value).abs()) {
                prop_assert_eq!(i64::from(block.apply(lane, value)), scale.apply(value.into()));
                if block.narrow {
                    prop_assert_eq!(i64::from(block.apply_narrow(lane, value)), scale.apply(value.into()));
                }
            }
        }
    }
}
