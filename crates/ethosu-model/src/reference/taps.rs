//! Which input position a kernel element looks at.

use ethosu_isa::Upscale;

use crate::operation::Window;

/// What a kernel element finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tap {
    /// A stored row and column.
    At(usize, usize),
    /// A zero between stored elements (upscaling with zeros).
    Zero,
    /// Outside the input.
    Padding,
}

impl Window {
    /// What kernel element (`ky`, `kx`) finds for output position (`oy`, `ox`).
    pub(super) fn tap(&self, oy: usize, ox: usize, ky: usize, kx: usize) -> Tap {
        let y = (oy * self.stride.0 + ky * self.dilation.0) as i64 - self.pad.0;
        let x = (ox * self.stride.1 + kx * self.dilation.1) as i64 - self.pad.1;
        if y < 0 || x < 0 || y >= self.height || x >= self.width {
            return Tap::Padding;
        }
        let (y, x) = (y as usize, x as usize);
        match self.upscale {
            Upscale::None => Tap::At(y, x),
            Upscale::Nearest => Tap::At(y / 2, x / 2),
            Upscale::Zeros if y % 2 == 0 && x % 2 == 0 => Tap::At(y / 2, x / 2),
            Upscale::Zeros => Tap::Zero,
        }
    }
}
