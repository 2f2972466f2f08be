//! Element-wise operations with two operands, on 8-bit and 16-bit data.

use ethosu_isa::{ElementSize, ElementwiseMode as Mode, Layout};

use super::kernels::{self, Isa};
use super::output::Output;
use super::requant::{LANES, RequantBlock};
use super::scratch::Scratch;
use crate::map::{BRICK, Extent, FeatureMap};
use crate::memory::Memory;
use crate::operation::{Elementwise, Operand, OperandScaling};
use crate::rounding::DoublingShift;

/// How an operand is changed before the operation.
#[derive(Debug, Clone)]
enum Prepare {
    Multiply(i32),
    Scale(Box<RequantBlock>),
}

#[derive(Debug, Clone)]
enum Source {
    Map(FeatureMap, Extent),
    Scalar(i32),
}

/// A planned operation.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    mode: Mode,
    /// A and B, in this order.
    sources: [Source; 2],
    prepare: [Prepare; 2],
    /// `None` where the mode doesn't scale its result.
    scale: Option<Box<RequantBlock>>,
    output: Output,
    /// Set if both operands and the output are bytes in the same order: they are then read and written as they lie.
    lines: Option<Lines>,
}

/// A map's rows as lines of bytes without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lines {
    per_row: usize,
    bytes: usize,
}

impl Lines {
    fn of(map: &FeatureMap, extent: Extent) -> Option<Self> {
        if map.element != ElementSize::Bits8 || map.width0 < extent.width {
            return None;
        }
        match map.layout {
            Layout::Nhwc if map.dense_rows(extent.depth) => {
                Some(Self { per_row: 1, bytes: extent.width * extent.depth })
            }
            Layout::Nhcwb16 if extent.depth.is_multiple_of(BRICK) => {
                Some(Self { per_row: extent.depth / BRICK, bytes: extent.width * BRICK })
            }
            _ => None,
        }
    }
}

/// The largest distance of an element from its zero point.
fn reach(map: &FeatureMap) -> i64 {
    let bits = 8 * map.element_bytes() as u32;
    let (low, high) =
        if map.signed { (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1) } else { (0, (1i64 << bits) - 1) };
    (map.zero_point - low).abs().max((high - map.zero_point).abs())
}

impl Binary {
    /// `None` for forms that have no plan of their own. The caller has checked that writing row by row spoils no input.
    pub(super) fn new(operation: &Elementwise, output: Output) -> Option<Self> {
        let narrow = |map: &FeatureMap| matches!(map.element, ElementSize::Bits8 | ElementSize::Bits16);
        if !matches!(operation.mode, Mode::Mul | Mode::Add | Mode::Sub | Mode::Min | Mode::Max)
            || !narrow(&operation.ifm)
        {
            return None;
        }
        let first = (Source::Map(operation.ifm, operation.extent), reach(&operation.ifm));
        let second = match operation.ifm2? {
            Operand::Scalar(value) => (Source::Scalar(i32::try_from(value).ok()?), value.abs()),
            Operand::Map(map, extent) if narrow(&map) => (Source::Map(map, extent), reach(&map)),
            Operand::Map(..) => return None,
        };
        let (a, b) = if operation.reversed { (second, first) } else { (first, second) };
        let multiply =
            |by: i64, reach: i64| Some((Prepare::Multiply(i32::try_from(by).ok()?), reach.checked_mul(by)?));
        let (prepare_a, prepare_b) = match operation.operand_scaling {
            None => (multiply(1, a.1)?, multiply(1, b.1)?),
            Some(OperandScaling::Both { a: by_a, b: by_b }) => (multiply(by_a, a.1)?, multiply(by_b, b.1)?),
            Some(OperandScaling::One { scale_a, scale, rounding, left_shift, doubling }) => {
                let scaled = |reach: i64| {
                    let block = RequantBlock::uniform(scale, rounding, doubling, reach)?;
                    let most = scale.apply(reach, rounding, doubling).abs() + 1;
                    Some((Prepare::Scale(Box::new(block)), most))
                };
                if scale_a {
                    (scaled(a.1)?, multiply(1 << left_shift, b.1)?)
                } else {
                    (multiply(1 << left_shift, a.1)?, scaled(b.1)?)
                }
            }
        };
        let bound = match operation.mode {
            Mode::Mul => prepare_a.1.checked_mul(prepare_b.1)?,
            Mode::Add | Mode::Sub => prepare_a.1 + prepare_b.1,
            _ => prepare_a.1.max(prepare_b.1),
        };
        if bound > i64::from(i32::MAX) / 2 {
            return None;
        }
        let scale = match operation.mode {
            Mode::Min | Mode::Max => None,
            _ => Some(Box::new(RequantBlock::uniform(
                operation.scale,
                operation.rounding,
                DoublingShift::RESULT,
                bound,
            )?)),
        };
        let mut lines = None;
        if let [Source::Map(map_a, extent_a), Source::Map(map_b, extent_b)] = [&a.0, &b.0] {
            let all = [
                (map_a.layout, Lines::of(map_a, *extent_a)),
                (map_b.layout, Lines::of(map_b, *extent_b)),
                (operation.ofm.layout, Lines::of(&operation.ofm, operation.extent)),
            ];
            let same = extent_a == extent_b && *extent_a == operation.extent;
            if same
                && all[0] == all[1]
                && all[1] == all[2]
                && !matches!(operation.mode, Mode::Min | Mode::Max)
            {
                lines = all[0].1;
            }
        }
        let prepare = [prepare_a.0, prepare_b.0];
        Some(Self { mode: operation.mode, sources: [a.0, b.0], prepare, scale, output, lines })
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        match (&self.lines, &self.sources, &self.scale) {
            (Some(lines), [Source::Map(a, _), Source::Map(b, _)], Some(scale)) => {
                self.run_lines(isa, *lines, [a, b], scale, memory, scratch);
            }
            _ => self.run_rows(isa, memory, scratch),
        }
    }

    fn run_lines(
        &self,
        isa: Isa,
        lines: Lines,
        maps: [&FeatureMap; 2],
        scale: &RequantBlock,
        memory: &mut Memory,
        scratch: &mut Scratch,
    ) {
        let prepare = |index: usize| {
            let map = maps[index];
            let prepare = match &self.prepare[index] {
                Prepare::Multiply(by) => kernels::Prepare::Multiply(*by),
                Prepare::Scale(block) => kernels::Prepare::Scale(block),
            };
            kernels::Operand { signed: map.signed, zero: map.zero_point as i32, prepare }
        };
        let work = kernels::Combine {
            operands: [prepare(0), prepare(1)],
            mode: match self.mode {
                Mode::Mul => kernels::Combination::Product,
                Mode::Sub => kernels::Combination::Difference,
                _ => kernels::Combination::Sum,
            },
            scale,
            clamp: self.output.clamp,
        };
        let out_map = self.output.store.map();
        scratch.byte_results.resize(lines.bytes, 0);
        for y in 0..self.output.store.extent.height {
            for line in 0..lines.per_row {
                let at = |map: &FeatureMap| map.address(y, 0, line * BRICK) as usize;
                let read = |map: &FeatureMap| {
                    let region = memory.bytes(map.region).expect("planned regions are bound");
                    &region[at(map)..at(map) + lines.bytes]
                };
                kernels::combine(isa, &work, read(maps[0]), read(maps[1]), &mut scratch.byte_results);
                self.output.finish(&mut scratch.byte_results);
                let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
                out[at(out_map)..at(out_map) + lines.bytes].copy_from_slice(&scratch.byte_results);
            }
        }
    }

    fn run_rows(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        let extent = self.output.store.extent;
        let elements = extent.width * extent.depth;
        let padded = elements.next_multiple_of(LANES);
        let Scratch { first: a, second: b, byte_results, .. } = scratch;
        a.resize(padded, 0);
        b.resize(padded, 0);
        for y in 0..extent.height {
            for ((source, prepare), values) in self.sources.iter().zip(&self.prepare).zip([&mut *a, &mut *b])
            {
                source.load(memory, y, extent, &mut values[..elements]);
                match prepare {
                    Prepare::Multiply(1) => {}
                    Prepare::Multiply(by) => {
                        values.iter_mut().for_each(|value| *value = value.wrapping_mul(*by))
                    }
                    Prepare::Scale(block) => kernels::scale(isa, values, block),
                }
            }
            // Beyond `elements` stand leftovers, which may wrap and are dropped.
            let pairs = a.iter_mut().zip(b.iter());
            match self.mode {
                Mode::Mul => pairs.for_each(|(a, b)| *a = a.wrapping_mul(*b)),
                Mode::Sub => pairs.for_each(|(a, b)| *a = a.wrapping_sub(*b)),
                Mode::Min => pairs.for_each(|(a, b)| *a = (*a).min(*b)),
                Mode::Max => pairs.for_each(|(a, b)| *a = (*a).max(*b)),
                _ => pairs.for_each(|(a, b)| *a = a.wrapping_add(*b)),
            }
            if let Some(block) = &self.scale {
                kernels::scale(isa, a, block);
            }
            let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
            let clamp = self.output.clamp;
            if self.output.bytes == 1 {
                byte_results.clear();
                byte_results.extend(a[..elements].iter().map(|&value| clamp.apply(value) as u8));
                self.output.finish(byte_results);
                self.output.store.row(out, y, byte_results);
            } else {
                a.iter_mut().take(elements).for_each(|value| *value = clamp.apply(*value));
                self.output.store.row_words(out, y, a);
            }
        }
    }
}

impl Source {
    /// Reads row `y`, less the zero point; an extent of 1 is repeated.
    fn load(&self, memory: &Memory, y: usize, extent: Extent, values: &mut [i32]) {
        let (map, size) = match self {
            Self::Scalar(value) => return values.fill(*value),
            Self::Map(map, size) => (map, *size),
        };
        let region = memory.bytes(map.region).expect("planned regions are bound");
        let zero = map.zero_point as i32;
        let y = if size.height == 1 { 0 } else { y };
        let bytes = map.element_bytes();
        let stored = size.width * size.depth;
        // Rows of a smaller operand are read to the front and spread from there.
        for part in map.row(y, size.width) {
            for x in part.columns.clone() {
                let step = match map.layout {
                    Layout::Nhwc => map.stride_x,
                    Layout::Nhcwb16 => (BRICK * bytes) as i64,
                };
                let pixel = part.start as i64 + (x - part.columns.start) as i64 * step;
                for first in (0..size.depth).step_by(BRICK) {
                    let brick = match map.layout {
                        Layout::Nhwc => (first * bytes) as i64,
                        Layout::Nhcwb16 => (first / BRICK) as i64 * map.stride_c,
                    };
                    let channels = BRICK.min(size.depth - first);
                    let from = (pixel + brick) as usize;
                    let raw = &region[from..from + channels * bytes];
                    let values = &mut values[x * size.depth + first..][..channels];
                    match (bytes, map.signed) {
                        (1, true) => {
                            values.iter_mut().zip(raw).for_each(|(v, &b)| *v = i32::from(b as i8) - zero)
                        }
                        (1, false) => values.iter_mut().zip(raw).for_each(|(v, &b)| *v = i32::from(b) - zero),
                        (_, signed) => {
                            for (value, raw) in values.iter_mut().zip(raw.chunks_exact(2)) {
                                let raw = u16::from_le_bytes([raw[0], raw[1]]);
                                *value = if signed { i32::from(raw as i16) } else { i32::from(raw) } - zero;
                            }
                        }
                    }
                }
            }
        }
        if stored == values.len() {
            return;
        }
        // From the end, so that nothing is overwritten before it has been read.
        for x in (0..extent.width).rev() {
            for c in (0..extent.depth).rev() {
                let from =
                    if size.width == 1 { 0 } else { x } * size.depth + if size.depth == 1 { 0 } else { c };
                values[x * extent.depth + c] = values[from];
            }
        }
    }
}
