//! `npukit bench`: how long an inference takes on this machine.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use npub::{Blob, Role, Storage};
use npukit::bench::{self, BenchError, Contender, EngineContender, Figures, OracleContender, Pace};
use npukit::{Accelerator, Array, Engine, Network, NetworkError, draw};
use npukit_vela::oracle::{Loaded, Oracle, OracleOptions, Reference};
use npukit_vela::progress::Progress;
use npukit_vela::tflite::Model;
use npukit_vela::toolchain::Environment;
use serde::Serialize;

use super::compilation::{Options, SystemOptions};
use super::failure::{Failure, Outcome};
use super::progress::Display;
use super::report::{Answer, heading, table};

/// Measure how long an inference takes on this machine
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// A compiled network, or a .tflite to compile first
    #[arg(value_name = "FILE.npub|MODEL.tflite", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    compilation: Options,
    /// Measure another runtime in turn with it: litert, with all its kernels, single-threaded; needs the .tflite
    #[arg(long, value_name = "RUNTIME")]
    against: Option<Runtime>,
    /// Run so many inferences at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Which model of the NPU runs the program; both compute the same bits
    #[arg(long, value_name = "ENGINE", default_value_t, hide_possible_values = true)]
    engine: Engine,
    /// Turns of each contender
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// About how long each turn takes
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..))]
    turn: u16,
}

#[derive(Clone, Copy, Debug)]
enum Runtime {
    Litert,
}

impl FromStr for Runtime {
    type Err = String;

    fn from_str(name: &str) -> Result<Runtime, String> {
        match name {
            "litert" => Ok(Runtime::Litert),
            other => Err(format!("{other:?} is no runtime to measure against: it's \"litert\"")),
        }
    }
}

#[derive(Serialize)]
struct Report {
    file: String,
    accel: String,
    engine: String,
    threads: u16,
    /// Median; of several threads, the time that passes divided by the inferences done in it.
    ns_per_inference: u64,
    inferences: usize,
    /// The same on one thread, where several were asked for, measured in turn.
    ns_per_inference_single_thread: Option<u64>,
    /// How many times faster several threads are than one.
    speedup: Option<f64>,
    /// Reading the blob and preparing the engine, once for all inferences; median of five times.
    planning_ns: u64,
    /// Bytes of weights, scales and tables in the blob.
    constant_bytes: usize,
    /// The most memory this process has had; known on Linux.
    peak_memory_bytes: Option<u64>,
    against: Vec<Other>,
}

#[derive(Serialize)]
struct Other {
    runtime: &'static str,
    version: Option<String>,
    /// Of this runtime, on one thread.
    ns_per_inference: Option<u64>,
    /// The engine's time divided by this one's, each turn by the one next to it.
    ratio: Option<f64>,
    /// Why there are no figures.
    refusal: Option<String>,
    #[serde(skip)]
    name: String,
}

/// The other runtime's kernels, the fastest first.
const KERNELS: [Reference; 3] = [Reference::LitertXnnpack, Reference::LitertDefault, Reference::LitertRef];

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let mut progress = Display::new();
    let (blob, compiled) = read(arguments, &mut progress)?;
    let (network, planning) = planned(&blob, arguments.compilation.named_accel(), arguments.engine)
        .map_err(|error| Failure::network(path, error))?;

    let sample = draw::sample(network.inputs(), 0, 1);
    let mut engine =
        EngineContender::new(&network, arguments.engine, arguments.threads.into(), sample.clone());
    let mut single =
        (arguments.threads > 1).then(|| EngineContender::new(&network, arguments.engine, 1, sample.clone()));
    let mut others = Vec::new();
    let mut refused = Vec::new();
    if let Some((environment, model)) = &compiled {
        for reference in KERNELS {
            match load(environment, reference, model, &sample) {
                Ok(oracle) => others.push(oracle),
                Err(reason) => refused.push((reference, reason)),
            }
        }
    }

    progress.step("measuring");
    let pace = Pace { rounds: arguments.rounds.into(), turn: Duration::from_millis(arguments.turn.into()) };
    let mut contenders: Vec<&mut dyn Contender> = vec![&mut engine];
    contenders.extend(single.iter_mut().map(|one| one as &mut dyn Contender));
    contenders.extend(others.iter_mut().map(|one| one as &mut dyn Contender));
    let figures = bench::alternate(&mut contenders, &pace).map_err(|error| match error {
        BenchError::Run(error) => Failure::stopped(path, error),
        other => Failure::of_file("reference", path, other),
    })?;
    progress.finish();

    let (own, rest) = figures.split_first().expect("the engine was measured");
    let (single, rest) = rest.split_at(usize::from(arguments.threads > 1));
    let version = compiled.as_ref().and_then(|(environment, _)| environment.packages().get("ai-edge-litert"));
    let measured = others.iter().zip(rest).map(|(other, figures)| Other {
        ns_per_inference: Some(figures.median()),
        ratio: Some(own.ratio(figures)),
        ..Other::new(other.oracle.reference(), version)
    });
    let refused = refused
        .into_iter()
        .map(|(reference, reason)| Other { refusal: Some(reason), ..Other::new(reference, version) });
    Ok(Answer::yes(Report {
        file: path.display().to_string(),
        accel: network.accelerator().to_string(),
        engine: arguments.engine.to_string(),
        threads: arguments.threads,
        ns_per_inference: own.median(),
        inferences: own.inferences(),
        ns_per_inference_single_thread: single.first().map(Figures::median),
        speedup: single.first().map(|single| single.ratio(own)),
        planning_ns: u64::try_from(planning.as_nanos()).unwrap_or(u64::MAX),
        constant_bytes: constant_bytes(&blob),
        peak_memory_bytes: peak_memory(),
        against: measured.chain(refused).collect(),
    }))
}

/// What another runtime needs: its environment, and the network that was compiled.
type Rival = (Environment, Vec<u8>);

/// Reads and prepares a network several times; returns the last one, and the median time.
fn planned(
    blob: &[u8],
    accelerator: Option<Accelerator>,
    engine: Engine,
) -> Result<(Network, Duration), NetworkError> {
    const TIMES: usize = 5;
    let mut times = Vec::with_capacity(TIMES);
    loop {
        let started = Instant::now();
        let network = match accelerator {
            Some(accelerator) => Network::from_npub_for(blob, accelerator)?,
            None => Network::from_npub(blob)?,
        };
        drop(network.session_on(engine));
        times.push(started.elapsed());
        if times.len() == TIMES {
            times.sort_unstable();
            return Ok((network, times[TIMES / 2]));
        }
    }
}

/// The blob, and where another runtime is asked for, what that one needs.
fn read(arguments: &Arguments, progress: &mut Display) -> Outcome<(Vec<u8>, Option<Rival>)> {
    let path = &arguments.file;
    let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| Failure::reading(path, &error))?;
    if Blob::parse(&bytes).is_ok() || Model::parse(&bytes).is_err() && is_blob(path) {
        if arguments.against.is_some() {
            return Err(Failure::of_file(
                "usage",
                path,
                "a compiled network holds no operators that another runtime could run",
            )
            .advise("Give the .tflite in its place; it is compiled first."));
        }
        arguments.compilation.only_for_compiling(path, SystemOptions::Compiling)?;
        return Ok((bytes, None));
    }
    let source = arguments.compilation.source_of(path, bytes)?;
    source.warn_of_defects();
    let toolchain = arguments.compilation.toolchain()?;
    match arguments.against {
        Some(Runtime::Litert) => {
            let environment = toolchain.ensure(progress).map_err(Failure::toolchain)?;
            let built = arguments.compilation.build(environment.vela(), &source, progress)?;
            Ok((built.npub, Some((environment, built.network))))
        }
        None => {
            let (vela, _environment) = toolchain.vela(progress).map_err(Failure::toolchain)?;
            Ok((arguments.compilation.build(&vela, &source, progress)?.npub, None))
        }
    }
}

/// By its name; what is in it is another matter.
fn is_blob(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npub"))
}

fn load(
    environment: &Environment,
    reference: Reference,
    model: &[u8],
    sample: &[Array],
) -> Result<OracleContender, String> {
    let options = OracleOptions { carry_state: true, ..OracleOptions::default() };
    match Oracle::load(environment, reference, model, &options) {
        Ok(Loaded::Ready(oracle)) => Ok(OracleContender { oracle, sample: sample.to_vec() }),
        Ok(Loaded::Refused(reason)) => Err(reason),
        Err(error) => Err(error.to_string()),
    }
}

/// Bytes of the regions that hold constants.
fn constant_bytes(blob: &[u8]) -> usize {
    let Ok(blob) = Blob::parse(blob) else { return 0 };
    let regions = blob.regions().iter();
    let constants = regions
        .filter(|region| region.role == Role::Weights && matches!(region.storage(), Storage::Baked { .. }));
    constants.map(|region| region.size as usize).sum()
}

/// The high-water mark of this process's memory, from Linux's procfs.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes << 10)
}

impl Other {
    fn new(reference: Reference, version: Option<&String>) -> Other {
        Other {
            runtime: reference.name(),
            version: version.cloned(),
            ns_per_inference: None,
            ratio: None,
            refusal: None,
            name: reference.to_string(),
        }
    }
}

/// "1.234 ms".
fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..1_000_000 => format!("{:.1} µs", nanoseconds as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", nanoseconds as f64 / 1e6),
        _ => format!("{:.3} s", nanoseconds as f64 / 1e9),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let threads =
            if self.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", self.threads) };
        writeln!(
            f,
            "{} on {}: {} an inference",
            self.file,
            self.accel,
            heading(time(self.ns_per_inference))
        )?;
        write!(f, "  {} engine, {threads}, median of {} inferences", self.engine, self.inferences)?;
        if let (Some(single), Some(speedup)) = (self.ns_per_inference_single_thread, self.speedup) {
            write!(f, "; 1 thread takes {}, {speedup:.2} times as long", time(single))?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "  once: {} to read and plan it ({:.2} MiB of constants)",
            time(self.planning_ns),
            self.constant_bytes as f64 / f64::from(1 << 20)
        )?;
        if let Some(bytes) = self.peak_memory_bytes {
            writeln!(f, "  peak memory of this process: {:.1} MiB", bytes as f64 / f64::from(1 << 20))?;
        }
        let rows: Vec<Vec<String>> = self
            .against
            .iter()
            .map(|other| match (other.ns_per_inference, other.ratio, &other.refusal) {
                (Some(one), Some(ratio), _) if ratio > 1.0 => {
                    vec![other.name.clone(), time(one), format!("npukit is {ratio:.2} times slower")]
                }
                (Some(one), Some(ratio), _) => {
                    vec![other.name.clone(), time(one), format!("npukit is {:.2} times faster", 1.0 / ratio)]
                }
                (_, _, refusal) => {
                    vec![other.name.clone(), String::new(), refusal.clone().unwrap_or_default()]
                }
            })
            .collect();
        f.write_str(&table(&rows, 2))
    }
}
