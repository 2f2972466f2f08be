//! Element-wise operations with two operands, on 8-bit and 16-bit data.

use ethosu_isa::{ElementSize, Layout};

use super::kernels::{self, Isa, Planes};
use super::output::Output;
use super::requant::{LANES, RequantBlock};
use super::scratch::Scratch;
use super::stage::{Form, Stage};
use crate::map::{BRICK, Extent, FeatureMap};
use crate::memory::Memory;
use crate::operation::{Elementwise, Function, Operand};
use crate::rounding::Scaling;

/// How an operand is changed before the operation.
#[derive(Debug, Clone)]
enum Prepare {
    Multiply(i32),
    Scale(Box<RequantBlock>),
}

impl Prepare {
    fn for_kernel(&self) -> kernels::Prepare<'_> {
        match self {
            Self::Multiply(by) => kernels::Prepare::Multiply(*by),
            Self::Scale(block) => kernels::Prepare::Scale(block),
        }
    }
}

#[derive(Debug, Clone)]
enum Source {
    Map(FeatureMap, Extent),
    Scalar(i32),
}

/// A planned operation.
#[derive(Debug, Clone)]
pub(super) struct Binary {
    function: Function,
    /// A and B, in this order.
    sources: [Source; 2],
    prepare: [Prepare; 2],
    /// `None` where the mode doesn't scale its result.
    scale: Option<Box<RequantBlock>>,
    output: Output,
    way: Way,
    /// Of the operands, where bytes are gone through.
    planes: Option<Box<[Planes; 2]>>,
}

/// How its elements are gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Both operands and the output are bytes in the same order, which are read and written as they lie.
    Lines(Lines),
    /// They are bytes in several orders: rows are put into one first.
    ByteRows,
    /// Rows of 32-bit values.
    Values,
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

impl Binary {
    /// `None` for forms that have no plan of their own. The caller has checked that writing row by row spoils no input.
    pub(super) fn new(operation: &Elementwise, output: Output) -> Option<Self> {
        use Function::{Add, Max, Min, Mul, Sub};
        if !matches!(operation.function, Mul | Add | Sub | Min | Max) {
            return None;
        }
        // What an operand holds, and its largest magnitude.
        let source = |operand: &Operand| match *operand {
            Operand::Scalar(value) => Some((Source::Scalar(i32::try_from(value).ok()?), value.abs())),
            Operand::Map { map, extent, .. } => {
                matches!(map.element, ElementSize::Bits8 | ElementSize::Bits16)
                    .then(|| (Source::Map(map, extent), map.farthest_from_zero()))
            }
        };
        let (a, b) = (source(&operation.a)?, source(&operation.b?)?);
        let prepare = |scale: &Scaling, reach: i64| {
            if scale.shift == 0 {
                let by = i32::try_from(scale.multiplier).ok()?;
                return Some((Prepare::Multiply(by), reach.checked_mul(by.into())?));
            }
            let block = RequantBlock::uniform(scale, reach)?;
            Some((Prepare::Scale(Box::new(block)), scale.apply(reach).abs() + 1))
        };
        let prepare_a = prepare(&operation.scales[0], a.1)?;
        let prepare_b = prepare(&operation.scales[1], b.1)?;
        let bound = match operation.function {
            Mul => prepare_a.1.checked_mul(prepare_b.1)?,
            Add | Sub => prepare_a.1 + prepare_b.1,
            _ => prepare_a.1.max(prepare_b.1),
        };
        // Scaling leaves 30 bits; a result that isn't scaled must leave as much room for the zero point.
        let most = if operation.scale.is_unit() { i32::MAX / 2 } else { i32::MAX };
        if bound > i64::from(most) {
            return None;
        }
        let scale = if operation.scale.is_unit() {
            None
        } else {
            Some(Box::new(RequantBlock::uniform(&operation.scale, bound)?))
        };
        let mut way = Way::Values;
        if let [Source::Map(map_a, extent_a), Source::Map(map_b, extent_b)] = [&a.0, &b.0] {
            let all = [
                (map_a.layout, Lines::of(map_a, *extent_a)),
                (map_b.layout, Lines::of(map_b, *extent_b)),
                (operation.results.ofm.layout, Lines::of(&operation.results.ofm, operation.results.extent)),
            ];
            let same = extent_a == extent_b && *extent_a == operation.results.extent;
            let bytes = output.bytes == 1
                && output.clamp.is_of_bytes()
                && [map_a, map_b].iter().all(|map| map.element == ElementSize::Bits8);
            if same && bytes && scale.is_some() && matches!(operation.function, Mul | Add | Sub) {
                way = match all[0].1 {
                    Some(lines) if all[0] == all[1] && all[1] == all[2] => Way::Lines(lines),
                    _ => Way::ByteRows,
                };
            }
        }
        let prepare = [prepare_a.0, prepare_b.0];
        let planes = match [&a.0, &b.0] {
            [Source::Map(a, _), Source::Map(b, _)] if way != Way::Values => {
                Some(Box::new([(a, &prepare[0]), (b, &prepare[1])].map(|(map, prepare)| {
                    Planes::new(map.signed, map.zero_point as i32, prepare.for_kernel())
                })))
            }
            _ => None,
        };
        Some(Self { function: operation.function, sources: [a.0, b.0], prepare, scale, output, way, planes })
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        match (&self.sources, &self.scale, &self.planes) {
            ([Source::Map(a, _), Source::Map(b, _)], Some(scale), Some(planes)) => {
                let (maps, work) = ([a, b], self.combination([a, b], scale, planes));
                match self.way {
                    Way::Lines(lines) => self.run_lines(isa, lines, maps, &work, memory, scratch),
                    _ => self.run_byte_rows(isa, maps, &work, memory, scratch),
                }
            }
            _ => self.run_rows(isa, memory, scratch),
        }
    }

    /// What the kernel for bytes is told.
    fn combination<'a>(
        &'a self,
        maps: [&FeatureMap; 2],
        scale: &'a RequantBlock,
        planes: &'a [Planes; 2],
    ) -> kernels::Combine<'a> {
        let operand = |index: usize| kernels::Operand {
            signed: maps[index].signed,
            zero: maps[index].zero_point as i32,
            prepare: self.prepare[index].for_kernel(),
            planes: &planes[index],
        };
        kernels::Combine {
            operands: [operand(0), operand(1)],
            mode: match self.function {
                Function::Mul => kernels::Combination::Product,
                Function::Sub => kernels::Combination::Difference,
                _ => kernels::Combination::Sum,
            },
            scale,
            clamp: self.output.clamp,
        }
    }

    fn run_lines(
        &self,
        isa: Isa,
        lines: Lines,
        maps: [&FeatureMap; 2],
        work: &kernels::Combine<'_>,
        memory: &mut Memory,
        scratch: &mut Scratch,
    ) {
        let out_map = self.output.store.map();
        scratch.byte_results.resize(lines.bytes, 0);
        for y in 0..self.output.store.extent.height {
            for line in 0..lines.per_row {
                let at = |map: &FeatureMap| map.address(y, 0, line * BRICK) as usize;
                let read = |map: &FeatureMap| {
                    let region = memory.bytes(map.region).expect("planned regions are bound");
                    &region[at(map)..at(map) + lines.bytes]
                };
                kernels::combine(isa, work, read(maps[0]), read(maps[1]), &mut scratch.byte_results);
                self.output.finish(&mut scratch.byte_results);
                let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
                out[at(out_map)..at(out_map) + lines.bytes].copy_from_slice(&scratch.byte_results);
            }
        }
    }

    fn run_byte_rows(
        &self,
        isa: Isa,
        maps: [&FeatureMap; 2],
        work: &kernels::Combine<'_>,
        memory: &mut Memory,
        scratch: &mut Scratch,
    ) {
        let extent = self.output.store.extent;
        let stages = maps.map(|map| Stage::whole(map, extent, Form::Dense));
        let row = stages[0].row;
        let mut staged = scratch.bytes.take(2 * row);
        scratch.byte_results.resize(row, 0);
        for y in 0..extent.height {
            for (stage, (map, bytes)) in stages.iter().zip(maps.into_iter().zip(staged.chunks_exact_mut(row)))
            {
                let region = memory.bytes(map.region).expect("planned regions are bound");
                stage.fill_row(y, region, bytes, 0, |[byte]: [u8; 1]| byte);
            }
            let (a, b) = (&staged[..row], &staged[row..2 * row]);
            kernels::combine(isa, work, a, b, &mut scratch.byte_results);
            self.output.finish(&mut scratch.byte_results);
            let out = memory.bytes_mut(self.output.region).expect("planned outputs are writable");
            self.output.store.row(out, y, &scratch.byte_results);
        }
        scratch.bytes.give_back(staged);
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
            match self.function {
                Function::Mul => pairs.for_each(|(a, b)| *a = a.wrapping_mul(*b)),
                Function::Sub => pairs.for_each(|(a, b)| *a = a.wrapping_sub(*b)),
                Function::Min => pairs.for_each(|(a, b)| *a = (*a).min(*b)),
                Function::Max => pairs.for_each(|(a, b)| *a = (*a).max(*b)),
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
        let stored = size.width * size.depth;
        // Rows of a smaller operand are read to the front and spread from there.
        let row = &mut values[..stored];
        let stage = Stage::whole(map, size, Form::Dense);
        match (map.element_bytes(), map.signed) {
            (1, true) => stage.fill_row(y, region, row, 0, |[byte]: [u8; 1]| i32::from(byte as i8) - zero),
            (1, false) => stage.fill_row(y, region, row, 0, |[byte]: [u8; 1]| i32::from(byte) - zero),
            (_, true) => stage
                .fill_row(y, region, row, 0, |bytes: [u8; 2]| i32::from(i16::from_le_bytes(bytes)) - zero),
            (_, false) => stage
                .fill_row(y, region, row, 0, |bytes: [u8; 2]| i32::from(u16::from_le_bytes(bytes)) - zero),
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
