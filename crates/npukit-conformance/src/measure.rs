//! Compiles a case, runs it on both engines, compares with the interpreters.

use std::collections::BTreeSet;

use ethosu_model::{Cause, Stop};
use npukit::compare;
use npukit::tensor::TensorSpec;
use npukit::{
    Accelerator, Array, BuildOptions, Engine, Network, NetworkError, Progress, RunError, build, defects,
};
use npukit_vela::compile::{IoMode, Optimise};
use npukit_vela::progress::Silent;
use npukit_vela::tflite::{DataType, Model};
use npukit_vela::toolchain::Vela;

use crate::inputs;
use crate::record::{Case, Comparison, Comparisons, Defect, Outcome, Product, Record, Reference, WeightForm};
use crate::server::{Server, ServerError, Voice};

/// Any seed makes noise; memory is full of it before the first sample.
const NOISE: u64 = 0x6E70_756B_6974;
/// Small enough that large maps don't fit, so that they are computed in stripes.
const SMALL_ARENA: u64 = 48 << 10;

/// What to measure, and with what.
#[derive(Debug)]
pub struct Bench<'s> {
    /// The Python process.
    pub server: &'s Server,
    /// The compiler.
    pub vela: Vela,
    /// Sets of inputs for each case.
    pub samples: usize,
}

/// How a case is compiled beside the accelerator: I/O mode, memory mode, what to optimise for. Different cases get different
/// ones, so that the suite sees all of them.
fn options(accelerator: Accelerator, case: &Case, product: Product) -> (BuildOptions, String) {
    let mut options = BuildOptions::new(accelerator);
    let mut words = Vec::new();
    let turn = |shift: u32, of: u64| (case.seed >> shift).is_multiple_of(of);
    if turn(0, 3) {
        options.io = IoMode::Arena;
        words.push("--io arena".to_owned());
    }
    if turn(4, 4) {
        options.optimise = Some(Optimise::Size);
        words.push("--optimise Size".to_owned());
    }
    if turn(8, 4) {
        // From fast memory, other weight formats pay on a U85.
        let sram_only = product == Product::U55 || product == Product::U85 && turn(10, 2);
        let mode = if sram_only { "Sram_Only" } else { "Shared_Sram" };
        options.memory_mode = Some(mode.to_owned());
        words.push(format!("--memory-mode {mode}"));
    } else if case.op == "CHAIN_LARGE" && turn(12, 2) {
        options.arena_cache_bytes = Some(SMALL_ARENA);
        words.push(format!("--arena-cache-size {SMALL_ARENA}"));
    }
    (options, words.join(" "))
}

impl Bench<'_> {
    /// Measures a case on some accelerators: a record for each.
    ///
    /// # Errors
    /// [`ServerError`] when the suite itself can't go on.
    pub fn measure(
        &self,
        product: Product,
        case: &Case,
        model: &[u8],
        accelerators: &[Accelerator],
    ) -> Result<Vec<Record>, ServerError> {
        let mut asked: Option<Vec<(Reference, Voice)>> = None;
        let mut records = Vec::new();
        let (scales, scale_error) = scales(model);
        for &accelerator in accelerators {
            let (options, variant) = options(accelerator, case, product);
            let mut weights = BTreeSet::new();
            let outcome = match self.run(case, model, &options, &mut weights) {
                Err(outcome) => outcome,
                Ok((network, samples, found)) => {
                    let voices = match &asked {
                        Some(voices) => voices,
                        None => asked.insert(self.ask(case, model, &samples)?),
                    };
                    Outcome::Compared(compared(&network, &found, voices))
                }
            };
            records.push(Record {
                product,
                case: case.clone(),
                accelerator: accelerator.name().to_owned(),
                variant,
                weights,
                defects: known_defects(model, &options),
                scales,
                scale_error,
                outcome,
            });
        }
        Ok(records)
    }

    fn ask(
        &self,
        case: &Case,
        model: &[u8],
        samples: &[Vec<Array>],
    ) -> Result<Vec<(Reference, Voice)>, ServerError> {
        let deciding = Reference::deciding(&case.op).iter();
        deciding.map(|&reference| Ok((reference, self.server.ask(reference, model, samples)?))).collect()
    }

    #[allow(clippy::type_complexity)]
    fn run(
        &self,
        case: &Case,
        model: &[u8],
        options: &BuildOptions,
        weights: &mut BTreeSet<WeightForm>,
    ) -> Result<(Network, Vec<Vec<Array>>, Vec<Vec<Array>>), Outcome> {
        let progress: &mut dyn Progress = &mut Silent;
        let built = build(&self.vela, model, options, progress)
            .map_err(|error| Outcome::NotCompiled(error.to_string()))?;
        if options.accelerator.product() == ethosu_isa::Product::U85 {
            *weights = WeightForm::all_in(&built.npub);
        }
        let network = Network::from_npub(&built.npub).map_err(|error| match error {
            NetworkError::Program(stop) => stopped(stop),
            other => Outcome::Stopped(other.to_string()),
        })?;
        let specs = specs(model).ok_or_else(|| Outcome::Stopped("an input of unknown type".to_owned()))?;
        let samples = inputs::draw(&specs, &case.input_ranges, self.samples, case.seed)
            .ok_or_else(|| Outcome::Stopped("an input that can't be fed".to_owned()))?;
        let [fast, reference] =
            [Engine::Fast, Engine::Reference].map(|engine| outputs(&network, engine, &samples));
        match (fast, reference) {
            (Ok(fast), Ok(reference)) if fast == reference => Ok((network, samples, fast)),
            (Ok(fast), Ok(reference)) => {
                let differing = compare::outputs(network.outputs(), &fast, &reference);
                let first = differing.iter().find_map(|output| output.first_mismatch.as_ref());
                Err(Outcome::EnginesDiffer(format!("{first:?}")))
            }
            (Err(one), Err(other)) if one.to_string() == other.to_string() => match one {
                RunError::Stop(stop) => Err(stopped(stop)),
                other => Err(Outcome::Stopped(other.to_string())),
            },
            (fast, reference) => {
                let say = |result: Result<_, RunError>| {
                    result.map_or_else(|error| error.to_string(), |_| "ran".into())
                };
                Err(Outcome::EnginesDiffer(format!("fast: {}; reference: {}", say(fast), say(reference))))
            }
        }
    }
}

fn outputs(network: &Network, engine: Engine, samples: &[Vec<Array>]) -> Result<Vec<Vec<Array>>, RunError> {
    let mut session = network.session_on(engine);
    session.scramble(NOISE);
    samples.iter().map(|sample| session.run(sample)).collect()
}

fn stopped(stop: Stop) -> Outcome {
    match &stop.cause {
        Cause::NotModelled(form) => {
            Outcome::NotModelled { field: form.field.to_owned(), message: stop.to_string() }
        }
        _ => Outcome::Stopped(stop.to_string()),
    }
}

fn specs(model: &[u8]) -> Option<Vec<TensorSpec>> {
    let model = Model::parse(model).ok()?;
    let graph = model.main();
    graph.inputs.iter().map(|&input| TensorSpec::from_tflite(graph.tensors.get(input)?)).collect()
}

/// The smallest and largest scale, and the largest relative distance of one from what Vela holds: a multiple of 2^-63, rounded
/// down (its `QuantizedScale` has a shift of at most 63). Biases don't count: their scale takes no part.
fn scales(model: &[u8]) -> ((f64, f64), f64) {
    let mut range = (f64::INFINITY, 0.0f64);
    let mut error = 0.0f64;
    let Ok(model) = Model::parse(model) else { return (range, error) };
    for tensor in &model.main().tensors {
        let is_bias =
            matches!(tensor.data_type, DataType::Int32 | DataType::Int64) && model.data(tensor).is_some();
        let Some(quantisation) = tensor.quantisation.filter(|_| !is_bias) else { continue };
        for scale in (0..quantisation.scales.len()).filter_map(|index| quantisation.scales.get(index)) {
            let scale = f64::from(scale);
            if scale > 0.0 {
                let steps = scale * 2f64.powi(63);
                range = (range.0.min(scale), range.1.max(scale));
                error = error.max((steps - steps.floor()) / steps);
            }
        }
    }
    (range, error)
}

fn known_defects(model: &[u8], options: &BuildOptions) -> Vec<Defect> {
    let Ok(model) = Model::parse(model) else { return Vec::new() };
    let found = defects::find(&model).into_iter();
    let found = found.filter(|defect| defect.applies_to(options));
    found
        .map(|defect| Defect { family: defect.family.name().to_owned(), effect: defect.effect.to_owned() })
        .collect()
}

fn compared(network: &Network, found: &[Vec<Array>], voices: &[(Reference, Voice)]) -> Comparisons {
    let mut comparisons = Comparisons::default();
    for (reference, voice) in voices {
        match voice {
            Err(reason) => comparisons.refusals.push((*reference, reason.clone())),
            Ok(expected) => {
                let outputs = compare::outputs(network.outputs(), found, expected);
                comparisons.with.push(Comparison {
                    reference: *reference,
                    elements: outputs.iter().map(|output| output.elements).sum(),
                    mismatches: outputs.iter().map(|output| output.mismatches).sum(),
                    max_abs_diff: outputs
                        .iter()
                        .map(|output| number(output.max_abs_diff))
                        .fold(0.0, f64::max),
                    distinct_values: outputs.iter().map(|output| output.distinct_values).max().unwrap_or(0),
                });
            }
        }
    }
    comparisons
}

fn number(value: compare::Value) -> f64 {
    match value {
        compare::Value::Integer(value) => value as f64,
        compare::Value::Real(value) => value,
    }
}
