//! Inputs and class names that the user gives.

use std::fs;
use std::path::{Path, PathBuf};

use npukit::Array;
use npukit::batch::{self, BatchError, Sample};
use npukit::classify::{self, Choice};
use npukit::tensor::TensorSpec;
use serde::Serialize;

use super::failure::{Failure, Outcome};

/// Reads the inputs that `--input` names.
pub(super) fn read(arguments: &[PathBuf], inputs: &[TensorSpec]) -> Outcome<Vec<Sample>> {
    batch::read(arguments, inputs).map_err(|error| {
        let kind = match &error {
            BatchError::Read { source, .. } => {
                return Failure::new(Failure::kind_of_reading(source), &error);
            }
            BatchError::EmptyFolder { .. } => return Failure::new("not_an_array", &error),
            BatchError::Npy { .. } => {
                return Failure::new("not_an_array", &error)
                    .advise("Save arrays with numpy.save or numpy.savez; copy the file again if it was cut off.");
            }
            _ => "wrong_input",
        };
        let takes: Vec<String> = inputs
            .iter()
            .enumerate()
            .map(|(index, input)| {
                let quantised = match (input.scale, input.zero_point) {
                    (Some(scale), Some(zero_point)) => format!(", scale {scale}, zero point {zero_point}"),
                    _ => String::new(),
                };
                format!("{} {} {}{quantised}", input.label("input", index), input.dtype, npukit::tensor::text(&input.shape))
            })
            .collect();
        Failure::new(kind, &error).advise(format!(
            "The network takes {}; a batch has one more axis in front, or any length in the place of a leading 1.",
            takes.join("; ")
        ))
    })
}

/// The files and folders that arguments of `--input` name, with links followed; only those that are there.
pub(super) fn named(arguments: &[PathBuf]) -> Vec<PathBuf> {
    let file = |argument: &PathBuf| {
        let behind_name = || {
            let (_, file) = argument.to_str()?.split_once('=')?;
            fs::canonicalize(file).ok()
        };
        fs::canonicalize(argument).ok().or_else(behind_name)
    };
    arguments.iter().filter_map(file).collect()
}

/// Names of classes, and the output that chooses between them.
pub(super) struct Labels {
    names: Vec<String>,
    output: usize,
}

/// The class of one sample.
#[derive(Debug, Serialize)]
pub(super) struct Classified {
    /// Where the sample comes from.
    pub(super) sample: String,
    #[serde(flatten)]
    pub(super) choice: Choice,
}

impl Labels {
    /// Reads a file with a name on each line and finds the output that has as many elements.
    pub(super) fn read(path: Option<&Path>, outputs: &[TensorSpec]) -> Outcome<Option<Labels>> {
        let Some(path) = path else { return Ok(None) };
        let text = npukit_files::read_text(path).map_err(|error| Failure::reading(path, &error))?;
        let names: Vec<String> = text.lines().map(|line| line.trim().to_owned()).collect();
        let names =
            names[..names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1)].to_vec();
        match outputs.iter().position(|output| classify::is_choice_between(output, names.len())) {
            Some(output) => Ok(Some(Labels { names, output })),
            None => {
                let sizes: Vec<String> = outputs
                    .iter()
                    .enumerate()
                    .map(|(index, output)| {
                        format!("{} has {} elements", output.label("output", index), output.elements())
                    })
                    .collect();
                Err(Failure::of_file(
                    "wrong_labels",
                    path,
                    format_args!("{} names, but {}", names.len(), sizes.join(", ")),
                )
                .advise("Give one class name on each line, as many as the output has elements."))
            }
        }
    }

    /// The classes of the samples, given all outputs of each.
    pub(super) fn classify(
        &self,
        samples: &[Sample],
        specs: &[TensorSpec],
        outputs: &[Vec<Array>],
    ) -> Vec<Classified> {
        let choose = |(sample, outputs): (&Sample, &Vec<Array>)| {
            let choice = classify::choose(specs.get(self.output)?, outputs.get(self.output)?, &self.names)?;
            Some(Classified { sample: sample.origin.clone(), choice })
        };
        samples.iter().zip(outputs).filter_map(choose).collect()
    }
}

impl std::fmt::Display for Classified {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({:.3})", self.sample, self.choice.label, self.choice.score)
    }
}
