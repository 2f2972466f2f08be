//! A compiled network, ready to run on this machine.

use std::sync::{Arc, OnceLock};

use ethosu_isa::Accelerator;
use ethosu_model::fast::Plan;
use ethosu_model::{Limits, Memory, Program, Stop};
use npub::{Accel, Blob, DType, Place, Role, Storage, Tensor, TensorKind};

use crate::engine::Runner;
use crate::tensor::TensorSpec;
use crate::{Engine, Session, dtype};

/// The most arena memory that a blob may ask for, in bytes, and that the sessions of one run take together. No Ethos-U55 or U65 system has as much; a damaged blob
/// easily asks for more.
pub(crate) const ARENA_LIMIT: u64 = 1 << 30;

/// A compiled network: the program, its constants, and where its inputs and outputs are.
///
/// It is read once and never changes; any number of [`Session`]s run it, each with memory of its own.
#[derive(Clone, Debug)]
pub struct Network {
    accelerator: Accelerator,
    program: Program,
    memory: Memory,
    arena_bytes: u64,
    /// Made when the first session needs it.
    plan: OnceLock<Plan>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) states: Vec<State>,
    input_specs: Vec<TensorSpec>,
    output_specs: Vec<TensorSpec>,
}

/// A tensor and where its bytes are; `None` for an input that no command reads.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) spec: TensorSpec,
    pub(crate) place: Option<Place>,
}

/// A tensor that lives from one inference to the next.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) place: Place,
    /// Its bytes at the start of a sequence.
    pub(crate) initial: Vec<u8>,
    /// Where its next value is found after an inference; `None` where the commands update it in place.
    pub(crate) source: Option<Place>,
}

/// Why a blob can't be run here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// It isn't a valid blob.
    #[error(transparent)]
    Blob(#[from] npub::Error),
    /// It doesn't say which accelerator it is for.
    #[error("the blob doesn't say which accelerator it was compiled for")]
    UnknownAccelerator,
    /// It is for an accelerator that isn't built.
    #[error("the blob was compiled for {found}, which is no Ethos-U configuration")]
    NoSuchAccelerator {
        /// What it says.
        found: Accel,
    },
    /// It is for another accelerator than the caller's.
    #[error("the blob was compiled for {found}, not for {expected}")]
    OtherAccelerator {
        /// The blob's.
        found: Accel,
        /// The caller's.
        expected: Accelerator,
    },
    /// The command stream can't be executed.
    #[error(transparent)]
    Program(#[from] Stop),
    /// It asks for an absurd amount of memory.
    #[error("the blob asks for {found} bytes of arena, more than the {limit} that are allowed here")]
    Arena {
        /// What it asks for.
        found: u64,
        /// The most that is given.
        limit: u64,
    },
    /// It says neither by a tensor table nor by the roles of its regions where outputs are.
    #[error("the blob has neither a tensor table nor a region with the role of an output")]
    NoTensors,
    /// A tensor's elements are of a type that no array here holds.
    #[error("tensor '{name}' has elements of type {dtype}, which can't be passed in or out")]
    Dtype {
        /// Its name.
        name: String,
        /// The type.
        dtype: DType,
    },
}

impl Network {
    /// Reads a blob.
    ///
    /// # Errors
    /// [`NetworkError`]: the blob is damaged, or holds what this machine's model of the NPU can't execute.
    pub fn from_npub(bytes: &[u8]) -> Result<Network, NetworkError> {
        Network::read(bytes, None)
    }

    /// Reads a blob that has to be for this accelerator, or doesn't say which one it is for.
    ///
    /// # Errors
    /// As [`from_npub`](Network::from_npub), and [`NetworkError::OtherAccelerator`].
    pub fn from_npub_for(bytes: &[u8], accelerator: Accelerator) -> Result<Network, NetworkError> {
        Network::read(bytes, Some(accelerator))
    }

    fn read(bytes: &[u8], expected: Option<Accelerator>) -> Result<Network, NetworkError> {
        let blob = Blob::parse(bytes)?;
        let accelerator = accelerator(blob.accel(), expected)?;
        let arena_bytes = blob.arena_bytes();
        if arena_bytes > ARENA_LIMIT {
            return Err(NetworkError::Arena { found: arena_bytes, limit: ARENA_LIMIT });
        }
        let program = Program::decode(blob.command_stream().bytes(), accelerator, &Limits::default())?;
        let memory = memory(&blob);

        let (mut inputs, mut outputs, mut states) = (Vec::new(), Vec::new(), Vec::new());
        match blob.tensors() {
            Some(table) => {
                for tensor in table.iter() {
                    match tensor.kind {
                        TensorKind::Input => inputs.push(port(&tensor)?),
                        TensorKind::Output => outputs.push(port(&tensor)?),
                        TensorKind::State => states.extend(state(&tensor, &table)),
                        TensorKind::NextState => {}
                    }
                }
            }
            None => {
                inputs.extend(ports_of(&blob, Role::Input));
                outputs.extend(ports_of(&blob, Role::Output));
            }
        }
        if outputs.is_empty() {
            return Err(NetworkError::NoTensors);
        }
        let specs = |ports: &[Port]| ports.iter().map(|port| port.spec.clone()).collect();
        let (input_specs, output_specs) = (specs(&inputs), specs(&outputs));
        let plan = OnceLock::new();
        Ok(Network {
            accelerator,
            program,
            memory,
            arena_bytes,
            plan,
            inputs,
            outputs,
            states,
            input_specs,
            output_specs,
        })
    }

    /// The accelerator it was compiled for.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Its commands.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its inputs, in the network's order.
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.input_specs
    }

    /// Its outputs, in the network's order.
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.output_specs
    }

    /// Bytes of memory that a session takes for what commands write, padding included.
    pub fn arena_bytes(&self) -> u64 {
        self.arena_bytes
    }

    /// Whether an inference depends on the ones before it.
    pub fn is_stateful(&self) -> bool {
        !self.states.is_empty()
    }

    /// Memory to run it in, on the default engine.
    pub fn session(&self) -> Session<'_> {
        self.session_on(Engine::default())
    }

    /// Memory to run it in, on an engine of the caller's choice.
    pub fn session_on(&self, engine: Engine) -> Session<'_> {
        let runner = match engine {
            Engine::Fast => {
                let plan = self.plan.get_or_init(|| Plan::new(&self.program, &self.memory));
                Runner::Fast { plan, workspace: Box::default() }
            }
            Engine::Reference => Runner::Reference { program: &self.program },
        };
        Session::new(self, runner, self.memory.clone())
    }
}

fn accelerator(found: Accel, expected: Option<Accelerator>) -> Result<Accelerator, NetworkError> {
    if !found.is_known() {
        return expected.ok_or(NetworkError::UnknownAccelerator);
    }
    let stated = from_accel(found).ok_or(NetworkError::NoSuchAccelerator { found })?;
    match expected {
        Some(expected) if expected != stated => Err(NetworkError::OtherAccelerator { found, expected }),
        _ => Ok(stated),
    }
}

/// The accelerator that a blob is for; `None` where it doesn't say, or names none that is built.
pub fn accelerator_of(blob: &Blob<'_>) -> Option<Accelerator> {
    from_accel(blob.accel())
}

fn from_accel(accel: Accel) -> Option<Accelerator> {
    let product = match accel.product()? {
        npub::Product::U55 => ethosu_isa::Product::U55,
        npub::Product::U65 => ethosu_isa::Product::U65,
        npub::Product::U85 => ethosu_isa::Product::U85,
        _ => return None,
    };
    Accelerator::new(product, accel.macs().into())
}

/// The regions as the blob describes them. The tensor table isn't bound: no command refers to it.
fn memory(blob: &Blob<'_>) -> Memory {
    let mut memory = Memory::new();
    for (slot, region) in (0u8..).zip(blob.regions()) {
        match region.storage() {
            Storage::Baked { .. } => {
                let bytes = blob.region_bytes(slot.into()).unwrap_or_default();
                memory.bind_constant(slot, Arc::from(bytes));
            }
            Storage::Runtime => memory.bind_writable(slot, region.size as usize),
            // The reader has seen that this is an earlier slot, and one of the arena.
            Storage::Alias { of } => memory.bind_alias(slot, of as u8),
            Storage::Tensors { .. } => {}
        }
    }
    memory
}

fn port(tensor: &Tensor<'_>) -> Result<Port, NetworkError> {
    let spec = TensorSpec::from_table(tensor);
    if dtype::array_type(spec.dtype).is_none() {
        return Err(NetworkError::Dtype { name: spec.name, dtype: spec.dtype });
    }
    Ok(Port { spec, place: tensor.place })
}

fn state(tensor: &Tensor<'_>, table: &npub::TensorTable<'_>) -> Option<State> {
    let place = tensor.place?;
    let zero = tensor.quantisation.map_or(0, |quantisation| quantisation.zero_point.into());
    let mut initial = Vec::new();
    for _ in 0..tensor.size / tensor.dtype.size() {
        dtype::push(&mut initial, tensor.dtype, zero);
    }
    let source = tensor.fed_from.and_then(|index| table.get(index as usize)).and_then(|source| source.place);
    Some(State { place, initial, source })
}

/// Without a tensor table, a region with the role of an input or output is one tensor of bytes.
fn ports_of(blob: &Blob<'_>, role: Role) -> Vec<Port> {
    let regions = (0u8..).zip(blob.regions()).filter(|(_, region)| region.role == role);
    let port = |(slot, region): (u8, &npub::Region)| Port {
        spec: TensorSpec::new(&format!("region {slot}"), DType::UInt8, vec![region.size as usize], None),
        place: Some(Place { region: slot, offset: 0 }),
    };
    regions.filter(|(_, region)| !region.flags.baked()).map(port).collect()
}
