//! Whether a compiled program computes what the reference kernels compute.
//!
//! The question is asked in steps that can be shared: [`ask`] runs the reference interpreters once for a network and its
//! samples, [`run`] runs one compiled form of the network, [`Verdict::new`] compares. A network compiled for four
//! accelerators is asked about once.
//!
//! ```no_run
//! use npukit::verify::{self, Against, Verdict};
//! use npukit::{BuildOptions, Engine, Network, Toolchain, build, draw};
//!
//! let mut progress = |line: &str| eprintln!("{line}");
//! let toolchain = Toolchain::from_environment()?;
//! let environment = toolchain.ensure(&mut progress)?;
//! let options = BuildOptions::new("ethos-u55-256".parse()?);
//! let built = build(environment.vela(), &std::fs::read("kws.tflite")?, &options, &mut progress)?;
//!
//! let network = Network::from_npub(&built.npub)?;
//! let samples = draw::inputs(network.inputs(), 100, 1);
//! let voices = verify::ask(&environment, &built.network, &samples, Against::Auto, &mut progress)?;
//! let found = verify::run(&network, Engine::default(), &samples, &mut progress)?;
//! let verdict = Verdict::new(&network, &found, &voices);
//! assert!(verdict.primary.bit_exact);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;

use npukit_vela::npy::Array;
use npukit_vela::oracle::{
    Divergence, Loaded, Oracle, OracleError, OracleOptions, Reference, first_divergent_layer,
};
use npukit_vela::progress::Progress;
use npukit_vela::tflite::{self, Model};
use npukit_vela::toolchain::Environment;
use serde::Serialize;

use crate::compare::{self, OutputComparison};
use crate::network::ARENA_LIMIT;
use crate::{Engine, Network, RunError};

/// Which interpreter decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Against {
    /// TensorFlow Lite Micro where it runs the network, else LiteRT's reference kernels. The other is asked as well.
    #[default]
    Auto,
    /// TensorFlow Lite Micro.
    Tflm,
    /// LiteRT's reference kernels.
    Litert,
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Against::Auto => "auto",
            Against::Tflm => "tflm",
            Against::Litert => "litert",
        })
    }
}

impl FromStr for Against {
    type Err = String;

    fn from_str(name: &str) -> Result<Against, String> {
        match name {
            "auto" => Ok(Against::Auto),
            "tflm" => Ok(Against::Tflm),
            "litert" => Ok(Against::Litert),
            other => Err(format!("{other:?} is no reference: it's \"auto\", \"tflm\" or \"litert\"")),
        }
    }
}

/// What an interpreter computes for the samples.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Voice {
    /// Which interpreter.
    pub reference: Reference,
    /// The version of its package.
    pub version: Option<String>,
    /// A set of outputs for each sample.
    pub outputs: Vec<Vec<Array>>,
}

/// An interpreter that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Which interpreter.
    pub reference: Reference,
    /// In its own words.
    pub reason: String,
}

/// What the interpreters say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Voices {
    /// The one that decides.
    pub primary: Voice,
    /// The other one, where it runs the network.
    pub other: Option<Voice>,
    /// Those that don't run it.
    pub refusals: Vec<Refusal>,
}

/// Why there is nothing to compare with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No interpreter that was asked for runs the network.
    #[error("no reference runs this network:\n{}", .0.iter().map(|no| format!("  {}: {}", no.reference, no.reason)).collect::<Vec<_>>().join("\n"))]
    Refused(Vec<Refusal>),
    /// An interpreter can't be asked.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// The network can't be read.
    #[error(transparent)]
    Tflite(#[from] tflite::Error),
}

/// Asks the reference interpreters what a network computes. `model` is the `.tflite` that was compiled, with its shapes
/// fixed. For a network with states the samples are one sequence.
///
/// # Errors
/// [`AskError`]. An interpreter that refuses the network, or crashes on it, is no error as long as another one answers.
pub fn ask(
    environment: &Environment,
    model: &[u8],
    samples: &[Vec<Array>],
    against: Against,
    progress: &mut dyn Progress,
) -> Result<Voices, AskError> {
    let stateful = Model::parse(model)?.is_stateful();
    let references: [Reference; 2] = match against {
        Against::Auto | Against::Tflm => [Reference::Tflm, Reference::LitertRef],
        Against::Litert => [Reference::LitertRef, Reference::Tflm],
    };
    let (mut voices, mut refusals) = (Vec::new(), Vec::new());
    for (rank, reference) in references.into_iter().enumerate() {
        progress.step(&format!("asking {reference} ({})", inputs(samples.len())));
        match voice(environment, reference, model, samples, stateful)? {
            Ok(outputs) => {
                voices.push(Voice { reference, version: version(environment, reference), outputs })
            }
            Err(reason) => refusals.push(Refusal { reference, reason }),
        }
        if rank == 0 && voices.is_empty() && against != Against::Auto {
            return Err(AskError::Refused(refusals));
        }
    }
    let mut voices = voices.into_iter();
    match voices.next() {
        Some(primary) => Ok(Voices { primary, other: voices.next(), refusals }),
        None => Err(AskError::Refused(refusals)),
    }
}

/// What one interpreter computes; the inner error is its refusal.
#[allow(
    clippy::field_reassign_with_default,
    reason = "the options are non-exhaustive and have no constructor"
)]
fn voice(
    environment: &Environment,
    reference: Reference,
    model: &[u8],
    samples: &[Vec<Array>],
    stateful: bool,
) -> Result<Result<Vec<Vec<Array>>, String>, OracleError> {
    let mut options = OracleOptions::default();
    options.carry_state = stateful;
    let answer = Oracle::load(environment, reference, model, &options).and_then(|loaded| match loaded {
        Loaded::Ready(mut oracle) => oracle.run(samples).map(Ok),
        Loaded::Refused(reason) => Ok(Err(reason)),
    });
    match answer {
        Err(
            error @ (OracleError::Unavailable { .. }
            | OracleError::Crashed { .. }
            | OracleError::TimedOut { .. }
            | OracleError::Failed { .. }),
        ) => Ok(Err(error.to_string())),
        other => other,
    }
}

fn version(environment: &Environment, reference: Reference) -> Option<String> {
    let package = match reference {
        Reference::Tflm => "tflite-micro",
        _ => "ai-edge-litert",
    };
    environment.packages().get(package).cloned()
}

/// "1 input", "2 inputs".
fn inputs(count: usize) -> String {
    format!("{count} input{}", if count == 1 { "" } else { "s" })
}

/// Runs a compiled network on all samples: a set of outputs for each. All memory is noise before the first one.
///
/// Samples of a network without states are divided among the machine's cores; those of one with states are one sequence.
///
/// # Errors
/// The [`RunError`] of the first sample that has one.
pub fn run(
    network: &Network,
    engine: Engine,
    samples: &[Vec<Array>],
    progress: &mut dyn Progress,
) -> Result<Vec<Vec<Array>>, RunError> {
    /// Any seed makes noise.
    const NOISE: u64 = 0x6E70_756B_6974;
    let count = samples.len();
    progress.step(&format!("running {} on {} ({engine} engine)", inputs(count), network.accelerator()));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = if network.is_stateful() { 1 } else { workers(cores.min(count), network.arena_bytes()) };
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for worker in 0..workers {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut session = network.session_on(engine);
                session.scramble(NOISE);
                for index in (worker..count).step_by(workers) {
                    if sender.send((index, session.run(&samples[index]))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut outputs: Vec<Option<Vec<Array>>> = samples.iter().map(|_| None).collect();
        for (done, (index, result)) in results.into_iter().enumerate() {
            // Leaving drops the receiver, and the workers stop at their next sample.
            outputs[index] = Some(result?);
            progress.detail(&format!("{} of {count}", done + 1));
        }
        Ok(outputs.into_iter().flatten().collect())
    })
}

/// As many workers as are asked for, or as have arenas that fit the limit together: a small file that claims a large arena
/// takes no more memory on a machine with many cores than on one with few.
fn workers(wanted: usize, arena_bytes: u64) -> usize {
    let affordable = ARENA_LIMIT / arena_bytes.max(1);
    wanted.min(usize::try_from(affordable).unwrap_or(usize::MAX)).max(1)
}

/// How a compiled network compares with one interpreter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Judgement {
    /// Which interpreter.
    pub reference: Reference,
    /// The version of its package.
    pub version: Option<String>,
    /// Whether every byte of every output is equal.
    pub bit_exact: bool,
    /// Each output.
    pub outputs: Vec<OutputComparison>,
}

/// How a compiled network compares with the interpreters.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// With the one that decides.
    pub primary: Judgement,
    /// With the other one.
    pub other: Option<Judgement>,
}

impl Verdict {
    /// Compares what [`run`] found with what [`ask`] was told.
    pub fn new(network: &Network, found: &[Vec<Array>], voices: &Voices) -> Verdict {
        let judge = |voice: &Voice| {
            let outputs = compare::outputs(network.outputs(), found, &voice.outputs);
            let bit_exact = outputs.iter().all(|output| output.mismatches == 0);
            Judgement { reference: voice.reference, version: voice.version.clone(), bit_exact, outputs }
        };
        Verdict { primary: judge(&voices.primary), other: voices.other.as_ref().map(judge) }
    }
}

/// Where two interpreters part ways, for a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Disagreement {
    /// The operator, its position and its output.
    pub layer: String,
    /// The operator alone.
    pub operator: String,
    /// Which sample shows it, from 0.
    pub sample: usize,
    /// Where in the layer's output.
    pub index: Vec<usize>,
    /// What the deciding interpreter has there.
    pub primary: f64,
    /// What the other one has there.
    pub other: f64,
    /// The largest difference in the layer's output.
    pub max_abs_diff: f64,
    /// The rounding that causes it, where it could be shown to.
    pub rounding: Option<String>,
}

/// The first layer in which two interpreters that disagree do so. `None` where they agree.
///
/// # Errors
/// [`AskError`] when an interpreter that ran the network before doesn't now.
pub fn disagreement(
    environment: &Environment,
    model: &[u8],
    samples: &[Vec<Array>],
    voices: &Voices,
    progress: &mut dyn Progress,
) -> Result<Option<Disagreement>, AskError> {
    /// A few samples that differ are enough; each one costs a run that keeps every tensor.
    const SAMPLES: usize = 4;
    let Some(other) = &voices.other else { return Ok(None) };
    let pairs = voices.primary.outputs.iter().zip(&other.outputs).enumerate();
    let differing: Vec<usize> =
        pairs.filter(|(_, (one, other))| one != other).map(|(index, _)| index).take(SAMPLES).collect();
    if differing.is_empty() {
        return Ok(None);
    }
    let references = [voices.primary.reference, other.reference];
    progress.step(&format!("looking for the layer where {} and {} part ways", references[0], references[1]));
    let chosen: Vec<Vec<Array>> = differing.iter().map(|&index| samples[index].clone()).collect();
    let found = first_divergent_layer(environment, model, &chosen, references)?;
    Ok(found.map(|divergence| Disagreement::new(divergence, &differing)))
}

impl Disagreement {
    fn new(divergence: Divergence, samples: &[usize]) -> Disagreement {
        let output = if divergence.tensor_name.is_empty() {
            format!("tensor {}", divergence.tensor)
        } else {
            format!("'{}'", divergence.tensor_name)
        };
        Disagreement {
            layer: format!("operator {} {} (output {output})", divergence.operator, divergence.operator_name),
            operator: divergence.operator_name,
            sample: samples.get(divergence.sample).copied().unwrap_or_default(),
            index: divergence.coordinate,
            primary: divergence.values[0],
            other: divergence.values[1],
            max_abs_diff: divergence.max_abs_diff,
            rounding: divergence.rounding.map(|rounding| rounding.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arenas_of_all_workers_stay_below_the_limit() {
        assert_eq!(workers(64, 0), 64);
        assert_eq!(workers(64, 1 << 20), 64);
        assert_eq!(workers(64, ARENA_LIMIT / 3), 3);
        assert_eq!(workers(64, ARENA_LIMIT), 1);
        assert_eq!(workers(0, 1 << 10), 1);
    }
}
