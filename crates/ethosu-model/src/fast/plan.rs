//! A program made ready to run many times.

use std::collections::HashSet;
use std::sync::Arc;

use ethosu_isa::{ElementSize, Upscale};

use super::binary::Binary;
use super::convolution::Convolver;
use super::kernels::{Element, Isa};
use super::map_bytes::ByteMap;
use super::matmul::Matmul;
use super::output::Output;
use super::packed::Packed;
use super::pooling::Pool;
use super::provenance::{Constant, Provenance};
use super::scratch::Scratch;
use super::stage::Stage;
use super::wide::Wide;
use crate::map::{Axes, Extent, FeatureMap, Flip};
use crate::memory::{Memory, Shape};
use crate::operation::{
    Convolution, ConvolutionScale, Dma, Elementwise, Function, Kernel, Operand, Operation, PoolFunction,
    Pooling, Results, Target, WeightEncoding, Window,
};
use crate::program::{Limits, Program, Step};
use crate::reference;
use crate::stop::{Cause, Stop};
use crate::table::TableMemory;
use crate::weights::{ChannelScale, Order, Weights};

/// A step as it will be run.
#[derive(Debug, Clone)]
enum Action {
    ConvolveBytes(Box<Convolver<u8>>),
    ConvolveWords(Box<Convolver<i16>>),
    ByteMap(Box<ByteMap>),
    Matmul(Box<Matmul>),
    PoolBytes(Box<Pool<u8>>),
    PoolWords(Box<Pool<i16>>),
    Binary(Box<Binary>),
    Wide(Box<Wide>),
    /// By the reference engine: what no faster form exists for, and what will end in a [`Stop`].
    Plain(Box<Operation>),
}

impl Action {
    fn form(&self) -> &'static str {
        match self {
            Self::ConvolveBytes(convolver) => convolver.form(),
            Self::ConvolveWords(convolver) => convolver.form(),
            Self::ByteMap(_) => "byte map",
            Self::Matmul(_) => "matrix product",
            Self::PoolBytes(_) => "pool, bytes",
            Self::PoolWords(_) => "pool, 16-bit",
            Self::Binary(_) => "element-wise",
            Self::Wide(_) => "element-wise, wide",
            Self::Plain(operation) => operation.name(),
        }
    }
}

#[derive(Debug, Clone)]
struct Planned {
    offset: usize,
    name: &'static str,
    action: Action,
}

/// A [`Program`] whose constants have been decoded, for regions of given sizes.
///
/// Running it gives the same bytes in every region, and the same [`Stop`], as [`reference::run`].
#[derive(Debug, Clone)]
pub struct Plan {
    isa: Isa,
    steps: Vec<Planned>,
    tables: TableMemory,
    shape: Shape,
    chain_bytes: [usize; 8],
}

/// What a run needs beside the regions. One serves any number of runs, one at a time.
#[derive(Debug, Clone, Default)]
pub struct Workspace {
    scratch: Scratch,
}

impl Plan {
    /// Plans a program for the regions as `memory` has them: the constant ones with the bytes they hold, the others with their sizes.
    pub fn new(program: &Program, memory: &Memory) -> Self {
        Self::with_isa(program, memory, Isa::detect())
    }

    /// As [`new`](Self::new), with the kernels of one instruction set.
    ///
    /// # Panics
    /// When run, if this machine doesn't have it.
    pub fn with_isa(program: &Program, memory: &Memory, isa: Isa) -> Self {
        let mut memory = memory.clone();
        memory.prepare_chain(program.chain_bytes());
        let memory = &memory;
        let mut planner = Planner {
            memory,
            isa,
            known: Provenance::new(memory),
            tables: program.tables(),
            caches: Caches::default(),
        };
        let steps = program.steps().iter().map(|step| planner.step(step)).collect();
        Self {
            isa,
            steps,
            tables: program.tables(),
            shape: memory.shape(),
            chain_bytes: *program.chain_bytes(),
        }
    }

    /// Runs the program on `memory`.
    ///
    /// # Errors
    /// [`Stop`] as the reference engine.
    ///
    /// # Panics
    /// If `memory` isn't laid out as the one the plan was made for.
    pub fn run(&self, memory: &mut Memory, workspace: &mut Workspace) -> Result<(), Stop> {
        self.run_observed(memory, workspace, |_, _| {})
    }

    /// As [`run`](Self::run), and calls `after(offset, form)` after each step: the byte offset of its command, and in which form it
    /// ran. For measuring where the time goes.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn run_observed(
        &self,
        memory: &mut Memory,
        workspace: &mut Workspace,
        mut after: impl FnMut(usize, &'static str),
    ) -> Result<(), Stop> {
        memory.prepare_chain(&self.chain_bytes);
        assert!(memory.has_shape(&self.shape), "the memory isn't laid out as the plan was made for");
        let scratch = &mut workspace.scratch;
        let mut tables = self.tables.clone();
        for step in &self.steps {
            let stop = |cause| Stop { offset: step.offset, operation: step.name, cause };
            match &step.action {
                Action::ConvolveBytes(convolver) => convolver.run(self.isa, memory, scratch),
                Action::ConvolveWords(convolver) => convolver.run(self.isa, memory, scratch),
                Action::ByteMap(map) => map.run(memory, scratch),
                Action::Matmul(product) => product.run(self.isa, memory, scratch),
                Action::PoolBytes(pool) => pool.run(self.isa, memory, scratch),
                Action::PoolWords(pool) => pool.run(self.isa, memory, scratch),
                Action::Binary(binary) => binary.run(self.isa, memory, scratch),
                Action::Wide(wide) => wide.run(memory, &tables, scratch).map_err(stop)?,
                Action::Plain(operation) => {
                    reference::execute(operation, memory, &mut tables).map_err(stop)?;
                }
            }
            after(step.offset, step.action.form());
        }
        Ok(())
    }

    /// The instruction set of its kernels.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// How many steps run in a form of their own, and how many as the reference engine does them.
    pub fn coverage(&self) -> (usize, usize) {
        let plain = self
            .steps
            .iter()
            .filter(|step| matches!(step.action, Action::Plain(ref operation) if !matches!(**operation, Operation::Dma(_))))
            .count();
        (self.steps.len() - plain, plain)
    }

    /// Bytes of decoded weights that the plan holds; those that operations share count once.
    pub fn weight_bytes(&self) -> usize {
        let mut seen = HashSet::new();
        self.steps
            .iter()
            .map(|step| match &step.action {
                Action::ConvolveBytes(convolver)
                    if seen.insert(Arc::as_ptr(convolver.packed()).cast::<()>()) =>
                {
                    size_of_val(convolver.packed().weights.as_slice())
                }
                Action::ConvolveWords(convolver)
                    if seen.insert(Arc::as_ptr(convolver.packed()).cast::<()>()) =>
                {
                    size_of_val(convolver.packed().weights.as_slice())
                }
                _ => 0,
            })
            .sum()
    }
}

/// Elements a staged input may have: the limit that programs have for maps, and as much again for padding.
fn stage_limit() -> usize {
    2 * Limits::default().map_elements as usize
}

/// What decides a convolution's packed weights: where their bytes come from, and how they are arranged.
#[derive(Debug, PartialEq, Eq)]
struct WeightKey {
    encoding: WeightEncoding,
    sources: Vec<(Order, Constant)>,
    dilation: usize,
    depthwise: bool,
}

/// Weights packed already, or found not to fit.
type Cache<T> = Vec<(WeightKey, Option<Arc<Packed<T>>>)>;

#[derive(Default)]
struct Caches {
    bytes: Cache<u8>,
    words: Cache<i16>,
    /// Bytes that all of them have.
    held: usize,
}

/// Bytes of packed weights that a plan for constants of so many bytes may hold. Weights of real networks stay far below it, those of
/// a stream that unpacks to a thousandfold don't.
fn packed_limit(constants: usize) -> usize {
    constants.saturating_mul(32).saturating_add(64 << 20)
}

/// Weights that are looked through for a match, so that a long stream isn't compared with itself.
const REMEMBERED: usize = 1 << 10;

/// An element type that has a cache.
trait Cached: Element {
    fn cache(caches: &mut Caches) -> &mut Cache<Self>;
}

impl Cached for u8 {
    fn cache(caches: &mut Caches) -> &mut Cache<u8> {
        &mut caches.bytes
    }
}

impl Cached for i16 {
    fn cache(caches: &mut Caches) -> &mut Cache<i16> {
        &mut caches.words
    }
}

struct Planner<'a> {
    memory: &'a Memory,
    isa: Isa,
    known: Provenance<'a>,
    /// The tables as far as they are known before a run.
    tables: TableMemory,
    caches: Caches,
}

impl Planner<'_> {
    fn step(&mut self, step: &Step) -> Planned {
        let action =
            self.action(&step.operation).unwrap_or_else(|| Action::Plain(Box::new(step.operation.clone())));
        self.follow(&step.operation);
        Planned { offset: step.offset, name: step.operation.name(), action }
    }

    /// The faster form of an operation, if there is one and it can't fail.
    fn action(&mut self, operation: &Operation) -> Option<Action> {
        match operation {
            Operation::Convolution(convolution) => self.convolution(convolution),
            Operation::Pooling(pooling) => self.pooling(pooling),
            Operation::Elementwise(elementwise) => self
                .elementwise(elementwise)
                .or_else(|| Some(Action::Wide(Box::new(Wide::new(elementwise)?)))),
            Operation::Resize(_) | Operation::Dma(_) => None,
        }
    }

    /// Keeps track of what is known after an operation.
    fn follow(&mut self, operation: &Operation) {
        match operation {
            Operation::Dma(copy) => self.follow_copy(copy),
            _ => {
                // A map that reaches out of its region ends the run, and nothing that follows matters.
                if let Some(results) = operation.results()
                    && let Some(reach) = results.ofm.reach(results.stored_extent())
                {
                    self.known.write(results.ofm.region, &reach);
                }
            }
        }
    }

    fn follow_copy(&mut self, copy: &Dma) {
        if !copy.is_straight() {
            // Rows may land anywhere in the region.
            if let Target::Region(region) = copy.target {
                self.known.write(region, &(0..usize::MAX));
            }
            return;
        }
        let Some(end) = copy.source.checked_add(copy.length) else { return };
        let constant = self.known.constant(copy.source_region, copy.source as usize..end as usize);
        match copy.target {
            Target::Region(region) => {
                let Some(end) = copy.destination.checked_add(copy.length) else { return };
                match constant {
                    Some(constant) => self.known.copy(region, copy.destination as usize, &constant),
                    None => self.known.write(region, &(copy.destination as usize..end as usize)),
                }
            }
            Target::Internal => {
                let Some(span) = self.tables.span(copy.destination, copy.length) else { return };
                match constant
                    .and_then(|constant| self.memory.bytes(constant.region).map(|all| &all[constant.bytes]))
                {
                    Some(bytes) => self.tables.load(span, bytes),
                    None => self.tables.forget(span),
                }
            }
        }
    }

    /// Whether all of a map can be read.
    fn readable(&self, map: &FeatureMap, extent: Extent) -> Option<()> {
        (map.reach(extent)?.end <= self.memory.bytes(map.region)?.len()).then_some(())
    }

    /// The output, if it is stored as it is computed, all of it can be written and no two elements share a byte.
    fn output(&self, results: &Results) -> Option<Output> {
        results.is_straight().then(|| self.rearranged_output(results))?
    }

    /// The same in any order.
    fn rearranged_output(&self, results: &Results) -> Option<Output> {
        let extent = results.stored_extent();
        if self.memory.is_constant(results.ofm.region) || !results.ofm.is_injective(extent) {
            return None;
        }
        self.readable(&results.ofm, extent)?;
        Output::new(results, &self.tables)
    }

    fn window_output(&self, window: &Window) -> Option<Output> {
        self.readable(&window.ifm, window.ifm_extent)?;
        self.output(&window.results)
    }

    /// Known bytes of a region.
    fn constant(&self, region: u8, base: u64, bytes: usize) -> Result<&[u8], Cause> {
        // The reference engine finds out what is wrong, if it is reached at all.
        let unknown = || Cause::not_modelled("a constant", 0, "its bytes aren't known when the plan is made");
        let start = usize::try_from(base).map_err(|_| unknown())?;
        let end = start.checked_add(bytes).ok_or_else(unknown)?;
        let constant = self.known.constant(region, start..end).ok_or_else(unknown)?;
        let all = self.memory.bytes(constant.region).ok_or_else(unknown)?;
        all.get(constant.bytes).ok_or_else(unknown)
    }

    fn convolution(&mut self, convolution: &Convolution) -> Option<Action> {
        let window = &convolution.window;
        let output = self.window_output(window)?;
        if let Kernel::Map(weights) = &convolution.kernel {
            self.readable(weights, convolution.weight_map_extent())?;
            return Some(Action::Matmul(Box::new(Matmul::new(convolution, output, stage_limit())?)));
        }
        let ConvolutionScale::PerChannel { region, format, rounding, ref streams } = convolution.scale else {
            return None;
        };
        let channels = window.results.extent.depth;
        let scales = ChannelScale::decode(channels, format, rounding, streams, |stream, bytes| {
            self.constant(region, stream.base, bytes)
        })
        .ok()?;
        let limit = stage_limit();
        let bytes = self.isa.likes_bytes() && window.ifm.element == ElementSize::Bits8;
        if bytes
            && let Some(packed) = self.packed::<u8>(convolution)
            && let Some(convolver) = Convolver::new(convolution, packed, &scales, output.clone(), limit)
        {
            return Some(Action::ConvolveBytes(Box::new(convolver)));
        }
        let packed = self.packed::<i16>(convolution)?;
        Some(Action::ConvolveWords(Box::new(Convolver::new(convolution, packed, &scales, output, limit)?)))
    }

    /// A convolution's weights for kernels of a type. Operations that read the same ones, as those of a network unrolled over
    /// time do, share them.
    fn packed<T: Cached>(&mut self, convolution: &Convolution) -> Option<Arc<Packed<T>>> {
        let Kernel::Streams { region, encoding, ref streams } = convolution.kernel else { return None };
        let mut sources = Vec::with_capacity(streams.len());
        for stream in streams {
            let start = usize::try_from(stream.base).ok()?;
            let bytes = start..start.checked_add(stream.length as usize)?;
            sources.push((stream.order, self.known.constant(region, bytes)?));
        }
        let window = &convolution.window;
        let key =
            WeightKey { encoding, sources, dilation: window.dilation.1, depthwise: convolution.depthwise };
        let remembered = T::cache(&mut self.caches).iter().rev().take(REMEMBERED);
        if let Some((_, packed)) = remembered.into_iter().find(|(known, _)| *known == key) {
            return packed.clone();
        }
        let elements = streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.order.elements()));
        let bytes = usize::try_from(elements).ok()?.saturating_mul(size_of::<T::Weight>());
        if self.caches.held.saturating_add(bytes) > packed_limit(self.memory.constant_bytes()) {
            // The reference engine decodes them for each run and lets go of them.
            return None;
        }
        let weights = Weights::decode(convolution, |region, stream| {
            self.constant(region, stream.base, stream.length as usize)
        });
        let packed = weights.ok().and_then(|weights| Packed::new(convolution, &weights)).map(Arc::new);
        let held =
            packed.as_ref().map_or(0, |packed: &Arc<Packed<T>>| size_of_val(packed.weights.as_slice()));
        self.caches.held = self.caches.held.saturating_add(held);
        T::cache(&mut self.caches).push((key, packed.clone()));
        packed
    }

    fn pooling(&self, pooling: &Pooling) -> Option<Action> {
        let window = &pooling.window;
        self.readable(&window.ifm, window.ifm_extent)?;
        let output = self.rearranged_output(&window.results)?;
        let one = window.kernel == (1, 1)
            && window.stride == (1, 1)
            && !window.padded
            && window.upscale != Upscale::Zeros;
        let function = pooling.function;
        let element_by_element = !matches!(function, PoolFunction::ReduceSum | PoolFunction::ArgmaxX);
        if one && element_by_element && window.ifm.element == ElementSize::Bits8 && output.bytes == 1 {
            // Of one element, every pool but those two gives the element.
            let stage = window.results.output.with_tables(&self.tables).ok()?;
            let table = byte_table(&window.ifm, |value| stage.apply(pooling.scale.apply(value)).ok())?;
            let stage = Stage::new(window, ByteMap::FORM, stage_limit())?;
            let region = window.ifm.region;
            let order = (window.results.axes, window.results.flip);
            return Some(Action::ByteMap(Box::new(ByteMap::new(stage, region, table, order, output))));
        }
        if !window.results.is_straight() {
            return None;
        }
        if let Some(pool) = Pool::new(pooling, output.clone(), stage_limit()) {
            return Some(Action::PoolBytes(Box::new(pool)));
        }
        Some(Action::PoolWords(Box::new(Pool::new(pooling, output, stage_limit())?)))
    }

    fn elementwise(&self, operation: &Elementwise) -> Option<Action> {
        let output = self.output(&operation.results)?;
        let whole = operation.results.extent;
        for operand in [Some(&operation.a), operation.b.as_ref()].into_iter().flatten() {
            if let Operand::Map { map, extent, .. } = operand {
                self.readable(map, *extent)?;
            }
        }
        // With one map of bytes, and at most a scalar beside it, the result is a function of the byte.
        let map = match (&operation.a, &operation.b) {
            (Operand::Map { map, extent, .. }, None | Some(Operand::Scalar(_)))
            | (Operand::Scalar(_), Some(Operand::Map { map, extent, .. }))
                if *extent == whole && map.element == ElementSize::Bits8 && output.bytes == 1 =>
            {
                Some(map)
            }
            _ => None,
        };
        if let Some(map) = map {
            let stage = operation.results.output.with_tables(&self.tables).ok()?;
            let result = |value: i64| {
                let result = match (&operation.a, &operation.b) {
                    (_, None) => reference::unary(operation, value),
                    (Operand::Scalar(a), _) => reference::binary(operation, *a, value),
                    (_, Some(Operand::Scalar(b))) => reference::binary(operation, value, *b),
                    _ => return None,
                };
                stage.apply(result.ok()?).ok()
            };
            let table = byte_table(map, result)?;
            let stage = Stage::whole(map, whole, ByteMap::FORM);
            return Some(Action::ByteMap(Box::new(ByteMap::new(
                stage,
                map.region,
                table,
                (Axes::Hwc, Flip::None),
                output,
            ))));
        }
        if operation.function == Function::LeakyRelu {
            return None;
        }
        for operand in [Some(&operation.a), operation.b.as_ref()].into_iter().flatten() {
            if let Operand::Map { map, extent, .. } = operand {
                self.row_by_row(&operation.results, map, *extent)?;
            }
        }
        Some(Action::Binary(Box::new(Binary::new(operation, output)?)))
    }

    /// Whether writing the output row by row leaves later rows of this input as they are.
    fn row_by_row(&self, results: &Results, input: &FeatureMap, extent: Extent) -> Option<()> {
        let output = &results.ofm;
        if !self.memory.same(input.region, output.region) {
            return Some(());
        }
        let (read, written) = (input.reach(extent)?, output.reach(results.extent)?);
        if read.end <= written.start || written.end <= read.start {
            return Some(());
        }
        // Both maps alike but for their types: then each element is read before it is written.
        let place = |map: &FeatureMap| FeatureMap { region: 0, signed: false, zero_point: 0, ..*map };
        (extent == results.extent && place(input) == place(output)).then_some(())
    }
}

/// The results for all 256 bytes, if all of them have one.
fn byte_table(map: &FeatureMap, result: impl Fn(i64) -> Option<i64>) -> Option<Box<[u8; 256]>> {
    let mut table = Box::new([0; 256]);
    for (byte, entry) in (0..=u8::MAX).zip(table.iter_mut()) {
        let value = if map.signed { i64::from(byte as i8) } else { i64::from(byte) };
        *entry = result(value - map.zero_point)? as u8;
    }
    Some(table)
}
