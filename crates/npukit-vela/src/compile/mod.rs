//! Runs Vela on a network.
//!
//! [`prepare`] looks at the network first, so that what can't work is refused with its reason before a compiler runs.
//! [`compile`] runs Vela and returns what it wrote; [`build`] also turns that into an `.npub`.
//!
//! ```no_run
//! use npukit_vela::compile::{BuildOptions, build};
//! use npukit_vela::progress::Silent;
//! use npukit_vela::toolchain::Toolchain;
//!
//! let (vela, _environment) = Toolchain::from_environment()?.vela(&mut Silent)?;
//! let options = BuildOptions::new(npukit_vela::Accelerator::U55_128);
//! let built = build(&vela, &std::fs::read("kws.tflite")?, &options, &mut Silent)?;
//! std::fs::write("kws.npub", &built.npub)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cpu;
mod database;
mod error;
mod options;
mod prepare;
mod summary;

use std::fs;
use std::path::Path;
use std::process::Command;

use npub::TensorKind;

use crate::distil::{self, CpuOperator, DistilError};
use crate::interrupt::Folder;
use crate::process::{self, Finished, RunError};
use crate::progress::Progress;
use crate::tflite::Model;
use crate::toolchain::Vela;

pub use crate::distil::IoMode;
pub use database::{DEBUG_DATABASE_ARGUMENT, DebugDatabase, DebugLayer};
pub use error::CompileError;
pub use options::{BuildOptions, Configuration, Optimise, OutputFormat, default_names};
pub use prepare::{Prepared, prepare};
pub use summary::Summary;

/// The network's name in the folder where Vela works. What Vela writes is named after it.
const STEM: &str = "network";
/// The largest extra file that is kept, in bytes.
const EXTRA_FILE_BYTES: u64 = 64 << 20;

/// What Vela made of a network.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// The `_vela.tflite` file or the `.npz` archive, as the options asked.
    pub output: Vec<u8>,
    /// Which of the two.
    pub format: OutputFormat,
    /// The configuration that was used, defaults filled in.
    pub configuration: Configuration,
    /// Vela's own figures, where it left them.
    pub summary: Option<Summary>,
    /// Everything else Vela wrote, by file name: debug databases, per-layer tables.
    pub extra_files: Vec<(String, Vec<u8>)>,
    /// What Vela said on standard output.
    pub stdout: String,
    /// What Vela said on standard error.
    pub stderr: String,
}

/// An `.npub` and how it came about.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Built {
    /// The file.
    pub npub: Vec<u8>,
    /// The network that was compiled: the one given, with an open batch size fixed. Compare with this one.
    pub network: Vec<u8>,
    /// Where inputs and outputs live, which may differ from what was asked for; then a note says why.
    pub io: IoMode,
    /// What a person should know, one sentence each.
    pub notes: Vec<String>,
    /// The program inside the file.
    pub program: distil::Program,
    /// What Vela made.
    pub compiled: Compiled,
}

/// Compiles a network and packs it into an `.npub`.
///
/// # Errors
///
/// [`CompileError`]; [`CompileError::CpuOperators`] is "no", all others are "couldn't".
pub fn build(
    vela: &Vela,
    network: &[u8],
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<Built, CompileError> {
    let prepared = prepare(network)?;
    let mut notes = prepared.notes.clone();
    let mut options = options.clone();
    if options.io == IoMode::Separate && prepared.stateful {
        options.io = IoMode::Arena;
        notes.push(
            "the network keeps state, so its inputs and outputs live in the arena (--io arena), where the states are"
                .to_owned(),
        );
    }
    let (compiled, program) = match once(vela, &prepared, &options, progress) {
        Err(CompileError::Distil(DistilError::MixedPlaces { .. })) => {
            options.io = IoMode::Arena;
            let (compiled, program) = once(vela, &prepared, &options, progress)?;
            let unused = program
                .tensors
                .iter()
                .filter(|tensor| tensor.kind == TensorKind::Input && tensor.place.is_none());
            let unused: Vec<String> = unused.map(|tensor| format!("'{}'", tensor.name)).collect();
            notes.push(format!(
                "the network doesn't use its input {}; Vela 5.2.0 then mixes up the places of separate inputs, so inputs \
                 and outputs live in the arena (--io arena)",
                unused.join(", ")
            ));
            (compiled, program)
        }
        other => other?,
    };
    program.check_accelerator(options.accelerator)?;
    let npub = program.to_npub()?;
    Ok(Built { npub, network: prepared.network, io: program.io, notes, program, compiled })
}

/// Compiles a network.
///
/// # Errors
///
/// [`CompileError`]. Operators on the CPU are no error here: a `.tflite` holds them as well.
pub fn compile(
    vela: &Vela,
    network: &[u8],
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<Compiled, CompileError> {
    run(vela, &prepare(network)?, options, progress)
}

fn once(
    vela: &Vela,
    prepared: &Prepared,
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<(Compiled, distil::Program), CompileError> {
    let compiled = run(vela, prepared, options, progress)?;
    let program = match compiled.format {
        OutputFormat::Tflite => distil::from_vela_tflite(&compiled.output),
        OutputFormat::Raw => distil::from_raw(&compiled.output, &prepared.network),
    };
    match program {
        Ok(program) => Ok((compiled, program)),
        Err(error) => Err(explain(error, prepared, &compiled)),
    }
}

fn run(
    vela: &Vela,
    prepared: &Prepared,
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<Compiled, CompileError> {
    let configuration = options.configuration(vela)?;
    let folder = Folder::new("npukit-vela-").map_err(CompileError::Temporary)?;
    let network = folder.path().join(format!("{STEM}.tflite"));
    let output = folder.path().join("output");
    fs::write(&network, &prepared.network).map_err(CompileError::Temporary)?;

    let mut command = vela.command();
    options.arguments(&configuration, folder.path(), &mut command)?;
    command.arg("--output-dir").arg(&output).arg(&network);
    command.args(&options.vela_arguments);
    // A relative path in a passed-through argument means the caller's folder, so Vela runs there.
    progress.step(&format!("compiling for {} with Vela {}", configuration.accelerator, vela.version()));
    let done = finish(command, options, progress)?;
    let left = read_output(&output, options.output_format)?;
    match (done.status.success(), left.network) {
        (true, Some(bytes)) => Ok(Compiled {
            output: bytes,
            format: options.output_format,
            configuration,
            summary: left.summary,
            extra_files: left.others,
            stdout: done.stdout,
            stderr: done.stderr,
        }),
        (true, None) => Err(CompileError::NoOutput { last_words: done.last_words() }),
        (false, _) => Err(failure(&done, prepared)),
    }
}

fn finish(
    command: Command,
    options: &BuildOptions,
    progress: &mut dyn Progress,
) -> Result<Finished, CompileError> {
    let program = command.get_program().to_owned();
    process::run(command, Some(options.time_limit), &mut |line| {
        if !line.trim().is_empty() {
            progress.detail(line);
        }
    })
    .map_err(|error| match error {
        RunError::Start(source) | RunError::Wait(source) => {
            CompileError::Start { program: program.to_string_lossy().into_owned(), source }
        }
        RunError::TimedOut { after, last_words } => CompileError::TimedOut { after, last_words },
    })
}

/// What a failed run says. The raw writer refuses operators on the CPU; those are named.
fn failure(done: &Finished, prepared: &Prepared) -> CompileError {
    let output = format!("{}\n{}", done.stdout, done.stderr);
    if output.contains("without passthrough/CPU operations") {
        let reasons = cpu::reasons(&output);
        if let Ok(model) = Model::parse(&prepared.network) {
            let operators = cpu::from_reasons(model.main(), &reasons);
            if !operators.is_empty() {
                return CompileError::CpuOperators(operators);
            }
        }
    }
    CompileError::Failed {
        ending: process::ending(done.status),
        last_words: error::without_traceback(&done.last_words()),
    }
}

/// Adds to a refusal what only the original network and Vela's messages tell.
fn explain(error: DistilError, prepared: &Prepared, compiled: &Compiled) -> CompileError {
    let left = match &error {
        DistilError::CpuOperators(_) | DistilError::NotCompiled | DistilError::SeveralPrograms { .. } => {
            left_on_cpu(prepared, compiled)
        }
        _ => Vec::new(),
    };
    if left.is_empty() { CompileError::Distil(error) } else { CompileError::CpuOperators(left) }
}

/// The operators that a `_vela.tflite` leaves to the CPU, with their positions in the network that went in.
fn left_on_cpu(prepared: &Prepared, compiled: &Compiled) -> Vec<CpuOperator> {
    let (Ok(before), Ok(after)) = (Model::parse(&prepared.network), Model::parse(&compiled.output)) else {
        return Vec::new();
    };
    cpu::left(&before, &after, &cpu::reasons(&format!("{}\n{}", compiled.stdout, compiled.stderr)))
}

/// What Vela left in its output folder.
struct Left {
    network: Option<Vec<u8>>,
    summary: Option<Summary>,
    others: Vec<(String, Vec<u8>)>,
}

fn read_output(folder: &Path, format: OutputFormat) -> Result<Left, CompileError> {
    let mut left = Left { network: None, summary: None, others: Vec::new() };
    let Ok(entries) = fs::read_dir(folder) else { return Ok(left) };
    for entry in entries {
        let entry = entry.map_err(CompileError::Temporary)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let size = entry.metadata().map_err(CompileError::Temporary)?.len();
        let read = || fs::read(entry.path()).map_err(CompileError::Temporary);
        if name == format!("{STEM}_vela.{}", format.extension()) {
            // A compiler that is killed while it writes leaves a file without content.
            left.network = Some(read()?).filter(|bytes| !bytes.is_empty());
        } else if name.starts_with(&format!("{STEM}_summary_")) {
            left.summary = Summary::parse(&String::from_utf8_lossy(&read()?));
        } else if size <= EXTRA_FILE_BYTES {
            left.others.push((name, read()?));
        }
    }
    left.others.sort();
    Ok(left)
}
