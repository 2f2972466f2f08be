//! The stream of biases and scales, one record for each output channel.

use crate::memory::{BusFault, Memory};
use crate::rounding::Scale;

/// Bytes of a record: 40-bit bias, 32-bit multiplier, 6-bit shift (Vela 5.2.0, ethos_u55_weight_encoder.cpp).
pub(crate) const CHANNEL_BYTES: u64 = 10;

/// A channel's bias and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelScale {
    /// 40-bit two's complement.
    pub(crate) bias: i64,
    pub(crate) scale: Scale,
}

impl ChannelScale {
    /// Reads `count` records.
    pub(crate) fn read(memory: &Memory, region: u8, base: u64, count: usize) -> Result<Vec<Self>, BusFault> {
        let base = i64::try_from(base).unwrap_or(i64::MAX);
        let bytes = memory.read(region, base, CHANNEL_BYTES * count as u64)?;
        Ok(bytes.chunks_exact(CHANNEL_BYTES as usize).map(Self::decode).collect())
    }

    fn decode(record: &[u8]) -> Self {
        let mut bias = [0; 8];
        bias[3..].copy_from_slice(&record[..5]);
        let multiplier = u32::from_le_bytes([record[5], record[6], record[7], record[8]]);
        Self { bias: i64::from_le_bytes(bias) >> 24, scale: Scale { multiplier, shift: record[9] & 63 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record() {
        // person_detect's first channel, compiled by Vela 5.2.0.
        let record = [0xBE, 0x0E, 0, 0, 0, 0xE6, 0x56, 0x57, 0x59, 38];
        let scale = Scale { multiplier: 0x5957_56E6, shift: 38 };
        assert_eq!(ChannelScale::decode(&record), ChannelScale { bias: 0x0EBE, scale });
        let record = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x80, 0xFF];
        let scale = Scale { multiplier: 1 << 31, shift: 63 };
        assert_eq!(ChannelScale::decode(&record), ChannelScale { bias: -1, scale });
    }
}
