//! Pooling operations.

use ethosu_isa::PoolMode;

use super::convolution::accumulator;
use super::load;
use super::taps::Tap;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::Pooling;
use crate::rounding::{DoublingShift, divide_half_away};
use crate::stop::Cause;

/// The scaled results, before the output stage.
pub(super) fn compute(pooling: &Pooling, memory: &Memory) -> Result<Volume, Cause> {
    let window = &pooling.window;
    let input = load(&window.ifm, window.ifm_extent, "IFM", memory)?;
    let extent = window.ofm_extent;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for oy in 0..extent.height {
        for ox in 0..extent.width {
            for o in 0..extent.depth {
                let mut taps = 0;
                let mut result: Option<i64> = None;
                for ky in 0..window.kernel.0 {
                    for kx in 0..window.kernel.1 {
                        let value = match window.tap(oy, ox, ky, kx) {
                            Tap::Padding => continue,
                            Tap::Zero => 0,
                            Tap::At(y, x) => match pooling.mode {
                                PoolMode::ReduceSum => input.channels(y, x).iter().sum(),
                                PoolMode::Max | PoolMode::Average => input.channels(y, x)[o],
                            },
                        };
                        taps += 1;
                        result = Some(match (pooling.mode, result) {
                            (_, None) => value,
                            (PoolMode::Max, Some(result)) => result.max(value),
                            (_, Some(result)) => result + value,
                        });
                    }
                }
                let Some(result) = result else {
                    return Err(Cause::not_modelled(
                        "the kernel",
                        0,
                        "a pool whose kernel lies wholly in the padding has no known result",
                    ));
                };
                let result = accumulator(result, 0, window.accumulator_bits)?;
                values.push(match (pooling.mode, pooling.scale) {
                    // With padding, and without OFM_SCALE, the hardware divides by the elements that are really there.
                    (PoolMode::Average, scale) if window.padded || scale.is_none() => {
                        divide_half_away(result, taps)
                    }
                    (_, Some(scale)) => scale.apply(result, window.rounding, DoublingShift::RESULT),
                    (_, None) => result,
                });
            }
        }
    }
    Ok(Volume { extent, values })
}
