//! What is in a `.tflite` that Vela has compiled.

use std::fmt;
use std::path::Path;

use ethosu_isa::Payload;
use npub::Blob;
use npukit::MemoryBill;
use npukit::driver::{DriverNeeds, DriverNeedsError};
use npukit_vela::distil::{self, DistilError};
use npukit_vela::tflite::{Model, Operator, is_ethos_u};
use serde::Serialize;

use super::driver::{Known, Options};
use super::tflite::Tensor;
use crate::cli::describe::{self, grouped};
use crate::cli::failure::{Failure, Outcome};
use crate::cli::report::{caution, heading, table};

#[derive(Serialize)]
pub(super) struct Report {
    kind: &'static str,
    file: String,
    bytes: usize,
    inputs: Vec<Tensor>,
    outputs: Vec<Tensor>,
    /// One for each ethos-u operator.
    programs: Vec<Program>,
    cpu_operators: Vec<CpuOperator>,
    /// What the .npub made of it would take, if one can be made.
    memory: Option<MemoryBill>,
    /// Why none can be made.
    obstacle: Option<String>,
}

#[derive(Serialize)]
struct Program {
    index: usize,
    accel: String,
    framing: String,
    architecture: String,
    command_bytes: usize,
    constant_bytes: usize,
    /// Bytes of fast scratch memory, where the framing says.
    staging_bytes: Option<u64>,
    /// What a driver has to be set up with for it.
    driver: Known,
}

#[derive(Serialize)]
struct CpuOperator {
    index: usize,
    operator: String,
    name: String,
}

impl Report {
    /// Whether all programs can run with what was asked for.
    pub(super) fn is_yes(&self) -> bool {
        !self.programs.iter().any(|program| program.driver.is_no())
    }
}

/// An ethos-u operator with what it is made of.
pub(in crate::cli) struct EthosU<'a> {
    pub(in crate::cli) index: usize,
    pub(in crate::cli) payload: Payload<'a>,
    constant_bytes: usize,
    pub(in crate::cli) needs: Result<DriverNeeds, DriverNeedsError>,
}

/// The ethos-u operators of a network.
pub(in crate::cli) fn ethos_u<'a>(path: &Path, model: &'a Model<'a>) -> Outcome<Vec<EthosU<'a>>> {
    let graph = model.main();
    let operators = graph.operators.iter().filter(|operator| is_ethos_u(operator));
    let parts = |operator: &Operator<'_>| {
        let data = |input: usize| {
            let tensor = operator.inputs.get(input).copied().flatten();
            tensor.and_then(|tensor| model.data(&graph.tensors[tensor])).unwrap_or_default()
        };
        let payload = Payload::parse(data(0)).map_err(|error| {
            Failure::of_file(
                "damaged_tflite",
                path,
                format_args!("{operator}: the command stream's payload: {error}"),
            )
        })?;
        let constant_bytes = data(1).len();
        let needs = needs(model, operator, &payload, constant_bytes);
        Ok(EthosU { index: operator.index, payload, constant_bytes, needs })
    };
    operators.map(parts).collect()
}

pub(super) fn report(path: &Path, bytes: &[u8], model: &Model<'_>, options: &Options) -> Outcome<Report> {
    let graph = model.main();
    let mut programs = Vec::new();
    for EthosU { index, payload, constant_bytes, needs } in ethos_u(path, model)? {
        programs.push(Program {
            index,
            accel: match payload.accelerator() {
                Ok(accelerator) => accelerator.to_string(),
                Err(error) => error.to_string(),
            },
            framing: payload.kind().to_string(),
            architecture: payload.arch_version().to_string(),
            command_bytes: payload.stream().len(),
            constant_bytes,
            staging_bytes: payload.metadata().map(|metadata| metadata.staging_bytes),
            driver: options.settings(path, needs)?,
        });
    }
    let on_cpu = graph.operators.iter().filter(|operator| !is_ethos_u(operator));
    let cpu_operators = on_cpu.map(|operator| {
        let name = operator.outputs.first().map(|&output| graph.tensors[output].name.to_string());
        CpuOperator {
            index: operator.index,
            operator: operator.name().into_owned(),
            name: name.unwrap_or_default(),
        }
    });
    let (memory, obstacle) = match memory(bytes) {
        Ok(memory) => (Some(memory), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let tensors = |indices: &[usize]| indices.iter().map(|&index| Tensor::new(graph, index)).collect();
    Ok(Report {
        kind: "vela_tflite",
        file: path.display().to_string(),
        bytes: bytes.len(),
        inputs: tensors(&graph.inputs),
        outputs: tensors(&graph.outputs),
        programs,
        cpu_operators: cpu_operators.collect(),
        memory,
        obstacle,
    })
}

/// What a driver needs for one operator. Its inputs are the payload, the constants, scratch and fast scratch.
fn needs(
    model: &Model<'_>,
    operator: &Operator<'_>,
    payload: &Payload<'_>,
    constants: usize,
) -> Result<DriverNeeds, DriverNeedsError> {
    let tensor = |input: usize| operator.inputs.get(input).copied().flatten();
    let bytes = |input: usize| {
        let tensor = tensor(input).and_then(|tensor| model.main().tensors[tensor].bytes());
        tensor.map_or(0, |bytes| bytes as u64)
    };
    let (scratch, fast) = (bytes(2), bytes(3));
    // Where there is only one scratch memory, Vela names its tensor twice; its older core, which notes its version, has a second
    // tensor of the same size.
    let is_older_core = model.metadata.iter().any(|note| note.name == "vela_version");
    let shared = tensor(2) == tensor(3) || is_older_core && scratch == fast;
    DriverNeeds::of_payload(payload, constants as u64, scratch, (!shared).then_some(fast))
}

/// What the file takes once it is an `.npub`.
fn memory(bytes: &[u8]) -> Result<MemoryBill, DistilError> {
    let npub = distil::from_vela_tflite(bytes)?.to_npub()?;
    let blob = Blob::parse(&npub).map_err(npub::BuildError::Invalid)?;
    Ok(MemoryBill::of(&blob))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: network compiled by Vela, {} bytes",
            heading(&self.file),
            grouped(self.bytes as u64)
        )?;
        let rows = |role: &str, tensors: &[Tensor]| -> Vec<Vec<String>> {
            tensors.iter().map(|tensor| [vec![role.to_owned()], tensor.cells()].concat()).collect()
        };
        f.write_str(&table(&[rows("input", &self.inputs), rows("output", &self.outputs)].concat(), 2))?;
        for program in &self.programs {
            writeln!(
                f,
                "  operator {}: for {} (architecture {}), {} framing, commands {} bytes, constants {} bytes",
                program.index,
                program.accel,
                program.architecture,
                program.framing,
                grouped(program.command_bytes as u64),
                grouped(program.constant_bytes as u64)
            )?;
            program.driver.fmt(f)?;
        }
        if let Some(memory) = &self.memory {
            writeln!(f, "{}", heading("memory, as an .npub"))?;
            f.write_str(&describe::bill(memory))?;
        }
        if let Some(obstacle) = &self.obstacle {
            writeln!(f, "{}: it makes no .npub: {obstacle}", caution("warning"))?;
        }
        Ok(())
    }
}
