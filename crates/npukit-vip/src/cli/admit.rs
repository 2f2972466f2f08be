//! `admit`.

use super::{Answer, Exit, finish, in_file, print, read};
use crate::admission::beside::{Beside, beside};
use crate::admission::{Admission, Options, admit};
use crate::chip::{self, Feature};
use crate::graph::ModelGraph;
use crate::nbg::Nbg;
use crate::tflite;
use crate::typed::TypedOperator;
use crate::version::OvxlibVersion;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Whether VeriSilicon's stack takes a model's operators, and on which engine they land. Status 1: one is refused.
#[derive(clap::Args, Clone, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["model", "op"]))]
pub struct AdmitArgs {
    /// The model, a .tflite file.
    pub model: Option<PathBuf>,

    /// Instead of a model one operator, such as conv2d, fc, batch_matmul, or ovxlib's own name.
    #[arg(long)]
    pub op: Option<String>,
    /// An input of the operator.
    // Given as text: in a doc comment the brackets would be links.
    #[arg(
        long,
        requires = "op",
        value_name = "TENSOR",
        help = "An input of the operator: TYPE[:QUANT][@SCALE[,ZERO]|@FL][[DIMxDIM...]], such as u8:asym@0.02,128[16x1]"
    )]
    pub input: Vec<String>,
    /// Its weight.
    #[arg(long, requires = "op", value_name = "TENSOR")]
    pub weight: Option<String>,
    /// Its bias.
    #[arg(long, requires = "op", value_name = "TENSOR")]
    pub bias: Option<String>,
    /// An output.
    #[arg(long, requires = "op", value_name = "TENSOR")]
    pub output: Vec<String>,

    /// The ovxlib version on the device or in the compiler, such as 1.1.88 or 1.2.22.
    #[arg(long, value_name = "VERSION")]
    pub ovxlib: OvxlibVersion,
    /// The device: its target number, or a chip's name.
    #[arg(long, visible_alias = "chip", value_name = "ID", value_parser = chip::parse_target)]
    pub target: Option<u32>,
    /// A compiled file of the same model, to set beside the prediction.
    #[arg(long, value_name = "FILE")]
    pub nbg: Option<PathBuf>,
    /// Something known of the device: FEATURE=on or FEATURE=off, with a name that a report has given.
    #[arg(long, value_name = "FEATURE=STATE", value_parser = feature)]
    pub feature: Vec<(Feature, bool)>,
    /// VSI_NN_ENABLE_I8TOU8: 0 off, 1 asymmetric I8, 2 symmetric I8 too.
    #[arg(long, value_name = "MODE", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub i8_to_u8: u8,
    /// As with VSI_NN_ENABLE_OPCHECK=0.
    #[arg(long)]
    pub no_op_check: bool,
    /// Check operators too that the TFLite delegate leaves to the CPU.
    #[arg(long)]
    pub ignore_importer: bool,
    /// Status 1 unless every operator's engine is confirmed.
    #[arg(long)]
    pub strict: bool,
}

fn feature(text: &str) -> Result<(Feature, bool), String> {
    let (name, state) = text.split_once('=').ok_or("write FEATURE=on or FEATURE=off")?;
    let feature = Feature::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        format!("no feature `{name}`; known: {}", names.join(", "))
    })?;
    match state {
        "on" => Ok((feature, true)),
        "off" => Ok((feature, false)),
        _ => Err(format!("`{state}` is neither on nor off")),
    }
}

#[derive(Serialize)]
struct Report {
    /// Whether nothing is refused.
    admitted: bool,
    #[serde(flatten)]
    admission: Admission,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<Beside>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.admission)?;
        self.beside.as_ref().map_or(Ok(()), |beside| write!(f, "{beside}"))
    }
}

impl AdmitArgs {
    /// Runs the command.
    pub fn run(&self, json: bool) -> Exit {
        finish(self.answer(json), json)
    }

    fn graph(&self) -> Result<ModelGraph, String> {
        match (&self.model, &self.op) {
            (Some(path), _) => {
                let name =
                    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
                tflite::read(&read(path)?, &name).map_err(in_file(path))
            }
            (None, Some(op)) => {
                let operator = TypedOperator {
                    op: op.clone(),
                    inputs: self.input.clone(),
                    weight: self.weight.clone(),
                    bias: self.bias.clone(),
                    outputs: self.output.clone(),
                };
                operator.graph().map_err(|error| error.to_string())
            }
            (None, None) => Err("give a model or --op".to_owned()),
        }
    }

    fn answer(&self, json: bool) -> Answer {
        let graph = self.graph()?;
        let options = Options {
            ovxlib: self.ovxlib,
            target: self.target,
            i8_to_u8: self.i8_to_u8,
            op_check: !self.no_op_check,
            honour_importer: !self.ignore_importer,
            features: self.feature.clone(),
        };
        let mut admission = admit(&graph, &options);
        let admitted = !admission.refused();
        let beside = match &self.nbg {
            Some(path) => {
                let nbg = Nbg::parse(&read(path)?).map_err(in_file(path))?;
                Some(beside(&mut admission, &graph, &nbg))
            }
            None => None,
        };
        let yes = admitted && (!self.strict || admission.confirmed());
        print(&Report { admitted, admission, beside }, json)?;
        Ok(Exit::yes_if(yes))
    }
}
