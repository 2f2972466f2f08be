//! Cycles of the NPU's units: MACs, weight decoder and output stage.
//!
//! The rules are those of Vela 5.2.0's `ethos_u55_performance.cpp` and `ethos_u85_performance.cpp`, applied to any block.

use ethosu_isa::{Block, Product};

use super::pass::{Kind, Machine, Pass, SUB_KERNEL};
use super::rates::{OutputRates, Rates, Rates85};
use super::schedule::Activation;
use crate::map::{Axes, Extent, Flip};
use crate::memory::CHAIN_REGION;
use crate::operation::{Function, PoolFunction};

/// Cycles of one output block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct BlockCycles {
    /// The MACs walk it.
    pub(super) mac: u64,
    /// The weight decoder feeds them, within that.
    pub(super) weights: u64,
}

/// How closely a block is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// As Vela does: an input block is worth its full depth.
    Estimate,
    /// The last input block counts by the channels it has.
    Exact,
}

/// Elements that a weight block has for one output channel, and weights that are decoded in a cycle.
const WEIGHT_BLOCK: u64 = 32;
const DECODED_PER_CYCLE: u64 = 8;
/// Kernel elements of a step with part-kernel-first and depthwise traversal.
const STEP: u64 = 4;

impl Machine {
    /// The micro-block in which an operation's output is computed. The 2x2 machines have a flat one for single rows.
    pub(super) fn microblock(&self, pass: &Pass) -> Block {
        let flat = self.product != Product::U85
            && pass.microblock.height == 2
            && pass.kind == Kind::Convolution
            && pass.extent.height == 1
            && pass.extent.width.is_multiple_of(2)
            && pass.y.taps == 1;
        if flat { Block { height: 1, width: 4, depth: pass.microblock.depth } } else { pass.microblock }
    }

    /// Micro-blocks in a block: rows, columns, depth.
    fn microblocks(&self, pass: &Pass, block: Extent) -> [u64; 3] {
        let Block { height, width, depth } = self.microblock(pass);
        [
            block.height.div_ceil(height as usize) as u64,
            block.width.div_ceil(width as usize) as u64,
            block.depth.div_ceil(depth as usize) as u64,
        ]
    }

    /// All micro-blocks in a block.
    pub(super) fn microblock_count(&self, pass: &Pass, block: Extent) -> u64 {
        self.microblocks(pass, block).into_iter().fold(1, u64::saturating_mul)
    }

    /// Cycles of an output block of any size over an input block of `depth` channels, all sub-kernels and cores together.
    pub(super) fn mac_cycles(&self, pass: &Pass, block: Extent, depth: usize, detail: Detail) -> BlockCycles {
        let mut total = BlockCycles::default();
        let counted = self.microblocks(pass, block);
        for (rows, row_count) in pieces(pass.y.taps) {
            for (columns, column_count) in pieces(pass.x.taps) {
                let count = (row_count * column_count) as u64;
                let one = self.sub_kernel(pass, counted, (rows * columns) as u64, depth as u64, detail);
                total.mac = total.mac.saturating_add(one.mac.saturating_mul(count));
                total.weights = total.weights.saturating_add(one.weights.saturating_mul(count));
            }
        }
        total
    }

    fn sub_kernel(
        &self,
        pass: &Pass,
        counted: [u64; 3],
        elements: u64,
        depth: u64,
        detail: Detail,
    ) -> BlockCycles {
        let [rows, columns, planes] = counted;
        let positions = rows.saturating_mul(columns);
        let octets = depth.div_ceil(DECODED_PER_CYCLE);
        let is_85 = self.product == Product::U85;
        let bytes = pass.input_bits / 8;
        let microblock_depth = u64::from(self.microblock(pass).depth);
        // A weight block takes at least as long as its weights take to be decoded.
        let decode = WEIGHT_BLOCK * microblock_depth / (DECODED_PER_CYCLE * self.streams);
        // Where two of four weights are left out, Vela takes half the time; part kernels are counted by what they take at once.
        let exact_parts = is_85 && detail == Detail::Exact && pass.part_kernel_first;
        let halves = if pass.sparse && pass.kind == Kind::Convolution && !exact_parts { 2 } else { 1 };
        let weighed = |mac: u64, decode: u64, times: u64| BlockCycles {
            mac: mac.max(decode).saturating_mul(times) / halves,
            weights: decode.saturating_mul(times) / halves,
        };
        let (mut cycles, steps) = match pass.kind {
            Kind::Convolution | Kind::Pool(PoolFunction::ReduceSum) if !pass.part_kernel_first => {
                let one = if is_85 {
                    let octets = if detail == Detail::Exact { octets } else { depth / DECODED_PER_CYCLE };
                    weighed(octets.saturating_mul(positions), decode, elements * planes * bytes)
                } else {
                    let quads = match detail {
                        Detail::Estimate => STEP,
                        Detail::Exact if bytes == 2 => octets * 2,
                        Detail::Exact => octets.min(STEP),
                    };
                    weighed(quads.saturating_mul(positions), decode * quads / STEP, elements * planes)
                };
                (one, elements)
            }
            Kind::Convolution if exact_parts => {
                // Sixteen channels of two kernel elements at once, or of four where two of four weights are left out.
                let at_once = if pass.sparse { 4 } else { 2 };
                let steps = elements.div_ceil(at_once) * if bytes == 2 { 2 } else { 1 };
                let times = steps.saturating_mul(planes * octets.div_ceil(2));
                (weighed(STEP.saturating_mul(positions), decode, times), steps)
            }
            Kind::Convolution => {
                let steps = elements.div_ceil(if bytes == 2 { STEP / 2 } else { STEP });
                (
                    weighed(STEP.saturating_mul(positions), decode, steps.saturating_mul(planes * octets)),
                    steps,
                )
            }
            Kind::Depthwise => {
                let steps = elements.div_ceil(STEP);
                (weighed((STEP * bytes).saturating_mul(positions), decode, steps * planes), steps)
            }
            Kind::Pool(_) => {
                // Vela charges an 8-bit pool four times what its predecessor did; the U85's totals are those of the predecessor.
                let once = self.macs == 32 || (is_85 && detail == Detail::Exact && bytes == 1);
                let width = if once { 1 } else { pass.input_bits / 2 };
                let mac = elements.max(STEP).saturating_mul(positions).saturating_mul(planes * width);
                (BlockCycles { mac, weights: 0 }, 1)
            }
            Kind::Elementwise(_) | Kind::Resize => (BlockCycles::default(), 0),
        };
        // A sum has no weights to decode.
        if matches!(pass.kind, Kind::Pool(_)) {
            cycles.weights = 0;
        }
        let mut delay = self.pipeline_delay(pass, counted, steps);
        if pass.part_kernel_first {
            delay = delay.saturating_mul(octets);
        }
        cycles.mac = cycles.mac.saturating_add(delay);
        cycles
    }

    /// Cycles that accumulators take to come round where a block is too small to hide that.
    fn pipeline_delay(&self, pass: &Pass, [rows, columns, planes]: [u64; 3], steps: u64) -> u64 {
        let smallest = self.macs == 32;
        let delay = match (smallest, pass.wide_accumulators) {
            (true, true) => 7,
            (true, false) => 3,
            (false, true) if self.macs <= 128 => 3,
            (false, _) => 2,
        };
        let mut cycles = match (rows.saturating_mul(columns), planes) {
            (1, 1) => delay * steps,
            (1, _) => delay * steps.saturating_sub(1) * planes,
            _ => 0,
        };
        if smallest && pass.wide_accumulators && (rows == 1 || columns == 1) && planes > 1 {
            cycles += delay * planes;
        }
        cycles
    }

    /// Cycles that the output stage takes for an element.
    pub(super) fn output_rate(&self, pass: &Pass) -> f64 {
        match self.rates {
            Rates::U55(rates) => output_class(pass, rates).max(match pass.activation {
                Activation::None => 0.0,
                Activation::Clamp => rates.clamp,
                Activation::Table => rates.table,
            }),
            Rates::U85(rates) => output_rate85(self, pass, rates),
        }
    }
}

fn output_class(pass: &Pass, rates: &OutputRates) -> f64 {
    match pass.kind {
        Kind::Elementwise(function) if pass.input_bits == 32 => {
            if function.is_binary() {
                rates.binary32
            } else {
                rates.unary32
            }
        }
        Kind::Elementwise(Function::Mul) if pass.ofm.element.bytes() == 4 => rates.multiply32,
        Kind::Elementwise(Function::Mul) => rates.multiply,
        Kind::Elementwise(Function::Add | Function::Sub) => rates.add,
        Kind::Elementwise(_) => rates.other,
        _ if pass.wide_accumulators => rates.multiply,
        Kind::Pool(PoolFunction::Max) => rates.maximum,
        _ => rates.other,
    }
}

/// Cycles of a division's element on U85.
const DIVISION: f64 = 33.0;

fn output_rate85(machine: &Machine, pass: &Pass, rates: &Rates85) -> f64 {
    let bits = 8 * pass.ofm.element.bytes();
    let to_chain = pass.ofm.region >= CHAIN_REGION;
    let class = match pass.kind {
        Kind::Elementwise(Function::Div) => DIVISION,
        Kind::Resize => resize_rate(machine, pass, rates),
        _ if to_chain && (bits == 32 || pass.input_bits == 32) => rates.narrowing32,
        _ if bits == 64 => rates.bits[3],
        Kind::Elementwise(function) if function.is_binary() && pass.input_bits == 32 => {
            if bits == 32 {
                rates.binary32
            } else {
                rates.narrowing32
            }
        }
        _ => {
            rates.bits[match bits {
                32 => 2,
                16 => 1,
                _ => 0,
            }]
        }
    };
    let exchanged = matches!(pass.axes, Axes::Whc | Axes::Wch | Axes::Cwh) || pass.flip == Flip::Width;
    class.max(match (exchanged, pass.axes == Axes::Hwc && pass.flip == Flip::None) {
        (true, _) => rates.order[1],
        (false, false) => rates.order[0],
        (false, true) => 0.0,
    })
}

fn resize_rate(machine: &Machine, pass: &Pass, rates: &Rates85) -> f64 {
    let Some(input) = &pass.ifm else { return rates.bits[0] };
    let ratio = |output: usize, input: usize| (output + input / 2) / input;
    let smaller =
        ratio(pass.extent.height, input.extent.height).min(ratio(pass.extent.width, input.extent.width));
    let large = smaller as u32 >= machine.macs / 512;
    rates.resize[usize::from(!large)][usize::from(pass.input_bits != 8)]
}

/// The different sizes of a kernel's pieces on one axis, and how many there are of each.
fn pieces(taps: usize) -> impl Iterator<Item = (usize, usize)> {
    let (whole, rest) = (taps / SUB_KERNEL, taps % SUB_KERNEL);
    [(SUB_KERNEL, whole), (rest, 1)].into_iter().filter(|&(size, count)| size > 0 && count > 0)
}
