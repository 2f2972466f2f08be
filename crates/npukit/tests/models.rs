//! Real networks, bit exact: every one on all accelerators of the three products, with inputs and outputs in regions of their
//! own and in the arena, 100 inputs of all distributions. A part of the inputs is run on the plain engine as well.

use npukit::verify::{self, Against, Verdict};
use npukit::{Accelerator, BuildOptions, Engine, Network, Toolchain, build, draw};
use npukit_vela::distil::IoMode;
use npukit_vela::oracle::Reference;
use npukit_vela::progress::Silent;

const SAMPLES: usize = 100;
/// The plain engine takes about 25 ms an inference, and there are 176 programs.
const PLAIN_SAMPLES: usize = 5;
const SEED: u64 = 1;

/// Compiles a network for each accelerator in both forms and compares each with the references, which are asked once.
///
/// `agree` says whether LiteRT computes the same as TensorFlow Lite Micro; `None` where LiteRT refuses the network.
fn exact_everywhere(name: &str, agree: Option<bool>) {
    let Some(path) = npukit_testkit::model(name) else { return };
    let environment =
        Toolchain::from_environment().unwrap().ensure(&mut Silent).expect("the toolchain is installed");
    let model = std::fs::read(path).unwrap();
    let mut asked = None;
    for accelerator in Accelerator::ALL {
        for io in [IoMode::Separate, IoMode::Arena] {
            let mut options = BuildOptions::new(accelerator);
            options.io = io;
            let built = build(environment.vela(), &model, &options, &mut Silent).expect(name);
            assert_eq!(built.io, io);
            let network = Network::from_npub(&built.npub).expect(name);
            assert_eq!(network.accelerator(), accelerator);
            let (samples, voices) = asked.get_or_insert_with(|| {
                let samples = draw::inputs(network.inputs(), SAMPLES, SEED);
                let voices = verify::ask(&environment, &built.network, &samples, Against::Auto, &mut Silent)
                    .expect(name);
                (samples, voices)
            });
            let case = format!("{name} on {accelerator}, io {io}");
            let found = verify::run(&network, Engine::Fast, samples, &mut Silent).expect(name);
            let verdict = Verdict::new(&network, &found, voices);
            assert_eq!(verdict.primary.reference, Reference::Tflm, "{case}");
            for output in &verdict.primary.outputs {
                assert_eq!(output.mismatches, 0, "{case}: {:?}", output.first_mismatch);
                assert_eq!(output.weak, None, "{case}: {} distinct values", output.distinct_values);
                assert!(output.distinct_values > 8, "{case}: {} distinct values", output.distinct_values);
            }
            assert!(verdict.primary.bit_exact, "{case}");
            assert_eq!(verdict.other.map(|other| other.bit_exact), agree, "{case}");
            let plain = &samples[..PLAIN_SAMPLES];
            let plain = verify::run(&network, Engine::Reference, plain, &mut Silent).expect(name);
            assert_eq!(plain, found[..PLAIN_SAMPLES], "{case}: the engines agree");
        }
    }
    let Some((samples, voices)) = asked else { unreachable!("there are accelerators") };
    let disagreement =
        verify::disagreement(&environment, &model, &samples, &voices, &mut Silent).expect(name);
    if agree != Some(false) {
        assert_eq!(disagreement, None, "{name}");
        return;
    }
    let disagreement = disagreement.expect("LiteRT's answer is another one");
    assert_eq!(disagreement.operator, "FULLY_CONNECTED", "{name}: {disagreement:?}");
    assert!(disagreement.rounding.is_some(), "{name}: {disagreement:?}");
}

#[test]
fn ad01() {
    exact_everywhere("ad01_int8.tflite", Some(false));
}

#[test]
fn hello_world() {
    exact_everywhere("hello_world_int8.tflite", Some(false));
}

#[test]
fn kws() {
    exact_everywhere("kws_ref_model.tflite", Some(false));
}

#[test]
fn kws_micronet() {
    exact_everywhere("kws_micronet_m.tflite", Some(true));
}

#[test]
fn micro_speech() {
    exact_everywhere("micro_speech_quantized.tflite", Some(true));
}

#[test]
fn person_detect() {
    exact_everywhere("person_detect.tflite", None);
}

#[test]
fn resnet8() {
    exact_everywhere("pretrainedResnet_quant.tflite", Some(false));
}

#[test]
fn vww() {
    exact_everywhere("vww_96_int8.tflite", Some(true));
}
