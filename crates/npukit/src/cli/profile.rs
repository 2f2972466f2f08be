//! `npukit profile`: how long an inference takes on the NPU, and where the time goes.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use ethosu_driver::placement::{MemoryMode, SystemConfig};
use ethosu_model::clock::{Port, System};
use ethosu_model::{Limits, Program};
use npub::Blob;
use npukit::driver::DriverNeeds;
use npukit::profile::{Clock, Profile, Step, port_name};
use npukit::{Accelerator, NetworkError, clock};
use npukit_vela::compile::{DEBUG_DATABASE_ARGUMENT, DebugDatabase, default_names};
use npukit_vela::ini::{IniError, VelaIni};
use npukit_vela::tflite::Model;
use serde::Serialize;
use serde_json::Value;

use super::compilation::{Options, SystemOptions};
use super::describe::{grouped, name};
use super::destination::Destination;
use super::failure::{Failure, Outcome};
use super::inspect::Kind;
use super::inspect::compiled::{EthosU, ethos_u};
use super::placement;
use super::progress::Display;
use super::report::{Answer, caution, count, good, heading};

/// Say how long an inference takes on the NPU and where the time goes, from the commands alone
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A compiled network, or a .tflite to compile first
    #[arg(value_name = "FILE.npub|FILE_vela.tflite|MODEL.tflite", value_hint = ValueHint::FilePath)]
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
    /// Of a network that npukit or the user put into an `.npub`.
    #[serde(flatten)]
    one: Profiled,
    trace: Option<String>,
}

/// What a `_vela.tflite` has.
#[derive(Serialize)]
struct Several {
    file: String,
    programs: Vec<Profiled>,
    /// How many operators are left to the CPU, whose time isn't known.
    cpu_operator_count: usize,
    trace: Option<String>,
}

/// One program's figures.
#[derive(Serialize)]
struct Profiled {
    /// Which operator of a `_vela.tflite` it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    system_config: String,
    memory_mode: String,
    #[serde(flatten)]
    profile: Profile,
    /// Vela's own total, where it was compiled here.
    vela_estimated_cycles: Option<u64>,
}

/// A program and the system that it runs in.
struct Subject {
    index: Option<usize>,
    program: Program,
    system: System,
    names: (String, String),
    database: Option<DebugDatabase>,
    vela_estimated_cycles: Option<u64>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| Failure::reading(path, &error))?;
    let destination = arguments.trace.as_deref().map(Destination::check).transpose()?;
    if let Some(destination) = &destination {
        apart(arguments, destination)?;
    }
    let file = path.display().to_string();
    let trace = destination.as_ref().map(|destination| destination.path().display().to_string());
    if Kind::of(&bytes) == Some(Kind::Npub) {
        let one = profiled(arguments, packed(arguments, &bytes)?)?;
        write_trace(arguments, destination.as_ref(), std::slice::from_ref(&one))?;
        return Ok(Answer::yes(Report { file, one, trace }));
    }
    match Model::parse(&bytes) {
        Ok(model) if model.is_compiled() => {
            let programs = payloads(arguments, &model)?;
            let programs: Vec<Profiled> =
                programs.into_iter().map(|subject| profiled(arguments, subject)).collect::<Outcome<_>>()?;
            write_trace(arguments, destination.as_ref(), &programs)?;
            let cpu_operator_count = model.main().operators.len() - programs.len();
            Ok(Answer::yes(Several { file, programs, cpu_operator_count, trace }))
        }
        // What is neither is refused where a network is read.
        _ => {
            let one = profiled(arguments, compiled(arguments, bytes)?)?;
            write_trace(arguments, destination.as_ref(), std::slice::from_ref(&one))?;
            Ok(Answer::yes(Report { file, one, trace }))
        }
    }
}

fn profiled(arguments: &Arguments, subject: Subject) -> Outcome<Profiled> {
    let database = subject.database.as_ref();
    let profile = Profile::new(&subject.program, &subject.system, arguments.clock, database)
        .map_err(|error| Failure::of_file("not_executable", &arguments.file, error))?;
    let (system_config, memory_mode) = subject.names;
    let vela_estimated_cycles = subject.vela_estimated_cycles;
    Ok(Profiled { index: subject.index, system_config, memory_mode, profile, vela_estimated_cycles })
}

/// One trace of all programs, each a process of its own.
fn write_trace(
    arguments: &Arguments,
    destination: Option<&Destination>,
    programs: &[Profiled],
) -> Outcome<()> {
    let Some(destination) = destination else { return Ok(()) };
    let title = arguments.file.file_name().unwrap_or_default().to_string_lossy();
    let traces = programs.iter().map(|one| match one.index {
        Some(index) => one.profile.trace(&format!("{title}, operator {index}")),
        None => one.profile.trace(&title),
    });
    let whole = traces.enumerate().reduce(|(_, mut whole), (number, mut trace)| {
        let more = trace.get_mut("traceEvents").and_then(Value::as_array_mut).map(std::mem::take);
        if let Some(events) = whole.get_mut("traceEvents").and_then(Value::as_array_mut) {
            for mut event in more.unwrap_or_default() {
                event["pid"] = (number + 1).into();
                events.push(event);
            }
        }
        (0, whole)
    });
    let (_, whole) = whole.unwrap_or_default();
    destination.write(format!("{whole}\n").as_bytes())
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
    options.only_for_compiling(path, SystemOptions::Meant)?;
    let accelerator =
        accelerator(&blob, options.named_accel()).map_err(|error| Failure::network(path, error))?;
    let program = Program::decode(blob.command_stream().bytes(), accelerator, &Limits::default())
        .map_err(|error| Failure::network(path, error.into()))?;
    let needs = DriverNeeds::of_blob_for(&blob, accelerator);
    let systems = Systems::of(options)?;
    let (system, names) =
        systems.system(path, systems.names(options, accelerator), accelerator, needs.ok().as_ref())?;
    Ok(Subject { index: None, program, system, names, database: None, vela_estimated_cycles: None })
}

/// Each ethos-u operator of a network that Vela has compiled.
fn payloads(arguments: &Arguments, model: &Model<'_>) -> Outcome<Vec<Subject>> {
    let path = &arguments.file;
    let options = &arguments.compilation;
    options.only_for_compiling(path, SystemOptions::Meant)?;
    let operators = ethos_u(path, model)?;
    if operators.is_empty() {
        return Err(Failure::of_file("not_executable", path, "its main graph has no ethos-u operator"));
    }
    let systems = Systems::of(options)?;
    let subject = |operator: EthosU<'_>| {
        let index = operator.index;
        let stopped = |problem: &dyn fmt::Display| {
            Failure::of_file("not_executable", path, format_args!("operator {index}: {problem}"))
        };
        let accelerator = operator.payload.accelerator().map_err(|error| stopped(&error))?;
        if let Some(expected) = options.named_accel().filter(|named| *named != accelerator) {
            let message =
                format_args!("operator {index}: it was compiled for {accelerator}, not for {expected}");
            return Err(Failure::of_file("other_accelerator", path, message)
                .advise("Compile the network for the NPU that is there."));
        }
        let program = Program::decode(operator.payload.stream(), accelerator, &Limits::default())
            .map_err(|error| stopped(&error))?;
        let (system, names) = systems.system(
            path,
            systems.names(options, accelerator),
            accelerator,
            operator.needs.ok().as_ref(),
        )?;
        Ok(Subject {
            index: Some(index),
            program,
            system,
            names,
            database: None,
            vela_estimated_cycles: None,
        })
    };
    operators.into_iter().map(subject).collect()
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

/// Compiles a network and has its layers named.
fn compiled(arguments: &Arguments, bytes: Vec<u8>) -> Outcome<Subject> {
    let path = &arguments.file;
    let options = &arguments.compilation;
    // In an own file a name may mean something else.
    let named = options.system_config().filter(|_| options.vela_config().is_none());
    if let Some(system) = named.and_then(SystemConfig::from_name) {
        placement::fits_product(path, options.accel(), system)?;
    }
    let source = options.source_of(path, bytes)?;
    source.warn_of_defects();
    let mut progress = Display::new();
    let (vela, _environment) = options.toolchain()?.vela(&mut progress).map_err(Failure::toolchain)?;
    let built = options.build_with(&vela, &source, &[DEBUG_DATABASE_ARGUMENT], &mut progress)?;
    progress.finish();
    let configuration = &built.compiled.configuration;
    let own = configuration.vela_config.as_deref().zip(configuration.vela_config_text.as_deref());
    let systems = match own {
        Some((file, text)) => Systems::Own { path: file, file: parse_ini(file, text)? },
        None => Systems::Velas(vela.configurations().map_err(Failure::toolchain)?),
    };
    let accelerator = configuration.accelerator;
    let names = (configuration.system_config.as_str(), configuration.memory_mode.as_str());
    let blob = Blob::parse(&built.npub).map_err(|error| Failure::new("not_packable", error))?;
    let needs = DriverNeeds::of_blob(&blob);
    let (system, names) = systems.system(path, names, accelerator, needs.ok().as_ref())?;
    let program = Program::decode(&built.program.commands, accelerator, &Limits::default())
        .map_err(|error| Failure::network(path, error.into()))?;
    let cycles = built.compiled.summary.as_ref().and_then(|summary| summary.number("cycles_total"));
    Ok(Subject {
        index: None,
        program,
        system,
        names,
        database: DebugDatabase::of(&built.compiled),
        vela_estimated_cycles: cycles.map(|cycles| cycles as u64),
    })
}

fn parse_ini(path: &Path, text: &str) -> Outcome<VelaIni> {
    VelaIni::parse(text).map_err(|error| Failure::of_file("configuration", path, error))
}

/// Where the figures of a system come from.
enum Systems<'a> {
    /// From the clocks: no configuration is named.
    Usual,
    /// From the file that comes with Vela.
    Velas(VelaIni),
    /// From an own file.
    Own { path: &'a Path, file: VelaIni },
}

impl<'a> Systems<'a> {
    /// The one that the options name.
    fn of(options: &'a Options) -> Outcome<Systems<'a>> {
        if let Some(path) = options.vela_config() {
            let text = npukit_files::read_text(path).map_err(|error| Failure::reading(path, &error))?;
            let file = parse_ini(path, &text)?;
            for (kind, known) in
                [("System_Config", file.system_configs()), ("Memory_Mode", file.memory_modes())]
            {
                if known.is_empty() {
                    let message = format_args!("it has no section [{kind}.NAME]");
                    return Err(Failure::of_file("configuration", path, message));
                }
            }
            return Ok(Systems::Own { path, file });
        }
        if options.names_nothing() {
            return Ok(Systems::Usual);
        }
        let mut progress = Display::new();
        let (vela, _environment) = options.toolchain()?.vela(&mut progress).map_err(Failure::toolchain)?;
        progress.finish();
        Ok(Systems::Velas(vela.configurations().map_err(Failure::toolchain)?))
    }

    /// The names that are meant: those of the options, else Vela's defaults, else the only ones that an own file has, as where a
    /// network is compiled.
    fn names<'n>(&'n self, options: &'n Options, accelerator: Accelerator) -> (&'n str, &'n str) {
        let (system, mode) = default_names(accelerator.product());
        let choose = |named: Option<&'n str>, default: &'n str, known: Vec<&'n str>| match known[..] {
            [only] => named.unwrap_or(only),
            _ => named.unwrap_or(default),
        };
        let (systems, modes) = match self {
            Systems::Own { file, .. } => (file.system_configs(), file.memory_modes()),
            Systems::Usual | Systems::Velas(_) => (Vec::new(), Vec::new()),
        };
        (choose(options.system_config(), system, systems), choose(options.memory_mode(), mode, modes))
    }

    /// The system of a compiled network, which it can have been compiled for, and its names.
    fn system(
        &self,
        path: &Path,
        (system_name, mode_name): (&str, &str),
        accelerator: Accelerator,
        needs: Option<&DriverNeeds>,
    ) -> Outcome<(System, (String, String))> {
        let system = match self {
            Systems::Own { file, .. } => {
                let system = self.named(accelerator, system_name, mode_name)?;
                if let (Some(needs), Ok((ports, mode))) = (needs, file.system(system_name, mode_name)) {
                    placement::fits_own(path, needs, (mode_name, &mode), &ports)?;
                }
                system
            }
            Systems::Usual | Systems::Velas(_) => {
                // Names that an own Vela has besides are looked for in its file.
                if let Some(system) = SystemConfig::from_name(system_name) {
                    placement::fits_product(path, accelerator, system)?;
                    if let (Some(needs), Some(mode)) = (needs, MemoryMode::from_name(mode_name)) {
                        placement::fits(path, needs, mode, system)?;
                    }
                }
                self.named(accelerator, system_name, mode_name)?
            }
        };
        Ok((system, (system_name.to_owned(), mode_name.to_owned())))
    }

    /// The figures of these sections.
    fn named(&self, accelerator: Accelerator, system_config: &str, memory_mode: &str) -> Outcome<System> {
        let file = match self {
            Systems::Usual => return Ok(System::usual(accelerator)),
            Systems::Velas(file) | Systems::Own { file, .. } => file,
        };
        clock::system(file, system_config, memory_mode).map_err(|error| {
            let failure = match self {
                Systems::Own { path, .. } => Failure::of_file("configuration", path, &error),
                _ => Failure::new("configuration", format_args!("Vela's configuration file: {error}")),
            };
            let product = accelerator.product();
            let (systems, modes) = (file.system_configs_for(product), file.memory_modes());
            let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            match error {
                IniError::Unknown { .. } => failure.advise(format!(
                    "Name a system configuration and a memory mode; for {accelerator} there are {}, and {}.",
                    list(&systems),
                    list(&modes)
                )),
                _ if file.has_only_names() => failure.advise(
                    "An own Vela only tells the names of its configurations: name its file with --vela-config.",
                ),
                _ => failure,
            }
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.one.write(f, &self.file)?;
        write_trace_line(f, self.trace.as_deref())
    }
}

impl fmt::Display for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.programs {
            let index = one.index.unwrap_or_default();
            one.write(f, &format!("{}, operator {index}", self.file))?;
        }
        if self.cpu_operator_count > 0 {
            let operators = count(self.cpu_operator_count, "operator");
            writeln!(f, "{}: {operators} left to the CPU, not counted here", caution("note"))?;
        }
        write_trace_line(f, self.trace.as_deref())
    }
}

fn write_trace_line(f: &mut fmt::Formatter<'_>, trace: Option<&str>) -> fmt::Result {
    trace.map_or(Ok(()), |trace| writeln!(f, "{}: a trace for Perfetto", good(trace)))
}

impl Profiled {
    fn write(&self, f: &mut fmt::Formatter<'_>, title: &str) -> fmt::Result {
        let Profile { accel, clock, accuracy, .. } = &self.profile;
        let profile = &self.profile;
        writeln!(
            f,
            "{} on {accel}: {} cycles, {:.3} ms at {} MHz (clock {clock})",
            heading(title),
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
        f.write_str(&steps(profile))
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
