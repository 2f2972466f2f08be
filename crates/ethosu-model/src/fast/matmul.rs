//! Matrix products: convolutions whose weights come from a map, so that they are packed in each run.

use std::sync::Arc;

use ethosu_isa::ElementSize;

use super::convolution::Convolver;
use super::kernels::Isa;
use super::output::Output;
use super::packed::Packed;
use super::scratch::Scratch;
use crate::map::{Extent, FeatureMap};
use crate::memory::Memory;
use crate::operation::{Convolution, ConvolutionScale, Kernel};
use crate::weights::{ChannelScale, Weights};

/// A planned matrix product.
#[derive(Debug, Clone)]
pub(super) struct Matmul {
    operation: Convolution,
    weights: FeatureMap,
    /// Of the weights, as the map has them: a column for each output channel.
    extent: Extent,
    /// For the largest weights there can be.
    convolver: Convolver<i16>,
}

impl Matmul {
    /// `None` for forms that have no plan of their own. The caller has checked that the weights can be read.
    pub(super) fn new(operation: &Convolution, output: Output, limit: usize) -> Option<Self> {
        let (Kernel::Map(weights), ConvolutionScale::Global(scale)) = (&operation.kernel, &operation.scale)
        else {
            return None;
        };
        let window = &operation.window;
        // A weight less its zero point must fit 16 bits.
        if window.kernel != (1, 1) || operation.depthwise || weights.element != ElementSize::Bits8 {
            return None;
        }
        let extent = operation.weight_map_extent();
        let most = weights.farthest_from_zero();
        i16::try_from(most).ok()?;
        let scales = vec![ChannelScale { bias: 0, scale: *scale }; extent.width];
        let magnitude = most.checked_mul(extent.depth as i64)?;
        let largest = Arc::new(Packed { weights: Vec::new(), sums: vec![(magnitude, 0); extent.width] });
        let convolver = Convolver::new(operation, largest, &scales, output, limit)?;
        Some(Self { operation: operation.clone(), weights: *weights, extent, convolver })
    }

    pub(super) fn run(&self, isa: Isa, memory: &mut Memory, scratch: &mut Scratch) {
        let mut values = Vec::with_capacity(self.extent.elements() as usize);
        self.weights.load_values(memory, self.extent, &mut values).expect("planned maps can be read");
        let values = values.iter().map(|value| (value - self.weights.zero_point) as i16).collect();
        let weights = Weights::of_one_element(self.extent.depth, values);
        let packed = Packed::new(&self.operation, &weights).expect("the weights are 16-bit ones");
        self.convolver.with_weights(packed).run(isa, memory, scratch);
    }
}
