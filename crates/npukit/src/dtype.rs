//! One element type, three crates' names for it.

use npub::DType;
use npukit_vela::npy::Dtype as ArrayType;

/// The array element type that holds a tensor's elements; `None` for 16-bit floats, which `.npy` files of this crate
/// don't carry.
pub(crate) fn array_type(dtype: DType) -> Option<ArrayType> {
    Some(match dtype {
        DType::Bool => ArrayType::Bool,
        DType::Int8 => ArrayType::Int8,
        DType::UInt8 => ArrayType::Uint8,
        DType::Int16 => ArrayType::Int16,
        DType::UInt16 => ArrayType::Uint16,
        DType::Int32 => ArrayType::Int32,
        DType::UInt32 => ArrayType::Uint32,
        DType::Int64 => ArrayType::Int64,
        DType::UInt64 => ArrayType::Uint64,
        DType::Float32 => ArrayType::Float32,
        DType::Float64 => ArrayType::Float64,
        _ => return None,
    })
}

/// Smallest and largest value of an integer type; `None` for bool, floats and 64-bit unsigned integers.
pub(crate) fn limits(dtype: DType) -> Option<(i64, i64)> {
    Some(match dtype {
        DType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DType::UInt8 => (0, u8::MAX.into()),
        DType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DType::UInt16 => (0, u16::MAX.into()),
        DType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DType::UInt32 => (0, u32::MAX.into()),
        DType::Int64 => (i64::MIN, i64::MAX),
        _ => return None,
    })
}

/// Appends an integer as an element of `dtype`, saturating; bool is "not zero". Types that aren't integers get the
/// nearest number they have.
pub(crate) fn push(bytes: &mut Vec<u8>, dtype: DType, value: i64) {
    let within = limits(dtype).map_or(value, |(low, high)| value.clamp(low, high));
    match dtype {
        DType::Bool => bytes.push(u8::from(value != 0)),
        DType::Float32 => bytes.extend_from_slice(&(value as f32).to_le_bytes()),
        DType::Float64 => bytes.extend_from_slice(&(value as f64).to_le_bytes()),
        // Two's complement: the low bytes of the clamped value are the element.
        _ => bytes.extend_from_slice(&within.to_le_bytes()[..dtype.size() as usize]),
    }
}

/// The elements of an integer or bool type as 64-bit integers; `None` for floats and 64-bit unsigned integers.
pub(crate) fn integers(dtype: DType, bytes: &[u8]) -> Option<Vec<i64>> {
    fn all<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> i64) -> Vec<i64> {
        bytes.as_chunks::<N>().0.iter().map(|element| convert(*element)).collect()
    }
    Some(match dtype {
        DType::Int8 => all(bytes, |b| i8::from_le_bytes(b).into()),
        DType::UInt8 | DType::Bool => all(bytes, |b| u8::from_le_bytes(b).into()),
        DType::Int16 => all(bytes, |b| i16::from_le_bytes(b).into()),
        DType::UInt16 => all(bytes, |b| u16::from_le_bytes(b).into()),
        DType::Int32 => all(bytes, |b| i32::from_le_bytes(b).into()),
        DType::UInt32 => all(bytes, |b| u32::from_le_bytes(b).into()),
        DType::Int64 => all(bytes, i64::from_le_bytes),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_survive_the_way_through_bytes() {
        for dtype in [
            DType::Int8,
            DType::UInt8,
            DType::Int16,
            DType::UInt16,
            DType::Int32,
            DType::UInt32,
            DType::Int64,
        ] {
            let (low, high) = limits(dtype).unwrap();
            let mut bytes = Vec::new();
            for value in [low, high, 0, 1, 100] {
                push(&mut bytes, dtype, value);
            }
            assert_eq!(integers(dtype, &bytes), Some(vec![low, high, 0, 1, 100]), "{dtype}");
        }
        let mut bytes = Vec::new();
        push(&mut bytes, DType::Int8, 1000);
        push(&mut bytes, DType::UInt8, -1);
        push(&mut bytes, DType::Bool, 7);
        assert_eq!(bytes, [127, 0, 1]);
    }

    #[test]
    fn names_agree_between_the_crates() {
        for word in 0..32 {
            let Some(dtype) = DType::from_word(word) else { continue };
            if let Some(array) = array_type(dtype) {
                assert_eq!((array.to_string(), array.bytes()), (dtype.to_string(), dtype.size() as usize));
            }
        }
    }
}
