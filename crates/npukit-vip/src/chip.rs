//! What is known about single chips: names of target numbers, features that the driver's checks consult, and graphs
//! whose engine somebody saw.
//!
//! Little of this is public, so every entry says how sure it is and from what.

use crate::codes::{Cell, Quant, VxType};
use crate::version::Certainty;
use serde::Serialize;
use std::fmt;

/// One of the hardware's engines. The numbers are the driver's target values, which NBG files use for their operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Engine {
    /// The shader.
    #[serde(rename = "SH")]
    Shader,
    /// The neural-network engine.
    #[serde(rename = "NN")]
    NeuralNetwork,
    /// The tensor processor.
    #[serde(rename = "TP")]
    TensorProcessor,
    /// Software.
    #[serde(rename = "SW")]
    Software,
    /// The target that the driver calls SC.
    #[serde(rename = "SC")]
    Sc,
}

impl Engine {
    /// The engine of a target value (`vxnneGetOperatorTargetName`).
    pub fn from_number(number: u32) -> Option<Engine> {
        Some(match number {
            1 => Engine::Shader,
            2 => Engine::NeuralNetwork,
            3 => Engine::TensorProcessor,
            4 => Engine::Software,
            5 => Engine::Sc,
            _ => return None,
        })
    }

    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Shader => "SH",
            Engine::NeuralNetwork => "NN",
            Engine::TensorProcessor => "TP",
            Engine::Software => "SW",
            Engine::Sc => "SC",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A chip or a device family by its target number (customer ID or PID).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Chip {
    /// The number in the NBG header.
    pub target: u32,
    /// What it is sold as.
    pub name: &'static str,
    /// VeriSilicon's configuration name, where public.
    pub configuration: &'static str,
    /// Whether the number was seen in a file or a log, or is only reported.
    pub certainty: Certainty,
}

/// The target numbers that are public.
pub const CHIPS: [Chip; 13] = [
    chip(0x15, "no chip: what the compiler writes when it doesn't know one", "", Certainty::Assumed),
    chip(0x88, "Amlogic A311D", "VIPNANOQI_PID0X88", Certainty::Known),
    chip(0x99, "Amlogic S905D3", "", Certainty::Assumed),
    chip(0xAD, "Realtek AmebaPro2", "", Certainty::Known),
    chip(0xB5, "Rockchip RV1126", "", Certainty::Assumed),
    chip(0xBA, "unnamed (TIM-VX's sample NBG)", "", Certainty::Known),
    chip(0xC5, "simulator default", "", Certainty::Assumed),
    chip(0xEE, "Allwinner V85x", "VIP9000PICO_PID0XEE", Certainty::Known),
    chip(0x1000_000B, "unnamed", "", Certainty::Assumed),
    chip(0x1000_000E, "Wave", "", Certainty::Known),
    chip(0x1000_0016, "Allwinner T527", "VIP9000NANOSI_PLUS", Certainty::Assumed),
    chip(0x1000_0020, "unnamed", "", Certainty::Assumed),
    chip(0x1000_003B, "Allwinner A733", "VIP9000NANODI", Certainty::Assumed),
];

const fn chip(target: u32, name: &'static str, configuration: &'static str, certainty: Certainty) -> Chip {
    Chip { target, name, configuration, certainty }
}

/// The chip of a target number, if it is public.
pub fn by_target(target: u32) -> Option<&'static Chip> {
    CHIPS.iter().find(|chip| chip.target == target)
}

/// A target typed by hand: a number, or a word of a chip's name or configuration that fits exactly one.
pub fn parse_target(text: &str) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    let digits = lower.strip_prefix("0x");
    let number = digits.map_or_else(|| lower.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
    if let Some(number) = number {
        return Ok(number);
    }
    let fits = |chip: &&Chip| {
        let words = format!("{} {}", chip.name, chip.configuration).to_ascii_lowercase();
        words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == lower)
    };
    match CHIPS.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [chip] => Ok(chip.target),
        [] => Err(format!("`{text}` is neither a number nor a known chip")),
        several => Err(format!("`{text}` fits {} chips; give the number", several.len())),
    }
}

/// Something about the hardware or the driver's context that a check consults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// The context flag without which the NN check refuses an F16 input.
    NnF16Input,
    /// Context feature 0x1b, consulted for an asymmetric U8 input.
    NnU8AsymInput,
    /// HAL feature 0x2ac: where it is on, U8 weights are refused before anything else.
    RefusesU8Weights,
    /// Feature 0x2ca, the gate of the batched matrix product.
    BatchGemm,
    /// A shader path for convolutions with F32 weights, which the NN check refuses.
    ShaderF32Convolution,
    /// The stream processor, which lets some operators pass without their table.
    StreamProcessor,
    /// Hardware generation 9.0 or newer.
    Generation90,
    /// Hardware generation 9.0.1 or newer.
    Generation901,
    /// Hardware generation 9.1.1 or newer.
    Generation911,
    /// Hardware generation 9.2 or newer.
    Generation92,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Feature; 10] = [
        Feature::NnF16Input,
        Feature::NnU8AsymInput,
        Feature::RefusesU8Weights,
        Feature::BatchGemm,
        Feature::ShaderF32Convolution,
        Feature::StreamProcessor,
        Feature::Generation90,
        Feature::Generation901,
        Feature::Generation911,
        Feature::Generation92,
    ];

    /// The name used in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Feature::NnF16Input => "nn-f16-input",
            Feature::NnU8AsymInput => "0x1b",
            Feature::RefusesU8Weights => "0x2ac",
            Feature::BatchGemm => "0x2ca",
            Feature::ShaderF32Convolution => "sh-f32-convolution",
            Feature::StreamProcessor => "stream-processor",
            Feature::Generation90 => "hw-9.0",
            Feature::Generation901 => "hw-9.0.1",
            Feature::Generation911 => "hw-9.1.1",
            Feature::Generation92 => "hw-9.2",
        }
    }

    /// The feature of a name.
    pub fn from_name(name: &str) -> Option<Feature> {
        Feature::ALL.into_iter().find(|feature| feature.name() == name)
    }

    /// The feature for a hardware generation's label in a table.
    pub fn generation(label: &str) -> Option<Feature> {
        Feature::from_name(&format!("hw-{label}"))
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Feature {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What is known of one feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FeatureState {
    /// Whether it is on, where anything is known.
    pub on: Option<bool>,
    /// How sure that is.
    pub certainty: Certainty,
    /// From what.
    pub why: String,
}

const WAVE: u32 = 0x1000_000E;
const TIM_VX_SAMPLE: u32 = 0xBA;

/// What is known of a feature on a target.
pub fn feature(target: Option<u32>, feature: Feature) -> FeatureState {
    let assumed =
        |on, why: &str| FeatureState { on: Some(on), certainty: Certainty::Assumed, why: why.to_owned() };
    match (target, feature) {
        (Some(WAVE), Feature::NnF16Input) => assumed(
            true,
            "an F16 convolution was logged on NN, which this flag would otherwise have refused; never queried",
        ),
        (Some(WAVE), Feature::NnU8AsymInput) => {
            assumed(true, "a fully-connected layer with asymmetric U8 input was logged on NN; never queried")
        }
        (Some(WAVE), Feature::RefusesU8Weights) => {
            assumed(false, "a fully-connected layer with U8 weights was logged on NN; never queried")
        }
        (Some(WAVE), Feature::ShaderF32Convolution) => assumed(
            false,
            "the convolution initialiser of the firmware's libOpenVX.so returns -3 where the NN check says no",
        ),
        (Some(TIM_VX_SAMPLE), Feature::ShaderF32Convolution) => {
            assumed(true, "TIM-VX's sample NBG for this target runs an F32 convolution as SH operations")
        }
        _ => FeatureState { on: None, certainty: Certainty::Unknown, why: "nothing public".to_owned() },
    }
}

/// A node that was seen to land on an engine: it confirms this node, and no other shape or type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The device.
    pub target: u32,
    /// ovxlib's operator.
    pub op: &'static str,
    /// Input, weight, bias and output: cell and dimensions, the fastest-running first.
    pub tensors: [(Cell, &'static [u32]); 4],
    /// Where it ran.
    pub engine: Engine,
    /// How that is known.
    pub source: &'static str,
}

const F16: Cell = Cell::new(VxType::F16, Quant::NONE);
const F32: Cell = Cell::new(VxType::F32, Quant::NONE);
const U8_ASYM: Cell = Cell::new(VxType::U8, Quant::ASYM);
const I32_ASYM: Cell = Cell::new(VxType::I32, Quant::ASYM);

/// The nodes whose engine is on record.
pub const WITNESSES: [Witness; 2] = [
    Witness {
        target: WAVE,
        op: "CONV2D",
        tensors: [(F16, &[16, 1, 1, 1]), (F16, &[3, 1, 1, 1]), (F32, &[1]), (F16, &[16, 1, 1, 1])],
        engine: Engine::NeuralNetwork,
        source: "device log and bit-exact run of the F16 control convolution on the Wave",
    },
    Witness {
        target: WAVE,
        op: "FCL2",
        tensors: [(U8_ASYM, &[16, 1]), (U8_ASYM, &[16, 4]), (I32_ASYM, &[4]), (U8_ASYM, &[4, 1])],
        engine: Engine::NeuralNetwork,
        source: "device log and bit-exact run of the U8 control layer on the Wave",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_typed_by_number_or_by_name() {
        assert_eq!(parse_target("0x1000000e"), Ok(WAVE));
        assert_eq!(parse_target("173"), Ok(0xAD));
        assert_eq!(parse_target("wave"), Ok(WAVE));
        assert_eq!(parse_target("a311d"), Ok(0x88));
        assert!(parse_target("amlogic").unwrap_err().contains("2 chips"));
        assert!(parse_target("pdp11").is_err());
    }

    #[test]
    fn features_have_names_and_states() {
        for feature in Feature::ALL {
            assert_eq!(Feature::from_name(feature.name()), Some(feature));
        }
        assert_eq!(feature(Some(WAVE), Feature::NnF16Input).on, Some(true));
        assert_eq!(feature(Some(WAVE), Feature::NnF16Input).certainty, Certainty::Assumed);
        assert_eq!(feature(None, Feature::NnF16Input).on, None);
        assert_eq!(feature(Some(0x88), Feature::BatchGemm).certainty, Certainty::Unknown);
    }

    #[test]
    fn engine_numbers_are_the_drivers() {
        let names: Vec<_> = (0..7).map(|n| Engine::from_number(n).map(Engine::name)).collect();
        assert_eq!(names, [None, Some("SH"), Some("NN"), Some("TP"), Some("SW"), Some("SC"), None]);
    }
}
