//! The order in which the NPU reads an operation's weights.
//!
//! Weights come block by block as the hardware computes: a block of output channels, a block of input channels, a sub-kernel of
//! at most 8x8, then micro-blocks. Blocks at an edge are padded with zeros. Loop nest: Vela 5.2.0,
//! regor/architecture/ethosu55/ethos_u55_weight_encoder.cpp.

use super::WeightFault;

/// How the hardware walks kernel and channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traversal {
    /// Convolution, all input channels of a block for each kernel element.
    DepthFirst,
    /// Convolution, several kernel elements for each eight input channels.
    PartKernelFirst,
    /// Depthwise convolution.
    Depthwise,
}

/// One weight stream's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightOrder {
    /// Output channels of this stream.
    pub ofm_depth: usize,
    /// Input channels; 1 for depthwise.
    pub ifm_depth: usize,
    /// Kernel rows, not counting dilation.
    pub kernel_height: usize,
    /// Kernel columns, not counting dilation.
    pub kernel_width: usize,
    /// Vertical dilation, 1 or 2.
    pub dilation_y: usize,
    /// Horizontal dilation, 1 or 2.
    pub dilation_x: usize,
    /// Output channels of a block (this stream's share of it).
    pub block_depth: usize,
    /// Output channels of a micro-block.
    pub ofm_ublock_depth: usize,
    /// Whether the IFM has 16-bit elements.
    pub wide_ifm: bool,
    /// The walk.
    pub traversal: Traversal,
}

/// Input channels of a micro-block on every U55 and U65.
const IFM_UBLOCK_DEPTH: usize = 8;

impl WeightOrder {
    fn ifm_block(&self) -> usize {
        if self.traversal == Traversal::PartKernelFirst || self.wide_ifm { 16 } else { 32 }
    }

    /// Kernel elements are padded to a multiple of this.
    fn kernel_round(&self) -> usize {
        match (self.traversal, self.wide_ifm) {
            (Traversal::Depthwise, _) | (Traversal::PartKernelFirst, false) => 4,
            (Traversal::PartKernelFirst, true) => 2,
            (Traversal::DepthFirst, _) => 1,
        }
    }

    /// Input channels that the walk spends on a block beginning at channel `start`. Depth-first pads the last block in full,
    /// part-kernel-first clips it.
    fn block_channels(&self, start: usize) -> usize {
        match self.traversal {
            Traversal::Depthwise => IFM_UBLOCK_DEPTH,
            Traversal::DepthFirst => self.ifm_block(),
            Traversal::PartKernelFirst => self.ifm_block().min(self.ifm_depth - start),
        }
    }

    /// Elements in the stream, padding included.
    pub fn elements(&self) -> u64 {
        let blocks = self.ofm_depth / self.block_depth;
        let rest = self.ofm_depth % self.block_depth;
        let outputs = blocks as u64 * self.block_depth.next_multiple_of(self.ofm_ublock_depth) as u64
            + rest.next_multiple_of(self.ofm_ublock_depth) as u64;
        let inputs = match self.traversal {
            Traversal::Depthwise => 1,
            Traversal::DepthFirst => self.ifm_depth.next_multiple_of(self.ifm_block()) as u64,
            Traversal::PartKernelFirst => self.ifm_depth.next_multiple_of(IFM_UBLOCK_DEPTH) as u64,
        };
        let kernel =
            |height: usize, width: usize| (height * width).next_multiple_of(self.kernel_round()) as u64;
        let (most_y, most_x) = (8 / self.dilation_y, 8 / self.dilation_x);
        let (full_y, rest_y) = (self.kernel_height / most_y, self.kernel_height % most_y);
        let (full_x, rest_x) = (self.kernel_width / most_x, self.kernel_width % most_x);
        let (full_y, full_x) = (full_y as u64, full_x as u64);
        let kernels = full_y * full_x * kernel(most_y, most_x)
            + full_y * kernel(most_y, rest_x)
            + full_x * kernel(rest_y, most_x)
            + kernel(rest_y, rest_x);
        outputs.saturating_mul(inputs).saturating_mul(kernels)
    }

    /// Hands each weight of `stream` to `place` as (output channel, kernel row, kernel column, input channel, weight).
    ///
    /// # Errors
    /// [`WeightFault::Short`] if the stream has fewer than [`elements`](Self::elements) weights, [`WeightFault::Padding`] if
    /// padding isn't zero.
    pub fn arrange(
        &self,
        stream: &[i16],
        mut place: impl FnMut(usize, usize, usize, usize, i16),
    ) -> Result<(), WeightFault> {
        let needed = usize::try_from(self.elements()).unwrap_or(usize::MAX);
        if stream.len() < needed {
            return Err(WeightFault::Short { found: stream.len(), needed });
        }
        let mut element = 0;
        let (most_y, most_x) = (8 / self.dilation_y, 8 / self.dilation_x);
        let depthwise = self.traversal == Traversal::Depthwise;
        let part_kernel = self.traversal == Traversal::PartKernelFirst;
        let in_ublock = if depthwise { 1 } else { IFM_UBLOCK_DEPTH };
        for block in (0..self.ofm_depth).step_by(self.block_depth) {
            let outputs = self.block_depth.min(self.ofm_depth - block);
            for in_block in (0..self.ifm_depth).step_by(self.ifm_block()) {
                let inputs = self.block_channels(in_block);
                // Either the input micro-blocks of a block are the outer loop, or the inner one.
                let (outer, inner) =
                    if part_kernel { (inputs, IFM_UBLOCK_DEPTH) } else { (IFM_UBLOCK_DEPTH, inputs) };
                for sub_y in (0..self.kernel_height).step_by(most_y) {
                    let height = most_y.min(self.kernel_height - sub_y);
                    for sub_x in (0..self.kernel_width).step_by(most_x) {
                        let width = most_x.min(self.kernel_width - sub_x);
                        let taps = (height * width).next_multiple_of(self.kernel_round());
                        for in_outer in (0..outer).step_by(IFM_UBLOCK_DEPTH) {
                            for out_ublock in (0..outputs).step_by(self.ofm_ublock_depth) {
                                for tap in 0..taps {
                                    let (y, x) = (tap / width, tap % width);
                                    for in_inner in (0..inner).step_by(IFM_UBLOCK_DEPTH) {
                                        for out in 0..self.ofm_ublock_depth {
                                            let o = block + out_ublock + out;
                                            for input in 0..in_ublock {
                                                let i = in_block + in_outer + in_inner + input;
                                                let weight = stream[element];
                                                if out_ublock + out < outputs
                                                    && i < self.ifm_depth
                                                    && y < height
                                                {
                                                    place(o, sub_y + y, sub_x + x, i, weight);
                                                } else if weight != 0 {
                                                    return Err(WeightFault::Padding {
                                                        element,
                                                        found: weight,
                                                    });
                                                }
                                                element += 1;
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        debug_assert_eq!(element, needed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn orders() -> impl Strategy<Value = WeightOrder> {
        (
            1usize..40,
            1usize..70,
            1usize..12,
            1usize..12,
            (1usize..3, 1usize..3),
            1usize..40,
            any::<bool>(),
            any::<bool>(),
            0usize..3,
        )
            .prop_map(
                |(
                    ofm_depth,
                    ifm_depth,
                    kernel_height,
                    kernel_width,
                    dilation,
                    block_depth,
                    small,
                    wide_ifm,
                    walk,
                )| {
                    let traversal =
                        [Traversal::DepthFirst, Traversal::PartKernelFirst, Traversal::Depthwise][walk];
                    WeightOrder {
                        ofm_depth,
                        ifm_depth: if traversal == Traversal::Depthwise { 1 } else { ifm_depth },
                        kernel_height,
                        kernel_width,
                        dilation_y: dilation.0,
                        dilation_x: dilation.1,
                        block_depth,
                        ofm_ublock_depth: if small { 4 } else { 8 },
                        wide_ifm,
                        traversal,
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn each_weight_is_placed_once(order in orders()) {
            let stream = vec![0; order.elements() as usize];
            let size = order.ofm_depth * order.kernel_height * order.kernel_width * order.ifm_depth;
            let mut seen = vec![0u32; size];
            order.arrange(&stream, |o, y, x, i, _| {
                seen[((o * order.kernel_height + y) * order.kernel_width + x) * order.ifm_depth + i] += 1;
            }).unwrap();
            prop_assert!(seen.iter().all(|&times| times == 1));
            prop_assert_eq!(
                order.arrange(&stream[1..], |_, _, _, _, _| {}),
                Err(WeightFault::Short { found: stream.len() - 1, needed: stream.len() })
            );
        }
    }

    #[test]
    fn padding_must_be_zero() {
        let order = WeightOrder {
            ofm_depth: 1,
            ifm_depth: 1,
            kernel_height: 1,
            kernel_width: 1,
            dilation_y: 1,
            dilation_x: 1,
            block_depth: 8,
            ofm_ublock_depth: 8,
            wide_ifm: false,
            traversal: Traversal::Depthwise,
        };
        let mut stream = vec![0; order.elements() as usize];
        assert_eq!(stream.len(), 8 * 4);
        stream[0] = 5;
        let mut found = Vec::new();
        order.arrange(&stream, |o, y, x, i, weight| found.push((o, y, x, i, weight))).unwrap();
        assert_eq!(found, [(0, 0, 0, 0, 5)]);
        stream[1] = 1;
        assert_eq!(
            order.arrange(&stream, |_, _, _, _, _| {}),
            Err(WeightFault::Padding { element: 1, found: 1 })
        );
    }
}
