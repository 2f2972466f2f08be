//! The `ethos-u` operator of a `.tflite` file that Vela wrote.
//!
//! Layout after Vela 5.2.0 (`tflite_writer.cpp`, `custom_operator_ethosu.hpp`). The operator's inputs are the command stream's
//! payload, the constants, scratch, fast scratch, then real tensors in an order of its own. Where a tensor lives is in the
//! note `OfflineMemoryAllocation`: 32-bit version, number of subgraphs, number of tensors, then one offset a tensor, all
//! subgraphs together, -1 for "nowhere". A payload with local addressing has its inputs in region 3 and its outputs in
//! region 4, else all are in scratch, at offsets that count from where scratch itself lies.

use ethosu_isa::{Payload, Product};
use npub::{Place, TensorEntry, TensorKind};

use super::{
    CpuOperator, DistilError, FastScratch, INPUT_REGION, IoMode, OUTPUT_REGION, Program, SCRATCH_REGION,
    describe, fast_scratch,
};
use crate::tflite::{BuiltinOperator, DataType, Model, Operator, Subgraph, is_ethos_u};

/// The note's name.
const ALLOCATION: &str = "OfflineMemoryAllocation";
/// Numbers in the note before the offsets.
const ALLOCATION_HEADER: usize = 3;
/// What Vela calls a tensor without a name.
pub(crate) const UNNAMED: &str = "<unnamed>";
/// Where real tensors begin among the operator's inputs.
const FIRST_TENSOR: usize = 4;

/// Takes a `.tflite` file apart that Vela has compiled, here or elsewhere.
///
/// # Errors
///
/// [`DistilError`]: the network is not wholly on the NPU, or not as Vela writes it.
pub fn from_vela_tflite(compiled: &[u8]) -> Result<Program, DistilError> {
    let model = Model::parse(compiled)?;
    let graph = model.main();
    let operator = the_operator(graph)?;
    let parts = Parts::find(&model, operator)?;
    let payload = Payload::parse(parts.payload)?;
    let accelerator = payload.accelerator()?;
    let local = payload.metadata().is_some_and(|metadata| metadata.local_addressing());
    let io = if local { IoMode::Separate } else { IoMode::Arena };
    let places = Places::new(&model, graph, io, parts.scratch)?;
    let tensors = Table { model: &model, graph, operator, places: &places, entries: Vec::new() }.fill()?;
    // The older core names the version, and the newer one doesn't.
    let is_older_core = model.metadata.iter().any(|note| note.name == "vela_version");
    let fast =
        fast_scratch_of(graph, &parts, &places, payload.stream(), accelerator.product(), is_older_core)?;
    Ok(Program {
        accelerator,
        payload: payload.kind(),
        commands: payload.stream().to_vec(),
        constants: parts.constants.to_vec(),
        scratch_bytes: bytes_of(graph, parts.scratch)?,
        fast_scratch: fast,
        io,
        tensors,
    })
}

fn problem(text: impl Into<String>) -> DistilError {
    DistilError::Operator { problem: text.into() }
}

/// Whether an operator only says which tensor is the value of a resource variable. It computes nothing.
pub(crate) fn is_bookkeeping(operator: &Operator<'_>) -> bool {
    use BuiltinOperator as Code;
    matches!(operator.code, Code::VAR_HANDLE | Code::READ_VARIABLE | Code::ASSIGN_VARIABLE | Code::CALL_ONCE)
}

/// The one `ethos-u` operator of a network that is wholly on the NPU.
fn the_operator<'m, 'a>(graph: &'m Subgraph<'a>) -> Result<&'m Operator<'a>, DistilError> {
    let programs: Vec<&Operator<'_>> =
        graph.operators.iter().filter(|operator| is_ethos_u(operator)).collect();
    let others = graph.operators.iter().filter(|operator| !is_ethos_u(operator) && !is_bookkeeping(operator));
    let left: Vec<CpuOperator> = others.map(|operator| left_to_cpu(graph, operator)).collect();
    match programs.as_slice() {
        [] => Err(DistilError::NotCompiled),
        _ if !left.is_empty() => Err(DistilError::CpuOperators(left)),
        [only] => Ok(only),
        several => Err(DistilError::SeveralPrograms {
            count: several.len(),
            indices: several.iter().map(|operator| operator.index).collect(),
        }),
    }
}

pub(crate) fn left_to_cpu(graph: &Subgraph<'_>, operator: &Operator<'_>) -> CpuOperator {
    let output = operator.outputs.first().map(|&tensor| graph.tensors[tensor].name.replace(UNNAMED, ""));
    CpuOperator {
        index: Some(operator.index),
        operator: operator.name().into_owned(),
        tensor: output.unwrap_or_default(),
        reason: None,
    }
}

/// The operator's first four inputs.
struct Parts<'a> {
    payload: &'a [u8],
    constants: &'a [u8],
    scratch: usize,
    fast_scratch: usize,
}

impl<'a> Parts<'a> {
    fn find(model: &Model<'a>, operator: &Operator<'_>) -> Result<Self, DistilError> {
        let tensors = &model.main().tensors;
        let input = |index: usize, what: &str| {
            let tensor = operator.inputs.get(index).copied().flatten();
            tensor.ok_or_else(|| problem(format!("input {index} ({what}) is missing")))
        };
        let payload = model.data(&tensors[input(0, "command stream")?]);
        Ok(Parts {
            payload: payload.ok_or_else(|| problem("the command stream has no data"))?,
            // A network without weights has no constants.
            constants: model.data(&tensors[input(1, "constants")?]).unwrap_or_default(),
            scratch: input(2, "scratch")?,
            fast_scratch: input(3, "fast scratch")?,
        })
    }
}

/// Bytes of a tensor that stands for memory.
fn bytes_of(graph: &Subgraph<'_>, index: usize) -> Result<u32, DistilError> {
    let tensor = &graph.tensors[index];
    let bytes = tensor.bytes().filter(|_| tensor.data_type == DataType::Uint8);
    let bytes = bytes.and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| problem(format!("'{}' is {} {:?}", tensor.name, tensor.data_type, tensor.shape)))
}

fn fast_scratch_of(
    graph: &Subgraph<'_>,
    parts: &Parts<'_>,
    places: &Places,
    stream: &[u8],
    product: Product,
    is_older_core: bool,
) -> Result<FastScratch, DistilError> {
    let scratch = bytes_of(graph, parts.scratch)?;
    let fast = bytes_of(graph, parts.fast_scratch)?;
    // Vela's older core has a second tensor at the same place where the newer one names the same tensor twice. The newer
    // one's may be alike by chance where they are different memories.
    let same = parts.scratch == parts.fast_scratch
        || (is_older_core
            && scratch == fast
            && places.offsets.get(parts.scratch) == places.offsets.get(parts.fast_scratch));
    fast_scratch(stream, product, same, fast)
}

/// Where tensors live.
struct Places {
    /// By tensor of the first subgraph; `None` is nowhere.
    offsets: Vec<Option<u32>>,
    io: IoMode,
    scratch: u32,
}

impl Places {
    fn new(model: &Model<'_>, graph: &Subgraph<'_>, io: IoMode, scratch: usize) -> Result<Self, DistilError> {
        let error = |text: String| DistilError::Allocation { problem: text };
        let all: usize = model.subgraphs.iter().map(|graph| graph.tensors.len()).sum();
        let notes = model.metadata.iter().filter(|note| note.name == ALLOCATION);
        let mut found = None;
        // A network that had such a note before it was compiled keeps it; only Vela's own has the new number of tensors.
        for note in notes {
            let words: Vec<i32> =
                note.data.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
            let counted = words.get(2).and_then(|&count| usize::try_from(count).ok());
            if counted == Some(all) && words.len() == ALLOCATION_HEADER + all {
                found = Some(words);
            } else if found.is_none() {
                let (says, has) = (words.get(2).copied(), words.len().saturating_sub(ALLOCATION_HEADER));
                return Err(error(format!(
                    "says {says:?} tensors and has {has} offsets; the file has {all} tensors"
                )));
            }
        }
        let words = found.ok_or_else(|| error("it isn't there".to_owned()))?;
        let offsets =
            words[ALLOCATION_HEADER..][..graph.tensors.len()].iter().map(|&word| u32::try_from(word).ok());
        let offsets: Vec<Option<u32>> = offsets.collect();
        let scratch = match io {
            IoMode::Separate => 0,
            IoMode::Arena => offsets[scratch].ok_or_else(|| error("scratch has no place".to_owned()))?,
        };
        Ok(Places { offsets, io, scratch })
    }

    /// A tensor's place, as the operator's input or output. `None` for a tensor that no command touches.
    fn of(
        &self,
        graph: &Subgraph<'_>,
        tensor: usize,
        separate_region: u8,
    ) -> Result<Option<Place>, DistilError> {
        let Some(offset) = self.offsets[tensor] else { return Ok(None) };
        let Some(offset) = offset.checked_sub(self.scratch) else {
            return Err(DistilError::Allocation {
                problem: format!("{} lies at {offset}, before scratch", graph.describe(tensor)),
            });
        };
        let region = match self.io {
            IoMode::Separate => separate_region,
            IoMode::Arena => SCRATCH_REGION,
        };
        Ok(Some(Place { region, offset }))
    }
}

/// Collects the entries of the tensor table.
struct Table<'t, 'a> {
    model: &'t Model<'a>,
    graph: &'t Subgraph<'a>,
    operator: &'t Operator<'a>,
    places: &'t Places,
    entries: Vec<TensorEntry>,
}

impl Table<'_, '_> {
    fn fill(mut self) -> Result<Vec<TensorEntry>, DistilError> {
        // Vela numbers the inputs that its schedule reads and the operator's inputs side by side (compiler.cpp), so one
        // that the schedule doesn't read shifts all behind it.
        let nowhere = |tensor: &&usize| self.places.offsets[**tensor].is_none();
        let unused = self.operator.inputs[FIRST_TENSOR..].iter().flatten().find(nowhere);
        if let (IoMode::Separate, Some(&unused)) = (self.places.io, unused) {
            return Err(DistilError::MixedPlaces {
                without_place: self.graph.tensors[unused].name.to_string(),
            });
        }
        for &tensor in &self.graph.inputs {
            let read = self.operator.inputs[FIRST_TENSOR..].contains(&Some(tensor));
            let place = if read { self.places.of(self.graph, tensor, INPUT_REGION)? } else { None };
            self.push(TensorKind::Input, tensor, place)?;
        }
        let mut outputs = Vec::new();
        for &tensor in &self.graph.outputs {
            let place = self.output_place(tensor)?;
            outputs.push((tensor, self.push(TensorKind::Output, tensor, place)?));
        }
        for &tensor in self.operator.inputs[FIRST_TENSOR..].iter().flatten() {
            if !self.graph.inputs.contains(&tensor) {
                self.state(tensor, &mut outputs)?;
            }
        }
        Ok(self.entries)
    }

    fn push(&mut self, kind: TensorKind, tensor: usize, place: Option<Place>) -> Result<u32, DistilError> {
        let tensor = &self.graph.tensors[tensor];
        let (dtype, shape, quantisation) = describe(tensor)?;
        let index = self.entries.len() as u32;
        let name = tensor.name.to_string();
        self.entries.push(TensorEntry { kind, name, dtype, shape, quantisation, place, fed_from: None });
        Ok(index)
    }

    /// The place of a tensor that the operator computes.
    fn output_place(&self, tensor: usize) -> Result<Option<Place>, DistilError> {
        let name = || self.graph.describe(tensor);
        if !self.operator.outputs.contains(&tensor) {
            return Err(problem(format!("the network's output {} isn't one of its outputs", name())));
        }
        let place = self.places.of(self.graph, tensor, OUTPUT_REGION)?;
        place.map(Some).ok_or_else(|| problem(format!("the output {} has no place", name())))
    }

    /// An input of the operator that isn't an input of the network: a variable tensor, or the value of a resource variable.
    fn state(&mut self, tensor: usize, outputs: &mut Vec<(usize, u32)>) -> Result<(), DistilError> {
        let name = self.graph.describe(tensor);
        let place = self.places.of(self.graph, tensor, INPUT_REGION)?;
        let place = place.ok_or_else(|| problem(format!("the state {name} has no place")))?;
        let index = self.push(TensorKind::State, tensor, Some(place))?;
        if self.graph.tensors[tensor].is_variable {
            return self.in_place(tensor, place);
        }
        let next = self.next_value(tensor)?;
        let feeder = match outputs.iter().find(|(known, _)| *known == next) {
            Some((_, entry)) => *entry,
            None => {
                let place = self.output_place(next)?;
                let entry = self.push(TensorKind::NextState, next, place)?;
                outputs.push((next, entry));
                entry
            }
        };
        self.entries[index as usize].fed_from = Some(feeder);
        Ok(())
    }

    /// A variable tensor must be written where it is read: the operator lists its every version, and doesn't say which is
    /// the last.
    fn in_place(&self, tensor: usize, place: Place) -> Result<(), DistilError> {
        let variable = &self.graph.tensors[tensor];
        let error = |text: String| DistilError::State { tensor: variable.name.to_string(), problem: text };
        if self.places.io == IoMode::Separate {
            return Err(error(
                "with separate inputs and outputs its last value can't be told; compile it with `--io arena`"
                    .to_owned(),
            ));
        }
        for &version in &self.operator.outputs {
            let other = &self.graph.tensors[version];
            if !other.is_variable || other.name != variable.name {
                continue;
            }
            let written = self.places.of(self.graph, version, OUTPUT_REGION)?;
            if written != Some(place) {
                let written =
                    written.map_or("nowhere".to_owned(), |place| format!("at offset 0x{:x}", place.offset));
                return Err(error(format!(
                    "it is read at offset 0x{:x} but written {written}",
                    place.offset
                )));
            }
        }
        Ok(())
    }

    /// The tensor that becomes the value of a resource variable, given the tensor that its value is read into.
    fn next_value(&self, tensor: usize) -> Result<usize, DistilError> {
        let error = |text: &str| DistilError::State {
            tensor: self.graph.tensors[tensor].name.to_string(),
            problem: text.to_owned(),
        };
        let reads = |operator: &&Operator<'_>| {
            operator.code == BuiltinOperator::READ_VARIABLE && operator.outputs.first() == Some(&tensor)
        };
        let read = self.graph.operators.iter().find(reads);
        let handle = read.and_then(|operator| operator.inputs.first().copied().flatten());
        let Some(handle) = handle else {
            return Err(problem(format!(
                "its input {} is neither an input of the network nor a state",
                self.graph.describe(tensor)
            )));
        };
        let mut assigned =
            self.graph.operators.iter().filter_map(|operator| match operator.inputs.as_slice() {
                [Some(to), Some(value)] if operator.code == BuiltinOperator::ASSIGN_VARIABLE => {
                    self.same_variable(*to, handle).then_some(*value)
                }
                _ => None,
            });
        let next = assigned.next().ok_or_else(|| error("nothing is ever assigned to it"))?;
        if assigned.next().is_some() {
            return Err(error("it is assigned to more than once"));
        }
        self.starts_at_zero(tensor, handle)?;
        Ok(next)
    }

    fn same_variable(&self, one: usize, other: usize) -> bool {
        one == other
            || (variable_name(self.graph, one)
                .is_some_and(|name| variable_name(self.graph, other) == Some(name)))
    }

    /// An `.npub` starts states at zero; a network that starts them elsewhere can't be told.
    fn starts_at_zero(&self, tensor: usize, handle: usize) -> Result<(), DistilError> {
        let state = &self.graph.tensors[tensor];
        let zero = state.quantisation.as_ref().map_or(0, |quantisation| quantisation.zero_point());
        let Some(name) = variable_name(self.graph, handle) else { return Ok(()) };
        for graph in &self.model.subgraphs[1..] {
            for operator in &graph.operators {
                let [Some(to), Some(value)] = operator.inputs[..] else { continue };
                if operator.code != BuiltinOperator::ASSIGN_VARIABLE
                    || variable_name(graph, to).as_ref() != Some(&name)
                {
                    continue;
                }
                let initial = &graph.tensors[value];
                let data = self.model.data(initial).unwrap_or_default();
                let at_zero = match initial.data_type {
                    DataType::Int8 => data.iter().all(|&byte| i64::from(byte.cast_signed()) == zero),
                    DataType::Uint8 => data.iter().all(|&byte| i64::from(byte) == zero),
                    DataType::Int16 => data
                        .as_chunks::<2>()
                        .0
                        .iter()
                        .all(|word| i64::from(i16::from_le_bytes(*word)) == zero),
                    _ => zero == 0 && data.iter().all(|&byte| byte == 0),
                };
                if !at_zero || data.is_empty() {
                    return Err(DistilError::State {
                        tensor: state.name.to_string(),
                        problem: format!("it doesn't start at its zero point {zero} everywhere"),
                    });
                }
            }
        }
        Ok(())
    }
}

/// The name of the resource variable that a handle tensor stands for: container and shared name of its `VAR_HANDLE`.
fn variable_name(graph: &Subgraph<'_>, handle: usize) -> Option<(String, String)> {
    let makes = |operator: &&Operator<'_>| {
        operator.code == BuiltinOperator::VAR_HANDLE && operator.outputs.first() == Some(&handle)
    };
    let options = graph.operators.iter().find(makes)?.options?;
    let text = |field| options.string(field).unwrap_or_default().into_owned();
    // schema.fbs, VarHandleOptions: container, shared_name.
    Some((text(0), text(1)))
}
