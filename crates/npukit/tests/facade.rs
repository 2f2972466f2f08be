//! The library as a user meets it: states, misuse, hostile blobs.

mod support;

use std::sync::OnceLock;

use ethosu_isa::{Command, DmaRegion, DmaStride, Product};
use npub::{Accel, BlobBuilder, DType, Place, Quantisation, Role, Shape, TensorEntry, TensorKind};
use npukit::tensor::Misfit;
use npukit::{Array, Dtype, Engine, Network, NetworkError, RunError};
use proptest::prelude::*;
use support::{Npukit, digits};

const BYTES: u32 = 16;

/// A region and an offset in it.
type Address = (u8, u64);

/// Commands that copy 16 bytes each, from the one to the other.
fn copies(copies: &[(Address, Address)]) -> Vec<u32> {
    let side = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    let mut commands = Vec::new();
    for &((from, source), (to, destination)) in copies {
        commands.extend([
            Command::Dma0SrcRegion(side(from)),
            Command::Dma0Src(source),
            Command::Dma0DstRegion(side(to)),
            Command::Dma0Dst(destination),
            Command::Dma0Len(BYTES.into()),
            Command::DmaStart,
        ]);
    }
    commands.push(Command::Stop { mask: 0xFFFF });
    commands
        .iter()
        .flat_map(|command| command.encode(Product::U55).unwrap().iter().collect::<Vec<_>>())
        .collect()
}

fn tensor(kind: TensorKind, name: &str, region: u8, offset: u32) -> TensorEntry {
    TensorEntry {
        kind,
        name: name.to_owned(),
        dtype: DType::Int8,
        shape: Shape::new(&[1, BYTES]).unwrap(),
        quantisation: Some(Quantisation { scale: 0.5, zero_point: -5 }),
        place: Some(Place { region, offset }),
        fed_from: None,
    }
}

fn array(value: i8) -> Array {
    Array::new(Dtype::Int8, vec![1, BYTES as usize], vec![value.cast_unsigned(); BYTES as usize]).unwrap()
}

/// A network that gives back the input before.
fn delay() -> Vec<u8> {
    let mut builder = BlobBuilder::new(Accel::u55(128));
    builder.commands(&copies(&[((0, 0), (2, 0)), ((1, 0), (0, 32))]));
    builder.runtime(Role::Scratch, 64);
    builder.runtime(Role::Input, BYTES);
    builder.runtime(Role::Output, BYTES);
    builder.tensor(tensor(TensorKind::Input, "x", 1, 0));
    builder.tensor(tensor(TensorKind::Output, "before", 2, 0));
    let next = builder.tensor(tensor(TensorKind::NextState, "next", 0, 32));
    builder.tensor(TensorEntry { fed_from: Some(next as u32), ..tensor(TensorKind::State, "state", 0, 0) });
    builder.build().unwrap()
}

/// The same, with a state that the commands update in place.
fn delay_in_place() -> Vec<u8> {
    let mut builder = BlobBuilder::new(Accel::u55(128));
    builder.commands(&copies(&[((0, 0), (2, 0)), ((1, 0), (0, 0))]));
    builder.runtime(Role::Scratch, 64);
    builder.runtime(Role::Input, BYTES);
    builder.runtime(Role::Output, BYTES);
    builder.tensor(tensor(TensorKind::Input, "x", 1, 0));
    builder.tensor(tensor(TensorKind::Output, "before", 2, 0));
    builder.tensor(tensor(TensorKind::State, "state", 0, 0));
    builder.build().unwrap()
}

#[test]
fn states_begin_at_their_zero_point_and_live_on() {
    for blob in [delay(), delay_in_place()] {
        let network = Network::from_npub(&blob).unwrap();
        assert!(network.is_stateful());
        assert_eq!((network.inputs().len(), network.outputs().len()), (1, 1));
        for engine in Engine::ALL {
            let mut session = network.session_on(engine);
            let mut outputs = |value: i8| session.run(&[array(value)]).unwrap();
            assert_eq!(outputs(1), [array(-5)], "{engine}");
            assert_eq!(outputs(2), [array(1)], "{engine}");
            assert_eq!(outputs(3), [array(2)], "{engine}");
            session.restart();
            assert_eq!(session.run(&[array(4)]).unwrap(), [array(-5)], "{engine}");
            session.scramble(9);
            assert_eq!(session.run(&[array(4)]).unwrap(), [array(-5)], "{engine}");
        }
        // Another session has states of its own.
        assert_eq!(network.session().run(&[array(7)]).unwrap(), [array(-5)]);
    }
}

#[test]
fn arrays_that_do_not_fit_run_nothing() {
    let blob = delay();
    let network = Network::from_npub(&blob).unwrap();
    let mut session = network.session();
    session.run(&[array(1)]).unwrap();
    let misfit = |result: Result<Vec<Array>, RunError>| match result {
        Err(RunError::Input(misfit)) => misfit,
        other => panic!("{other:?}"),
    };
    assert!(matches!(misfit(session.run(&[])), Misfit::Count { found: 0, expected: 1, .. }));
    assert!(matches!(misfit(session.run(&[array(1), array(1)])), Misfit::Count { found: 2, .. }));
    let flat = Array::new(Dtype::Int8, vec![16], vec![0; 16]).unwrap();
    assert!(matches!(misfit(session.run(&[flat])), Misfit::Shape { .. }));
    let unsigned = Array::new(Dtype::Uint8, vec![1, 16], vec![0; 16]).unwrap();
    assert!(matches!(misfit(session.run(&[unsigned])), Misfit::Dtype { .. }));
    // The state is still that of the last inference that took place.
    assert_eq!(session.run(&[array(2)]).unwrap(), [array(1)]);
}

#[test]
fn blobs_without_a_table_have_regions_for_tensors() {
    let mut builder = BlobBuilder::new(Accel::UNKNOWN);
    builder.commands(&copies(&[((0, 0), (1, 0))]));
    builder.runtime(Role::Input, BYTES);
    builder.runtime(Role::Output, BYTES);
    let blob = builder.build().unwrap();
    assert!(matches!(Network::from_npub(&blob), Err(NetworkError::UnknownAccelerator)));
    let network = Network::from_npub_for(&blob, "ethos-u55-64".parse().unwrap()).unwrap();
    let input = Array::new(Dtype::Uint8, vec![16], (0..16).collect()).unwrap();
    assert_eq!(network.session().run(std::slice::from_ref(&input)).unwrap(), [input]);
    assert_eq!(network.outputs()[0].name, "region 1");
}

#[test]
fn a_fault_of_the_npu_is_told_from_a_refusal() {
    let mut builder = BlobBuilder::new(Accel::u55(128));
    builder.commands(&copies(&[((0, 0), (1, 16))]));
    builder.runtime(Role::Input, BYTES);
    builder.runtime(Role::Output, BYTES);
    let blob = builder.build().unwrap();
    let network = Network::from_npub(&blob).unwrap();
    let input = Array::new(Dtype::Uint8, vec![16], vec![0; 16]).unwrap();
    match network.session().run(&[input]) {
        Err(RunError::Stop(stop)) => assert!(stop.is_fault(), "{stop}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn absurd_arenas_are_refused() {
    let mut builder = BlobBuilder::new(Accel::u55(128));
    builder.commands(&copies(&[]));
    builder.runtime(Role::Output, u32::MAX);
    assert!(matches!(Network::from_npub(&builder.build().unwrap()), Err(NetworkError::Arena { .. })));
}

/// A real blob, made once.
fn real() -> &'static [u8] {
    static BLOB: OnceLock<Vec<u8>> = OnceLock::new();
    BLOB.get_or_init(|| {
        let npukit = Npukit::new();
        assert_eq!(npukit.run(&["build", &digits(), "-o", "d.npub"]).status, 0);
        std::fs::read(npukit.folder().join("d.npub")).unwrap()
    })
}

/// Reads a blob and, if it's one, runs it. Must not panic; a program that asks for much work is left alone.
fn try_out(blob: &[u8]) {
    const WORK: u64 = 1 << 22;
    let Ok(network) = Network::from_npub(blob) else { return };
    if network.program().work() > WORK || network.inputs().iter().any(|input| input.bytes() > 1 << 20) {
        return;
    }
    let inputs = npukit::draw::sample(network.inputs(), 0, 1);
    let results = Engine::ALL.map(|engine| network.session_on(engine).run(&inputs).ok());
    assert_eq!(results[0], results[1], "the engines agree");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn damaged_blobs_with_a_right_checksum_never_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut blob = real().to_vec();
        for (at, value) in flips {
            let at = at.index(blob.len() - 32) + 32;
            blob[at] = value;
        }
        let checksum = npub::checksum(&blob[32..]);
        blob[28..32].copy_from_slice(&checksum.to_le_bytes());
        try_out(&blob);
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_out(&bytes);
    }
}
