//! Bus beats of a command, exactly: the data words that cross each port, whatever the timing.
//!
//! The rules were found by comparison with the published AXI counters of Arm's simulator of U55 and U65 (Corstone-300), all of
//! which they meet; docs/clock.md names the source.

use std::collections::BTreeMap;
use std::ops::{Add, AddAssign, Range};

use ethosu_isa::{Layout, Product};

use super::layer::Transfer;
use super::pass::{Axis, Constants, Input, Machine, Pass, SUB_KERNEL};
use super::rates::Channel;
use super::system::{Port, System};
use crate::map::{BRICK, Extent, FeatureMap};
use crate::operation::Target;

/// Input blocks that a unit holds at once. Where all channels fit into them they stay for the next output block in depth.
const HELD_BLOCKS: usize = 2;

/// Data words read and written through one kind of port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PortBeats {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Data words by port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Beats {
    /// AXI0 of U55 and U65, the SRAM ports of a U85.
    pub axi0: PortBeats,
    /// AXI1 of U55 and U65, the external ports of a U85.
    pub axi1: PortBeats,
}

impl Beats {
    /// Those of one kind of port.
    pub const fn of(&self, port: Port) -> PortBeats {
        match port {
            Port::Axi0 => self.axi0,
            Port::Axi1 => self.axi1,
        }
    }

    fn port(&mut self, port: Port) -> &mut PortBeats {
        match port {
            Port::Axi0 => &mut self.axi0,
            Port::Axi1 => &mut self.axi1,
        }
    }

    pub(super) fn read(&mut self, port: Option<Port>, beats: u64) {
        if let Some(port) = port {
            let read = &mut self.port(port).read;
            *read = read.saturating_add(beats);
        }
    }

    fn write(&mut self, port: Option<Port>, beats: u64) {
        if let Some(port) = port {
            let written = &mut self.port(port).written;
            *written = written.saturating_add(beats);
        }
    }
}

impl Add for Beats {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        for port in Port::ALL {
            self.read(Some(port), other.of(port).read);
            self.write(Some(port), other.of(port).written);
        }
        self
    }
}

impl AddAssign for Beats {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Beats of reading a command stream once.
pub(super) fn of_commands(machine: &Machine, system: &System, bytes: usize) -> Beats {
    let mut beats = Beats::default();
    beats.read(Some(system.commands), (bytes as u64).div_ceil(machine.beat));
    beats
}

/// Beats of a transfer. The table memory inside has no port.
pub(super) fn of_transfer(machine: &Machine, system: &System, transfer: &Transfer) -> Beats {
    let mut beats = Beats::default();
    let words = transfer.bytes.div_ceil(machine.beat);
    beats.read(system.port(transfer.source), words);
    if let Target::Region(region) = transfer.target {
        beats.write(system.port(region), words);
    }
    beats
}

/// Words that one part of a command moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) region: u8,
    pub(super) channel: Channel,
    pub(super) words: u64,
}

/// Beats of a block command.
pub(super) fn of_pass(machine: &Machine, system: &System, pass: &Pass) -> Beats {
    let mut beats = Beats::default();
    for part in parts(machine, pass) {
        match part.channel {
            Channel::Write => beats.write(system.port(part.region), part.words),
            _ => beats.read(system.port(part.region), part.words),
        }
    }
    beats
}

/// What a block command moves, part by part.
pub(super) fn parts(machine: &Machine, pass: &Pass) -> Vec<Part> {
    let mut parts = Vec::with_capacity(5);
    for (input, first) in
        pass.ifm.iter().map(|input| (input, true)).chain(pass.ifm2.map().map(|input| (input, false)))
    {
        // A map in the place of weights is read like an operand.
        let windowed = pass.kind.uses_macs() && first;
        let words = if windowed { window(machine, pass, input) } else { operand(machine, pass, input) };
        let channel = if windowed { Channel::Ifm } else { Channel::Stream };
        parts.push(Part { region: input.map.region, channel, words });
    }
    let [rows, columns, _] = block_counts(pass.extent, pass.block);
    let positions = (rows as u64).saturating_mul(columns as u64);
    let weights = if pass.fast_weights { Channel::FastWeights } else { Channel::Weights };
    for (constants, channel) in [(&pass.weights, weights), (&pass.scales, Channel::Scales)] {
        if let Some(constants) = constants {
            let words = constant_words(machine, constants).saturating_mul(positions);
            parts.push(Part { region: constants.region, channel, words });
        }
    }
    parts.push(Part { region: pass.ofm.region, channel: Channel::Write, words: output(machine, pass) });
    parts
}

fn constant_words(machine: &Machine, constants: &Constants) -> u64 {
    constants.spans.iter().map(|(_, length)| length.div_ceil(machine.beat)).sum()
}

fn block_counts(extent: Extent, block: Extent) -> [usize; 3] {
    [
        extent.height.div_ceil(block.height),
        extent.width.div_ceil(block.width),
        extent.depth.div_ceil(block.depth),
    ]
}

/// `0..size` in pieces.
fn cut(size: usize, piece: usize) -> impl Iterator<Item = Range<usize>> {
    (0..size).step_by(piece).map(move |start| start..size.min(start.saturating_add(piece)))
}

/// The ranges that blocks cover on one axis of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cuts {
    /// The map in pieces.
    Pieces { size: usize, piece: usize },
    /// What the output blocks read of the input, each piece of the kernel for itself.
    Windows { axis: Axis, outputs: usize, block: usize, upscaling: usize, kernel_piece: usize },
}

impl Cuts {
    /// The ranges, of which none is empty.
    ///
    /// There may be many more than memory should hold, so they are only gone through.
    fn ranges(self) -> Box<dyn Iterator<Item = Range<usize>>> {
        match self {
            Self::Pieces { size, piece } => Box::new(cut(size, piece)),
            Self::Windows { axis, outputs, block, upscaling, kernel_piece } => {
                let window = move |taps: &Range<usize>, block: Range<usize>| {
                    let first_tap = (taps.start * axis.dilation) as i64 - axis.pad;
                    let last_tap = ((taps.end - 1) * axis.dilation) as i64 - axis.pad;
                    let first = (block.start * axis.stride) as i64 + first_tap;
                    let end = ((block.end - 1) * axis.stride) as i64 + last_tap + 1;
                    let (first, end) = (first.max(0) as usize, end.min(axis.size).max(0) as usize);
                    first / upscaling..end.div_ceil(upscaling)
                };
                let windows = cut(axis.taps, kernel_piece)
                    .flat_map(move |taps| cut(outputs, block).map(move |block| window(&taps, block)));
                Box::new(windows.filter(|range| !range.is_empty()))
            }
        }
    }

    /// The lengths of all ranges.
    fn total(self) -> u64 {
        self.ranges().map(|range| range.len() as u64).sum()
    }
}

/// Words of the input of a kernel.
fn window(machine: &Machine, pass: &Pass, input: &Input) -> u64 {
    // A U85 reads what the whole kernel covers at once.
    let is_85 = machine.product == Product::U85;
    let kernel_piece = if is_85 { usize::MAX } else { SUB_KERNEL };
    let windows = |axis, outputs, block| {
        let upscaling = pass.upscaling();
        Cuts::Windows { axis, outputs, block, upscaling, kernel_piece }
    };
    let deep = pass.kind.is_deep();
    let channels: Vec<_> = if deep {
        cut(input.extent.depth, pass.ifm_block.depth).collect()
    } else {
        cut(pass.extent.depth.min(input.extent.depth), pass.block.depth).collect()
    };
    let whole_kernel = pass.y.taps <= SUB_KERNEL && pass.x.taps <= SUB_KERNEL;
    let held = whole_kernel && (is_85 || channels.len() <= HELD_BLOCKS);
    let times = if deep && !held { block_counts(pass.extent, pass.block)[2] } else { 1 };
    let blocks = Blocks {
        rows: windows(pass.y, pass.extent.height, pass.block.height),
        columns: windows(pass.x, pass.extent.width, pass.block.width),
        channels,
    };
    words(machine, &input.map, &blocks, Pieces::Runs).saturating_mul(times as u64)
}

/// Words of an element-wise operand: all of it once.
fn operand(machine: &Machine, pass: &Pass, input: &Input) -> u64 {
    words(machine, &input.map, &Blocks::of(input.extent, pass.block), Pieces::Runs)
}

/// Words of the output. Blocks deeper than a brick leave the unit in pieces of a brick's channels.
fn output(machine: &Machine, pass: &Pass) -> u64 {
    let blocks = Blocks::of(pass.stored, pass.axes.extent(pass.block));
    if pass.ofm.layout == Layout::Nhcwb16 {
        return words(machine, &pass.ofm, &blocks, Pieces::Runs);
    }
    let (deep, flat): (Vec<_>, Vec<_>) =
        blocks.channels.iter().cloned().partition(|channels| channels.len() > BRICK);
    let piece = |channels: Range<usize>| {
        cut(channels.len(), BRICK).map(move |piece| channels.start + piece.start..channels.start + piece.end)
    };
    let deep = Blocks { channels: deep.into_iter().flat_map(piece).collect(), ..blocks };
    let flat = Blocks { channels: flat, ..blocks };
    words(machine, &pass.ofm, &deep, Pieces::Elements).saturating_add(words(
        machine,
        &pass.ofm,
        &flat,
        Pieces::Runs,
    ))
}

/// Blocks of a map: every range of rows with every range of columns and channels.
struct Blocks {
    rows: Cuts,
    columns: Cuts,
    channels: Vec<Range<usize>>,
}

impl Blocks {
    fn of(extent: Extent, block: Extent) -> Self {
        Self {
            rows: Cuts::Pieces { size: extent.height, piece: block.height },
            columns: Cuts::Pieces { size: extent.width, piece: block.width },
            channels: cut(extent.depth, block.depth).collect(),
        }
    }
}

/// What is moved at once in NHWC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    /// A row of a block where its elements lie side by side, else an element.
    Runs,
    /// An element's channels.
    Elements,
}

/// Words of a port that blocks of a map touch.
fn words(machine: &Machine, map: &FeatureMap, blocks: &Blocks, pieces: Pieces) -> u64 {
    match map.layout {
        Layout::Nhcwb16 => {
            // Bricks are moved whole.
            let bricks = |channels: &Range<usize>| channels.end.div_ceil(BRICK) - channels.start / BRICK;
            let bricks: u64 = blocks.channels.iter().map(|channels| bricks(channels) as u64).sum();
            let brick_words = (BRICK * map.element_bytes()) as u64 / machine.beat;
            let (rows, columns) = (blocks.rows.total(), blocks.columns.total());
            [rows, columns, bricks, brick_words].into_iter().fold(1, u64::saturating_mul)
        }
        Layout::Nhwc => {
            let sides = [0..map.width0, map.width0..usize::MAX];
            let sides = sides.into_iter().map(|columns| Side { map, columns, beat: machine.beat as i64 });
            sides.map(|side| side.words(blocks, pieces)).fold(0, u64::saturating_add)
        }
    }
}

/// The tiles on one side of an NHWC map.
///
/// How many words a run touches depends on where in a word it begins. Rows, columns and channels are therefore counted by the
/// place in a word that they begin at.
struct Side<'a> {
    map: &'a FeatureMap,
    /// Its columns.
    columns: Range<usize>,
    beat: i64,
}

/// Words have at most this many bytes, so places repeat after as many rows or columns.
const PLACES: usize = 16;

/// How often something of a length, in bytes, begins at a place of a word.
type Lengths = BTreeMap<(i64, i64), u64>;

impl Side<'_> {
    fn words(&self, blocks: &Blocks, pieces: Pieces) -> u64 {
        let element = self.map.element_bytes() as i64;
        let mut channels = Lengths::new();
        for range in &blocks.channels {
            let place = (range.start as i64 * element).rem_euclid(self.beat);
            count(&mut channels, (place, range.len() as i64 * element), 1);
        }
        let rows = self.row_places(blocks.rows);
        let elements = self.column_places(blocks.columns);
        let mut total = 0u64;
        for ((channel, bytes), channel_count) in channels {
            let columns = match pieces {
                Pieces::Runs if bytes == self.map.stride_x => self.column_runs(blocks.columns, bytes),
                _ => places(&elements).map(|(place, count)| ((place, bytes), count)).collect(),
            };
            for ((column, bytes), column_count) in columns {
                for (row, row_count) in places(&rows) {
                    let words = self.touched(row + column + channel, bytes);
                    let counts = [channel_count, column_count, row_count];
                    total = total.saturating_add(counts.into_iter().fold(words, u64::saturating_mul));
                }
            }
        }
        total
    }

    /// Words that `bytes` from a place on touch.
    fn touched(&self, place: i64, bytes: i64) -> u64 {
        ((place.rem_euclid(self.beat) + bytes + self.beat - 1) / self.beat) as u64
    }

    /// How many rows begin at each place of a word.
    fn row_places(&self, rows: Cuts) -> [u64; PLACES] {
        let split = if self.columns.start == 0 { self.map.height0 } else { self.map.height1 };
        let mut places = [0u64; PLACES];
        for row in rows.ranges() {
            for part in [row.start..row.end.min(split), row.start.max(split)..row.end] {
                self.count(part, &mut places, |y| self.map.address(y, self.columns.start, 0));
            }
        }
        places
    }

    /// What a range of columns has on this side, counted from the side's first.
    fn own(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.columns.start;
        range.start.max(first) - first..range.end.clamp(first, self.columns.end) - first
    }

    /// How many columns begin at each place.
    fn column_places(&self, columns: Cuts) -> [u64; PLACES] {
        let mut places = [0u64; PLACES];
        for range in columns.ranges() {
            self.count(self.own(&range), &mut places, |x| x as i64 * self.map.stride_x);
        }
        places
    }

    /// The ranges of columns as runs.
    fn column_runs(&self, columns: Cuts, bytes: i64) -> Lengths {
        let mut runs = Lengths::new();
        for range in columns.ranges().map(|range| self.own(&range)).filter(|range| !range.is_empty()) {
            let place = (range.start as i64 * bytes).rem_euclid(self.beat);
            count(&mut runs, (place, range.len() as i64 * bytes), 1);
        }
        runs
    }

    fn count(&self, range: Range<usize>, places: &mut [u64; PLACES], address: impl Fn(usize) -> i64) {
        let length = range.len();
        for (index, position) in range.take(PLACES).enumerate() {
            let alike = (length - index).div_ceil(PLACES) as u64;
            let place = address(position).rem_euclid(self.beat) as usize;
            places[place] = places[place].saturating_add(alike);
        }
    }
}

/// The places at which something begins, and how often.
fn places(counts: &[u64; PLACES]) -> impl Iterator<Item = (i64, u64)> {
    (0i64..).zip(*counts).filter(|&(_, count)| count > 0)
}

fn count(lengths: &mut Lengths, what: (i64, i64), times: u64) {
    let count = lengths.entry(what).or_default();
    *count = count.saturating_add(times);
}

#[cfg(test)]
mod tests {
    use ethosu_isa::{Accelerator, ElementSize};
    use proptest::prelude::*;

    use super::*;

    /// The same, one byte after the other.
    fn walked(beat: i64, map: &FeatureMap, blocks: &Blocks, pieces: Pieces) -> u64 {
        let element = map.element_bytes() as i64;
        let mut total = 0;
        for y in blocks.rows.ranges().flatten() {
            for columns in blocks.columns.ranges() {
                for channels in &blocks.channels {
                    let mut last_byte = None;
                    let mut last_word = None;
                    for x in columns.clone() {
                        let first = map.address(y, x, channels.start);
                        let follows = last_byte == Some(first) && pieces == Pieces::Runs;
                        if !follows {
                            last_word = None;
                        }
                        for byte in first..first + channels.len() as i64 * element {
                            if last_word != Some(byte.div_euclid(beat)) {
                                total += 1;
                                last_word = Some(byte.div_euclid(beat));
                            }
                        }
                        last_byte = Some(first + channels.len() as i64 * element);
                    }
                }
            }
        }
        total
    }

    proptest! {
        #[test]
        fn words_are_those_of_a_walk_through_all_bytes(
            extent in (1usize..12, 1usize..24, 1usize..40), block in (1usize..8, 1usize..8, 1usize..40),
            base in 0u64..64, gap in 0i64..20, row_gap in 0i64..20, size in 0usize..3, wide in any::<bool>(),
            tiles in (1usize..25, 1usize..13, 1usize..13), by_element in any::<bool>(),
        ) {
            let (width0, height0, height1) = tiles;
            let machine = Machine::new(if wide { Accelerator::U65_256 } else { Accelerator::U55_128 });
            let element = [ElementSize::Bits8, ElementSize::Bits16, ElementSize::Bits32][size];
            let extent = Extent { height: extent.0, width: extent.1, depth: extent.2 };
            let block = Extent { height: block.0, width: block.1, depth: block.2 };
            let stride_x = extent.depth as i64 * i64::from(element.bytes()) + gap;
            let map = FeatureMap {
                region: 1,
                bases: [base, base + 4444, base + 8888, base + 13131],
                width0,
                height0,
                height1,
                stride_y: extent.width as i64 * stride_x + row_gap,
                stride_x,
                stride_c: 0,
                element,
                signed: true,
                layout: Layout::Nhwc,
                zero_point: 0,
            };
            let pieces = if by_element { Pieces::Elements } else { Pieces::Runs };
            let blocks = Blocks::of(extent, block);
            let expected = walked(machine.beat as i64, &map, &blocks, pieces);
            prop_assert_eq!(words(&machine, &map, &blocks, pieces), expected);
        }
    }

    #[test]
    fn windows_are_clipped_to_the_input() {
        let windows = |axis, outputs, block, upscaling| {
            let cuts = Cuts::Windows { axis, outputs, block, upscaling, kernel_piece: SUB_KERNEL };
            cuts.ranges().collect::<Vec<_>>()
        };
        // 3 taps, stride 2, one element of padding, 9 inputs, blocks of 2 of the 5 outputs.
        let axis = Axis { taps: 3, stride: 2, dilation: 1, pad: 1, size: 9 };
        assert_eq!(windows(axis, 5, 2, 1), [0..4, 3..8, 7..9]);
        // 10 taps are two kernels.
        let axis = Axis { taps: 10, stride: 1, dilation: 1, pad: 0, size: 11 };
        assert_eq!(windows(axis, 2, 2, 1), [0..9, 8..11]);
        // Each stored element stands for two.
        let axis = Axis { taps: 3, stride: 1, dilation: 1, pad: 1, size: 8 };
        assert_eq!(windows(axis, 8, 4, 2), [0..3, 1..4]);
    }
}
