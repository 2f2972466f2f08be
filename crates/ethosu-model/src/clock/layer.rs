//! From commands back to the compiler's layers.
//!
//! A layer is one operator of the compiler's schedule. It may be cut in slices of its output's depth, each with weights of its
//! own, and in stripes of its height; and before its first command there may be transfers of its weights or table.

use std::collections::HashMap;

use super::ClockError;
use super::pass::{Kind, Machine, Pass};
use super::schedule::Activation;
use crate::map::FeatureMap;
use crate::operation::{Dma, Operation, Target};
use crate::program::Program;

/// A transfer and the port-side facts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) source: u8,
    pub(super) target: Target,
    pub(super) destination: u64,
    pub(super) bytes: u64,
}

impl Transfer {
    pub(super) fn new(dma: &Dma) -> Self {
        let rows = (dma.rows as u64).saturating_mul(dma.planes as u64);
        Self {
            source: dma.source_region,
            target: dma.target,
            destination: dma.destination,
            bytes: dma.length.saturating_mul(rows),
        }
    }

    /// Whether it brings what lies at an address of a region.
    fn brings(&self, region: u8, address: u64) -> bool {
        self.target == Target::Region(region)
            && address.checked_sub(self.destination).is_some_and(|offset| offset < self.bytes)
    }
}

/// A command of a layer, with the transfers it waited for.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) pass: Pass,
    pub(super) weights: Vec<Transfer>,
    pub(super) tables: Vec<Transfer>,
}

/// A layer.
#[derive(Debug, Clone)]
pub(super) struct Layer {
    pub(super) pieces: Vec<Piece>,
    /// Operations that take their input from it through a chain buffer (U85).
    pub(super) chain: Vec<Pass>,
}

impl Layer {
    pub(super) fn first(&self) -> &Piece {
        &self.pieces[0]
    }

    pub(super) fn last(&self) -> &Piece {
        &self.pieces[self.pieces.len() - 1]
    }

    /// All its commands.
    pub(super) fn commands(&self) -> usize {
        self.pieces.len() + self.chain.len()
    }

    /// Whether its pieces differ in depth, so that the last is a smaller one.
    pub(super) fn is_sliced(&self) -> bool {
        let same_rows = self.pieces.iter().all(|piece| {
            let (a, b) = (piece.pass.extent, self.first().pass.extent);
            (a.height, a.width) == (b.height, b.width)
        });
        let weights = |piece: &Piece| piece.pass.weights.clone();
        let other_weights = self.pieces[1..]
            .iter()
            .any(|piece| weights(piece) != weights(self.first()) || !piece.weights.is_empty());
        self.first().pass.weights.is_some() && same_rows && other_weights
    }

    /// The layer as one command.
    pub(super) fn whole(&self) -> Pass {
        let mut whole = self.first().pass.clone();
        if self.pieces.len() == 1 {
            return whole;
        }
        let sum =
            |of: &dyn Fn(&Pass) -> usize| self.pieces.iter().map(|piece| of(&piece.pass)).sum::<usize>();
        if self.is_sliced() {
            whole.extent.depth = sum(&|pass| pass.extent.depth);
            if let (Kind::Depthwise, Some(ifm)) = (whole.kind, &mut whole.ifm) {
                ifm.extent.depth = sum(&|pass| pass.ifm.map_or(0, |input| input.extent.depth));
            }
            for piece in &self.pieces[1..] {
                let (weights, scales) = (&piece.pass.weights, &piece.pass.scales);
                for (all, more) in [(&mut whole.weights, weights), (&mut whole.scales, scales)] {
                    if let (Some(all), Some(more)) = (all, more) {
                        all.spans.extend_from_slice(&more.spans);
                    }
                }
            }
        } else {
            whole.extent.height = sum(&|pass| pass.extent.height);
            if let Some(ifm) = &mut whole.ifm {
                let rows = (whole.extent.height - 1) * whole.y.stride + 1;
                ifm.extent.height = ifm.extent.height.max(rows);
            }
        }
        whole
    }
}

/// Transfers that may still find the command they are for; no compiler lets so many wait.
const PENDING_TRANSFERS: usize = 256;

/// The layers of a program in the order of their first commands. Those that `layer_of` has no number for are found by likeness.
pub(super) fn layers(
    machine: &Machine,
    program: &Program,
    layer_of: &dyn Fn(usize) -> Option<u32>,
) -> Result<Vec<Layer>, ClockError> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut pending: Vec<Transfer> = Vec::new();
    let mut numbered: HashMap<u32, usize> = HashMap::new();
    for step in program.steps() {
        if let Operation::Dma(dma) = &step.operation {
            if pending.len() >= PENDING_TRANSFERS {
                pending.remove(0);
            }
            pending.push(Transfer::new(dma));
        }
        let Some(pass) = Pass::new(machine, step)? else { continue };
        if is_chained(&pass)
            && let Some(layer) = layers.last_mut()
        {
            layer.chain.push(pass);
            continue;
        }
        let weights = take(&mut pending, |transfer| brings_constants(transfer, &pass));
        let tables = match pass.activation {
            Activation::Table => take(&mut pending, |transfer| transfer.target == Target::Internal),
            _ => Vec::new(),
        };
        let piece = Piece { pass, weights, tables };
        let id = layer_of(step.offset);
        let home = match id {
            Some(id) if !piece.pass.permutes() => numbered.get(&id).copied(),
            _ => {
                let last = layers.last().filter(|layer| continues(&layer.last().pass, &piece.pass));
                last.map(|_| layers.len() - 1)
            }
        };
        match home.and_then(|index| layers.get_mut(index)) {
            Some(layer) => layer.pieces.push(piece),
            None => {
                if let Some(id) = id {
                    numbered.insert(id, layers.len());
                }
                layers.push(Layer { pieces: vec![piece], chain: Vec::new() });
            }
        }
    }
    Ok(layers)
}

fn is_chained(pass: &Pass) -> bool {
    pass.ifm.iter().chain(pass.ifm2.map()).any(|input| input.is_chained())
}

fn brings_constants(transfer: &Transfer, pass: &Pass) -> bool {
    let Some(weights) = &pass.weights else { return false };
    let scales = pass.scales.iter().flat_map(|scales| &scales.spans);
    // Weights and scales are moved together, so both lie in the region that the weights are read from.
    weights.spans.iter().chain(scales).any(|&(base, _)| transfer.brings(weights.region, base))
}

fn take(pending: &mut Vec<Transfer>, wanted: impl Fn(&Transfer) -> bool) -> Vec<Transfer> {
    let (found, left) = pending.iter().partition(|transfer| wanted(transfer));
    *pending = left;
    found
}

/// Whether a command goes on with the layer of the one before, as far as the stream tells.
fn continues(before: &Pass, pass: &Pass) -> bool {
    if before.permutes() && pass.permutes() {
        let strides = |pass: &Pass| {
            let ifm = pass.ifm.map(|input| (input.map.stride_x, input.map.stride_y));
            (pass.extent, pass.ofm.stride_x, pass.ofm.stride_y, ifm)
        };
        return strides(before) == strides(pass);
    }
    let (Some(from), Some(ifm)) = (before.ifm, pass.ifm) else { return false };
    let likeness = |map: &FeatureMap| {
        let strides = [map.stride_x, map.stride_y, map.stride_c];
        (map.region, map.element, map.layout, map.zero_point, strides)
    };
    let rows = |pass: &Pass| (pass.extent.height, pass.extent.width);
    // The next slice's channels lie behind those of the slice before.
    let behind = |map: &FeatureMap| map.address(0, 0, before.extent.depth);
    let base = |map: &FeatureMap| map.bases[0] as i64;
    let input_follows = match pass.kind {
        Kind::Convolution => base(&from.map) == base(&ifm.map) && from.extent == ifm.extent,
        Kind::Depthwise => behind(&from.map) == base(&ifm.map),
        _ => false,
    };
    input_follows
        && behind(&before.ofm) == base(&pass.ofm)
        && before.kind == pass.kind
        && (before.y, before.x, before.part_kernel_first) == (pass.y, pass.x, pass.part_kernel_first)
        && before.activation == pass.activation
        && likeness(&from.map) == likeness(&ifm.map)
        && likeness(&before.ofm) == likeness(&pass.ofm)
        && rows(before) == rows(pass)
}
