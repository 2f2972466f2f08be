//! The two activations the NPU computes by itself on 16-bit data.
//!
//! Both follow TensorFlow Lite's int16 reference kernels (tensorflow/lite/kernels/internal/reference/integer_ops/logistic.h and
//! tanh.h), which interpolate one table of the sigmoid.

use crate::stop::Cause;

/// About 65536 * sigmoid(i / 24): TensorFlow Lite's `sigmoid_table_uint16`
/// (tensorflow/lite/kernels/internal/common.cc). The entries are up to 1.1 away from the rounded function, so the table can't be
/// recomputed.
#[rustfmt::skip]
const SIGMOID: [u16; 256] = [
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
];

/// The table's entry for a non-negative argument in steps of 1 / 512 of an index; `bits` are the fraction's.
fn interpolate(magnitude: u64, bits: u32, last: i64) -> i64 {
    let index = magnitude >> bits;
    if index >= 255 {
        return last << bits;
    }
    let index = index as usize;
    let (low, high) = (i64::from(SIGMOID[index]), i64::from(SIGMOID[index + 1]));
    let fraction = (magnitude & ((1 << bits) - 1)) as i64;
    (low << bits) + fraction * (high - low)
}

/// Sigmoid of a scaled accumulator (not clipped to 16 bits before), in units of 1 / 32768.
pub(crate) fn sigmoid(value: i64) -> i64 {
    let result = interpolate(value.unsigned_abs(), 9, 0x7FFF << 1);
    (if value >= 0 { result + 512 } else { (1 << 25) - result + 511 }) >> 10
}

/// Hyperbolic tangent of a scaled accumulator (not clipped to 16 bits before), in units of 1 / 32768.
pub(crate) fn tanh(value: i64) -> i64 {
    let result = interpolate(value.unsigned_abs(), 8, 0xFFFF);
    (if value >= 0 { result - (1 << 23) + 128 } else { -result + (1 << 23) + 127 }) >> 8
}

/// Base and slope of entry `index` of a table of 512 pairs.
fn entry(table: &[u8], index: i64) -> (i64, i64) {
    let at = 4 * (index + 256) as usize;
    let half = |at: usize| i64::from(i16::from_le_bytes([table[at], table[at + 1]]));
    (half(at), half(at + 2))
}

/// The table, if it is one that gives what [`tanh`] gives.
///
/// On U85 the function reads a table that the stream loads. Vela always loads the same one, and what the hardware would make of
/// another one is not established.
pub(crate) fn check_tanh_table(table: &[u8]) -> Result<&[u8], Cause> {
    for index in -256..256 {
        let (base, slope) = entry(table, index);
        for fraction in [0, 1, 128, 255] {
            let value = index * 256 + fraction;
            let half = if value >= 0 { 128 } else { 127 };
            if (base * 256 + slope * fraction + half) >> 8 != tanh(value) {
                return Err(Cause::not_modelled(
                    "the TANH table's entry",
                    index + 256,
                    "another table than Vela's",
                ));
            }
        }
    }
    Ok(table)
}

/// The table, if it is one that gives what [`sigmoid`] gives.
pub(crate) fn check_sigmoid_table(table: &[u8]) -> Result<&[u8], Cause> {
    for index in -256..256 {
        let (base, slope) = entry(table, index);
        for fraction in [0, 1, 256, 511] {
            let value = index * 512 + fraction;
            let half = if value >= 0 { 512 } else { 511 };
            // TensorFlow Lite's kernel treats the last step of the negative side apart.
            let read = (base * 512 + slope * fraction + (1 << 24) + half) >> 10;
            if value > -130_560 && read.clamp(i16::MIN.into(), i16::MAX.into()) != sigmoid(value) {
                return Err(Cause::not_modelled(
                    "the SIGMOID table's entry",
                    index + 256,
                    "another table than Vela's",
                ));
            }
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_real_functions_and_monotonic() {
        let (mut last_sigmoid, mut last_tanh) = (i64::MIN, i64::MIN);
        for value in -140_000i64..140_000 {
            let x = value as f64 / (24.0 * 512.0);
            let (s, t) = (sigmoid(value), tanh(value));
            assert!((s as f64 / 32768.0 - 1.0 / (1.0 + (-x).exp())).abs() < 1e-4, "sigmoid({value}) = {s}");
            let x = value as f64 / (24.0 * 512.0);
            assert!((t as f64 / 32768.0 - x.tanh()).abs() < 1.5e-4, "tanh({value}) = {t}");
            assert!(s >= last_sigmoid && t >= last_tanh);
            (last_sigmoid, last_tanh) = (s, t);
        }
        assert_eq!((sigmoid(0), tanh(0)), (16384, 0));
        assert_eq!((sigmoid(i64::from(i32::MAX)), tanh(i64::from(i32::MAX))), (32767, 32767));
        assert_eq!((sigmoid(i64::from(i32::MIN)), tanh(i64::from(i32::MIN))), (1, -32767));
    }
}
