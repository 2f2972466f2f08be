//! Convolutions, depthwise ones and matrix products included.

use super::load;
use super::taps::Tap;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::{Convolution, ConvolutionScale, Kernel};
use crate::stop::Cause;
use crate::weights::{ChannelScale, Weights};

/// Where the weights of an output channel and kernel element are found.
enum Source {
    Streams(Weights),
    /// Output channels are columns.
    Map(Volume),
}

/// The scaled sums, before the output stage.
pub(super) fn compute(convolution: &Convolution, memory: &Memory) -> Result<Volume, Cause> {
    let window = &convolution.window;
    let extent = window.results.extent;
    let source = weights(convolution, memory)?;
    let scales = scales(convolution, memory)?;
    let input = load(&window.ifm, window.ifm_extent, "IFM", memory)?;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for oy in 0..extent.height {
        for ox in 0..extent.width {
            for (o, channel) in scales.iter().enumerate() {
                let mut sum = 0;
                for ky in 0..window.kernel.0 {
                    for kx in 0..window.kernel.1 {
                        // Padding counts as the zero point, so it adds nothing.
                        let Tap::At(y, x) = window.tap(oy, ox, ky, kx) else { continue };
                        let inputs = input.channels(y, x);
                        sum += match &source {
                            Source::Streams(weights) if convolution.depthwise => {
                                inputs[o] * i64::from(weights.channels(o, ky, kx)[0])
                            }
                            Source::Streams(weights) => {
                                let weights = weights.channels(o, ky, kx);
                                inputs
                                    .iter()
                                    .zip(weights)
                                    .map(|(input, &weight)| input * i64::from(weight))
                                    .sum::<i64>()
                            }
                            Source::Map(map) => inputs
                                .iter()
                                .zip(map.channels(0, o))
                                .map(|(input, weight)| input * weight)
                                .sum::<i64>(),
                        };
                    }
                }
                let sum = accumulator(sum, channel.bias, window.accumulator_bits)?;
                values.push(channel.scale.apply(sum));
            }
        }
    }
    Ok(Volume { extent, values })
}

/// Sum and bias together, if the accumulator holds them.
pub(super) fn accumulator(sum: i64, bias: i64, bits: u32) -> Result<i64, Cause> {
    let total = sum + bias;
    let limit = 1i64 << (bits - 1);
    match [sum, total].into_iter().find(|value| !(-limit..limit).contains(value)) {
        Some(value) => {
            Err(Cause::not_modelled("the accumulator", value, "whether it wraps or saturates is unknown"))
        }
        None => Ok(total),
    }
}

fn weights(convolution: &Convolution, memory: &Memory) -> Result<Source, Cause> {
    match &convolution.kernel {
        Kernel::Streams { .. } => Weights::decode(convolution, |region, stream| {
            let base = i64::try_from(stream.base).unwrap_or(i64::MAX);
            memory.read(region, base, stream.length.into()).map_err(Cause::bus(stream.name))
        })
        .map(Source::Streams),
        Kernel::Map(map) => load(map, convolution.weight_map_extent(), "IFM2", memory).map(Source::Map),
    }
}

fn scales(convolution: &Convolution, memory: &Memory) -> Result<Vec<ChannelScale>, Cause> {
    let channels = convolution.window.results.extent.depth;
    match &convolution.scale {
        ConvolutionScale::PerChannel { region, format, rounding, streams } => {
            ChannelScale::decode(channels, *format, *rounding, streams, |stream, bytes| {
                let base = i64::try_from(stream.base).unwrap_or(i64::MAX);
                memory.read(*region, base, bytes as u64).map_err(Cause::bus(stream.name))
            })
        }
        ConvolutionScale::Global(scale) => Ok(vec![ChannelScale { bias: 0, scale: *scale }; channels]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accumulators_have_limits() {
        assert_eq!(accumulator(i64::from(i32::MAX) - 1, 1, 32), Ok(i64::from(i32::MAX)));
        assert!(accumulator(i64::from(i32::MAX), 1, 32).is_err());
        assert!(accumulator(i64::from(i32::MAX) + 1, -1, 32).is_err());
        assert_eq!(accumulator(-(1 << 39), 0, 40), Ok(-(1 << 39)));
        assert!(accumulator(1 << 39, 0, 40).is_err());
    }
}
