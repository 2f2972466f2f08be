//! Weights in the order that kernels read them.

use super::kernels::{BLOCKS_TOGETHER, Element};
use super::requant::LANES;
use crate::operation::Convolution;
use crate::weights::Weights;

/// A convolution's weights, and what of them the scaling must know.
#[derive(Debug)]
pub(super) struct Packed<T: Element> {
    pub(super) weights: Vec<T::Weight>,
    /// For each output channel the sum of its weights' magnitudes, and their sum.
    pub(super) sums: Vec<(i64, i64)>,
}

/// How the kernel elements of a convolution are grouped.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grouping {
    /// Runs of kernel elements in a kernel row whose inputs lie side by side.
    pub(super) pieces: usize,
    /// Kernel elements of a run.
    pub(super) taps: usize,
    /// Groups of a run.
    pub(super) groups: usize,
}

impl Grouping {
    pub(super) fn new<T: Element>(convolution: &Convolution) -> Self {
        let window = &convolution.window;
        let (_, width) = window.kernel;
        let (_, dilation) = window.dilation;
        if convolution.depthwise {
            // Adjacent columns, those between dilated ones included.
            let columns = (width - 1) * dilation + 1;
            return Self { pieces: columns.div_ceil(T::GROUP), taps: T::GROUP, groups: 1 };
        }
        let (pieces, taps) = if dilation == 1 { (1, width) } else { (width, 1) };
        Self { pieces, taps, groups: (taps * window.ifm_extent.depth).div_ceil(T::GROUP) }
    }
}

impl<T: Element> Packed<T> {
    /// `None` if a weight doesn't fit the kernels.
    pub(super) fn new(convolution: &Convolution, weights: &Weights) -> Option<Self> {
        let grouping = Grouping::new::<T>(convolution);
        let packed = if convolution.depthwise {
            Self::depthwise(convolution, weights, grouping)?
        } else {
            Self::convolution(convolution, weights, grouping)?
        };
        let sums = (0..convolution.window.results.extent.depth)
            .map(|o| {
                let all = weights.output(o).iter().map(|&weight| i64::from(weight));
                (all.clone().map(i64::abs).sum(), all.sum())
            })
            .collect();
        Some(Self { weights: packed, sums })
    }

    /// By groups of input values, for [`LANES`] output channels side by side.
    fn convolution(
        convolution: &Convolution,
        weights: &Weights,
        grouping: Grouping,
    ) -> Option<Vec<T::Weight>> {
        let window = &convolution.window;
        let (depth, outputs) = (window.ifm_extent.depth, window.results.extent.depth);
        let blocks = outputs.div_ceil(LANES);
        let segments = window.kernel.0 * grouping.pieces;
        let groups = segments * grouping.groups;
        let lane_weights = LANES * T::GROUP;
        let mut packed = vec![T::Weight::default(); groups * blocks * lane_weights];
        for o in 0..outputs {
            let block = o / LANES;
            let together = block / BLOCKS_TOGETHER * BLOCKS_TOGETHER;
            let width = BLOCKS_TOGETHER.min(blocks - together);
            let strip = together * groups * lane_weights;
            for segment in 0..segments {
                let (ky, piece) = (segment / grouping.pieces, segment % grouping.pieces);
                for tap in 0..grouping.taps {
                    for (i, &weight) in
                        weights.channels(o, ky, piece * grouping.taps + tap).iter().enumerate()
                    {
                        let element = tap * depth + i;
                        let group = segment * grouping.groups + element / T::GROUP;
                        let at = strip + (group * width + block - together) * lane_weights;
                        packed[at + o % LANES * T::GROUP + element % T::GROUP] = T::weight(weight)?;
                    }
                }
            }
        }
        Some(packed)
    }

    /// By groups of adjacent columns, for each brick of channels.
    fn depthwise(convolution: &Convolution, weights: &Weights, grouping: Grouping) -> Option<Vec<T::Weight>> {
        let window = &convolution.window;
        let outputs = window.results.extent.depth;
        let lane_weights = LANES * T::GROUP;
        let brick = window.kernel.0 * grouping.pieces * lane_weights;
        let mut packed = vec![T::Weight::default(); outputs.div_ceil(LANES) * brick];
        for o in 0..outputs {
            for ky in 0..window.kernel.0 {
                for kx in 0..window.kernel.1 {
                    let column = kx * window.dilation.1;
                    let group = ky * grouping.pieces + column / T::GROUP;
                    let at =
                        o / LANES * brick + group * lane_weights + o % LANES * T::GROUP + column % T::GROUP;
                    packed[at] = T::weight(weights.channels(o, ky, kx)[0])?;
                }
            }
        }
        Some(packed)
    }
}
