//! `npukit profile`: how long an inference takes on the NPU, and where the time goes.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use ethosu_driver::placement::MemoryMode;
use ethosu_model::clock::{Port, System};
use ethosu_model::{Limits, Program};
use npub::Blob;
use npukit::driver::DriverNeeds;
use npukit::profile::{Clock, Profile, Step, port_name};
use npukit::{Accelerator, NetworkError, clock};
use npukit_vela::compile::{DEBUG_DATABASE_ARGUMENT, DebugDatabase, default_names};
use npukit_vela::ini::VelaIni;
use serde::Serialize;

use super::compilation::Options;
use super::describe::{grouped, name};
use super::destination::Destination;
use super::failure::{Failure, Outcome};
use super::inspect::Kind;
use super::progress::Display;
use super::report::{Answer, good, heading};

/// Say how long an inference takes on the NPU and where the time goes, from the commands alone
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A compiled network, or a .tflite to compile first
    #[arg(value_name = "FILE.npub|MODEL.tflite", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Whose time: sim, what a real NPU would take, or compiler, what Vela would say
    #[arg(long, value_name = "CLOCK", default_value_t)]
    clock: Clock,
    /// Write a trace of one inference, for Perfetto or chrome://tracing
    #[arg(long, value_name = "OUT.json", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    // Last, so that its heading isn't above the others.
    #[command(flatten)]
    compilation: Options,
}

#[derive(Serialize)]
struct Report {
    file: String,
    system_config: String,
    memory_mode: String,
    #[serde(flatten)]
    profile: Profile,
    /// Vela's own total, where it was compiled here.
    vela_estimated_cycles: Option<u64>,
    trace: Option<String>,
}

/// A program and the system that it runs in.
struct Subject {
    program: Program,
    system: System,
    names: (String, String),
    database: Option<DebugDatabase>,
    vela_estimated_cycles: Option<u64>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let bytes = fs::read(path).map_err(|error| Failure::reading(path, &error))?;
    let destination = arguments.trace.as_deref().map(Destination::check).transpose()?;
    if let Some(destination) = &destination {
        apart(arguments, destination)?;
    }
    let subject = match Kind::of(&bytes) {
        Some(Kind::Npub) => packed(arguments, &bytes)?,
        // What is neither is refused where a network is read.
        _ => compiled(arguments)?,
    };
    let profile = Profile::new(&subject.program, &subject.system, arguments.clock, subject.database.as_ref())
        .map_err(|error| Failure::of_file("not_executable", path, error))?;
    if let Some(destination) = &destination {
        let title = path.file_name().unwrap_or_default().to_string_lossy();
        destination.write(format!("{}\n", profile.trace(&title)).as_bytes())?;
    }
    let (system_config, memory_mode) = subject.names;
    Ok(Answer::yes(Report {
        file: path.display().to_string(),
        system_config,
        memory_mode,
        profile,
        vela_estimated_cycles: subject.vela_estimated_cycles,
        trace: destination.map(|destination| destination.path().display().to_string()),
    }))
}

/// Refuses to write the trace over what it is made from.
fn apart(arguments: &Arguments, destination: &Destination) -> Outcome<()> {
    let resolved = destination.resolved();
    let read = [Some(arguments.file.as_path()), arguments.compilation.vela_config()];
    let overwritten = read
        .into_iter()
        .flatten()
        .any(|file| !destination.is_special() && fs::canonicalize(file).is_ok_and(|file| file == resolved));
    if overwritten {
        return Err(Failure::of_file("usage", destination.path(), "is read and written")
            .advise("Give the trace a file of its own."));
    }
    Ok(())
}

/// A blob, in the system that the options name, or the one that it would be compiled for without any.
fn packed(arguments: &Arguments, bytes: &[u8]) -> Outcome<Subject> {
    let path = &arguments.file;
    let blob = Blob::parse(bytes).map_err(|error| Failure::network(path, error.into()))?;
    let options = &arguments.compilation;
    let accelerator =
        accelerator(&blob, options.named_accel()).map_err(|error| Failure::network(path, error))?;
    let program = Program::decode(blob.command_stream().bytes(), accelerator, &Limits::default())
        .map_err(|error| Failure::network(path, error.into()))?;
    let default = default_names(accelerator.product());
    let (system_config, memory_mode) =
        (options.system_config().unwrap_or(default.0), options.memory_mode().unwrap_or(default.1));
    // In an own file a name may mean something else.
    if options.vela_config().is_none() {
        fits(path, &blob, memory_mode)?;
    }
    let system = if options.names_nothing() {
        System::usual(accelerator)
    } else {
        let file = match options.vela_config() {
            Some(file) => read_ini(file)?,
            None => {
                let mut progress = Display::new();
                let (vela, _environment) =
                    options.toolchain()?.vela(&mut progress).map_err(Failure::toolchain)?;
                progress.finish();
                vela.configurations().map_err(Failure::toolchain)?
            }
        };
        system(&file, options.vela_config(), accelerator, system_config, memory_mode)?
    };
    let names = (system_config.to_owned(), memory_mode.to_owned());
    Ok(Subject { program, system, names, database: None, vela_estimated_cycles: None })
}

/// What the blob is for, or where it doesn't say, what the user says.
fn accelerator(blob: &Blob<'_>, named: Option<Accelerator>) -> Result<Accelerator, NetworkError> {
    let found = blob.accel();
    match (npukit::accelerator_of(blob), named) {
        (Some(stated), Some(expected)) if stated != expected => {
            Err(NetworkError::OtherAccelerator { found, expected })
        }
        (Some(stated), _) => Ok(stated),
        (None, _) if found.is_known() => Err(NetworkError::NoSuchAccelerator { found }),
        (None, named) => named.ok_or(NetworkError::UnknownAccelerator),
    }
}

/// Refuses a memory mode that the blob can't have been compiled with.
fn fits(path: &Path, blob: &Blob<'_>, memory_mode: &str) -> Outcome<()> {
    let (Some(mode), Ok(needs)) = (MemoryMode::from_name(memory_mode), DriverNeeds::of_blob(blob)) else {
        return Ok(());
    };
    let Some(excluded) = needs.routings(Some(mode), None).excluded_modes.into_iter().next() else {
        return Ok(());
    };
    let fitting = needs.routings(None, None).memory_modes;
    let fitting: Vec<&str> = fitting.iter().map(|routing| routing.memory_mode).collect();
    let message = format_args!("it can't have been compiled with {memory_mode}: {}", excluded.reason);
    Err(Failure::of_file("configuration", path, message)
        .advise(format!("Name the memory mode with --memory-mode: {}.", fitting.join(", "))))
}

/// Compiles a network and has its layers named.
fn compiled(arguments: &Arguments) -> Outcome<Subject> {
    let path = &arguments.file;
    let options = &arguments.compilation;
    let source = options.source(path)?;
    source.warn_of_defects();
    let mut progress = Display::new();
    let (vela, _environment) = options.toolchain()?.vela(&mut progress).map_err(Failure::toolchain)?;
    let built = options.build_with(&vela, &source, &[DEBUG_DATABASE_ARGUMENT], &mut progress)?;
    progress.finish();
    let configuration = &built.compiled.configuration;
    let file = match &configuration.vela_config {
        Some(file) => read_ini(file)?,
        None => vela.configurations().map_err(Failure::toolchain)?,
    };
    let accelerator = configuration.accelerator;
    let (system_config, memory_mode) = (&configuration.system_config, &configuration.memory_mode);
    let system =
        system(&file, configuration.vela_config.as_deref(), accelerator, system_config, memory_mode)?;
    let program = Program::decode(&built.program.commands, accelerator, &Limits::default())
        .map_err(|error| Failure::network(path, error.into()))?;
    let cycles = built.compiled.summary.as_ref().and_then(|summary| summary.number("cycles_total"));
    Ok(Subject {
        program,
        system,
        names: (system_config.clone(), memory_mode.clone()),
        database: DebugDatabase::of(&built.compiled),
        vela_estimated_cycles: cycles.map(|cycles| cycles as u64),
    })
}

fn read_ini(path: &Path) -> Outcome<VelaIni> {
    let text = fs::read_to_string(path).map_err(|error| Failure::reading(path, &error))?;
    VelaIni::parse(&text).map_err(|error| Failure::of_file("configuration", path, error))
}

/// The system that a configuration file describes.
fn system(
    file: &VelaIni,
    path: Option<&Path>,
    accelerator: Accelerator,
    system_config: &str,
    memory_mode: &str,
) -> Outcome<System> {
    clock::system(file, system_config, memory_mode).map_err(|error| {
        let advice = match (path, &error) {
            (None, clock::SystemError::CoreClock { .. }) => {
                "An own Vela only tells the names of its configurations: name its file with --vela-config.".to_owned()
            }
            _ => {
                let sections = [file.system_configs(), file.memory_modes()].map(|names| names.join(", "));
                let [systems, modes] = sections;
                format!("For {accelerator} name one of its system configurations ({systems}) and memory modes ({modes}).")
            }
        };
        match path {
            Some(path) => Failure::of_file("configuration", path, error),
            None => Failure::new("configuration", format_args!("Vela's configuration file: {error}")),
        }
        .advise(advice)
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Profile { accel, clock, accuracy, .. } = &self.profile;
        let profile = &self.profile;
        writeln!(
            f,
            "{} on {accel}: {} cycles, {:.3} ms at {} MHz (clock {clock})",
            heading(&self.file),
            grouped(profile.total_cycles),
            profile.milliseconds,
            profile.core_clock_hz / 1e6
        )?;
        writeln!(f, "  {}, {}", self.system_config, self.memory_mode)?;
        writeln!(
            f,
            "  {} multiply-accumulates, {:.1} % of what its MACs could do in that time",
            grouped(profile.macs),
            100.0 * profile.mac_utilisation
        )?;
        let [axi0, axi1] = ports(profile);
        writeln!(
            f,
            "  words of {} bytes: {axi0} read {}, written {}; {axi1} read {}, written {}",
            profile.beat_bytes,
            grouped(profile.beats.axi0_read),
            grouped(profile.beats.axi0_written),
            grouped(profile.beats.axi1_read),
            grouped(profile.beats.axi1_written)
        )?;
        if let Some(cycles) = self.vela_estimated_cycles {
            writeln!(f, "  Vela itself says {} cycles", grouped(cycles))?;
        }
        writeln!(f, "  {}: {accuracy}", heading("how far to believe it"))?;
        f.write_str(&steps(profile))?;
        if let Some(trace) = &self.trace {
            writeln!(f, "{}: a trace for Perfetto", good(trace))?;
        }
        Ok(())
    }
}

fn ports(profile: &Profile) -> [&'static str; 2] {
    Port::ALL.map(|port| port_name(port, profile.accelerator().product()))
}

/// A row for each command or layer. Numbers stand right, and zeros are left out.
fn steps(profile: &Profile) -> String {
    let [axi0, axi1] = ports(profile);
    let named = profile.steps.iter().any(|step| step.layer.is_some());
    let mut head: Vec<String> =
        ["offset", "cycles", "%", "MAC", "output", "weights", "DMA"].map(str::to_owned).into();
    for port in [axi0, axi1] {
        head.extend([format!("{port} rd"), "wr".to_owned()]);
    }
    let numbers = head.len();
    head.extend(["command", "bound by"].map(str::to_owned));
    head.extend(named.then(|| "layer".to_owned()));
    let count = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let row = |step: &Step| {
        let mut row = vec![
            format!("{:#x}", step.offset),
            step.cycles.to_string(),
            format!("{:.1}", step.percent),
            count(step.mac_cycles),
            count(step.output_cycles),
            count(step.weight_decoder_cycles),
            count(step.dma_cycles),
            count(step.beats.axi0_read),
            count(step.beats.axi0_written),
            count(step.beats.axi1_read),
            count(step.beats.axi1_written),
            step.command.to_owned(),
            step.bound_by.clone(),
        ];
        row.extend(step.layer.as_deref().map(name));
        row
    };
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(profile.steps.iter().map(row)).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::from(" ");
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &if column < numbers { format!(" {cell:>width$}") } else { format!("  {cell:<width$}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
