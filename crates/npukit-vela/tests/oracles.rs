//! The reference interpreters on real networks, and interpreters that misbehave.

mod common;

use std::fs;
use std::time::Duration;

use common::Noise;
use npukit_vela::npy::{Array, Dtype};
use npukit_vela::oracle::{
    Loaded, Oracle, OracleError, OracleOptions, Reference, Signature, first_divergent_layer,
};
use npukit_vela::tflite::{Model, with_outputs};
use npukit_vela::toolchain::Environment;

fn ready(environment: &Environment, reference: Reference, network: &[u8], options: &OracleOptions) -> Oracle {
    match Oracle::load(environment, reference, network, options).unwrap() {
        Loaded::Ready(oracle) => oracle,
        Loaded::Refused(reason) => panic!("{reference} refuses: {reason}"),
    }
}

fn network(name: &str) -> Option<Vec<u8>> {
    npukit_testkit::model(name).map(|path| fs::read(path).unwrap())
}

fn samples(oracle: &Oracle, count: usize) -> Vec<Vec<Array>> {
    let mut noise = Noise(20_261_130);
    (0..count).map(|_| noise.sample(oracle.inputs())).collect()
}

#[test]
fn both_runtimes_agree_where_no_layer_is_fully_connected() {
    let environment = common::environment();
    let Some(network) = network("micro_speech_quantized.tflite") else { return };
    let mut tflm = ready(&environment, Reference::Tflm, &network, &OracleOptions::default());
    let mut litert = ready(&environment, Reference::LitertRef, &network, &OracleOptions::default());
    assert_eq!((tflm.inputs(), tflm.outputs()), (litert.inputs(), litert.outputs()));
    assert_eq!(tflm.inputs(), [Signature { dtype: Dtype::Int8, shape: vec![1, 1960] }]);
    // More than go to an interpreter at once.
    let samples = samples(&tflm, 40);
    let results = tflm.run(&samples).unwrap();
    assert_eq!(results, litert.run(&samples).unwrap());
    assert_eq!((results.len(), results[0][0].shape()), (40, &[1, 4][..]));
    assert!(results.iter().any(|result| result != &results[0]), "the outputs are alive");
    assert_eq!(
        first_divergent_layer(&environment, &network, &samples[..2], [Reference::Tflm, Reference::LitertRef])
            .unwrap(),
        None
    );
}

#[test]
fn the_layer_and_the_rounding_that_differ_are_named() {
    let environment = common::environment();
    let Some(network) = network("ad01_int8.tflite") else { return };
    let oracle = ready(&environment, Reference::Tflm, &network, &OracleOptions::default());
    let samples = samples(&oracle, 3);
    for (references, first) in
        [([Reference::Tflm, Reference::LitertRef], 0), ([Reference::LitertRef, Reference::Tflm], 1)]
    {
        let found = first_divergent_layer(&environment, &network, &samples, references)
            .unwrap()
            .expect("they differ");
        assert_eq!(found.operator_name, "FULLY_CONNECTED");
        let model = Model::parse(&network).unwrap();
        assert_eq!(model.main().operators[found.operator].outputs, [found.tensor]);
        assert_eq!(model.main().tensors[found.tensor].name, found.tensor_name);
        assert!(found.mismatches >= 1 && found.mismatches < found.elements);
        let rounding = found.rounding.expect("the rounding explains both values");
        assert_eq!(found.values[first], rounding.rounded_twice as f64);
        assert_eq!(found.values[1 - first], rounding.rounded_once as f64);
        assert_eq!((rounding.rounded_twice - rounding.rounded_once).abs(), 1, "{rounding}");
    }
}

#[test]
fn a_network_that_a_runtime_refuses_is_an_answer() {
    let environment = common::environment();
    let Some(network) = network("person_detect.tflite") else { return };
    match Oracle::load(&environment, Reference::LitertRef, &network, &OracleOptions::default()).unwrap() {
        Loaded::Refused(reason) => {
            assert!(reason.contains("quantized_dimension") && reason.chars().count() <= 401, "{reason}");
        }
        Loaded::Ready(_) => panic!("LiteRT 2.3.0 refuses it"),
    }
    let mut tflm = ready(&environment, Reference::Tflm, &network, &OracleOptions::default());
    let samples = samples(&tflm, 1);
    assert_eq!(tflm.run(&samples).unwrap()[0][0].shape(), [1, 2]);

    // TFLM says which operator it lacks on standard error, not in its exception.
    use common::network::{FLOAT32, Network};
    let mut unknown = Network::new();
    let x = unknown.unquantised("x", FLOAT32, &[1, 4]);
    let y = unknown.unquantised("y", FLOAT32, &[1, 4]);
    const ELU: i32 = 111;
    const ATAN2: i32 = 156;
    unknown.operator(ELU, &[x], &[y], None);
    unknown.operator(ATAN2, &[x, x], &[y], None);
    unknown.finish_graph(&[x], &[y]);
    match Oracle::load(&environment, Reference::Tflm, &unknown.bytes(), &OracleOptions::default()).unwrap() {
        Loaded::Refused(reason) => assert!(reason.contains("ATAN2"), "{reason}"),
        Loaded::Ready(_) => panic!("TFLM has no ATAN2"),
    }
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_they_are_sent() {
    let environment = common::environment();
    let Some(network) = network("hello_world_int8.tflite") else { return };
    let mut oracle = ready(&environment, Reference::Tflm, &network, &OracleOptions::default());
    let array = |dtype: Dtype, shape: &[usize]| {
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        Array::new(dtype, shape.to_vec(), vec![0; bytes]).unwrap()
    };
    let error = oracle.run(&[vec![]]).unwrap_err();
    assert_eq!(error.to_string(), "the network takes 1 inputs, found 0");
    let error = oracle.run(&[vec![array(Dtype::Int16, &[1, 1])]]).unwrap_err();
    assert_eq!(error.to_string(), "input 0: expected int8 [1, 1], found int16 [1, 1]");
    let error = oracle.run(&[vec![array(Dtype::Int8, &[1, 2])]]).unwrap_err();
    assert_eq!(error.to_string(), "input 0: expected int8 [1, 1], found int8 [1, 2]");
    assert_eq!(oracle.run(&[vec![array(Dtype::Int8, &[1, 1])]]).unwrap().len(), 1, "it goes on");
    assert_eq!(oracle.run(&[]).unwrap().len(), 0);
}

#[test]
fn tensors_inside_a_network_are_what_a_cut_network_gives() {
    let environment = common::environment();
    let Some(network) = network("hello_world_int8.tflite") else { return };
    let keep = OracleOptions { keep_tensors: true, ..OracleOptions::default() };
    let model = Model::parse(&network).unwrap();
    let inside: Vec<usize> = model.main().operators.iter().map(|operator| operator.outputs[0]).collect();
    let cut = with_outputs(&network, &inside).unwrap();
    for reference in [Reference::Tflm, Reference::LitertRef] {
        let mut kept = ready(&environment, reference, &network, &keep);
        let mut cut = ready(&environment, reference, &cut, &OracleOptions::default());
        assert_eq!(cut.outputs().len(), 3);
        for sample in samples(&kept, 3) {
            let tensors = kept.tensors(&sample, &inside).unwrap();
            assert_eq!(tensors, cut.run(std::slice::from_ref(&sample)).unwrap()[0], "{reference}");
            assert!(tensors[0].data().iter().any(|&byte| byte != tensors[0].data()[0]), "{reference}");
        }
    }
}

#[test]
fn state_starts_afresh_or_goes_on() {
    let environment = common::environment();
    for (network, states) in
        [(common::network::lstm(), "variables"), (common::network::streaming(-3), "resources")]
    {
        for reference in [Reference::Tflm, Reference::LitertRef] {
            let mut afresh = ready(&environment, reference, &network, &OracleOptions::default());
            let sample = samples(&afresh, 1).remove(0);
            let twice = [sample.clone(), sample.clone()];
            let first = afresh.run(&twice).unwrap();
            assert_eq!(first[0], first[1], "{reference}, {states}: each set of inputs starts afresh");
            assert_eq!(afresh.run(&twice).unwrap(), first, "{reference}, {states}");

            let carry = OracleOptions { carry_state: true, ..OracleOptions::default() };
            let mut carried = ready(&environment, reference, &network, &carry);
            let second = carried.run(&twice).unwrap();
            assert_eq!(second[0], first[0], "{reference}, {states}: the first step is the same");
            assert_ne!(second[1], second[0], "{reference}, {states}: the second sees the first");
        }
    }
}

#[test]
fn times_are_measured_in_the_process() {
    let environment = common::environment();
    let Some(network) = network("kws_ref_model.tflite") else { return };
    for reference in [Reference::LitertRef, Reference::LitertDefault, Reference::LitertXnnpack] {
        let mut oracle = ready(&environment, reference, &network, &OracleOptions::default());
        let sample = samples(&oracle, 1).remove(0);
        let times = oracle.bench(&sample, 5).unwrap();
        assert_eq!(times.len(), 5);
        // A network of 2.7 million multiplications takes longer than a microsecond on anything.
        assert!(times.iter().all(|&time| time > 1_000), "{times:?}");
    }
}

#[test]
#[cfg(unix)]
fn an_interpreter_that_crashes_or_hangs_is_an_error_of_its_own() {
    use npukit_vela::toolchain::{Settings, Toolchain};
    let load = |worker: &str| {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            r#"#!/bin/sh
here=$(dirname "$0")
case "$*" in
*find_spec*) echo 3.11.2; echo "$0"; echo 1 1;;
*"-m venv"*) for folder; do :; done; mkdir -p "$folder/bin"; ln -s "$0" "$folder/bin/python"; : > "$folder/bin/vela.ini";;
*"-m pip"*) ;;
*importlib.metadata*) echo '{{"packages": {{"tflite-micro": "0"}}, "vela_ini": "'"$here"'/vela.ini"}}';;
*) {worker};;
esac
"#
        );
        let settings = Settings {
            cache: Some(folder.path().join("cache")),
            python: Some(common::script(folder.path(), "fake-python", &text)),
            ..Settings::default()
        };
        let toolchain = Toolchain::new(settings).unwrap();
        let environment = toolchain.ensure(&mut npukit_vela::progress::Silent).unwrap();
        let options = OracleOptions { time_limit: Duration::from_millis(700), ..OracleOptions::default() };
        Oracle::load(&environment, Reference::Tflm, &common::network::two_inputs(), &options).unwrap_err()
    };
    let error = load("echo about to die >&2; kill -SEGV $$");
    let OracleError::Crashed { ending, last_words, .. } = &error else { panic!("{error}") };
    assert_eq!((ending.as_str(), last_words.as_str()), ("killed by signal 11 (SIGSEGV)", "about to die"));
    let error = load("exit 7");
    assert!(error.to_string().contains("TFLM crashed (exit status 7) and said nothing"), "{error}");
    let error = load("exec sleep 600");
    assert!(matches!(error, OracleError::TimedOut { .. }), "{error}");
    // Twelve bytes that announce an answer of two bytes of JSON, and then something that is no JSON.
    let error = load(r"printf '\002\000\000\000\000\000\000\000\000\000\000\000no'; exec sleep 600");
    assert!(matches!(error, OracleError::Protocol { .. }), "{error}");
    // An answer that claims more than there can be.
    let error = load(r"printf '\002\000\000\000\377\377\377\377\377\377\377\377{}'; exit 0");
    assert!(matches!(error, OracleError::Crashed { .. }), "{error}");
}
