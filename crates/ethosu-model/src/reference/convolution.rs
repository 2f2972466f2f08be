//! Convolutions, depthwise ones included.

use super::load;
use super::taps::Tap;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::Convolution;
use crate::rounding::DoublingShift;
use crate::stop::Cause;
use crate::weights::{ChannelScale, Weights};

/// The scaled sums, before the output stage.
pub(super) fn compute(convolution: &Convolution, memory: &Memory) -> Result<Volume, Cause> {
    let window = &convolution.window;
    let read = |region, base: u64, bytes: u64, name| {
        memory.read(region, i64::try_from(base).unwrap_or(i64::MAX), bytes).map_err(Cause::bus(name))
    };
    let weights = Weights::decode(convolution, |stream| {
        read(convolution.weight_region, stream.weight_base, stream.weight_length.into(), stream.name)
    })?;
    let scales = ChannelScale::decode(convolution, |stream, bytes| {
        read(convolution.scale_region, stream.scale_base, bytes as u64, stream.scale_name)
    })?;
    let input = load(&window.ifm, window.ifm_extent, "IFM", memory)?;
    let extent = window.ofm_extent;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for oy in 0..extent.height {
        for ox in 0..extent.width {
            for (o, channel) in scales.iter().enumerate() {
                let mut sum = 0;
                for ky in 0..window.kernel.0 {
                    for kx in 0..window.kernel.1 {
                        // Padding counts as the zero point, so it adds nothing.
                        let Tap::At(y, x) = window.tap(oy, ox, ky, kx) else { continue };
                        let (inputs, weights) = (input.channels(y, x), weights.channels(o, ky, kx));
                        sum += if convolution.depthwise {
                            inputs[o] * i64::from(weights[0])
                        } else {
                            inputs
                                .iter()
                                .zip(weights)
                                .map(|(input, &weight)| input * i64::from(weight))
                                .sum::<i64>()
                        };
                    }
                }
                let sum = accumulator(sum, channel.bias, window.accumulator_bits)?;
                values.push(channel.scale.apply(sum, window.rounding, DoublingShift::RESULT));
            }
        }
    }
    Ok(Volume { extent, values })
}

/// Sum and bias together, if the accumulator holds them.
pub(crate) fn accumulator(sum: i64, bias: i64, bits: u32) -> Result<i64, Cause> {
    let total = sum + bias;
    let limit = 1i64 << (bits - 1);
    match [sum, total].into_iter().find(|value| !(-limit..limit).contains(value)) {
        Some(value) => {
            Err(Cause::not_modelled("the accumulator", value, "whether it wraps or saturates is unknown"))
        }
        None => Ok(total),
    }
}
