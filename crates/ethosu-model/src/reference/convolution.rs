//! Convolutions, depthwise ones included.

use super::ChannelScale;
use super::load;
use super::taps::Tap;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::Convolution;
use crate::rounding::DoublingShift;
use crate::stop::Cause;
use crate::weights;

/// Weights as (output channel, kernel row, kernel column, input channel).
struct Weights {
    kernel: (usize, usize),
    depth: usize,
    values: Vec<i64>,
}

impl Weights {
    fn channels(&self, o: usize, ky: usize, kx: usize) -> &[i64] {
        let start = ((o * self.kernel.0 + ky) * self.kernel.1 + kx) * self.depth;
        &self.values[start..start + self.depth]
    }
}

/// The scaled sums, before the output stage.
pub(super) fn compute(convolution: &Convolution, memory: &Memory) -> Result<Volume, Cause> {
    let window = &convolution.window;
    let weights = decode_weights(convolution, memory)?;
    let scales = read_scales(convolution, memory)?;
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
                            inputs[o] * weights[0]
                        } else {
                            inputs.iter().zip(weights).map(|(input, weight)| input * weight).sum::<i64>()
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

fn decode_weights(convolution: &Convolution, memory: &Memory) -> Result<Weights, Cause> {
    let window = &convolution.window;
    let depth = if convolution.depthwise { 1 } else { window.ifm_extent.depth };
    let outputs = window.ofm_extent.depth;
    let mut decoded = Vec::with_capacity(convolution.streams.len());
    for stream in &convolution.streams {
        let base = i64::try_from(stream.weight_base).unwrap_or(i64::MAX);
        let bytes = memory
            .read(convolution.weight_region, base, stream.weight_length.into())
            .map_err(Cause::bus(stream.name))?;
        let fault = |fault| Cause::Weights { stream: stream.name, fault };
        let needed = usize::try_from(stream.order.elements()).unwrap_or(usize::MAX);
        decoded.push(weights::decode(bytes, needed).map_err(fault)?);
    }
    // The streams have decoded to at least as many elements, so the product is bounded by bytes that are there.
    let size = outputs * window.kernel.0 * window.kernel.1 * depth;
    let mut weights = Weights { kernel: window.kernel, depth, values: vec![0; size] };
    for (core, (stream, elements)) in convolution.streams.iter().zip(&decoded).enumerate() {
        let (height, width) = window.kernel;
        stream
            .order
            .arrange(elements, |o, y, x, i, weight| {
                let o = o * convolution.cores + core;
                weights.values[((o * height + y) * width + x) * depth + i] = weight.into();
            })
            .map_err(|fault| Cause::Weights { stream: stream.name, fault })?;
    }
    Ok(weights)
}

fn read_scales(convolution: &Convolution, memory: &Memory) -> Result<Vec<ChannelScale>, Cause> {
    let mut streams = Vec::with_capacity(convolution.streams.len());
    for stream in &convolution.streams {
        let records =
            ChannelScale::read(memory, convolution.scale_region, stream.scale_base, stream.order.ofm_depth)
                .map_err(Cause::bus(if stream.name == "WEIGHT" { "SCALE" } else { "SCALE1" }))?;
        streams.push(records);
    }
    let outputs = convolution.window.ofm_extent.depth;
    Ok((0..outputs).map(|o| streams[o % convolution.cores][o / convolution.cores]).collect())
}
