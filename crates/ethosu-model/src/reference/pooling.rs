//! Pooling operations.

use super::convolution::accumulator;
use super::load;
use super::taps::Tap;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::{PoolFunction, Pooling};
use crate::rounding::divide_half_away;
use crate::stop::Cause;

/// The scaled results, before the output stage.
pub(super) fn compute(pooling: &Pooling, memory: &Memory) -> Result<Volume, Cause> {
    let window = &pooling.window;
    let input = load(&window.ifm, window.ifm_extent, "IFM", memory)?;
    let extent = window.results.extent;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for oy in 0..extent.height {
        for ox in 0..extent.width {
            for o in 0..extent.depth {
                let mut found = Vec::with_capacity(window.kernel.0 * window.kernel.1);
                for ky in 0..window.kernel.0 {
                    for kx in 0..window.kernel.1 {
                        let value = match window.tap(oy, ox, ky, kx) {
                            Tap::Padding => continue,
                            Tap::Zero => 0,
                            Tap::At(y, x) if pooling.function == PoolFunction::ReduceSum => {
                                input.channels(y, x).iter().sum()
                            }
                            Tap::At(y, x) => input.channels(y, x)[o],
                        };
                        found.push((kx, value));
                    }
                }
                let result = result(pooling.function, &found)?;
                let result = accumulator(result, 0, window.accumulator_bits)?;
                values.push(pooling.scale.apply(result));
            }
        }
    }
    Ok(Volume { extent, values })
}

/// What a pool makes of the elements under its kernel, each with its column in the kernel.
fn result(function: PoolFunction, found: &[(usize, i64)]) -> Result<i64, Cause> {
    let Some(&(mut column, mut best)) = found.first() else {
        let known = "a pool whose kernel lies wholly in the padding has no known result";
        return Err(Cause::not_modelled("the kernel", 0, known));
    };
    let sum: i64 = found.iter().map(|(_, value)| value).sum();
    for &(x, value) in found {
        let better = if function == PoolFunction::Min { value < best } else { value > best };
        if better {
            (column, best) = (x, value);
        }
    }
    Ok(match function {
        PoolFunction::Max | PoolFunction::Min => best,
        PoolFunction::Sum | PoolFunction::ReduceSum => sum,
        PoolFunction::Mean => divide_half_away(sum, found.len() as i64),
        PoolFunction::ArgmaxX => column as i64,
    })
}
