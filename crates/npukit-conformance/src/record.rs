//! What was measured, as plain data: it can be kept, and judged again later.

use std::collections::BTreeSet;
use std::fmt;

use ethosu_isa::{Command, Decoder, WeightEncoding85};
use npub::Blob;
use npukit::Accelerator;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The generator's list of cases.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// The cases.
    pub cases: Vec<Case>,
}

/// A generated network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// File name without `.tflite`.
    pub name: String,
    /// The operator, or the kind of chain.
    pub op: String,
    /// Element type.
    pub dtype: String,
    /// What it can be made from again.
    pub seed: u64,
    /// Lowest and highest code to feed to each input.
    pub input_ranges: Vec<(i64, i64)>,
    /// Everything about the network.
    pub parameters: Value,
}

/// Which NPUs the generator makes networks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// Ethos-U55.
    U55,
    /// Ethos-U65.
    U65,
    /// Ethos-U85.
    U85,
}

impl Product {
    /// All of them.
    pub const ALL: [Product; 3] = [Product::U55, Product::U65, Product::U85];

    /// As the generator calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Product::U55 => "u55",
            Product::U65 => "u65",
            Product::U85 => "u85",
        }
    }

    /// The accelerators of this product.
    pub fn accelerators(self) -> Vec<Accelerator> {
        Accelerator::ALL.into_iter().filter(|one| one.product() == self.into()).collect()
    }
}

impl From<Product> for ethosu_isa::Product {
    fn from(product: Product) -> ethosu_isa::Product {
        match product {
            Product::U55 => ethosu_isa::Product::U55,
            Product::U65 => ethosu_isa::Product::U65,
            Product::U85 => ethosu_isa::Product::U85,
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for Product {
    type Err = String;

    fn from_str(name: &str) -> Result<Product, String> {
        let found = Product::ALL.into_iter().find(|product| product.name() == name);
        found.ok_or_else(|| format!("{name:?} is no product: it's u55, u65 or u85"))
    }
}

/// What a program is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// TensorFlow Lite Micro.
    Tflm,
    /// LiteRT's reference kernels.
    LitertRef,
    /// LiteRT's optimised kernels, for the operators whose reference kernels are wrong.
    LitertDefault,
}

impl Reference {
    /// For scripts.
    pub const fn name(self) -> &'static str {
        match self {
            Reference::Tflm => "tflm",
            Reference::LitertRef => "litert-ref",
            Reference::LitertDefault => "litert-default",
        }
    }

    /// The interpreters that may decide about an operator. LiteRT 2.3.0's reference kernel for SUM is wrong, and it has none for
    /// ELU; its optimised ones are right.
    pub fn deciding(op: &str) -> &'static [Reference] {
        match op {
            "SUM" | "ELU" => &[Reference::Tflm, Reference::LitertRef, Reference::LitertDefault],
            _ => &[Reference::Tflm, Reference::LitertRef],
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Reference::Tflm => "TFLM",
            Reference::LitertRef => "REF",
            Reference::LitertDefault => "DEF",
        })
    }
}

/// One network compiled in one way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Which product's generator made it.
    pub product: Product,
    /// The network.
    pub case: Case,
    /// What it was compiled for.
    pub accelerator: String,
    /// What else Vela was told, for people.
    pub variant: String,
    /// The forms of weights that the program has on a U85; empty where it wasn't compiled.
    #[serde(default)]
    pub weights: BTreeSet<WeightForm>,
    /// What `npukit build` warns of.
    pub defects: Vec<Defect>,
    /// The smallest and the largest quantisation scale among its tensors.
    pub scales: (f64, f64),
    /// How far the scales are from the multiples of 2^-63 that Vela holds, at most, in relation to the scale.
    pub scale_error: f64,
    /// What came of it.
    pub outcome: Outcome,
}

/// A layer that the compiler is known to get wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defect {
    /// Its family, by name.
    pub family: String,
    /// What the program computes in its place.
    pub effect: String,
}

/// How a U85 finds an operation's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WeightForm {
    /// In the fast format.
    pub fast: bool,
    /// Ordered for weights of which two of every four are zero.
    pub sparse: bool,
}

impl WeightForm {
    /// Those of all operations in a blob's commands, as far as they can be read.
    pub fn all_in(npub: &[u8]) -> BTreeSet<WeightForm> {
        let Ok(blob) = Blob::parse(npub) else { return BTreeSet::new() };
        let commands = Decoder::new(blob.command_stream().bytes(), ethosu_isa::Product::U85);
        commands
            .map_while(Result::ok)
            .filter_map(|instruction| match instruction.command {
                Command::WeightFormat85(format) => Some(WeightForm {
                    fast: format.encoding == WeightEncoding85::Fast,
                    sparse: format.sparse,
                }),
                _ => None,
            })
            .collect()
    }
}

impl fmt::Display for WeightForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.fast, self.sparse) {
            (false, false) => "standard",
            (false, true) => "sparse",
            (true, false) => "fast",
            (true, true) => "fast and sparse",
        })
    }
}

/// What came of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Vela failed, or left something to the CPU.
    NotCompiled(String),
    /// The model of the NPU doesn't know a form that the program uses.
    NotModelled {
        /// The register field.
        field: String,
        /// The whole message.
        message: String,
    },
    /// The program can't be read or stopped by a fault.
    Stopped(String),
    /// The two engines disagree.
    EnginesDiffer(String),
    /// The model of the NPU panicked.
    Panicked,
    /// It ran.
    Compared(Comparisons),
}

/// How outputs compare.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Comparisons {
    /// With each interpreter that runs the network.
    pub with: Vec<Comparison>,
    /// The interpreters that don't, and why.
    pub refusals: Vec<(Reference, String)>,
}

/// How outputs compare with one interpreter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// Which.
    pub reference: Reference,
    /// Elements compared.
    pub elements: usize,
    /// Elements that differ.
    pub mismatches: usize,
    /// The largest difference.
    pub max_abs_diff: f64,
    /// Different values in the reference's outputs.
    pub distinct_values: usize,
}

impl Comparisons {
    /// The first interpreter whose outputs are equal to the bit.
    pub fn exact(&self) -> Option<Reference> {
        self.with.iter().find(|one| one.mismatches == 0).map(|one| one.reference)
    }

    /// The interpreter that comes nearest.
    pub fn nearest(&self) -> Option<&Comparison> {
        self.with
            .iter()
            .min_by(|a, b| a.max_abs_diff.total_cmp(&b.max_abs_diff).then(a.mismatches.cmp(&b.mismatches)))
    }
}
