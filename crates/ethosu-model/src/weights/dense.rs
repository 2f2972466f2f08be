//! A convolution's weights and scales, out of their streams.

use crate::operation::{Convolution, Stream};
use crate::rounding::Scale;
use crate::stop::Cause;
use crate::weights;

/// Weights as (output channel, kernel row, kernel column, input channel).
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    kernel: (usize, usize),
    depth: usize,
    values: Vec<i16>,
}

impl Weights {
    /// Decodes all streams of a convolution; `read` gives a stream's bytes.
    pub(crate) fn decode<'a>(
        convolution: &Convolution,
        read: impl Fn(&Stream) -> Result<&'a [u8], Cause>,
    ) -> Result<Self, Cause> {
        let window = &convolution.window;
        let depth = if convolution.depthwise { 1 } else { window.ifm_extent.depth };
        let mut decoded = Vec::with_capacity(convolution.streams.len());
        for stream in &convolution.streams {
            let needed = usize::try_from(stream.order.elements()).unwrap_or(usize::MAX);
            let elements = weights::decode(read(stream)?, needed)
                .map_err(|fault| Cause::Weights { stream: stream.name, fault })?;
            decoded.push(elements);
        }
        // The streams have decoded to at least as many elements, so the product is bounded by bytes that are there.
        let (height, width) = window.kernel;
        let mut values = vec![0; window.ofm_extent.depth * height * width * depth];
        for (core, (stream, elements)) in convolution.streams.iter().zip(&decoded).enumerate() {
            stream
                .order
                .arrange(elements, |o, y, x, i, weight| {
                    let o = o * convolution.cores + core;
                    values[((o * height + y) * width + x) * depth + i] = weight;
                })
                .map_err(|fault| Cause::Weights { stream: stream.name, fault })?;
        }
        Ok(Self { kernel: window.kernel, depth, values })
    }

    /// The weights of all input channels for one output channel and kernel element.
    pub(crate) fn channels(&self, o: usize, ky: usize, kx: usize) -> &[i16] {
        let start = ((o * self.kernel.0 + ky) * self.kernel.1 + kx) * self.depth;
        &self.values[start..start + self.depth]
    }

    /// All weights of one output channel.
    pub(crate) fn output(&self, o: usize) -> &[i16] {
        let size = self.kernel.0 * self.kernel.1 * self.depth;
        &self.values[o * size..(o + 1) * size]
    }
}

/// Bytes of a scale record: 40-bit bias, 32-bit multiplier, 6-bit shift (Vela 5.2.0, ethos_u55_weight_encoder.cpp).
const RECORD_BYTES: usize = 10;

/// A channel's bias and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelScale {
    /// 40-bit two's complement.
    pub(crate) bias: i64,
    pub(crate) scale: Scale,
}

impl ChannelScale {
    /// Reads the records of all output channels; `read` gives so many bytes of a stream's scales.
    pub(crate) fn decode<'a>(
        convolution: &Convolution,
        read: impl Fn(&Stream, usize) -> Result<&'a [u8], Cause>,
    ) -> Result<Vec<Self>, Cause> {
        let mut streams = Vec::with_capacity(convolution.streams.len());
        for stream in &convolution.streams {
            streams.push(read(stream, RECORD_BYTES * stream.order.ofm_depth)?);
        }
        let outputs = convolution.window.ofm_extent.depth;
        Ok((0..outputs)
            .map(|o| {
                let at = o / convolution.cores * RECORD_BYTES;
                Self::record(&streams[o % convolution.cores][at..at + RECORD_BYTES])
            })
            .collect())
    }

    fn record(record: &[u8]) -> Self {
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
        assert_eq!(ChannelScale::record(&record), ChannelScale { bias: 0x0EBE, scale });
        let record = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x80, 0xFF];
        let scale = Scale { multiplier: 1 << 31, shift: 63 };
        assert_eq!(ChannelScale::record(&record), ChannelScale { bias: -1, scale });
    }
}
