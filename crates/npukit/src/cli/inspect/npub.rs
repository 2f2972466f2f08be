//! What is in an `.npub`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ethosu_isa::Decoder;
use npub::{Arena, Blob};
use npukit::MemoryBill;
use npukit::driver::DriverNeeds;
use npukit::tensor::{self, TensorSpec};
use serde::Serialize;

use super::driver::{Known, Options};
use crate::cli::describe;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::report::{caution, heading, table};

#[derive(Serialize)]
pub(super) struct Report {
    kind: &'static str,
    file: String,
    header: Header,
    accel: String,
    framing: String,
    regions: Vec<Region>,
    tensors: Vec<Tensor>,
    memory: MemoryBill,
    /// Operations of the command stream, by name; `None` where it can't be read.
    operations: Option<BTreeMap<&'static str, usize>>,
    /// What a driver has to be set up with.
    driver: Known,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Header {
    version: u32,
    total_bytes: u32,
    region_count: u32,
    cmd_offset: u32,
    cmd_bytes: u32,
    accel: u32,
    checksum: u32,
}

#[derive(Serialize)]
struct Region {
    slot: usize,
    role: String,
    flags: String,
    bytes: u32,
    data_offset: u32,
}

#[derive(Serialize)]
struct Tensor {
    kind: String,
    #[serde(flatten)]
    spec: TensorSpec,
    bytes: u32,
    region: Option<u8>,
    offset: Option<u32>,
    fed_from: Option<u32>,
}

impl Report {
    /// Whether it can run with what was asked for.
    pub(super) fn is_yes(&self) -> bool {
        !self.driver.is_no()
    }
}

pub(super) fn report(path: &Path, bytes: &[u8], options: &Options) -> Outcome<Report> {
    let blob = Blob::parse(bytes).map_err(|error| Failure::network(path, error.into()))?;
    let header = blob.header();
    let regions = blob.regions().iter().enumerate().map(|(slot, region)| Region {
        slot,
        role: region.role.to_string(),
        flags: region.flags.to_string(),
        bytes: region.size,
        data_offset: region.data_offset,
    });
    let tensors = blob.tensors().into_iter().flat_map(|table| table.iter()).map(|tensor| Tensor {
        kind: tensor.kind.to_string(),
        spec: TensorSpec::from_table(&tensor),
        bytes: tensor.size,
        region: tensor.place.map(|place| place.region),
        offset: tensor.place.map(|place| place.offset),
        fed_from: tensor.fed_from,
    });
    Ok(Report {
        kind: "npub",
        file: path.display().to_string(),
        header: Header {
            version: npub::layout::VERSION,
            total_bytes: header.total_bytes,
            region_count: header.region_count,
            cmd_offset: header.cmd_offset,
            cmd_bytes: header.cmd_bytes,
            accel: header.accel.word(),
            checksum: header.checksum,
        },
        accel: blob.accel().to_string(),
        framing: blob.command_stream().framing().to_string(),
        regions: regions.collect(),
        tensors: tensors.collect(),
        memory: MemoryBill::of(&blob),
        operations: operations(&blob),
        driver: options.settings(path, DriverNeeds::of_blob(&blob))?,
        warnings: warnings(&blob),
    })
}

/// How often the commands do what.
fn operations(blob: &Blob<'_>) -> Option<BTreeMap<&'static str, usize>> {
    let accelerator = npukit::accelerator_of(blob)?;
    let mut counts = BTreeMap::new();
    for instruction in Decoder::new(blob.command_stream().bytes(), accelerator.product()) {
        let command = instruction.ok()?.command;
        if command.is_operation() {
            *counts.entry(command.name()).or_default() += 1;
        }
    }
    Some(counts)
}

/// What a device may stumble on.
fn warnings(blob: &Blob<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    // At an aligned address, what is misaligned is so inside the blob.
    if let Ok(job) = blob.bind(0, Arena { base: 0, bytes: blob.arena_bytes() }, None) {
        for place in job.misaligned() {
            warnings.push(format!("{place}, even where the blob itself is aligned: the NPU won't take it"));
        }
    }
    if blob.tensors().is_none() {
        warnings.push("it has no tensor table: what its inputs and outputs are isn't known".to_owned());
    }
    for (slot, region) in blob.regions().iter().enumerate() {
        if region.flags.unknown() != 0 {
            warnings.push(format!("region {slot} has flags without a meaning: {}", region.flags));
        }
    }
    warnings
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { version, total_bytes, region_count, cmd_offset, cmd_bytes, checksum, .. } = &self.header;
        writeln!(f, "{}: NPU1 blob, version {version}, for {}", heading(&self.file), self.accel)?;
        writeln!(
            f,
            "  {} bytes, {region_count} regions, checksum {checksum:#010x}; commands: {} bytes at {cmd_offset:#x}, {}",
            describe::grouped((*total_bytes).into()),
            describe::grouped((*cmd_bytes).into()),
            self.framing
        )?;
        if let Some(operations) = &self.operations {
            let all: Vec<String> = operations.iter().map(|(name, count)| format!("{count} {name}")).collect();
            writeln!(f, "  operations: {}", all.join(", "))?;
        }
        writeln!(f, "{}", heading("tensors"))?;
        let rows: Vec<Vec<String>> = self
            .tensors
            .iter()
            .map(|tensor| {
                let place = match (tensor.region, tensor.offset) {
                    (Some(region), Some(offset)) => format!("region {region} at {offset:#x}"),
                    _ => "not read".to_owned(),
                };
                let quantisation = match (tensor.spec.scale, tensor.spec.zero_point) {
                    (Some(scale), Some(zero_point)) => format!("scale {scale}, zero point {zero_point}"),
                    _ => String::new(),
                };
                let source =
                    tensor.fed_from.map(|index| format!("fed from tensor {index}")).unwrap_or_default();
                vec![
                    tensor.kind.clone(),
                    describe::name(&tensor.spec.name),
                    tensor.spec.dtype.to_string(),
                    tensor::text(&tensor.spec.shape),
                    place,
                    quantisation,
                    source,
                ]
            })
            .collect();
        f.write_str(&table(&rows, 2))?;
        writeln!(f, "{}", heading("memory"))?;
        f.write_str(&describe::bill(&self.memory))?;
        self.driver.fmt(f)?;
        for warning in &self.warnings {
            writeln!(f, "{}: {warning}", caution("warning"))?;
        }
        Ok(())
    }
}
