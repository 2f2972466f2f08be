//! Vela's raw output: an `.npz` archive with the parts of the compiled network.
//!
//! Members after Vela 5.2.0 (`rawdata_writer.py`). What to mind: the command stream and the constants are 0-d byte strings
//! whose trailing zeros NumPy hides, so the length comes from the type; shapes are the layers', padded with ones to six axes; offsets
//! are floats as soon as one input has none (then it is 2^64 - 1); quantisation is pickled Python and comes from the
//! network instead; state tensors have no names.

use ethosu_isa::Payload;
use npub::{Place, TensorEntry, TensorKind};

use super::{DistilError, INPUT_REGION, IoMode, OUTPUT_REGION, Program, describe, fast_scratch};
use crate::npy::{Array, Dtype, Npz};
use crate::tflite::{Model, Subgraph};

/// The offset of an input that no command reads, as the 64-bit float it is stored as; 2^64 - 1 rounds to it.
const NOWHERE: f64 = 18_446_744_073_709_551_616.0;

/// Takes Vela's raw output apart. `model` is the network it was compiled from, which has the tensors' names, types and
/// quantisation.
///
/// # Errors
///
/// [`DistilError`]; a network with state tensors is refused, because the archive doesn't say which is which.
pub fn from_raw(npz: &[u8], model: &[u8]) -> Result<Program, DistilError> {
    let model = Model::parse(model)?;
    let graph = model.main();
    let mut archive = Npz::open(npz)?;
    let mut raw = Raw { archive: &mut archive };

    let (command_data, regor) = raw.blob("cmd_data")?;
    let (constants, _) = raw.blob("weight_data")?;
    let payload = Payload::parse(&command_data)?;
    let accelerator = payload.accelerator()?;
    if !raw.list("variable_offset")?.is_empty() {
        return Err(DistilError::Raw {
            problem: "it has state tensors but doesn't say which; take the _vela.tflite file instead"
                .to_owned(),
        });
    }
    let inputs = raw.side("input")?;
    let outputs = raw.side("output")?;
    let separate = inputs.iter().any(|tensor| tensor.region == INPUT_REGION)
        || outputs.iter().any(|tensor| tensor.region == OUTPUT_REGION);

    let mut tensors = Vec::new();
    for (kind, known, found) in
        [(TensorKind::Input, &graph.inputs, inputs), (TensorKind::Output, &graph.outputs, outputs)]
    {
        for (tensor, place) in pair(graph, known, &found, regor)? {
            let tensor = &graph.tensors[tensor];
            let (dtype, shape, quantisation) = describe(tensor)?;
            let name = tensor.name.to_string();
            // Vela's places are mixed up then; see `operator.rs`.
            if separate && place.is_none() {
                return Err(DistilError::MixedPlaces { without_place: name });
            }
            tensors.push(TensorEntry { kind, name, dtype, shape, quantisation, place, fed_from: None });
        }
    }
    let scratch_bytes = raw.number("scratch_size")?;
    let fast_bytes = raw.number("scratch_fast_size")?;
    // The older core gives the fast scratch the size of scratch where it is the same memory, and another region where not.
    let same =
        fast_bytes == 0 || (!regor && raw.number("scratch_region")? == raw.number("scratch_fast_region")?);
    let fast_scratch = fast_scratch(payload.stream(), accelerator.product(), same, fast_bytes)?;
    Ok(Program {
        accelerator,
        payload: payload.kind(),
        commands: payload.stream().to_vec(),
        constants,
        scratch_bytes,
        fast_scratch,
        io: if separate { IoMode::Separate } else { IoMode::Arena },
        tensors,
    })
}

/// One input or output as the archive describes it.
struct Found {
    elements: u64,
    element_bytes: usize,
    region: u8,
    offset: Option<u32>,
}

struct Raw<'r, 'a> {
    archive: &'r mut Npz<'a>,
}

impl Raw<'_, '_> {
    /// Bytes, and whether they are stored as Vela's present core does it: as a 0-d string. The older core has 1-d bytes.
    fn blob(&mut self, name: &str) -> Result<(Vec<u8>, bool), DistilError> {
        let array = self.archive.read(name)?;
        match (array.dtype(), array.shape().len()) {
            (Dtype::Bytes(_), 0) => Ok((array.into_data(), true)),
            (Dtype::Uint8, 1) => Ok((array.into_data(), false)),
            // A string of no bytes isn't a string to NumPy: an empty constant region.
            (_, _) if array.data().is_empty() => Ok((Vec::new(), true)),
            (dtype, rank) => Err(wrong(name, format!("is {dtype} with {rank} axes, expected bytes"))),
        }
    }

    fn numbers(&mut self, name: &str) -> Result<(Array, Vec<f64>), DistilError> {
        let array = self.archive.read(name)?;
        let numbers = array.to_f64().ok_or_else(|| wrong(name, format!("is {}", array.dtype())))?;
        Ok((array, numbers))
    }

    fn number(&mut self, name: &str) -> Result<u32, DistilError> {
        let (_, numbers) = self.numbers(name)?;
        match numbers.as_slice() {
            [only] => whole(*only).ok_or_else(|| wrong(name, format!("is {only}"))),
            several => Err(wrong(name, format!("has {} values, expected one", several.len()))),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<f64>, DistilError> {
        Ok(self.numbers(name)?.1)
    }

    /// The inputs or the outputs.
    fn side(&mut self, side: &str) -> Result<Vec<Found>, DistilError> {
        let name = format!("{side}_shape");
        let (shapes, axes) = self.numbers(&name)?;
        let offsets = self.list(&format!("{side}_offset"))?;
        let regions = self.list(&format!("{side}_region"))?;
        let element_bytes = self.list(&format!("{side}_elem_size"))?;
        let count = offsets.len();
        let rank = match shapes.shape() {
            [0] | [0, _] if count == 0 => 0,
            [rows, rank] if *rows == count => *rank,
            other => return Err(wrong(&name, format!("has shape {other:?} for {count} tensors"))),
        };
        if regions.len() != count || element_bytes.len() != count {
            return Err(wrong(&format!("{side}_region"), format!("doesn't describe {count} tensors")));
        }
        let describe = |index: usize| -> Option<Found> {
            let mut axes = axes[index * rank..][..rank].iter();
            let elements =
                axes.try_fold(1u64, |product, &axis| product.checked_mul(u64::from(whole(axis)?)))?;
            let offset = match offsets[index] {
                NOWHERE => None,
                offset => Some(whole(offset)?),
            };
            Some(Found {
                elements,
                element_bytes: whole(element_bytes[index])? as usize,
                region: u8::try_from(whole(regions[index])?).ok()?,
                offset,
            })
        };
        let all: Option<Vec<Found>> = (0..count).map(describe).collect();
        all.ok_or_else(|| wrong(&name, "or what belongs to it has a number that makes no sense".to_owned()))
    }
}

fn wrong(name: &str, problem: String) -> DistilError {
    DistilError::Raw { problem: format!("{name} {problem}") }
}

fn whole(number: f64) -> Option<u32> {
    // Exact for every whole number that a u32 can hold.
    (number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number)).then_some(number as u32)
}

/// Finds the archive's description of each of the network's inputs or outputs.
///
/// Vela's present core lists them in the network's order. The older one has its own, so there only a description that
/// fits no other tensor counts.
fn pair(
    graph: &Subgraph<'_>,
    known: &[usize],
    found: &[Found],
    in_order: bool,
) -> Result<Vec<(usize, Option<Place>)>, DistilError> {
    let fits = |tensor: usize, found: &Found| {
        let tensor = &graph.tensors[tensor];
        // The shape is the first layer's, which may see the input reshaped.
        tensor.elements().is_some_and(|elements| elements as u64 == found.elements)
            && tensor.data_type.bytes() == Some(found.element_bytes)
    };
    let mut pairs = Vec::new();
    for (position, &tensor) in known.iter().enumerate() {
        let problem = |text: &str| DistilError::Raw { problem: format!("{} {text}", graph.describe(tensor)) };
        let description = if in_order && known.len() == found.len() {
            found.get(position).filter(|found| fits(tensor, found))
        } else {
            let mut fitting = found.iter().filter(|found| fits(tensor, found));
            let rivals = known
                .iter()
                .filter(|&&other| found.iter().any(|found| fits(tensor, found) && fits(other, found)));
            match (fitting.next(), fitting.next(), rivals.count()) {
                (first, None, 0 | 1) => first,
                _ => return Err(problem("looks like another tensor; take the _vela.tflite file instead")),
            }
        };
        let description = description.ok_or_else(|| problem("isn't described by the archive"))?;
        let place = description.offset.map(|offset| Place { region: description.region, offset });
        pairs.push((tensor, place));
    }
    Ok(pairs)
}
