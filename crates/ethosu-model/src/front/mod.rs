//! Front ends: from a product's registers to operations.

mod registers;
mod registers55;
mod registers85;
mod u55;
mod u85;

pub(crate) use u55::FrontEnd55;
pub(crate) use u85::FrontEnd85;

use ethosu_isa::{Command, ElementSize, KernelStride};

use crate::clock::Schedule;
use crate::map::{Extent, FeatureMap};
use crate::operation::{Operation, Results, Window};
use crate::stop::Cause;

/// Turns commands into operations.
pub(crate) trait FrontEnd {
    /// The operation that a command starts; `None` if it sets a register or changes no value.
    fn command(&mut self, command: &Command) -> Result<Option<Operation>, Cause>;

    /// What the registers say about how the operation that was just started is carried out.
    fn schedule(&self) -> Schedule;

    /// Bytes that each chain buffer needs.
    fn chain_bytes(&self) -> [usize; 8] {
        [0; 8]
    }
}

/// A value in the sign of the map it belongs to.
fn signed_16(value: u16, signed: bool) -> i64 {
    if signed { i64::from(value as i16) } else { i64::from(value) }
}

fn plus_one(value: u16) -> usize {
    usize::from(value) + 1
}

/// The registers that place a kernel, whichever product they are of.
struct Placement {
    /// Rows and columns of the dilated kernel.
    dilated: (i64, i64),
    stride: KernelStride,
    top: u8,
    left: u8,
    bottom: u8,
    right: u8,
    upscale: ethosu_isa::Upscale,
    accumulator_bits: u32,
}

impl Placement {
    /// The window over `ifm`, of which `depth` channels are read.
    fn window(&self, ifm: FeatureMap, depth: usize, results: Results) -> Result<Window, Cause> {
        use ethosu_isa::{Decomposition, Upscale};
        if self.stride.decomposition != Decomposition::D8x8 {
            return Err(Cause::not_modelled(
                "KERNEL_STRIDE decomposition",
                1,
                "the 4x4 decomposition is never emitted",
            ));
        }
        for (field, value) in [
            ("KERNEL_STRIDE stride_x", self.stride.stride_x),
            ("KERNEL_STRIDE stride_y", self.stride.stride_y),
        ] {
            if value > 3 {
                return Err(Cause::not_modelled(field, value, "strides of 1 to 3 are known"));
            }
        }
        let dilation = (usize::from(self.stride.dilation_y), usize::from(self.stride.dilation_x));
        let kernel =
            ((self.dilated.0 as usize - 1) / dilation.0 + 1, (self.dilated.1 as usize - 1) / dilation.1 + 1);
        let stride = (usize::from(self.stride.stride_y), usize::from(self.stride.stride_x));
        let [top, left, bottom, right] = [self.top, self.left, self.bottom, self.right].map(i64::from);
        // The size of the input has no register: it follows from what the kernel covers.
        let size = |outputs: usize, stride: usize, kernel: i64| (outputs as i64 - 1) * stride as i64 + kernel;
        let height = size(results.extent.height, stride.0, self.dilated.0) - top - bottom;
        let width = size(results.extent.width, stride.1, self.dilated.1) - left - right;
        for (field, value) in [
            ("the IFM height that output, kernel and padding give", height),
            ("the IFM width that output, kernel and padding give", width),
        ] {
            if value < 1 {
                return Err(Cause::not_modelled(
                    field,
                    value,
                    "there must be at least one row and one column",
                ));
            }
        }
        let stored = |size: i64| (if self.upscale == Upscale::None { size } else { (size + 1) / 2 }) as usize;
        Ok(Window {
            ifm,
            ifm_extent: Extent { height: stored(height), width: stored(width), depth },
            height,
            width,
            upscale: self.upscale,
            kernel,
            stride,
            dilation,
            pad: (top, left),
            padded: top != 0 || left != 0 || bottom != 0 || right != 0,
            accumulator_bits: self.accumulator_bits,
            results,
        })
    }
}

/// An input map, if its form is known.
fn input(map: FeatureMap, zero_point: &'static str, size: &'static str) -> Result<FeatureMap, Cause> {
    match map.element {
        ElementSize::Bits64 => Err(Cause::not_modelled(size, 64, "inputs of 8, 16 or 32 bits are known")),
        ElementSize::Bits32 if map.zero_point != 0 => {
            Err(Cause::not_modelled(zero_point, map.zero_point, "32-bit inputs are known with 0"))
        }
        _ => Ok(map),
    }
}

/// The feature map that the registers with a prefix describe.
macro_rules! feature_map {
    ($r:expr, ifm, $precision:expr) => {
        feature_map!(@ $r, $precision, ifm_region, ifm_base0, ifm_base1, ifm_base2, ifm_base3, ifm_width0_m1, ifm_height0_m1,
            ifm_height1_m1, ifm_stride_y, ifm_stride_x, ifm_stride_c, ifm_zero_point)
    };
    ($r:expr, ifm2, $precision:expr) => {
        feature_map!(@ $r, $precision, ifm2_region, ifm2_base0, ifm2_base1, ifm2_base2, ifm2_base3, ifm2_width0_m1,
            ifm2_height0_m1, ifm2_height1_m1, ifm2_stride_y, ifm2_stride_x, ifm2_stride_c, ifm2_zero_point)
    };
    ($r:expr, ofm, $precision:expr) => {
        feature_map!(@ $r, $precision, ofm_region, ofm_base0, ofm_base1, ofm_base2, ofm_base3, ofm_width0_m1, ofm_height0_m1,
            ofm_height1_m1, ofm_stride_y, ofm_stride_x, ofm_stride_c, ofm_zero_point)
    };
    (@ $r:expr, $precision:expr, $region:ident, $base0:ident, $base1:ident, $base2:ident, $base3:ident, $width0:ident,
        $height0:ident, $height1:ident, $stride_y:ident, $stride_x:ident, $stride_c:ident, $zero_point:ident) => {
        FeatureMap {
            region: $r.$region.get()?,
            bases: [$r.$base0.get()?, $r.$base1.get()?, $r.$base2.get()?, $r.$base3.get()?],
            width0: plus_one($r.$width0.get()?),
            height0: plus_one($r.$height0.get()?),
            height1: plus_one($r.$height1.get()?),
            stride_y: $r.$stride_y.get()?,
            stride_x: $r.$stride_x.get()?,
            stride_c: $r.$stride_c.get()?,
            element: $precision.size,
            signed: $precision.signed,
            layout: $precision.layout,
            zero_point: signed_16($r.$zero_point.get()?, $precision.signed),
        }
    };
}

use feature_map;
