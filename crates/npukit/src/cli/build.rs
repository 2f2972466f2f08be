//! `npukit build`: from a .tflite to an .npub.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use npub::Blob;
use npukit::defects::KnownDefect;
use npukit::emit::{self, Origin};
use npukit::tensor::TensorSpec;
use npukit::{Built, MemoryBill};
use serde::Serialize;

use super::compilation::{Options, Settled};
use super::destination::Destination;
use super::failure::{Failure, Outcome};
use super::progress::Display;
use super::report::{Answer, good};
use super::{describe, report};

/// Compile a .tflite network with Vela and pack it into an .npub
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The quantised network
    #[arg(value_name = "MODEL.tflite", value_hint = ValueHint::FilePath)]
    model: PathBuf,
    #[command(flatten)]
    compilation: Options,
    /// The file to write [default: the model's name with .npub, in the current folder]
    #[arg(short, long, value_name = "OUT.npub", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Write the .npub as a C header too, with descriptions of its tensors
    #[arg(long, value_name = "FILE.h", value_hint = ValueHint::FilePath)]
    emit_c: Option<PathBuf>,
    /// Write the .npub as a Rust module too, with descriptions of its tensors
    #[arg(long, value_name = "FILE.rs", value_hint = ValueHint::FilePath)]
    emit_rust: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    settled: Settled,
    output: String,
    c_header: Option<String>,
    rust_module: Option<String>,
    memory: MemoryBill,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    states: Vec<TensorSpec>,
    vela_estimated_cycles: Option<f64>,
    notes: Vec<String>,
    known_defects: Vec<KnownDefect>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let source = arguments.compilation.source(&arguments.model)?;
    let named = arguments.output.clone().unwrap_or_else(|| {
        Path::new(arguments.model.file_stem().unwrap_or("network".as_ref())).with_extension("npub")
    });
    let output = Destination::check(&named)?;
    let c_header = arguments.emit_c.as_deref().map(Destination::check).transpose()?;
    let rust_module = arguments.emit_rust.as_deref().map(Destination::check).transpose()?;
    apart(&arguments.model, &[Some(&output), c_header.as_ref(), rust_module.as_ref()])?;

    let mut progress = Display::new();
    let (vela, _environment) =
        arguments.compilation.toolchain()?.vela(&mut progress).map_err(Failure::toolchain)?;
    let built = arguments.compilation.build(&vela, &source, &mut progress)?;
    progress.finish();

    let blob = Blob::parse(&built.npub).map_err(|error| Failure::new("not_packable", error))?;
    write_sources(&built, c_header.as_ref(), rust_module.as_ref())?;
    output.write(&built.npub)?;
    source.warn_of_defects();

    let of_kind = |kind| {
        let table = blob.tensors();
        let tensors = table.into_iter().flat_map(|table| table.of_kind(kind));
        tensors.map(|tensor| TensorSpec::from_table(&tensor)).collect()
    };
    let path = |destination: &Destination| destination.path().display().to_string();
    Ok(Answer::yes(Report {
        settled: Settled::new(&source, &built),
        output: path(&output),
        c_header: c_header.as_ref().map(path),
        rust_module: rust_module.as_ref().map(path),
        memory: MemoryBill::of(&blob),
        inputs: of_kind(npub::TensorKind::Input),
        outputs: of_kind(npub::TensorKind::Output),
        states: of_kind(npub::TensorKind::State),
        vela_estimated_cycles: built
            .compiled
            .summary
            .as_ref()
            .and_then(|summary| summary.number("cycles_total")),
        notes: built.notes.clone(),
        known_defects: source.defects,
    }))
}

/// Refuses to write two results to one file, or one over the model.
fn apart(model: &Path, destinations: &[Option<&Destination>]) -> Outcome<()> {
    let mut paths = vec![std::fs::canonicalize(model).unwrap_or_else(|_| model.to_owned())];
    for destination in destinations.iter().flatten() {
        let path = destination.resolved();
        if paths.contains(&path) {
            return Err(Failure::of_file("usage", destination.path(), "is named twice")
                .advise("Give the model and each result a file of its own."));
        }
        // Devices may be named twice: everything can go to /dev/null.
        if !destination.is_special() {
            paths.push(path);
        }
    }
    Ok(())
}

fn write_sources(
    built: &Built,
    c_header: Option<&Destination>,
    rust_module: Option<&Destination>,
) -> Outcome<()> {
    let name = |destination: &Destination| {
        destination.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
    };
    let version = built.compiled.configuration.vela_version.as_str();
    type Emit = fn(&[u8], Origin<'_>) -> Result<String, npub::Error>;
    for (destination, emit) in [(c_header, emit::c_header as Emit), (rust_module, emit::rust_module as Emit)]
    {
        let Some(destination) = destination else { continue };
        let name = name(destination);
        let mut origin = Origin::new(&name);
        origin.vela_version = Some(version);
        let text = emit(&built.npub, origin).map_err(|error| Failure::new("not_packable", error))?;
        destination.write(text.as_bytes())?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settled { model, accel, vela_version, .. } = &self.settled;
        writeln!(f, "{}: {model} for {accel}, compiled by Vela {vela_version}", good(&self.output))?;
        for file in [&self.c_header, &self.rust_module].into_iter().flatten() {
            writeln!(f, "{}: the same as source", good(file))?;
        }
        let inputs = self.inputs.iter().map(|spec| ("input", spec));
        let outputs = self.outputs.iter().map(|spec| ("output", spec));
        let states = self.states.iter().map(|spec| ("state", spec));
        f.write_str(&describe::tensors(inputs.chain(outputs).chain(states)))?;
        f.write_str(&describe::bill(&self.memory))?;
        if let Some(cycles) = self.vela_estimated_cycles {
            writeln!(f, "  Vela estimates {} cycles an inference", describe::grouped(cycles as u64))?;
        }
        for note in &self.notes {
            writeln!(f, "  {}: {note}", report::heading("note"))?;
        }
        Ok(())
    }
}
