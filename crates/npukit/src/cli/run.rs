//! `npukit run`: runs an .npub on this machine.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use npukit::batch::Sample;
use npukit::tensor::{self, TensorSpec};
use npukit::{Accelerator, Array, Engine, Network, verify};
use serde::Serialize;
use serde_json::Value;

use super::destination::Destination;
use super::failure::{Failure, Outcome};
use super::inspect::Kind;
use super::progress::Display;
use super::report::{Answer, count, good};
use super::samples::{self, Classified, Labels};

/// Run an .npub on this machine, exactly as the NPU would
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The compiled network
    #[arg(value_name = "FILE.npub", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Inputs: a .npy or .npz file, a folder of them, or NAME=FILE.npy; a batch is run one by one
    #[arg(long, value_name = "X.npy", value_hint = ValueHint::AnyPath)]
    input: Vec<PathBuf>,
    /// Write each output to a file output_0.npy, output_1.npy ... in this folder, the inputs' results stacked
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output_dir: Option<PathBuf>,
    /// Class names, one on each line: say which class each input is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    labels: Option<PathBuf>,
    /// Which model of the NPU runs the program; both compute the same bits
    #[arg(long, value_name = "ENGINE", default_value_t, hide_possible_values = true)]
    engine: Engine,
    /// The NPU, for a blob that doesn't say which one it is for; refuses a blob for another
    #[arg(long, value_name = "NPU")]
    accel: Option<Accelerator>,
}

#[derive(Serialize)]
struct Report {
    file: String,
    accel: String,
    engine: String,
    samples: usize,
    outputs: Vec<Output>,
    classified: Vec<Classified>,
    #[serde(skip)]
    origins: Vec<String>,
}

#[derive(Serialize)]
struct Output {
    #[serde(flatten)]
    spec: TensorSpec,
    /// The file it was written to.
    file: Option<String>,
    /// Elements of each sample in C order, where no file was asked for.
    values: Option<Vec<Vec<Value>>>,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let path = &arguments.file;
    let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
        .map_err(|error| Failure::reading(path, &error))?;
    if Kind::of(&bytes) == Some(Kind::Tflite) {
        return Err(Failure::of_file("not_an_npub", path, "it is a .tflite, not an .npub")
            .advise("Compile it with npukit build; npukit verify compiles and runs it in one go."));
    }
    let network = match arguments.accel {
        Some(accelerator) => Network::from_npub_for(&bytes, accelerator),
        None => Network::from_npub(&bytes),
    };
    let network = network.map_err(|error| Failure::network(path, error))?;
    let samples = samples::read(&arguments.input, network.inputs())?;
    if samples.is_empty() {
        let inputs: Vec<String> =
            network.inputs().iter().enumerate().map(|(index, input)| input.label("input", index)).collect();
        return Err(Failure::new(
            "usage",
            format_args!("nothing to run: the network takes {}", inputs.join(", ")),
        )
        .advise("Give it with --input X.npy."));
    }
    let labels = Labels::read(arguments.labels.as_deref(), network.outputs())?;
    let mut files = Vec::new();
    if let Some(folder) = &arguments.output_dir {
        Destination::folder(folder)?;
        for index in 0..network.outputs().len() {
            files.push(Destination::check(&folder.join(format!("output_{index}.npy")))?);
        }
        apart(arguments, folder, &files)?;
    }

    let mut progress = Display::new();
    let inputs: Vec<Vec<Array>> = samples.iter().map(|sample| sample.inputs.clone()).collect();
    let found = verify::run(&network, arguments.engine, &inputs, &mut progress)
        .map_err(|error| Failure::stopped(path, error))?;
    progress.finish();

    let mut outputs = Vec::new();
    for (index, spec) in network.outputs().iter().enumerate() {
        let arrays: Vec<&Array> = found.iter().filter_map(|outputs| outputs.get(index)).collect();
        let file = files.get(index);
        if let Some(file) = file {
            file.write(&stacked(&arrays, spec).to_npy())?;
        }
        outputs.push(Output {
            spec: spec.clone(),
            values: file.is_none().then(|| arrays.iter().map(|array| values(array)).collect()),
            file: file.map(|file| file.path().display().to_string()),
        });
    }
    Ok(Answer::yes(Report {
        file: path.display().to_string(),
        accel: network.accelerator().to_string(),
        engine: arguments.engine.to_string(),
        samples: samples.len(),
        outputs,
        classified: labels
            .map(|labels| labels.classify(&samples, network.outputs(), &found))
            .unwrap_or_default(),
        origins: samples.into_iter().map(|Sample { origin, .. }| origin).collect(),
    }))
}

/// Refuses to write a result over what it is made from, or into a folder whose files are inputs, where the next run
/// would take it for one.
fn apart(arguments: &Arguments, folder: &Path, files: &[Destination]) -> Outcome<()> {
    let mut given = samples::named(&arguments.input);
    given.extend(
        [Some(&arguments.file), arguments.labels.as_ref()].into_iter().flatten().flat_map(fs::canonicalize),
    );
    let folder_is_input = fs::canonicalize(folder).is_ok_and(|folder| given.contains(&folder));
    let overwritten = files.iter().find(|file| given.contains(&file.resolved()));
    let twice = if folder_is_input { Some(folder) } else { overwritten.map(Destination::path) };
    match twice {
        Some(path) => Err(Failure::of_file("usage", path, "is read and written")
            .advise("Name another folder for the results.")),
        None => Ok(()),
    }
}

/// All samples' arrays as one: along the first axis where that is 1, else along a new one.
fn stacked(arrays: &[&Array], spec: &TensorSpec) -> Array {
    let mut shape = spec.shape.clone();
    match shape.first_mut() {
        Some(first) if *first == 1 => *first = arrays.len(),
        _ if arrays.len() > 1 => shape.insert(0, arrays.len()),
        _ => {}
    }
    let data = arrays.iter().flat_map(|array| array.data()).copied().collect();
    let dtype = arrays.first().map_or(npukit::Dtype::Int8, |array| array.dtype());
    Array::new(dtype, shape, data).expect("the arrays are all of the output's shape")
}

/// Integers as integers, floats as floats.
fn values(array: &Array) -> Vec<Value> {
    use npukit::Dtype;
    let whole = !matches!(array.dtype(), Dtype::Float32 | Dtype::Float64);
    let all = array.to_f64().unwrap_or_default();
    all.into_iter().map(|value| if whole { Value::from(value as i64) } else { Value::from(value) }).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Values of one output of one sample that are shown; all of them are in the file and in `--json`.
        const SHOWN: usize = 16;
        writeln!(f, "{} on {}: ran {}", self.file, self.accel, good(count(self.samples, "input")))?;
        for (index, output) in self.outputs.iter().enumerate() {
            let spec = &output.spec;
            write!(f, "  {} {} {}", spec.label("output", index), spec.dtype, tensor::text(&spec.shape))?;
            if let Some(file) = &output.file {
                writeln!(f, ": {file}")?;
                continue;
            }
            writeln!(f)?;
            for (origin, values) in self.origins.iter().zip(output.values.iter().flatten()) {
                let shown: Vec<String> = values.iter().take(SHOWN).map(ToString::to_string).collect();
                let more = if values.len() > SHOWN {
                    format!(" ... ({} values)", values.len())
                } else {
                    String::new()
                };
                writeln!(f, "    {origin}: {}{more}", shown.join(" "))?;
            }
        }
        for sample in &self.classified {
            writeln!(f, "{sample}")?;
        }
        Ok(())
    }
}
