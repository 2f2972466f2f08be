//! Resizing.

use super::load;
use crate::map::Volume;
use crate::memory::Memory;
use crate::operation::{Axis, Interpolation, Resize};
use crate::stop::Cause;

/// The scaled results, before the output stage.
pub(super) fn compute(resize: &Resize, memory: &Memory) -> Result<Volume, Cause> {
    let input = load(&resize.ifm, resize.ifm_extent, "IFM", memory)?;
    let extent = resize.results.extent;
    let mut values = Vec::with_capacity(extent.elements() as usize);
    for oy in 0..extent.height {
        let (y, fraction_y) = position(&resize.y, oy);
        for ox in 0..extent.width {
            let (x, fraction_x) = position(&resize.x, ox);
            // Positions outside count as the nearest one inside.
            let channels = |y: i64, x: i64| {
                let y = y.clamp(0, resize.ifm_extent.height as i64 - 1) as usize;
                let x = x.clamp(0, resize.ifm_extent.width as i64 - 1) as usize;
                input.channels(y, x)
            };
            for c in 0..extent.depth {
                let value = match resize.interpolation {
                    Interpolation::Nearest => {
                        let near = |axis: &Axis, fraction: i64| i64::from(2 * fraction >= axis.numerator);
                        channels(y + near(&resize.y, fraction_y), x + near(&resize.x, fraction_x))[c]
                    }
                    Interpolation::Bilinear => {
                        let row = |y: i64| {
                            channels(y, x)[c] * (resize.x.numerator - fraction_x)
                                + channels(y, x + 1)[c] * fraction_x
                        };
                        row(y) * (resize.y.numerator - fraction_y) + row(y + 1) * fraction_y
                    }
                };
                values.push(resize.scale.apply(value << 16));
            }
        }
    }
    Ok(Volume { extent, values })
}

/// The element before an output position, and how far beyond it, in units of the axis.
fn position(axis: &Axis, output: usize) -> (i64, i64) {
    let position = output as i64 * axis.step + axis.offset;
    (position.div_euclid(axis.numerator), position.rem_euclid(axis.numerator))
}
