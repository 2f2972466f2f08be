//! A program made ready to run many times.

use ethosu_isa::{ElementSize, ElementwiseMode, PoolMode, Upscale};

use super::binary::Binary;
use super::convolution::Convolver;
use super::kernels::Isa;
use super::map_bytes::ByteMap;
use super::output::Output;
use super::pooling::Pool;
use super::provenance::Provenance;
use super::scratch::Scratch;
use super::stage::Stage;
use crate::map::{Extent, FeatureMap};
use crate::memory::{Memory, Shape};
use crate::operation::{Convolution, Dma, Elementwise, Operand, Operation, Pooling, Window};
use crate::program::{Limits, Program, Step};
use crate::reference;
use crate::rounding::{DoublingShift, Scale, divide_half_away};
use crate::stop::{Cause, Stop};
use crate::table::TableMemory;
use crate::weights::{ChannelScale, Weights};

/// A step as it will be run.
#[derive(Debug, Clone)]
enum Action {
    ConvolveBytes(Box<Convolver<u8>>),
    ConvolveWords(Box<Convolver<i16>>),
    ByteMap(Box<ByteMap>),
    Pool(Box<Pool>),
    Binary(Box<Binary>),
    /// By the reference engine: what no faster form exists for, and what will end in a [`Stop`].
    Plain(Operation),
}

impl Action {
    fn form(&self) -> &'static str {
        match self {
            Self::ConvolveBytes(convolver) => convolver.form(),
            Self::ConvolveWords(convolver) => convolver.form(),
            Self::ByteMap(_) => "byte map",
            Self::Pool(_) => "pool",
            Self::Binary(_) => "element-wise",
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
        let mut planner = Planner { memory, isa, known: Provenance::new(memory), tables: program.tables() };
        let steps = program.steps().iter().map(|step| planner.step(step)).collect();
        Self { isa, steps, tables: program.tables(), shape: memory.shape() }
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
        assert!(memory.has_shape(&self.shape), "the memory isn't laid out as the plan was made for");
        let scratch = &mut workspace.scratch;
        let mut tables = self.tables.clone();
        for step in &self.steps {
            match &step.action {
                Action::ConvolveBytes(convolver) => convolver.run(self.isa, memory, scratch),
                Action::ConvolveWords(convolver) => convolver.run(self.isa, memory, scratch),
                Action::ByteMap(map) => map.run(memory, scratch),
                Action::Pool(pool) => pool.run(memory, scratch),
                Action::Binary(binary) => binary.run(self.isa, memory, scratch),
                Action::Plain(operation) => reference::execute(operation, memory, &mut tables)
                    .map_err(|cause| Stop { offset: step.offset, operation: step.name, cause })?,
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
            .filter(|step| matches!(step.action, Action::Plain(ref operation) if !matches!(operation, Operation::Dma(_))))
            .count();
        (self.steps.len() - plain, plain)
    }

    /// Bytes of decoded weights that the plan holds.
    pub fn weight_bytes(&self) -> usize {
        self.steps
            .iter()
            .map(|step| match &step.action {
                Action::ConvolveBytes(convolver) => convolver.weight_bytes(),
                Action::ConvolveWords(convolver) => convolver.weight_bytes(),
                _ => 0,
            })
            .sum()
    }
}

/// Elements a staged input may have: the limit that programs have for maps, and as much again for padding.
fn stage_limit() -> usize {
    2 * Limits::default().map_elements as usize
}

struct Planner<'a> {
    memory: &'a Memory,
    isa: Isa,
    known: Provenance<'a>,
    /// The tables as far as they are known before a run.
    tables: TableMemory,
}

impl Planner<'_> {
    fn step(&mut self, step: &Step) -> Planned {
        let action = self.action(&step.operation).unwrap_or_else(|| Action::Plain(step.operation.clone()));
        self.follow(&step.operation);
        Planned { offset: step.offset, name: step.operation.name(), action }
    }

    /// The faster form of an operation, if there is one and it can't fail.
    fn action(&self, operation: &Operation) -> Option<Action> {
        match operation {
            Operation::Convolution(convolution) => self.convolution(convolution),
            Operation::Pooling(pooling) => self.pooling(pooling),
            Operation::Elementwise(elementwise) => self.elementwise(elementwise),
            Operation::Dma(_) => None,
        }
    }

    /// Keeps track of what is known after an operation.
    fn follow(&mut self, operation: &Operation) {
        let (map, extent) = match operation {
            Operation::Convolution(Convolution { window, .. })
            | Operation::Pooling(Pooling { window, .. }) => (&window.ofm, window.ofm_extent),
            Operation::Elementwise(elementwise) => (&elementwise.ofm, elementwise.extent),
            Operation::Dma(copy) => return self.follow_copy(copy),
        };
        // A map that reaches out of its region ends the run, and nothing that follows matters.
        if let Some(reach) = map.reach(extent) {
            self.known.write(map.region, &reach);
        }
    }

    fn follow_copy(&mut self, copy: &Dma) {
        let Some(end) = copy.source.checked_add(copy.length) else { return };
        let source = copy.source as usize..end as usize;
        let constant = self.known.constant(copy.source_region, source);
        match copy.destination_region {
            Some(region) => {
                let Some(end) = copy.destination.checked_add(copy.length) else { return };
                match constant {
                    Some(constant) => self.known.copy(region, copy.destination as usize, &constant),
                    None => self.known.write(region, &(copy.destination as usize..end as usize)),
                }
            }
            None => {
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

    /// The output, if all of it can be written.
    fn output(&self, map: &FeatureMap, extent: Extent, stage: &crate::output::OutputStage) -> Option<Output> {
        if self.memory.is_constant(map.region) {
            return None;
        }
        self.readable(map, extent)?;
        Output::new(map, extent, stage, &self.tables)
    }

    fn window_output(&self, window: &Window) -> Option<Output> {
        self.readable(&window.ifm, window.ifm_extent)?;
        self.output(&window.ofm, window.ofm_extent, &window.output)
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

    fn convolution(&self, convolution: &Convolution) -> Option<Action> {
        let output = self.window_output(&convolution.window)?;
        let weights = Weights::decode(convolution, |stream| {
            self.constant(convolution.weight_region, stream.weight_base, stream.weight_length as usize)
        })
        .ok()?;
        let scales = ChannelScale::decode(convolution, |stream, bytes| {
            self.constant(convolution.scale_region, stream.scale_base, bytes)
        })
        .ok()?;
        let limit = stage_limit();
        if self.isa.likes_bytes() && convolution.window.ifm.element == ElementSize::Bits8 {
            if let Some(convolver) = Convolver::new(convolution, &weights, &scales, output.clone(), limit) {
                return Some(Action::ConvolveBytes(Box::new(convolver)));
            }
        }
        let convolver = Convolver::new(convolution, &weights, &scales, output, limit)?;
        Some(Action::ConvolveWords(Box::new(convolver)))
    }

    fn pooling(&self, pooling: &Pooling) -> Option<Action> {
        let window = &pooling.window;
        let output = self.window_output(window)?;
        let one = window.kernel == (1, 1)
            && window.stride == (1, 1)
            && !window.padded
            && window.upscale != Upscale::Zeros;
        if one
            && pooling.mode != PoolMode::ReduceSum
            && window.ifm.element == ElementSize::Bits8
            && output.bytes == 1
        {
            let stage = window.output.with_tables(&self.tables).ok()?;
            let result = |value: i64| {
                let value = match (pooling.mode, pooling.scale) {
                    (PoolMode::Average, None) => divide_half_away(value, 1),
                    (_, scale) => {
                        scale.unwrap_or(Scale::UNIT).apply(value, window.rounding, DoublingShift::RESULT)
                    }
                };
                stage.apply(value).ok()
            };
            let table = byte_table(&window.ifm, result)?;
            let stage = Stage::new(window, ByteMap::FORM, stage_limit())?;
            return Some(Action::ByteMap(Box::new(ByteMap {
                stage,
                region: window.ifm.region,
                table,
                output,
            })));
        }
        Some(Action::Pool(Box::new(Pool::new(pooling, output, stage_limit())?)))
    }

    fn elementwise(&self, operation: &Elementwise) -> Option<Action> {
        self.readable(&operation.ifm, operation.extent)?;
        let output = self.output(&operation.ofm, operation.extent, &operation.output)?;
        let bytes = operation.ifm.element == ElementSize::Bits8 && output.bytes == 1;
        let scalar = match operation.ifm2 {
            Some(Operand::Scalar(value)) => Some(value),
            _ => None,
        };
        if bytes && (operation.ifm2.is_none() || scalar.is_some()) {
            let stage = operation.output.with_tables(&self.tables).ok()?;
            let result = |a: i64| {
                let value = match scalar {
                    None => reference::unary(operation, a),
                    Some(b) if operation.reversed => reference::binary(operation, b, a),
                    Some(b) => reference::binary(operation, a, b),
                };
                stage.apply(value.ok()?).ok()
            };
            let table = byte_table(&operation.ifm, result)?;
            let stage = Stage::whole(&operation.ifm, operation.extent, ByteMap::FORM);
            return Some(Action::ByteMap(Box::new(ByteMap {
                stage,
                region: operation.ifm.region,
                table,
                output,
            })));
        }
        if matches!(operation.mode, ElementwiseMode::LeakyRelu | ElementwiseMode::Abs | ElementwiseMode::Clz)
        {
            return None;
        }
        self.row_by_row(operation, &operation.ifm, operation.extent)?;
        if let Some(Operand::Map(map, extent)) = &operation.ifm2 {
            self.readable(map, *extent)?;
            self.row_by_row(operation, map, *extent)?;
        }
        Some(Action::Binary(Box::new(Binary::new(operation, output)?)))
    }

    /// Whether writing the output row by row leaves later rows of this input as they are.
    fn row_by_row(&self, operation: &Elementwise, input: &FeatureMap, extent: Extent) -> Option<()> {
        let output = &operation.ofm;
        if !self.memory.same(input.region, output.region) {
            return Some(());
        }
        let (read, written) = (input.reach(extent)?, output.reach(operation.extent)?);
        if read.end <= written.start || written.end <= read.start {
            return Some(());
        }
        let place = |map: &FeatureMap| {
            (
                map.bases,
                map.width0,
                map.height0,
                map.height1,
                map.stride_y,
                map.stride_x,
                map.stride_c,
                map.element,
                map.layout,
            )
        };
        (extent == operation.extent && place(input) == place(output)).then_some(())
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
