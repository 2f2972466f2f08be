//! `npukit verify`: whether the compiled program computes what the reference kernels compute.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use npukit::batch::Sample;
use npukit::compare::{Mismatch, OutputComparison};
use npukit::defects::KnownDefect;
use npukit::draw;
use npukit::tensor::{self, TensorSpec};
use npukit::verify::{self, Against, AskError, Disagreement, Judgement, Refusal, Verdict};
use npukit::{Array, Built, Engine, Network, RunError};
use serde::Serialize;

use super::compilation::{Options, Settled, Source};
use super::failure::{Failure, Outcome};
use super::progress::Display;
use super::report::{Answer, bad, caution, count, good, heading};
use super::samples::{self, Classified, Labels};

/// Compile a .tflite network and prove that the program computes bit for bit what the reference kernels compute
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The quantised network
    #[arg(value_name = "MODEL.tflite", value_hint = ValueHint::FilePath)]
    model: PathBuf,
    #[command(flatten)]
    compilation: Options,
    /// How many inputs to draw, in turn full range, near the zero point, smooth, with extremes
    #[arg(long, value_name = "N", default_value_t = 100)]
    samples: usize,
    /// What the drawn inputs depend on
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Compare with these inputs as well: a .npy or .npz file, a folder of them, or NAME=FILE.npy
    #[arg(long, value_name = "X.npy", value_hint = ValueHint::AnyPath)]
    input: Vec<PathBuf>,
    /// Class names, one on each line: say which class each input of --input is
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "input")]
    labels: Option<PathBuf>,
    /// Which model of the NPU runs the program; both compute the same bits
    #[arg(long, value_name = "ENGINE", default_value_t, hide_possible_values = true)]
    engine: Engine,
    /// Which reference decides: tflm, litert, or auto for TFLM where it runs the network, else LiteRT
    #[arg(long, value_name = "REFERENCE", default_value_t)]
    against: Against,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    settled: Settled,
    engine: String,
    samples: usize,
    samples_given: usize,
    samples_drawn: usize,
    seed: u64,
    reference: &'static str,
    reference_version: Option<String>,
    bit_exact: bool,
    outputs: Vec<OutputComparison>,
    other_reference: Option<Other>,
    refusals: Vec<Refused>,
    known_defects: Vec<KnownDefect>,
    classified: Vec<Classified>,
    notes: Vec<String>,
    #[serde(skip)]
    specs: Vec<TensorSpec>,
    #[serde(skip)]
    origins: Vec<String>,
    #[serde(skip)]
    names: [String; 2],
}

#[derive(Serialize)]
struct Other {
    reference: &'static str,
    reference_version: Option<String>,
    bit_exact: bool,
    outputs: Vec<OutputComparison>,
    /// Where it parts ways with the deciding reference.
    disagreement: Option<Disagreement>,
}

#[derive(Serialize)]
struct Refused {
    reference: &'static str,
    reason: String,
}

pub(super) fn execute(arguments: &Arguments) -> Outcome<Answer> {
    let source = arguments.compilation.source(&arguments.model)?;
    let (inputs, outputs) = ports(&source)?;
    let given = samples::read(&arguments.input, &inputs)?;
    let labels = Labels::read(arguments.labels.as_deref(), &outputs)?;
    if given.is_empty() && arguments.samples == 0 {
        return Err(Failure::new("usage", "there is nothing to compare with 0 samples and no --input"));
    }
    affordable(arguments.samples, &inputs, &outputs)?;
    source.warn_of_defects();

    let mut progress = Display::new();
    let environment = arguments.compilation.toolchain()?.ensure(&mut progress).map_err(Failure::toolchain)?;
    let built = arguments.compilation.build(environment.vela(), &source, &mut progress)?;
    let network = Network::from_npub(&built.npub).map_err(|error| Failure::network(source.path(), error))?;
    let drawn = draw::inputs(network.inputs(), arguments.samples, arguments.seed);
    let all: Vec<Vec<Array>> = given.iter().map(|sample| sample.inputs.clone()).chain(drawn).collect();
    let found = verify::run(&network, arguments.engine, &all, &mut progress)
        .map_err(|error| stopped(&source, &built, error, arguments.samples > 0))?;
    let voices = verify::ask(&environment, &built.network, &all, arguments.against, &mut progress)
        .map_err(|error| reference_failure(&source, error))?;
    let verdict = Verdict::new(&network, &found, &voices);
    let disagreement = verify::disagreement(&environment, &built.network, &all, &voices, &mut progress)
        .map_err(|error| reference_failure(&source, error))?;
    progress.finish();

    let classified =
        labels.map(|labels| labels.classify(&given, network.outputs(), &found)).unwrap_or_default();
    let Verdict { primary, other, .. } = verdict;
    let mut notes = built.notes.clone();
    if !primary.bit_exact {
        notes.extend(differences(&source, arguments.against, other.as_ref())?);
    }
    let report = Report {
        settled: Settled::new(&source, &built),
        engine: arguments.engine.to_string(),
        samples: all.len(),
        samples_given: given.len(),
        samples_drawn: arguments.samples,
        seed: arguments.seed,
        reference: primary.reference.name(),
        names: [
            primary.reference.to_string(),
            other.as_ref().map(|other| other.reference.to_string()).unwrap_or_default(),
        ],
        reference_version: primary.version,
        bit_exact: primary.bit_exact,
        outputs: primary.outputs,
        other_reference: other.map(|other| Other::new(other, disagreement)),
        refusals: voices.refusals.into_iter().map(Refused::new).collect(),
        known_defects: source.defects,
        classified,
        notes,
        specs: network.outputs().to_vec(),
        origins: origins(&given, arguments.samples),
    };
    Ok(Answer::new(report.bit_exact, report))
}

/// Refuses to draw more inputs than memory holds, before a step of the work fails for want of it.
fn affordable(samples: usize, inputs: &[TensorSpec], outputs: &[TensorSpec]) -> Outcome<()> {
    /// Bytes that the inputs and outputs of all drawn samples may have. Each is held several times.
    const LIMIT: usize = 1 << 30;
    /// What an array takes beside its bytes.
    const BESIDE: usize = 128;
    let arrays = inputs.iter().chain(outputs);
    let each = arrays.map(|spec| spec.bytes().saturating_add(BESIDE)).fold(0, usize::saturating_add).max(1);
    if samples <= LIMIT / each {
        return Ok(());
    }
    let most = LIMIT / each;
    Err(Failure::new("usage", format_args!("{samples} samples of this network don't fit into memory"))
        .advise(format!("Ask for {most} at most; other values of --seed draw other ones.")))
}

/// Inputs and outputs as the network's file describes them, before it is compiled.
fn ports(source: &Source) -> Outcome<(Vec<TensorSpec>, Vec<TensorSpec>)> {
    let model = source.model()?;
    let graph = model.main();
    let specs = |tensors: &[usize]| {
        let spec = |&index: &usize| {
            TensorSpec::from_tflite(&graph.tensors[index]).ok_or_else(|| {
                let (name, dtype) = (graph.describe(index), graph.tensors[index].data_type);
                Failure::of_file(
                    "not_compiled",
                    source.path(),
                    format_args!("{name} is {dtype}, which can't be passed in or out"),
                )
            })
        };
        tensors.iter().map(spec).collect::<Outcome<Vec<_>>>()
    };
    Ok((specs(&graph.inputs)?, specs(&graph.outputs)?))
}

/// An inference that didn't get to its end, with what is known about the network.
fn stopped(source: &Source, built: &Built, error: RunError, drawn: bool) -> Failure {
    let settled = Settled::new(source, built);
    let refused = matches!(&error, RunError::Stop(stop) if !stop.is_fault());
    let mut failure = Failure::stopped(source.path(), error);
    if drawn && refused {
        failure = failure.advise(
            "Drawn inputs take the whole range of their type, which not every network can: give real ones with --input, and \
             --samples 0.",
        );
    }
    failure
        .with("model", settled.model)
        .with("accel", settled.accel)
        .with("bit_exact", false)
        .with("known_defects", serde_json::json!(source.defects))
}

/// What else is known about a difference from the reference that decides.
fn differences(source: &Source, against: Against, other: Option<&Judgement>) -> Outcome<Vec<String>> {
    let mut notes = Vec::new();
    if let Some(other) = other.filter(|other| other.bit_exact && against == Against::Auto) {
        let name = other.reference;
        notes.push(format!(
            "the NPU computes what {name} compute; if they are the ones to go by, decide by them with --against litert"
        ));
    }
    let model = source.model()?;
    if model.main().operators.iter().any(|operator| operator.name() == "SUM") {
        // Established in docs/conformance.md.
        notes.push(
            "SUM: TensorFlow Lite Micro rounds it twice and LiteRT's reference kernel adds wrongly; LiteRT's optimised kernels \
             compute what the NPU computes, but near ties"
                .to_owned(),
        );
    }
    Ok(notes)
}

fn origins(given: &[Sample], drawn: usize) -> Vec<String> {
    let drawn = (0..drawn).map(|index| format!("drawn input {index}"));
    given.iter().map(|sample| sample.origin.clone()).chain(drawn).collect()
}

fn reference_failure(source: &Source, error: AskError) -> Failure {
    match error {
        AskError::Refused(_) => Failure::of_file("no_reference", source.path(), error)
            .advise("Without a reference nothing can be proven; npukit build still compiles the network."),
        other => Failure::of_file("reference", source.path(), other),
    }
}

impl Other {
    fn new(judgement: Judgement, disagreement: Option<Disagreement>) -> Other {
        Other {
            reference: judgement.reference.name(),
            reference_version: judgement.version,
            bit_exact: judgement.bit_exact,
            outputs: judgement.outputs,
            disagreement,
        }
    }
}

impl Refused {
    fn new(refusal: Refusal) -> Refused {
        Refused { reference: refusal.reference.name(), reason: refusal.reason }
    }
}

impl Report {
    /// Where a sample comes from, for a person.
    fn origin(&self, sample: usize) -> &str {
        self.origins.get(sample).map_or("?", String::as_str)
    }

    fn mismatch(&self, first: &Mismatch, reference: &str) -> String {
        format!(
            "first at {} of {}: NPU {}, {reference} {}",
            tensor::text(&first.index),
            self.origin(first.sample),
            first.npu,
            first.reference
        )
    }

    fn output(&self, f: &mut fmt::Formatter<'_>, index: usize, output: &OutputComparison) -> fmt::Result {
        let spec = &self.specs[index];
        let label = spec.label("output", index);
        write!(f, "  {label} {} {}: ", spec.dtype, tensor::text(&spec.shape))?;
        let of = count(output.elements, "value");
        if output.mismatches == 0 {
            writeln!(f, "{of}, all equal ({} distinct)", output.distinct_values)?;
        } else {
            let differ = bad(format_args!("{} of {of} differ", output.mismatches));
            writeln!(
                f,
                "{differ}, by {} at most ({} distinct)",
                output.max_abs_diff, output.distinct_values
            )?;
            if let Some(first) = &output.first_mismatch {
                writeln!(f, "    {}", self.mismatch(first, &self.names[0]))?;
            }
        }
        if let Some(weak) = output.weak {
            writeln!(f, "    {}: {weak}; give real inputs with --input", caution("this proves little"))?;
        }
        Ok(())
    }

    fn other(&self, f: &mut fmt::Formatter<'_>, other: &Other) -> fmt::Result {
        let name = &self.names[1];
        let version = other.reference_version.as_deref().unwrap_or_default();
        if other.bit_exact {
            return writeln!(f, "  {name} {version}: the same");
        }
        writeln!(f, "  {name} {version}: another answer")?;
        for (index, output) in other.outputs.iter().enumerate().filter(|(_, output)| output.mismatches > 0) {
            let label = self.specs[index].label("output", index);
            let (differ, of) = (output.mismatches, count(output.elements, "value"));
            writeln!(f, "    {label}: {differ} of {of} differ, by {} at most", output.max_abs_diff)?;
            if let Some(first) = &output.first_mismatch {
                writeln!(
                    f,
                    "      {}",
                    self.mismatch(first, "LiteRT").replace("LiteRT", short(other.reference))
                )?;
            }
        }
        if let Some(disagreement) = &other.disagreement {
            let [one, two] = [short(self.reference), short(other.reference)];
            writeln!(
                f,
                "    {one} and {two} part ways in {}, at {}: {one} {}, {two} {}",
                disagreement.layer,
                tensor::text(&disagreement.index),
                disagreement.primary,
                disagreement.other
            )?;
            if let Some(rounding) = &disagreement.rounding {
                writeln!(f, "    {rounding}")?;
            }
        }
        Ok(())
    }
}

/// The end of an interpreter's words, cut; all of them are in `--json`.
fn gist(reason: &str) -> String {
    const SHOWN: usize = 120;
    let last = reason.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
    match last.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &last[..end]),
        None => last.to_owned(),
    }
}

fn short(reference: &str) -> &'static str {
    if reference == "tflm" { "TFLM" } else { "LiteRT" }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settled { model, accel, vela_version, .. } = &self.settled;
        let verdict = if self.bit_exact { good("bit exact") } else { bad("DIFFERENT") };
        let version = self.reference_version.as_deref().unwrap_or_default();
        writeln!(f, "{model} on {accel}: {verdict} with {} {version}", self.names[0])?;
        let given =
            if self.samples_given > 0 { format!("{} given, ", self.samples_given) } else { String::new() };
        writeln!(
            f,
            "  {} ({given}{} drawn with seed {}), compiled by Vela {vela_version}, {} engine",
            count(self.samples, "input"),
            self.samples_drawn,
            self.seed,
            self.engine
        )?;
        for (index, output) in self.outputs.iter().enumerate() {
            self.output(f, index, output)?;
        }
        if !self.bit_exact {
            for defect in &self.known_defects {
                writeln!(f, "  {}: {defect}", heading("known fault of Vela's"))?;
            }
        }
        if let Some(other) = &self.other_reference {
            self.other(f, other)?;
        }
        for refusal in &self.refusals {
            writeln!(
                f,
                "  {} doesn't run this network: {}",
                short(refusal.reference),
                gist(&refusal.reason)
            )?;
        }
        for note in &self.notes {
            writeln!(f, "  {}: {note}", heading("note"))?;
        }
        for sample in &self.classified {
            writeln!(f, "{sample}")?;
        }
        Ok(())
    }
}
