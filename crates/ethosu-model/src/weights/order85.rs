//! The order in which a U85 reads an operation's weights.
//!
//! Blocks and sub-kernels as on U55, but: columns of sub-kernels outside rows, input blocks there and back, kernel elements by
//! stride phase and in serpentines, and the output channels of a micro-block dealt to the streams in groups of four. Loop nest:
//! Vela 5.2.0, regor/architecture/ethosu85/ethos_u85_weight_encoder.cpp.

use super::{Traversal, WeightFault};

/// One weight stream's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightOrder85 {
    /// Output channels of the operation.
    pub ofm_depth: usize,
    /// Input channels; 1 for depthwise.
    pub ifm_depth: usize,
    /// Kernel rows, not counting dilation.
    pub kernel_height: usize,
    /// Kernel columns, not counting dilation.
    pub kernel_width: usize,
    /// Vertical and horizontal stride.
    pub stride: (usize, usize),
    /// Vertical and horizontal dilation, 1 or 2.
    pub dilation: (usize, usize),
    /// Output channels of a block.
    pub block_depth: usize,
    /// Output channels of a micro-block.
    pub ublock_depth: usize,
    /// MACs of the accelerator.
    pub macs: usize,
    /// Bits of an IFM element: 8, 16 or 32.
    pub ifm_bits: u32,
    /// Whether two of every four weights are zero, and the order is made for it.
    pub sparse: bool,
    /// The walk.
    pub traversal: Traversal,
    /// Which stream this is.
    pub stream: usize,
    /// How many there are.
    pub streams: usize,
}

/// Elements that lie together: those of one kernel element for a micro-block of output channels.
struct Group {
    /// First output channel.
    o: usize,
    y: usize,
    x: usize,
    /// First input channel.
    i: usize,
    /// Output channels of the block from `o` on.
    outputs: usize,
}

/// What comes next in a stream.
enum Piece {
    Group(Group),
    /// So many elements of padding.
    Padding(usize),
}

impl WeightOrder85 {
    /// Input channels of a block.
    pub(crate) fn ifm_block(&self) -> usize {
        if self.traversal == Traversal::PartKernelFirst {
            16
        } else if self.ifm_bits == 32 || self.macs <= 256 && self.ublock_depth == 16 && !self.sparse {
            32
        } else if self.sparse && self.ifm_bits == 8 {
            128
        } else {
            64
        }
    }

    /// Kernel elements are padded to a multiple of this.
    pub(crate) fn kernel_round(&self) -> usize {
        match self.traversal {
            Traversal::Depthwise => 10,
            Traversal::PartKernelFirst if self.ifm_bits == 16 || self.sparse => 10,
            Traversal::PartKernelFirst => 5,
            Traversal::DepthFirst => 1,
        }
    }

    /// Input channels of a micro-block.
    pub(crate) fn ifm_ublock(&self) -> usize {
        match self.traversal {
            Traversal::Depthwise => 1,
            Traversal::PartKernelFirst if self.ifm_bits == 16 && !self.sparse => 8,
            _ => self.ifm_block(),
        }
    }

    /// Input channels that follow each other for one output channel.
    fn step(&self) -> usize {
        match self.traversal {
            Traversal::Depthwise => 1,
            _ if self.sparse => 16,
            _ => 8,
        }
    }

    /// Kernel elements' worth of padding after each round of a depthwise kernel.
    fn depthwise_padding(&self) -> usize {
        match self.traversal {
            Traversal::Depthwise if self.ifm_bits != 16 && self.macs <= 256 => 0,
            Traversal::Depthwise if self.macs <= 512 => 2,
            Traversal::Depthwise => 6,
            _ => 0,
        }
    }

    /// Elements of a block in the fast format, where the streams alternate block by block.
    pub(crate) fn fast_block(&self) -> usize {
        let part_kernel = self.traversal == Traversal::PartKernelFirst;
        let channels = if part_kernel { self.ifm_ublock() } else { self.ifm_block() };
        let rounds = if part_kernel { self.kernel_round() } else { 1 };
        self.ublock_depth * channels * rounds / self.streams
    }

    /// Elements of a group.
    fn group(&self) -> usize {
        self.ifm_ublock() * self.ublock_depth.saturating_sub(self.stream * 4).div_ceil(4 * self.streams) * 4
    }

    /// Visits the stream's pieces in order; stops early if `visit` says so.
    fn walk<E>(&self, mut visit: impl FnMut(Piece) -> Result<(), E>) -> Result<(), E> {
        let round = self.kernel_round();
        let ifm_ublock = self.ifm_ublock();
        let padding = self.depthwise_padding();
        let depthwise = self.traversal == Traversal::Depthwise;
        // Depth first, the stride phases make no difference.
        let (stride_y, stride_x) = if self.traversal == Traversal::DepthFirst { (1, 1) } else { self.stride };
        let (most_y, most_x) = (8 / self.dilation.0, 8 / self.dilation.1);
        let blocks = self.ifm_depth.div_ceil(self.ifm_block());
        for (number, block) in (0..self.ofm_depth).step_by(self.block_depth).enumerate() {
            let outputs = self.block_depth.min(self.ofm_depth - block);
            for index in 0..blocks {
                // Input blocks are walked there and back.
                let index = if number % 2 == 0 { index } else { blocks - 1 - index };
                let ifm_block = index * self.ifm_block();
                let inputs = if depthwise { 1 } else { self.ifm_block().min(self.ifm_depth - ifm_block) };
                for sub_x in (0..self.kernel_width).step_by(most_x) {
                    let width = most_x.min(self.kernel_width - sub_x);
                    for sub_y in (0..self.kernel_height).step_by(most_y) {
                        let height = most_y.min(self.kernel_height - sub_y);
                        for input in (0..inputs).step_by(ifm_ublock) {
                            for ublock in (0..outputs).step_by(self.ublock_depth) {
                                let mut left = (height * width).next_multiple_of(round);
                                for phase_y in 0..stride_y {
                                    for phase_x in 0..stride_x {
                                        let rows = height.saturating_sub(phase_y).div_ceil(stride_y);
                                        let columns = width.saturating_sub(phase_x).div_ceil(stride_x);
                                        for row in 0..rows {
                                            for column in 0..columns {
                                                // Serpentine.
                                                let column =
                                                    if row % 2 == 0 { column } else { columns - 1 - column };
                                                left -= 1;
                                                visit(Piece::Group(Group {
                                                    o: block + ublock,
                                                    y: sub_y + phase_y + row * stride_y,
                                                    x: sub_x + phase_x + column * stride_x,
                                                    i: ifm_block + input,
                                                    outputs: outputs - ublock,
                                                }))?;
                                                if depthwise && left % round == 0 {
                                                    visit(Piece::Padding(
                                                        padding * self.ublock_depth / self.streams,
                                                    ))?;
                                                }
                                            }
                                        }
                                    }
                                }
                                if left > 0 {
                                    let elements =
                                        (left + padding) * ifm_ublock * self.ublock_depth / self.streams;
                                    visit(Piece::Padding(elements))?;
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Elements in the stream, padding included.
    pub fn elements(&self) -> u64 {
        let group = self.group() as u64;
        let mut elements = 0u64;
        let counted: Result<(), std::convert::Infallible> = self.walk(|piece| {
            elements = elements.saturating_add(match piece {
                Piece::Group(_) => group,
                Piece::Padding(count) => count as u64,
            });
            Ok(())
        });
        match counted {
            Ok(()) => elements,
        }
    }

    /// As [`Order::arrange`](super::Order::arrange).
    pub(super) fn arrange(
        &self,
        stream: &[i16],
        mut place: impl FnMut(usize, usize, usize, usize, i16),
    ) -> Result<(), WeightFault> {
        let needed = usize::try_from(self.elements()).unwrap_or(usize::MAX);
        if stream.len() < needed {
            return Err(WeightFault::Short { found: stream.len(), needed });
        }
        let (ifm_ublock, step) = (self.ifm_ublock(), self.step());
        let mut element = 0;
        self.walk(|piece| {
            let group = match piece {
                Piece::Padding(count) => {
                    let padding = &stream[element..element + count];
                    if let Some(at) = padding.iter().position(|&weight| weight != 0) {
                        return Err(WeightFault::Padding { element: element + at, found: padding[at] });
                    }
                    element += count;
                    return Ok(());
                }
                Piece::Group(group) => group,
            };
            for inner in (0..ifm_ublock).step_by(step) {
                for four in (self.stream * 4..self.ublock_depth).step_by(4 * self.streams) {
                    for o in four..four + 4 {
                        for i in inner..inner + step {
                            let weight = stream[element];
                            if o < group.outputs && group.i + i < self.ifm_depth {
                                place(group.o + o, group.y, group.x, group.i + i, weight);
                            } else if weight != 0 {
                                return Err(WeightFault::Padding { element, found: weight });
                            }
                            element += 1;
                        }
                    }
                }
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_weight_is_placed_once(
            (ofm_depth, ifm_depth) in (1usize..100, 1usize..140),
            (kernel_height, kernel_width) in (1usize..11, 1usize..11),
            stride in (1usize..4, 1usize..4),
            dilation in (1usize..3, 1usize..3),
            blocks in 1usize..4,
            ublock in 0usize..4,
            accelerator in 0usize..5,
            bits in 0usize..3,
            sparse in any::<bool>(),
            walk in 0usize..3,
        ) {
            let traversal = [Traversal::DepthFirst, Traversal::PartKernelFirst, Traversal::Depthwise][walk];
            let (macs, streams) = [(128, 1), (256, 1), (512, 2), (1024, 4), (2048, 4)][accelerator];
            let ublock_depth = [8, 16, 32, 64][ublock].max(4 * streams);
            let ifm_depth = if traversal == Traversal::Depthwise { 1 } else { ifm_depth };
            let mut seen = vec![0u32; ofm_depth * kernel_height * kernel_width * ifm_depth];
            for stream in 0..streams {
                let order = WeightOrder85 {
                    ofm_depth, ifm_depth, kernel_height, kernel_width, stride, dilation,
                    block_depth: blocks * ublock_depth, ublock_depth, macs, ifm_bits: [8, 16, 32][bits],
                    sparse: sparse && traversal != Traversal::Depthwise, traversal, stream, streams,
                };
                let elements = vec![0; order.elements() as usize];
                order.arrange(&elements, |o, y, x, i, _| {
                    seen[((o * kernel_height + y) * kernel_width + x) * ifm_depth + i] += 1;
                }).unwrap();
                let short = order.arrange(&elements[1..], |_, _, _, _, _| ());
                prop_assert!(short.is_err());
            }
            prop_assert!(seen.iter().all(|&times| times == 1));
        }
    }
}
