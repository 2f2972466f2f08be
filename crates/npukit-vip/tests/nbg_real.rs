//! The two real files, read whole. They lie in the shared folder and not in the repository.

use npukit_vip::chip::Engine;
use npukit_vip::nbg::{Checksum, Depth, IoQuant, Nbg, NbgError, OperationRole, Understanding};

fn real(name: &str) -> Option<Vec<u8>> {
    let path = npukit_testkit::shared_file(&format!("nbg/{name}"))?;
    Some(std::fs::read(path).expect("a file that is there can be read"))
}

#[test]
fn yamnet_for_ameba_is_read_whole() {
    let Some(bytes) = real("ameba_yamnet_s_hybrid.nb") else { return };
    let nbg = Nbg::parse(&bytes).unwrap();
    assert_eq!((nbg.header.version, nbg.header.target), (0x1000E, 0xAD));
    assert_eq!(nbg.depth, Depth::Whole);
    assert_eq!(nbg.sha256, "19e2a62de454b818f3a316ec8565dbfd66cfb1c22f446774a46cc1320c85ff7e");
    let counts =
        [Engine::Shader, Engine::NeuralNetwork, Engine::TensorProcessor].map(|engine| nbg.count(engine));
    assert_eq!(counts, [2, 27, 12]);
    assert_eq!(nbg.operations.first().unwrap().role, OperationRole::Init);
    assert_eq!(nbg.operations.last().unwrap().role, OperationRole::End);
    assert_eq!(nbg.inputs[0].dims, [1, 64, 96, 1]);
    assert_eq!(nbg.inputs[0].format.name, Some("i16"));
    assert_eq!(nbg.inputs[0].quant, IoQuant::Dfp { fl: 12 });
    assert_eq!(nbg.outputs[0].name, "uid_2_out_0");
    assert_eq!(nbg.layers.len(), 39);
    assert_eq!(nbg.layers[34].name, "FullyConnectedReluLayer");
    assert_eq!(nbg.engines_of(34), [Engine::TensorProcessor]);
    assert_eq!(nbg.engines_of(25), [Engine::TensorProcessor, Engine::NeuralNetwork]);
    assert_eq!(nbg.checksum, Checksum::Absent);
    assert_eq!(nbg.patches.len(), 286);
    assert_eq!(nbg.shaders.iter().map(|shader| shader.program).collect::<Vec<_>>(), [67, 75]);
    assert!(nbg.coverage.is_whole(bytes.len() as u64));
    assert_eq!(nbg.coverage.unknown, 0);
    assert!(nbg.findings.is_empty(), "{:?}", nbg.findings);
    assert!(nbg.unknown_words.is_empty());
}

#[test]
fn tim_vx_sample_is_read_whole() {
    let Some(bytes) = real("timvx_conv2d_relu_maxpool2d_fp32.nbg") else { return };
    let nbg = Nbg::parse(&bytes).unwrap();
    assert_eq!((nbg.header.version, nbg.header.target), (0x1001E, 0xBA));
    assert_eq!(nbg.count(Engine::Shader), 4);
    assert_eq!(nbg.count(Engine::NeuralNetwork), 0);
    assert_eq!(nbg.checksum, Checksum::Match { stored: 0x4873_9B09 });
    assert_eq!(nbg.inputs[0].dims, [64, 64, 3, 1]);
    assert_eq!(nbg.inputs[0].quant, IoQuant::None);
    let names: Vec<&str> = nbg.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["ConvolutionLayer", "ActivationLayer", "Max Pooling"]);
    assert_eq!(nbg.operations.iter().map(|o| o.ordinal.unwrap()).collect::<Vec<_>>(), [-1, 0, 1, 2, 3]);
    let memory = nbg.memory.unwrap();
    assert_eq!((memory.pool_bytes, memory.vip_sram_bytes), (460_032, Some(131_584)));
    assert!(nbg.coverage.is_whole(bytes.len() as u64));
    assert_eq!(nbg.coverage.unknown, 0, "{nbg}");
    assert!(nbg.findings.is_empty(), "{:?}", nbg.findings);
    // Reserved feature bits and words that the public format doesn't name: shown, not hidden.
    let unknown: Vec<(u32, u32)> = nbg.unknown_words.iter().map(|word| (word.offset, word.value)).collect();
    assert_eq!(unknown, [(0x5C, 0x90_0020), (0x64, 0x2_0000), (0x68, 0x104), (0x70, 0x80)]);
}

/// The graph that the sample's name tells of, beside what became of it.
#[test]
fn the_sample_beside_its_graph() {
    use npukit_vip::admission::beside::{Agreement, beside};
    use npukit_vip::admission::{Options, Verdict, admit};
    use npukit_vip::graph::{ModelGraph, Operator, OperatorKind, Place};
    use npukit_vip::typed::parse_tensor;

    let Some(bytes) = real("timvx_conv2d_relu_maxpool2d_fp32.nbg") else { return };
    let nbg = Nbg::parse(&bytes).unwrap();
    let mut graph = ModelGraph { source: "conv, relu, pool".into(), ..ModelGraph::default() };
    for (text, place) in [
        ("f32[64x64x3x1]", Place::Graph),
        ("f32[3x3x3x8]", Place::Constant),
        ("f32[64x64x8x1]", Place::Virtual),
        ("f32[64x64x8x1]", Place::Virtual),
        ("f32[32x32x8x1]", Place::Graph),
    ] {
        graph.tensors.push(parse_tensor(text, "t", place).unwrap());
    }
    for (op, inputs, output) in
        [("CONV2D", vec![Some(0), Some(1)], 2), ("RELU", vec![Some(2)], 3), ("POOL", vec![Some(3)], 4)]
    {
        let (label, kind) = (op.to_lowercase(), OperatorKind::Plain);
        graph.operators.push(Operator {
            op: op.into(),
            label,
            inputs,
            outputs: vec![output],
            kind,
            left_out: None,
        });
    }
    let ask = |target| admit(&graph, &Options { target, ..Options::new("1.2.22".parse().unwrap()) });
    for (target, conv) in [(Some(0xBA), Agreement::Agrees), (None, Agreement::Differs)] {
        let mut admission = ask(target);
        let beside = beside(&mut admission, &graph, &nbg);
        let agreements: Vec<Agreement> = beside.rows.iter().map(|row| row.agreement).collect();
        assert_eq!(agreements, [conv, Agreement::Told, Agreement::Told], "{beside}");
        assert!(admission.confirmed());
        assert!(
            admission
                .operators
                .iter()
                .all(|o| matches!(o.verdict, Verdict::Confirmed { engine: Engine::Shader, .. }))
        );
        assert!(beside.notes.is_empty() && beside.unpaired_layers.is_empty());
    }
    // The same file beside a graph of another size: nothing is paired and nothing confirmed.
    let mut other = graph.clone();
    other.tensors[4].shape = Some(vec![31, 32, 8, 1]);
    let mut admission = ask(None);
    let beside = beside(&mut admission, &other, &nbg);
    assert!(beside.rows.iter().all(|row| row.agreement == Agreement::Unpaired) && !admission.confirmed());
}

#[test]
fn a_changed_byte_breaks_the_checksum() {
    let Some(mut bytes) = real("timvx_conv2d_relu_maxpool2d_fp32.nbg") else { return };
    bytes[0xD10] ^= 1;
    assert!(matches!(Nbg::parse(&bytes).unwrap().checksum, Checksum::Mismatch { stored: 0x4873_9B09, .. }));
}

#[test]
fn every_cut_and_every_lying_entry_of_a_real_file_is_an_error_or_a_whole_map() {
    let Some(bytes) = real("timvx_conv2d_relu_maxpool2d_fp32.nbg") else { return };
    for length in 0..bytes.len() {
        assert!(Nbg::parse(&bytes[..length]).is_err(), "cut to {length}");
    }
    // Every word of the fixed part and of the tables replaced by lies.
    for offset in (0..0x814).step_by(4) {
        for lie in [0, 1, 0x7F, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFC, u32::MAX] {
            let mut changed = bytes.clone();
            changed[offset..offset + 4].copy_from_slice(&u32::to_le_bytes(lie));
            if let Ok(nbg) = Nbg::parse(&changed) {
                assert!(nbg.coverage.is_whole(changed.len() as u64), "{lie:#x} at {offset:#x}");
            }
        }
    }
    let mut overlap = bytes.clone();
    overlap[0x178..0x17C].copy_from_slice(&0x250u32.to_le_bytes());
    overlap[0x180..0x184].copy_from_slice(&0x250u32.to_le_bytes());
    assert!(matches!(Nbg::parse(&overlap), Err(NbgError::Overlap { .. })));
}

#[test]
fn opaque_parts_of_both_files_are_commands_weights_and_programs() {
    for name in ["ameba_yamnet_s_hybrid.nb", "timvx_conv2d_relu_maxpool2d_fp32.nbg"] {
        let Some(bytes) = real(name) else { return };
        let nbg = Nbg::parse(&bytes).unwrap();
        let known = [
            "LCD",
            "NN commands",
            "TP commands",
            "weights",
            "shader programs",
            "constants",
            "command states",
        ];
        for span in nbg.coverage.spans.iter().filter(|span| span.understanding == Understanding::Opaque) {
            assert!(known.contains(&span.what.as_str()), "{span:?}");
        }
    }
}
