//! Runs a network: memory of its own, states carried from one inference to the next.

use ethosu_model::{Memory, Stop};
use npub::Place;
use npukit_vela::npy::Array;

use crate::engine::Runner;
use crate::splitmix::SplitMix64;
use crate::tensor::Misfit;
use crate::{Network, dtype};

/// A network's memory and states. One inference after the other runs in it.
#[derive(Clone, Debug)]
pub struct Session<'n> {
    network: &'n Network,
    runner: Runner<'n>,
    memory: Memory,
    /// The states' next values, as the last inference left them; written before the next one, because the arena may
    /// hold something else at their place meanwhile.
    next_states: Vec<Option<Vec<u8>>>,
}

/// Why an inference didn't take place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The arrays aren't what the network takes.
    #[error(transparent)]
    Input(#[from] Misfit),
    /// The command stream stopped before its end.
    #[error(transparent)]
    Stop(#[from] Stop),
}

impl<'n> Session<'n> {
    pub(crate) fn new(network: &'n Network, runner: Runner<'n>, memory: Memory) -> Session<'n> {
        let mut session = Session { network, runner, memory, next_states: Vec::new() };
        session.restart();
        session
    }

    /// The network it runs.
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// Begins a new sequence: every state is zero again. Nothing changes for a network without states.
    pub fn restart(&mut self) {
        self.next_states = self.network.states.iter().map(|state| Some(state.initial.clone())).collect();
    }

    /// Fills all memory that commands may write with noise, and begins a new sequence. A program that reads what it
    /// never wrote then gives noise, as it may on a device, rather than what zeros happen to give.
    pub fn scramble(&mut self, seed: u64) {
        let mut random = SplitMix64::new(seed);
        for region in 0..ethosu_model::REGIONS as u8 {
            for chunk in self.memory.bytes_mut(region).unwrap_or_default().chunks_mut(8) {
                let noise = random.next_word().to_le_bytes();
                chunk.copy_from_slice(&noise[..chunk.len()]);
            }
        }
        self.restart();
    }

    /// One inference: takes an array for each input and returns one for each output, both in the network's order.
    ///
    /// # Errors
    /// [`RunError::Input`] when an array has another element type or shape than its input, and nothing was run;
    /// [`RunError::Stop`] when the command stream stopped before its end.
    pub fn run(&mut self, inputs: &[Array]) -> Result<Vec<Array>, RunError> {
        let network = self.network;
        if inputs.len() != network.inputs.len() {
            let names: Vec<&str> = network.inputs().iter().map(|input| input.name.as_str()).collect();
            return Err(Misfit::Count {
                found: inputs.len(),
                expected: network.inputs.len(),
                names: names.join(", "),
            }
            .into());
        }
        for (index, (port, array)) in network.inputs.iter().zip(inputs).enumerate() {
            port.spec.check(array, &port.spec.label("input", index))?;
        }
        for (state, next) in network.states.iter().zip(&mut self.next_states) {
            if let Some(bytes) = next.take() {
                write(&mut self.memory, state.place, &bytes);
            }
        }
        for (port, array) in network.inputs.iter().zip(inputs) {
            if let Some(place) = port.place {
                write(&mut self.memory, place, array.data());
            }
        }
        self.runner.run(&mut self.memory)?;
        for (state, next) in network.states.iter().zip(&mut self.next_states) {
            *next = state.source.map(|source| read(&self.memory, source, state.initial.len()).to_vec());
        }
        Ok(network.outputs.iter().map(|port| self.output(port)).collect())
    }

    fn output(&self, port: &crate::network::Port) -> Array {
        let bytes = port.place.map_or(&[][..], |place| read(&self.memory, place, port.spec.bytes()));
        let dtype = dtype::array_type(port.spec.dtype).expect("a network has no ports of other types");
        Array::new(dtype, port.spec.shape.clone(), bytes.to_vec())
            .expect("the blob's reader has seen that an output lies inside its region")
    }
}

/// Copies to a place that the blob's reader has seen to lie inside a writable region.
fn write(memory: &mut Memory, place: Place, bytes: &[u8]) {
    let offset = place.offset as usize;
    if let Some(target) =
        memory.bytes_mut(place.region).and_then(|region| region.get_mut(offset..offset + bytes.len()))
    {
        target.copy_from_slice(bytes);
    }
}

/// Bytes of a place that the blob's reader has seen to lie inside a region.
fn read(memory: &Memory, place: Place, bytes: usize) -> &[u8] {
    let offset = place.offset as usize;
    memory.bytes(place.region).and_then(|region| region.get(offset..offset + bytes)).unwrap_or_default()
}
