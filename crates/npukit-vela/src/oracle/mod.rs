//! The reference interpreters: what a network is supposed to compute.
//!
//! Each runs in a Python process of its own, which loads one network and then takes many sets of inputs. An interpreter
//! that doesn't run a network says so: that is an answer ([`Loaded::Refused`]), not an error.
//!
//! ```no_run
//! use npukit_vela::npy::{Array, Dtype};
//! use npukit_vela::oracle::{Loaded, Oracle, OracleOptions, Reference};
//! # fn run(environment: &npukit_vela::toolchain::Environment, network: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! match Oracle::load(environment, Reference::Tflm, network, &OracleOptions::default())? {
//!     Loaded::Ready(mut oracle) => {
//!         let input = Array::new(Dtype::Int8, vec![1, 1], vec![3])?;
//!         let outputs = oracle.run(&[vec![input]])?;
//!         println!("{:?}", outputs[0][0].data());
//!     }
//!     Loaded::Refused(reason) => println!("{} doesn't run it: {reason}", Reference::Tflm),
//! }
//! # Ok(())
//! # }
//! ```

mod divergence;
mod rounding;
mod worker;

use std::fmt;
use std::io;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::npy::{Array, Dtype};
use crate::process::said;
use crate::tflite::{BuiltinOperator, Model};
use crate::toolchain::Environment;
use worker::{Frame, Worker};

pub use divergence::{Divergence, first_divergent_layer};
pub use rounding::RoundingExplanation;

/// The most bytes of inputs that go to an interpreter at once. It answers when it is done with all of them.
const BATCH_BYTES: usize = 16 << 20;
/// The most sets of inputs that go to an interpreter at once.
const BATCH_SAMPLES: usize = 32;
/// The most of a refusal's reason that is kept.
const REASON_CHARACTERS: usize = 400;
/// An interpreter that takes longer than this for a batch is stopped.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// A reference interpreter and its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reference {
    /// TensorFlow Lite Micro: what microcontrollers run without an NPU. Vela's rounding follows it.
    Tflm,
    /// LiteRT with its reference kernels.
    LitertRef,
    /// LiteRT with its optimised kernels, without delegates. A yardstick for speed: it rounds differently.
    LitertDefault,
    /// LiteRT as an application gets it, with XNNPACK. A yardstick for speed: it rounds differently.
    LitertXnnpack,
}

impl Reference {
    fn runtime(self) -> &'static str {
        match self {
            Self::Tflm => "tflm",
            Self::LitertRef | Self::LitertDefault | Self::LitertXnnpack => "litert",
        }
    }

    fn kernels(self) -> &'static str {
        match self {
            Self::Tflm | Self::LitertRef => "reference",
            Self::LitertDefault => "default",
            Self::LitertXnnpack => "xnnpack",
        }
    }

    /// The name for scripts: `tflm`, `litert-ref`, `litert-default`, `litert-xnnpack`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tflm => "tflm",
            Self::LitertRef => "litert-ref",
            Self::LitertDefault => "litert-default",
            Self::LitertXnnpack => "litert-xnnpack",
        }
    }
}

/// The name for people: "TFLM", "LiteRT's reference kernels".
impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Tflm => "TFLM",
            Self::LitertRef => "LiteRT's reference kernels",
            Self::LitertDefault => "LiteRT's optimised kernels",
            Self::LitertXnnpack => "LiteRT with XNNPACK",
        })
    }
}

/// Why an interpreter gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The environment doesn't have this interpreter.
    #[error("{reference} isn't available on this system: it is only built for 64-bit x86 Linux")]
    Unavailable {
        /// Which.
        reference: Reference,
    },
    /// The process can't be started.
    #[error("the interpreter's process can't be started: {0}")]
    Start(#[source] io::Error),
    /// The process died.
    #[error("{reference} crashed ({ending}){}", said(last_words))]
    Crashed {
        /// Which.
        reference: Reference,
        /// "killed by signal 11 (SIGSEGV)".
        ending: String,
        /// The end of what it printed.
        last_words: String,
    },
    /// The process didn't answer in time and was stopped.
    #[error("{reference} didn't answer within {} s and was stopped", after.as_secs())]
    TimedOut {
        /// Which.
        reference: Reference,
        /// How long it was waited for.
        after: Duration,
    },
    /// The interpreter failed on these inputs.
    #[error("{reference} failed: {reason}")]
    Failed {
        /// Which.
        reference: Reference,
        /// In its own words.
        reason: String,
    },
    /// The process answers something that makes no sense.
    #[error("{reference}'s process answered nonsense: {problem}")]
    Protocol {
        /// Which.
        reference: Reference,
        /// What is wrong.
        problem: String,
    },
    /// Inputs don't fit the network.
    #[error("input {index}: expected {expected}, found {found}")]
    Input {
        /// Which input.
        index: usize,
        /// What the network takes, such as "int8 [1, 49, 10, 1]".
        expected: String,
        /// What was given.
        found: String,
    },
    /// The network takes another number of inputs.
    #[error("the network takes {expected} inputs, found {found}")]
    InputCount {
        /// How many it takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// The network's file can't be read.
    #[error(transparent)]
    Tflite(#[from] crate::tflite::Error),
}

/// How an interpreter is run.
#[derive(Clone, Debug)]
pub struct OracleOptions {
    /// Let state go on from one set of inputs to the next, as in a stream. Otherwise each starts afresh.
    pub carry_state: bool,
    /// Keep all tensors, so that [`Oracle::tensors`] can show those inside the network.
    pub keep_tensors: bool,
    /// An interpreter that takes longer for a batch of inputs is stopped.
    pub time_limit: Duration,
}

impl Default for OracleOptions {
    fn default() -> Self {
        OracleOptions { carry_state: false, keep_tensors: false, time_limit: TIME_LIMIT }
    }
}

/// What came of giving a network to an interpreter.
#[derive(Debug)]
pub enum Loaded {
    /// It runs it.
    Ready(Oracle),
    /// It doesn't, for this reason in its own words.
    Refused(String),
}

/// What an input or output looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Element type.
    pub dtype: Dtype,
    /// Axes, outermost first.
    pub shape: Vec<usize>,
}

/// "int8 [1, 49, 10, 1]".
impl fmt::Display for Signature {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.dtype, self.shape)
    }
}

impl Signature {
    /// What an array looks like.
    pub fn of(array: &Array) -> Self {
        Signature { dtype: array.dtype(), shape: array.shape().to_vec() }
    }

    fn bytes(&self) -> usize {
        self.shape.iter().fold(self.dtype.bytes(), |product, &axis| product.saturating_mul(axis))
    }
}

/// A network in an interpreter.
#[derive(Debug)]
pub struct Oracle {
    reference: Reference,
    worker: Worker,
    time_limit: Duration,
    inputs: Vec<Signature>,
    outputs: Vec<Signature>,
}

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<usize>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Answer {
    refused: Option<String>,
    failed: Option<String>,
    inputs: Vec<Described>,
    outputs: serde_json::Value,
    tensors: Vec<Described>,
    nanoseconds: Vec<u64>,
}

impl Oracle {
    /// Starts an interpreter and gives it a network.
    ///
    /// # Errors
    ///
    /// [`OracleError`] when the process can't be started, crashes or hangs.
    pub fn load(
        environment: &Environment,
        reference: Reference,
        network: &[u8],
        options: &OracleOptions,
    ) -> Result<Loaded, OracleError> {
        if reference == Reference::Tflm && !environment.has_tflm() {
            return Err(OracleError::Unavailable { reference });
        }
        let renewal = if options.carry_state { "none" } else { renewal(&Model::parse(network)?) };
        let mut worker = Worker::start(&environment.python()).map_err(OracleError::Start)?;
        let request = json!({
            "request": "load",
            "runtime": reference.runtime(),
            "kernels": reference.kernels(),
            "preserve": options.keep_tensors,
            "renewal": renewal,
        });
        let Answered { answer, .. } =
            answered(reference, &mut worker, &request, network.to_vec(), options.time_limit)?;
        if let Some(reason) = answer.refused {
            // The exception says "failed"; what the runtime printed before says why.
            let words = worker.last_words();
            let reason =
                if words.is_empty() { reason } else { format!("{reason}: {}", words.replace('\n', "; ")) };
            return Ok(Loaded::Refused(shortened(reason)));
        }
        if let Some(reason) = answer.failed {
            return Err(OracleError::Failed { reference, reason });
        }
        let nonsense = |problem: String| OracleError::Protocol { reference, problem };
        let outputs: Vec<Described> =
            serde_json::from_value(answer.outputs).map_err(|error| nonsense(error.to_string()))?;
        let signatures = |described: Vec<Described>| -> Result<Vec<Signature>, OracleError> {
            described.into_iter().map(|one| signature(one).map_err(nonsense)).collect()
        };
        let (inputs, outputs) = (signatures(answer.inputs)?, signatures(outputs)?);
        Ok(Loaded::Ready(Oracle { reference, worker, time_limit: options.time_limit, inputs, outputs }))
    }

    /// Which interpreter it is.
    pub fn reference(&self) -> Reference {
        self.reference
    }

    /// What the network takes, in its order.
    pub fn inputs(&self) -> &[Signature] {
        &self.inputs
    }

    /// What the network gives, in its order.
    pub fn outputs(&self) -> &[Signature] {
        &self.outputs
    }

    /// Runs the network on sets of inputs and returns a set of outputs for each.
    ///
    /// # Errors
    ///
    /// [`OracleError`]: inputs that don't fit, or an interpreter that fails, crashes or hangs.
    pub fn run(&mut self, samples: &[Vec<Array>]) -> Result<Vec<Vec<Array>>, OracleError> {
        for sample in samples {
            self.check(sample)?;
        }
        let sample_bytes: usize = self.inputs.iter().map(Signature::bytes).sum();
        let batch = (BATCH_BYTES / sample_bytes.max(1)).clamp(1, BATCH_SAMPLES);
        let mut results = Vec::with_capacity(samples.len());
        for samples in samples.chunks(batch) {
            let body = samples.iter().flatten().flat_map(|array| array.data()).copied().collect();
            let frame = self.ask(&json!({"request": "run"}), body)?;
            let described: Vec<Vec<Described>> = serde_json::from_value(frame.answer.outputs)
                .map_err(|error| self.nonsense(&error.to_string()))?;
            if described.len() != samples.len() {
                return Err(self.nonsense("it answers another number of samples"));
            }
            let mut body = frame.body.as_slice();
            for outputs in described {
                results.push(self.arrays(outputs, &mut body)?);
            }
        }
        Ok(results)
    }

    /// Runs the network on one set of inputs and returns tensors from inside it, by their indices in its first subgraph.
    ///
    /// # Errors
    ///
    /// As [`Oracle::run`]. The interpreter has to have been loaded with [`OracleOptions::keep_tensors`].
    pub fn tensors(&mut self, sample: &[Array], tensors: &[usize]) -> Result<Vec<Array>, OracleError> {
        self.check(sample)?;
        let body = sample.iter().flat_map(|array| array.data()).copied().collect();
        let frame = self.ask(&json!({"request": "tensors", "tensors": tensors}), body)?;
        if frame.answer.tensors.len() != tensors.len() {
            return Err(self.nonsense("it answers another number of tensors"));
        }
        self.arrays(frame.answer.tensors, &mut frame.body.as_slice())
    }

    /// Times the network on one set of inputs: nanoseconds of each of `iterations` inferences, single-threaded, measured
    /// inside the process, after one that isn't counted.
    ///
    /// # Errors
    ///
    /// As [`Oracle::run`].
    pub fn bench(&mut self, sample: &[Array], iterations: usize) -> Result<Vec<u64>, OracleError> {
        self.check(sample)?;
        let body = sample.iter().flat_map(|array| array.data()).copied().collect();
        let frame = self.ask(&json!({"request": "bench", "iterations": iterations}), body)?;
        Ok(frame.answer.nanoseconds)
    }

    fn check(&self, sample: &[Array]) -> Result<(), OracleError> {
        if sample.len() != self.inputs.len() {
            return Err(OracleError::InputCount { expected: self.inputs.len(), found: sample.len() });
        }
        for (index, (expected, array)) in self.inputs.iter().zip(sample).enumerate() {
            let found = Signature::of(array);
            if found != *expected {
                return Err(OracleError::Input {
                    index,
                    expected: expected.to_string(),
                    found: found.to_string(),
                });
            }
        }
        Ok(())
    }

    fn ask(&mut self, request: &serde_json::Value, body: Vec<u8>) -> Result<Answered, OracleError> {
        let answered = answered(self.reference, &mut self.worker, request, body, self.time_limit)?;
        match answered.answer.failed {
            Some(reason) => Err(OracleError::Failed { reference: self.reference, reason }),
            None => Ok(answered),
        }
    }

    fn nonsense(&self, problem: &str) -> OracleError {
        OracleError::Protocol { reference: self.reference, problem: problem.to_owned() }
    }

    /// Cuts described arrays off the front of the data.
    fn arrays(&self, described: Vec<Described>, data: &mut &[u8]) -> Result<Vec<Array>, OracleError> {
        let mut arrays = Vec::with_capacity(described.len());
        for described in described {
            let signature = signature(described).map_err(|problem| self.nonsense(&problem))?;
            let (array, rest) = data
                .split_at_checked(signature.bytes())
                .ok_or_else(|| self.nonsense("its data is shorter than it says"))?;
            *data = rest;
            let array = Array::new(signature.dtype, signature.shape, array.to_vec());
            arrays.push(array.map_err(|error| self.nonsense(&error.to_string()))?);
        }
        Ok(arrays)
    }
}

struct Answered {
    answer: Answer,
    body: Vec<u8>,
}

fn answered(
    reference: Reference,
    worker: &mut Worker,
    request: &serde_json::Value,
    body: Vec<u8>,
    limit: Duration,
) -> Result<Answered, OracleError> {
    let Frame { header, body } = worker.ask(reference, request.to_string().into_bytes(), body, limit)?;
    let answer = serde_json::from_slice(&header)
        .map_err(|error| OracleError::Protocol { reference, problem: error.to_string() })?;
    Ok(Answered { answer, body })
}

fn signature(described: Described) -> Result<Signature, String> {
    let dtype = match described.dtype.as_str() {
        "bool" => Dtype::Bool,
        "int8" => Dtype::Int8,
        "uint8" => Dtype::Uint8,
        "int16" => Dtype::Int16,
        "uint16" => Dtype::Uint16,
        "int32" => Dtype::Int32,
        "uint32" => Dtype::Uint32,
        "int64" => Dtype::Int64,
        "uint64" => Dtype::Uint64,
        "float32" => Dtype::Float32,
        "float64" => Dtype::Float64,
        other => return Err(format!("elements of type {other}")),
    };
    Ok(Signature { dtype, shape: described.shape })
}

/// What an interpreter has to do so that a set of inputs doesn't see what one before it left.
fn renewal(model: &Model<'_>) -> &'static str {
    let mut operators = model.subgraphs.iter().flat_map(|graph| &graph.operators);
    match model.is_stateful() {
        true if operators.any(|operator| operator.code == BuiltinOperator::VAR_HANDLE) => "recreate",
        true => "reset",
        false => "none",
    }
}

/// A runtime may repeat one complaint for every tensor.
fn shortened(mut reason: String) -> String {
    if let Some((end, _)) = reason.char_indices().nth(REASON_CHARACTERS) {
        reason.truncate(end);
        reason.push('…');
    }
    reason
}
