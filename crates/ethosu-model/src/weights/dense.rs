//! A convolution's weights and scales, out of their streams.

use super::{WeightFault, bitstream, fast, most_elements};
use crate::operation::{Convolution, Kernel, ScaleFormat, ScaleStream, Stream, WeightEncoding};
use crate::rounding::{Rounding, Scaling};
use crate::stop::Cause;

/// Weights as (output channel, kernel row, kernel column, input channel).
#[derive(Debug, Clone)]
pub(crate) struct Weights {
    kernel: (usize, usize),
    depth: usize,
    values: Vec<i16>,
}

impl Weights {
    /// Decodes all streams of a convolution; `read` gives a stream's bytes.
    ///
    /// # Panics
    /// If the weights come from a map.
    pub(crate) fn decode<'a>(
        convolution: &Convolution,
        read: impl Fn(u8, &Stream) -> Result<&'a [u8], Cause>,
    ) -> Result<Self, Cause> {
        let Kernel::Streams { region, encoding, streams } = &convolution.kernel else {
            unreachable!("weights that come from a map have no streams");
        };
        let window = &convolution.window;
        let depth = if convolution.depthwise { 1 } else { window.ifm_extent.depth };
        let elements = match encoding {
            WeightEncoding::Standard => streams
                .iter()
                .map(|stream| {
                    let bytes = read(*region, stream)?;
                    standard(stream, bytes).map_err(|fault| Cause::Weights { stream: stream.name, fault })
                })
                .collect::<Result<Vec<_>, Cause>>()?,
            WeightEncoding::Fast { block } => {
                let Some(first) = streams.first() else { return Err(no_streams()) };
                let bytes = read(*region, first)?;
                deal(streams, bytes, *block).map_err(|fault| Cause::Weights { stream: first.name, fault })?
            }
        };
        // The streams have decoded to at least as many elements, so the product is bounded by bytes that are there.
        let (height, width) = window.kernel;
        let mut values = vec![0; window.results.extent.depth * height * width * depth];
        for (stream, elements) in streams.iter().zip(&elements) {
            stream
                .order
                .arrange(elements, |o, y, x, i, weight| {
                    values[((o * height + y) * width + x) * depth + i] = weight
                })
                .map_err(|fault| Cause::Weights { stream: stream.name, fault })?;
        }
        Ok(Self { kernel: window.kernel, depth, values })
    }

    /// Weights of a kernel of one element, `depth` for each output channel.
    pub(crate) fn of_one_element(depth: usize, values: Vec<i16>) -> Self {
        Self { kernel: (1, 1), depth, values }
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

fn no_streams() -> Cause {
    Cause::not_modelled("WEIGHT_LENGTH", 0, "a convolution has weights")
}

/// How many elements a stream must have, if its bytes can hold so many.
fn needed(stream: &Stream, most: usize) -> Result<usize, WeightFault> {
    let least = usize::try_from(stream.order.weights()).unwrap_or(usize::MAX);
    if least > most {
        return Err(WeightFault::Short { found: 0, needed: least });
    }
    Ok(usize::try_from(stream.order.elements()).unwrap_or(usize::MAX))
}

fn standard(stream: &Stream, bytes: &[u8]) -> Result<Vec<i16>, WeightFault> {
    bitstream::decode(bytes, needed(stream, most_elements(bytes.len()))?)
}

/// Decodes the fast format and deals its elements to the streams, block by block.
fn deal(streams: &[Stream], bytes: &[u8], block: usize) -> Result<Vec<Vec<i16>>, WeightFault> {
    let most = bytes.len().saturating_mul(4);
    let counts = streams.iter().map(|stream| needed(stream, most)).collect::<Result<Vec<_>, _>>()?;
    let total = counts.iter().fold(0usize, |total, &count| total.saturating_add(count));
    let mut elements = fast::decode(bytes, total)?.into_iter();
    let mut dealt: Vec<Vec<i16>> = counts.iter().map(|&count| Vec::with_capacity(count)).collect();
    while dealt.iter().zip(&counts).any(|(dealt, &count)| dealt.len() < count) {
        for (dealt, &count) in dealt.iter_mut().zip(&counts) {
            let take = block.max(1).min(count - dealt.len());
            dealt.extend(elements.by_ref().take(take));
        }
    }
    Ok(dealt)
}

/// Bytes of a scale record.
const RECORD_BYTES: usize = 10;

/// A channel's bias and scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChannelScale {
    pub(crate) bias: i64,
    pub(crate) scale: Scaling,
}

impl ChannelScale {
    /// Reads the records of `channels` output channels; `read` gives so many bytes of a stream.
    pub(crate) fn decode<'a>(
        channels: usize,
        format: ScaleFormat,
        rounding: Rounding,
        streams: &[ScaleStream],
        read: impl Fn(&ScaleStream, usize) -> Result<&'a [u8], Cause>,
    ) -> Result<Vec<Self>, Cause> {
        let bytes = streams
            .iter()
            .map(|stream| read(stream, RECORD_BYTES * stream.channels))
            .collect::<Result<Vec<_>, Cause>>()?;
        Ok((0..channels)
            .map(|o| {
                let at = o / streams.len() * RECORD_BYTES;
                Self::record(&bytes[o % streams.len()][at..at + RECORD_BYTES], format, rounding)
            })
            .collect())
    }

    /// Formats: Vela 5.2.0, ethos_u55_weight_encoder.cpp and ethos_u85_weight_encoder.cpp.
    fn record(record: &[u8], format: ScaleFormat, rounding: Rounding) -> Self {
        let unsigned =
            |bytes: &[u8]| bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        let signed = |bytes: &[u8]| {
            let unused = 64 - 8 * bytes.len() as u32;
            ((unsigned(bytes) << unused) as i64) >> unused
        };
        let (bias, multiplier, shift) = match format {
            ScaleFormat::Bias40 => (signed(&record[..5]), unsigned(&record[5..9]), record[9]),
            ScaleFormat::Bias32 => (signed(&record[..4]), unsigned(&record[4..8]) & 0x7FFF_FFFF, record[8]),
            ScaleFormat::Bias48 => (signed(&record[..6]), unsigned(&record[6..8]) & 0x7FFF, record[8]),
        };
        Self {
            bias,
            scale: Scaling { multiplier: multiplier as u32, shift: shift & 63, rounding, doubling: 0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records() {
        let record = |bytes: [u8; 10], format| {
            let channel = ChannelScale::record(&bytes, format, Rounding::Double);
            (channel.bias, channel.scale.multiplier, channel.scale.shift)
        };
        // person_detect's first channel, compiled by Vela 5.2.0.
        let bytes = [0xBE, 0x0E, 0, 0, 0, 0xE6, 0x56, 0x57, 0x59, 38];
        assert_eq!(record(bytes, ScaleFormat::Bias40), (0x0EBE, 0x5957_56E6, 38));
        let bytes = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x80, 0xFF];
        assert_eq!(record(bytes, ScaleFormat::Bias40), (-1, 1 << 31, 63));
        let bytes = [0xFE, 0xFF, 0xFF, 0xFF, 0x01, 0, 0, 0xC0, 40, 0];
        assert_eq!(record(bytes, ScaleFormat::Bias32), (-2, 0x4000_0001, 40));
        let bytes = [0, 0, 0, 0, 0, 0x80, 0x34, 0xF2, 20, 0];
        assert_eq!(record(bytes, ScaleFormat::Bias48), (-(1 << 47), 0x7234, 20));
    }
}
