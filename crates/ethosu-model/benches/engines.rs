//! What planning costs, and how fast each instruction set's kernels and both engines are.
//!
//! ```text
//! cargo bench -p ethosu-model
//! NPUKIT_BENCH=NETWORK.npub,... cargo bench -p ethosu-model -- network
//! ```
//!
//! The second form measures networks of one's own in the place of the small ones beside the tests.

// Criterion's macro makes an undocumented function.
#![allow(missing_docs)]

#[path = "../tests/support/mod.rs"]
mod support;

use std::hint::black_box;
use std::path::Path;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ethosu_isa::{
    AccFormat, Accelerator, ElementSize, ElementwiseMode, Ifm2Broadcast, Layout, OperandScaleMode, PoolMode,
    Rounding, ScaleShift, Upscale,
};
use ethosu_model::fast::{Isa, Plan, Workspace};
use ethosu_model::operation::Kernel;
use ethosu_model::weights::decode;
use ethosu_model::{Limits, Operation, Program, reference};
use support::Fixture;
use support::synthetic::{Kind, Map, Synthetic};

/// The networks to measure.
fn networks() -> Vec<(String, Fixture)> {
    match std::env::var("NPUKIT_BENCH") {
        Ok(paths) => paths
            .split(',')
            .map(|path| {
                let blob = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
                let name = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
                (
                    name,
                    Fixture::parse(&blob)
                        .unwrap_or_else(|| panic!("{path} is no blob of a modelled accelerator")),
                )
            })
            .collect(),
        Err(_) => {
            let whole = |name: &str| name.starts_with("digits") || name.starts_with("gesture");
            support::fixtures().into_iter().filter(|(name, _)| whole(name)).collect()
        }
    }
}

fn program(fixture: &Fixture) -> Program {
    Program::decode(&fixture.stream, fixture.accelerator, &Limits::default())
        .expect("a stream that can be decoded")
}

/// Decoding weights, and planning all of a network: per byte of compressed weights.
fn network_planning(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("network_planning");
    for (name, fixture) in networks() {
        let program = program(&fixture);
        let memory = fixture.memory(1);
        let mut streams = Vec::new();
        for step in program.steps() {
            if let Operation::Convolution(convolution) = &step.operation
                && let Kernel::Streams { region, streams: all, .. } = &convolution.kernel
            {
                for stream in all {
                    // Where weights are copied to before they are used, nothing can be read yet.
                    if memory.is_constant(*region) {
                        let bytes = memory.read(*region, stream.base as i64, stream.length.into());
                        let elements = stream.order.elements() as usize;
                        streams.push((bytes.expect("weights inside their region"), elements));
                    }
                }
            }
        }
        let bytes: usize = streams.iter().map(|(bytes, _)| bytes.len()).sum();
        if bytes > 0 {
            group.throughput(Throughput::Bytes(bytes as u64));
            group.bench_function(BenchmarkId::new("decode", &name), |bencher| {
                bencher.iter(|| {
                    for (bytes, elements) in &streams {
                        black_box(decode(bytes, *elements).expect("weights that can be decoded"));
                    }
                });
            });
        }
        for isa in Isa::available() {
            group.bench_function(BenchmarkId::new(format!("plan/{}", isa.name()), &name), |bencher| {
                bencher.iter(|| Plan::with_isa(&program, &memory, isa));
            });
        }
    }
}

/// One inference.
fn network(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("network");
    for (name, fixture) in networks() {
        engines(&mut group, &name, &fixture, true);
    }
}

fn engines(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, fixture: &Fixture, with_reference: bool) {
    let program = program(fixture);
    let mut memory = fixture.memory(1);
    if with_reference {
        group.bench_function(BenchmarkId::new("reference", name), |bencher| {
            bencher.iter(|| reference::run(&program, &mut memory).expect("a stream that runs"));
        });
    }
    for isa in Isa::available() {
        let plan = Plan::with_isa(&program, &memory, isa);
        let mut workspace = Workspace::default();
        group.bench_function(BenchmarkId::new(isa.name(), name), |bencher| {
            bencher.iter(|| plan.run(&mut memory, &mut workspace).expect("a stream that runs"));
        });
    }
}

/// One operation of a size that networks have.
fn single(kind: Kind, ofm: (u16, u16, u16), ifm_depth: u16, side: u16, size: ElementSize) -> Synthetic {
    let map = Map { size, ..Map::bytes(Layout::Nhcwb16) };
    let pad = (side / 2) as u8;
    let elementwise = matches!(kind, Kind::Elementwise(_));
    Synthetic {
        accelerator: Accelerator::U55_128,
        kind,
        ofm,
        ifm_depth,
        kernel: (side, side),
        stride: (1, 1),
        dilation: (1, 1),
        pad: (pad, pad, pad, pad),
        upscale: Upscale::None,
        ifm_map: map,
        ifm2_map: map,
        ofm_map: map,
        broadcast: Ifm2Broadcast {
            height: false,
            width: false,
            depth: false,
            operand_order_reversed: false,
            scalar: false,
        },
        scalar: 0,
        operand_scale: (OperandScaleMode::Both16, ScaleShift { scale: 12_000, shift: 0 }, 9_000),
        scale: ScaleShift { scale: 1_518_500_250, shift: if elementwise { 44 } else { 40 } },
        global_scale: true,
        rounding: Rounding::Double,
        activation: (-128i16 as u16, 127),
        accumulators: AccFormat::Int32,
        overlap: None,
        weight_range: 127,
        seed: 1,
    }
}

/// Kernels of each instruction set, staging and storing included; throughput in multiply-accumulates or elements.
fn kernels(criterion: &mut Criterion) {
    let conv = Kind::Conv { part_kernel_first: false };
    let (bytes, words) = (ElementSize::Bits8, ElementSize::Bits16);
    let cases = [
        ("conv_3x3_32_to_32", single(conv, (24, 24, 32), 32, 3, bytes)),
        ("conv_1x1_64_to_64", single(conv, (24, 24, 64), 64, 1, bytes)),
        ("conv_1x1_256_to_16_one_pixel", single(conv, (1, 1, 16), 256, 1, bytes)),
        ("conv_3x3_32_to_32_int16", single(conv, (24, 24, 32), 32, 3, words)),
        ("depthwise_3x3_64", single(Kind::Depthwise, (24, 24, 64), 64, 3, bytes)),
        ("depthwise_3x3_64_int16", single(Kind::Depthwise, (24, 24, 64), 64, 3, words)),
        ("add_64", single(Kind::Elementwise(ElementwiseMode::Add), (24, 24, 64), 64, 1, bytes)),
        ("multiply_64_int16", single(Kind::Elementwise(ElementwiseMode::Mul), (24, 24, 64), 64, 1, words)),
        ("max_3x3_64", single(Kind::Pool(PoolMode::Max), (24, 24, 64), 64, 3, bytes)),
    ];
    let mut group = criterion.benchmark_group("kernels");
    for (name, operation) in cases {
        let fixture = operation.fixture().expect("an operation that can be decoded");
        group.throughput(Throughput::Elements(program(&fixture).work()));
        engines(&mut group, name, &fixture, false);
    }
}

criterion_group!(benches, network_planning, network, kernels);
criterion_main!(benches);
