//! Why a command didn't give a yes: what a person reads, what a script reads, and the exit status.

use std::fmt::Display;
use std::io;
use std::path::Path;

use npukit::{NetworkError, RunError};
use npukit_vela::compile::CompileError;
use npukit_vela::distil::DistilError;
use npukit_vela::tflite;
use npukit_vela::toolchain::ToolchainError;
use serde_json::{Map, Value, json};

/// A command that ended early.
#[derive(Debug)]
pub(super) struct Failure {
    /// 1: the answer is no. 2: it could not be done.
    pub(super) status: u8,
    /// A stable word for scripts.
    kind: &'static str,
    message: String,
    advice: Option<String>,
    /// What `--json` says beside the error.
    details: Map<String, Value>,
}

pub(super) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// It could not be done.
    pub(super) fn new(kind: &'static str, message: impl Display) -> Failure {
        Failure { status: 2, kind, message: message.to_string(), advice: None, details: Map::new() }
    }

    /// It could not be done, because of what is in a file.
    pub(super) fn of_file(kind: &'static str, file: &Path, message: impl Display) -> Failure {
        Failure::new(kind, format_args!("{}: {message}", file.display()))
            .with("file", file.display().to_string())
    }

    /// A file that can't be read.
    pub(super) fn reading(file: &Path, error: &io::Error) -> Failure {
        Failure::of_file(Failure::kind_of_reading(error), file, error)
    }

    /// The word for a file that can't be read.
    pub(super) fn kind_of_reading(error: &io::Error) -> &'static str {
        if error.kind() == io::ErrorKind::NotFound { "no_such_file" } else { "unreadable" }
    }

    /// Says what to do about it.
    pub(super) fn advise(mut self, advice: impl Into<String>) -> Failure {
        self.advice = Some(advice.into());
        self
    }

    /// Says more to a script.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Failure {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// The answer was found, and it is no.
    fn answer(mut self) -> Failure {
        self.status = 1;
        self
    }

    /// The object that `--json` prints.
    pub(super) fn json(&self) -> Value {
        let mut object = self.details.clone();
        object.insert(
            "error".to_owned(),
            json!({ "kind": self.kind, "message": self.message, "advice": self.advice }),
        );
        object.insert("exit_status".to_owned(), self.status.into());
        Value::Object(object)
    }

    /// What a person reads.
    pub(super) fn text(&self) -> String {
        let advice = self.advice.as_deref().map(|advice| format!("\n  {advice}")).unwrap_or_default();
        format!("{}{advice}", self.message)
    }

    /// A blob that can't be run.
    pub(super) fn network(file: &Path, error: NetworkError) -> Failure {
        let (kind, advice) = match &error {
            NetworkError::Blob(_) => {
                ("not_an_npub", "Build it again, or copy it again if it came from elsewhere.")
            }
            NetworkError::UnknownAccelerator => ("unknown_accelerator", "Name the NPU with --accel."),
            NetworkError::OtherAccelerator { .. } => {
                ("other_accelerator", "Compile the network for the NPU that is there.")
            }
            NetworkError::NoTensors => {
                ("no_tensors", "Build the blob with npukit, which writes a tensor table.")
            }
            NetworkError::Program(_) => {
                ("not_executable", "npukit disasm shows the commands around that place.")
            }
            _ => return Failure::of_file("not_executable", file, error),
        };
        Failure::of_file(kind, file, error).advise(advice)
    }

    /// An inference that didn't get to its end. That the NPU would fault is an answer; that its model doesn't know what
    /// the NPU would do is none.
    pub(super) fn stopped(file: &Path, error: RunError) -> Failure {
        match error {
            RunError::Stop(stop) if stop.is_fault() => {
                Failure::of_file("npu_fault", file, format_args!("the NPU faults: {stop}"))
                    .advise("npukit disasm shows the commands around that place.")
                    .answer()
            }
            other => Failure::of_file("not_executable", file, other),
        }
    }

    /// A toolchain that isn't usable.
    pub(super) fn toolchain(error: ToolchainError) -> Failure {
        let kind = match &error {
            ToolchainError::Offline { .. } => "offline",
            ToolchainError::NoPython { .. } | ToolchainError::NoVenv { .. } => "no_python",
            ToolchainError::DiskFull { .. } => "disk_full",
            ToolchainError::Vela { .. } => "vela",
            _ => "toolchain",
        };
        let failure = Failure::new(kind, &error);
        match error.advice() {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    }

    /// A network that didn't compile.
    pub(super) fn compile(model: &Path, error: CompileError) -> Failure {
        let (kind, advice) = match error {
            CompileError::Toolchain(error) => return Failure::toolchain(error),
            CompileError::Network(error) => return Failure::tflite(model, &error),
            CompileError::CpuOperators(operators) => return Failure::cpu_operators(model, &operators),
            CompileError::Distil(DistilError::CpuOperators(operators)) => {
                return Failure::cpu_operators(model, &operators);
            }
            CompileError::Float { .. } => (
                "not_quantised",
                Some(
                    "Quantise it to int8, or to int16 activations with int8 weights (post-training quantisation with \
                      representative data, integer inputs and outputs).",
                ),
            ),
            CompileError::AlreadyCompiled => (
                "already_compiled",
                Some("Give the network as it was before Vela; npukit inspect shows what is in this one."),
            ),
            CompileError::DynamicShape { .. } | CompileError::BatchSize { .. } => {
                ("dynamic_shape", Some("Convert the network again with a fixed input shape."))
            }
            CompileError::ConfigFile { .. }
            | CompileError::UnknownName { .. }
            | CompileError::NameNeeded { .. } => ("configuration", None),
            CompileError::SeparateNeedsCop2 => {
                ("usage", Some("Leave --cop-format out, or ask for --io arena."))
            }
            CompileError::Failed { ref last_words, .. } if is_about_options(last_words) => (
                "configuration",
                Some(
                    "Vela refuses its options: change --memory-mode, --system-config or what else was asked for.",
                ),
            ),
            CompileError::TimedOut { .. } => ("compiler", Some("Allow it more with --vela-time-limit.")),
            CompileError::Failed { .. } | CompileError::NoOutput { .. } => (
                "compiler",
                Some(
                    "The fault is Vela's: try another --accel, --optimise or --memory-mode, and report it to Arm.",
                ),
            ),
            CompileError::Start { .. } => ("vela", Some("Check --vela and NPUKIT_VELA.")),
            CompileError::Temporary(_) => ("temporary_folder", Some("Set TMPDIR to a folder with room.")),
            CompileError::Distil(_) => ("not_packable", None),
            _ => ("not_compiled", None),
        };
        let failure = Failure::of_file(kind, model, error);
        match advice {
            Some(advice) => failure.advise(advice),
            None => failure,
        }
    }

    /// Adds to the advice where an own configuration or own arguments may be at fault rather than Vela.
    pub(super) fn suspect(mut self, options: &str) -> Failure {
        if self.kind == "compiler" {
            let advice = self.advice.unwrap_or_default();
            self.advice = Some(format!("Look at {options} first. {advice}"));
        }
        self
    }

    /// A file that should be a `.tflite`.
    pub(super) fn tflite(file: &Path, error: &tflite::Error) -> Failure {
        let kind = match error {
            tflite::Error::Identifier { .. } => "not_a_tflite",
            _ => "damaged_tflite",
        };
        Failure::of_file(kind, file, error)
            .advise("Give a .tflite file as the TensorFlow Lite converter writes it; copy it again if it was cut off.")
    }

    /// The answer no: a part of the network stays on the CPU.
    fn cpu_operators(model: &Path, operators: &[npukit_vela::distil::CpuOperator]) -> Failure {
        let lines: Vec<String> = operators.iter().map(|operator| format!("  {operator}")).collect();
        let message = match operators.len() {
            1 => format!("Vela leaves 1 operator to the CPU:\n{}", lines.join("\n")),
            count => format!("Vela leaves {count} operators to the CPU:\n{}", lines.join("\n")),
        };
        let list: Vec<Value> = operators
            .iter()
            .map(|operator| {
                json!({
                    "index": operator.index,
                    "operator": operator.operator,
                    "name": operator.tensor,
                    "reason": operator.reason,
                })
            })
            .collect();
        Failure::of_file("cpu_operators", model, message)
            .advise("An .npub holds networks that run wholly on the NPU: replace these operators, or split the network.")
            .with("cpu_operators", list)
            .answer()
    }
}

/// Whether Vela's last words are that it doesn't take its options: errors of its errors.py, or of Python's argparse.
fn is_about_options(last_words: &str) -> bool {
    ["ConfigOptionError:", "CliOptionError:", "vela: error:"].iter().any(|words| last_words.contains(words))
}
