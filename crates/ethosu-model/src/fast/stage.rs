//! Inputs laid out for the kernels: padded, upscaled, in one straight buffer.

use ethosu_isa::{Layout, Upscale};

use super::reach::RowPart;
use crate::map::{BRICK, Extent, FeatureMap};
use crate::operation::Window;

/// The order of a staged input's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Row, column, channel.
    Dense,
    /// Row, brick of 16 channels, column, channel in the brick.
    Bricks,
}

/// How an input becomes a staged one.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    map: FeatureMap,
    extent: Extent,
    upscale: Upscale,
    /// Rows and columns after upscaling.
    height: usize,
    width: usize,
    top: usize,
    left: usize,
    form: Form,
    /// Rows of the staged input, padding included.
    pub(super) rows: usize,
    /// Columns of the staged input, padding included.
    pub(super) columns: usize,
    /// Elements from a row to the next.
    pub(super) row: usize,
}

/// Elements past the end of a staged input that kernels may read (and ignore).
pub(super) const SLACK: usize = 64;

impl Stage {
    /// Stages what `window` covers. `None` if it would need more elements than `limit`.
    pub(super) fn new(window: &Window, form: Form, limit: usize) -> Option<Self> {
        let span = |outputs: usize, stride: usize, kernel: usize, dilation: usize| {
            (outputs - 1) * stride + (kernel - 1) * dilation + 1
        };
        let rows = span(window.results.extent.height, window.stride.0, window.kernel.0, window.dilation.0);
        let columns = span(window.results.extent.width, window.stride.1, window.kernel.1, window.dilation.1);
        let depth = window.ifm_extent.depth;
        let row = columns.checked_mul(match form {
            Form::Dense => depth,
            Form::Bricks => depth.next_multiple_of(BRICK),
        })?;
        let left = usize::try_from(window.pad.1).ok()?;
        // What the kernel never reaches to the right isn't staged. (Rows below it have no row to go to.)
        let width = usize::try_from(window.width).ok()?.min(columns.checked_sub(left)?);
        let stored = if window.upscale == Upscale::None { width } else { width.div_ceil(2) };
        let stage = Self {
            map: window.ifm,
            extent: Extent { width: stored.min(window.ifm_extent.width), ..window.ifm_extent },
            upscale: window.upscale,
            height: usize::try_from(window.height).ok()?,
            width,
            top: usize::try_from(window.pad.0).ok()?,
            left,
            form,
            rows,
            columns,
            row,
        };
        (rows.checked_mul(row)? <= limit).then_some(stage)
    }

    /// Stages a map as it is.
    pub(super) fn whole(map: &FeatureMap, extent: Extent, form: Form) -> Self {
        let row = extent.width
            * match form {
                Form::Dense => extent.depth,
                Form::Bricks => extent.depth.next_multiple_of(BRICK),
            };
        Self {
            map: *map,
            extent,
            upscale: Upscale::None,
            height: extent.height,
            width: extent.width,
            top: 0,
            left: 0,
            form,
            rows: extent.height,
            columns: extent.width,
            row,
        }
    }

    /// Elements a buffer must have.
    pub(super) fn elements(&self) -> usize {
        self.rows * self.row + SLACK
    }

    /// Fills `out` from the region's bytes; `pad` stands outside the input and between upscaled elements.
    pub(super) fn fill<const E: usize, T: Copy>(
        &self,
        region: &[u8],
        out: &mut [T],
        pad: T,
        convert: impl Fn([u8; E]) -> T + Copy,
    ) {
        for (r, out) in out.chunks_exact_mut(self.row).take(self.rows).enumerate() {
            self.fill_row(r, region, out, pad, convert);
        }
    }

    /// Fills row `r` of the staged input.
    pub(super) fn fill_row<const E: usize, T: Copy>(
        &self,
        r: usize,
        region: &[u8],
        out: &mut [T],
        pad: T,
        convert: impl Fn([u8; E]) -> T + Copy,
    ) {
        let y = r.wrapping_sub(self.top);
        let between = self.upscale == Upscale::Zeros && y % 2 == 1;
        if y >= self.height || between {
            out.fill(pad);
            return;
        }
        if self.upscale == Upscale::Zeros {
            out.fill(pad);
        } else {
            self.pad_columns(out, pad);
        }
        let stored = if self.upscale == Upscale::None { y } else { y / 2 };
        for part in self.map.row(stored, self.extent.width) {
            match self.upscale {
                Upscale::None => self.copy_part(&part, region, out, convert),
                Upscale::Nearest => {
                    for x in part.columns.clone() {
                        for double in [2 * x, 2 * x + 1] {
                            if double < self.width {
                                self.copy_pixel(&part, x, double, region, out, convert);
                            }
                        }
                    }
                }
                Upscale::Zeros => {
                    for x in part.columns.clone() {
                        self.copy_pixel(&part, x, 2 * x, region, out, convert);
                    }
                }
            }
        }
    }

    /// Pads left and right of the input's columns.
    fn pad_columns<T: Copy>(&self, out: &mut [T], pad: T) {
        let (line, pixel) = match self.form {
            Form::Dense => (self.row, self.extent.depth),
            Form::Bricks => (self.columns * BRICK, BRICK),
        };
        if self.left == 0 && self.width == self.columns {
            return;
        }
        for line in out.chunks_exact_mut(line) {
            line[..self.left * pixel].fill(pad);
            line[(self.left + self.width) * pixel..].fill(pad);
        }
    }

    fn copy_part<const E: usize, T: Copy>(
        &self,
        part: &RowPart,
        region: &[u8],
        out: &mut [T],
        convert: impl Fn([u8; E]) -> T + Copy,
    ) {
        let depth = self.extent.depth;
        let count = part.columns.len();
        let first = self.left + part.columns.start;
        match (self.map.layout, self.form) {
            (Layout::Nhwc, Form::Dense) if self.map.dense_rows(depth) => {
                run(&region[part.start..], &mut out[first * depth..(first + count) * depth], convert);
            }
            (Layout::Nhcwb16, Form::Dense) => {
                for brick in 0..depth.div_ceil(BRICK) {
                    let from = (part.start as i64 + brick as i64 * self.map.stride_c) as usize;
                    let channels = BRICK.min(depth - brick * BRICK);
                    let to = first * depth + brick * BRICK;
                    let (bytes, out) = (&region[from..], &mut out[to..]);
                    match channels {
                        16 => gather::<16, E, T>(bytes, out, depth, count, convert),
                        8 => gather::<8, E, T>(bytes, out, depth, count, convert),
                        _ => {
                            for x in 0..count {
                                let out = &mut out[x * depth..x * depth + channels];
                                few(&bytes[x * BRICK * E..], out, convert);
                            }
                        }
                    }
                }
            }
            (Layout::Nhcwb16, Form::Bricks) => {
                for brick in 0..depth.div_ceil(BRICK) {
                    let from = (part.start as i64 + brick as i64 * self.map.stride_c) as usize;
                    let channels = BRICK.min(depth - brick * BRICK);
                    let to = (brick * self.columns + first) * BRICK;
                    // Channels that a brick has beyond the map's meet weights of zero.
                    let bytes = count * BRICK * E;
                    if channels == BRICK || from + bytes <= region.len() {
                        run(&region[from..from + bytes], &mut out[to..to + count * BRICK], convert);
                    } else {
                        for x in 0..count {
                            let to = to + x * BRICK;
                            few(&region[from + x * BRICK * E..], &mut out[to..to + channels], convert);
                        }
                    }
                }
            }
            (Layout::Nhwc, _) => {
                for x in part.columns.clone() {
                    self.copy_pixel(part, x, x, region, out, convert);
                }
            }
        }
    }

    /// Copies the stored column `x` of a part to column `to` of the upscaled input.
    fn copy_pixel<const E: usize, T: Copy>(
        &self,
        part: &RowPart,
        x: usize,
        to: usize,
        region: &[u8],
        out: &mut [T],
        convert: impl Fn([u8; E]) -> T + Copy,
    ) {
        let depth = self.extent.depth;
        let column = self.left + to;
        let (step, brick_step) = match self.map.layout {
            Layout::Nhwc => (self.map.stride_x, (BRICK * E) as i64),
            Layout::Nhcwb16 => ((BRICK * E) as i64, self.map.stride_c),
        };
        let from = part.start as i64 + (x - part.columns.start) as i64 * step;
        for brick in 0..depth.div_ceil(BRICK) {
            let from = (from + brick as i64 * brick_step) as usize;
            let channels = BRICK.min(depth - brick * BRICK);
            let to = match self.form {
                Form::Dense => column * depth + brick * BRICK,
                Form::Bricks => (brick * self.columns + column) * BRICK,
            };
            few(&region[from..], &mut out[to..to + channels], convert);
        }
    }
}

/// Converts as many elements as `out` has.
#[inline(always)]
fn run<const E: usize, T: Copy>(bytes: &[u8], out: &mut [T], convert: impl Fn([u8; E]) -> T) {
    let bytes = &bytes[..out.len() * E];
    for (out, element) in out.iter_mut().zip(bytes.chunks_exact(E)) {
        *out = convert(element.try_into().expect("E bytes"));
    }
}

/// Takes `N` channels of each of `count` pixels out of a brick.
fn gather<const N: usize, const E: usize, T: Copy>(
    bytes: &[u8],
    out: &mut [T],
    depth: usize,
    count: usize,
    convert: impl Fn([u8; E]) -> T + Copy,
) {
    // The last pixel may end where its channels do, on either side.
    for x in 0..count {
        run(&bytes[x * BRICK * E..][..N * E], &mut out[x * depth..][..N], convert);
    }
}

/// As [`run`], for up to sixteen elements: the usual numbers are lengths the compiler knows.
fn few<const E: usize, T: Copy>(bytes: &[u8], out: &mut [T], convert: impl Fn([u8; E]) -> T) {
    match out.len() {
        16 => run(&bytes[..16 * E], &mut out[..16], convert),
        8 => run(&bytes[..8 * E], &mut out[..8], convert),
        4 => run(&bytes[..4 * E], &mut out[..4], convert),
        _ => run(bytes, out, convert),
    }
}
