//! Streams that would take far more time or memory than their size suggests are refused, or stay within their limits.

mod support;

use std::ops::Range;

use ethosu_isa::{
    AccFormat, Accelerator, Command, Decoder, Ifm2Broadcast, Layout, OperandScaleMode, Rounding, ScaleShift,
    Upscale,
};
use ethosu_model::fast::Plan;
use ethosu_model::{Cause, Limits, Program};
use support::synthetic::{Kind, Map, Synthetic};
use support::{Fixture, Region};

const LIMITS: Limits = Limits { work: 1 << 22, map_elements: 1 << 18 };

/// A convolution of one pixel.
fn pixel(outputs: u16, inputs: u16) -> Fixture {
    let map = Map::bytes(Layout::Nhwc);
    let operation = Synthetic {
        accelerator: Accelerator::U55_128,
        kind: Kind::Conv { part_kernel_first: false },
        ofm: (1, 1, outputs),
        ifm_depth: inputs,
        kernel: (1, 1),
        stride: (1, 1),
        dilation: (1, 1),
        pad: (0, 0, 0, 0),
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
        operand_scale: (OperandScaleMode::Both16, ScaleShift { scale: 1, shift: 0 }, 1),
        scale: ScaleShift { scale: 1 << 30, shift: 31 },
        global_scale: false,
        rounding: Rounding::Double,
        activation: (-128i16 as u16, 127),
        accumulators: AccFormat::Int32,
        overlap: None,
        weight_range: 3,
        seed: 1,
    };
    operation.fixture().expect("an operation that can be decoded")
}

/// Where the first command lies that `wanted` holds of.
fn find(fixture: &Fixture, wanted: impl Fn(&Command) -> bool) -> Range<usize> {
    Decoder::new(&fixture.stream, fixture.accelerator.product())
        .map(|instruction| instruction.expect("a stream that can be decoded"))
        .find(|instruction| wanted(&instruction.command))
        .map(|instruction| instruction.offset..instruction.offset + instruction.words.bytes())
        .expect("the command is there")
}

/// Where the weights begin.
fn weight_base(fixture: &Fixture) -> usize {
    let command = find(fixture, |command| matches!(command, Command::WeightBase(_)));
    u32::from_le_bytes(fixture.stream[command][4..].try_into().expect("four bytes")) as usize
}

/// Repeats the operation so often.
fn repeat(fixture: &mut Fixture, times: usize) {
    let at = find(fixture, |command| *command == Command::Conv);
    let copies = fixture.stream[at.clone()].repeat(times - 1);
    fixture.stream.splice(at.end..at.end, copies);
}

/// Puts so many end markers before the weights.
fn delay_weights(fixture: &mut Fixture, bytes: usize) {
    let start = weight_base(fixture);
    let Region::Constant(constants) = &mut fixture.regions[0].1 else { panic!("region 0 has the constants") };
    constants.splice(start..start, vec![0xFF; bytes]);
    let length = (constants.len() - start) as u32;
    let at = find(fixture, |command| matches!(command, Command::WeightLength(_)));
    fixture.stream[at][4..].copy_from_slice(&length.to_le_bytes());
}

#[test]
fn a_tiny_operation_runs_often() {
    let mut fixture = pixel(1, 1);
    repeat(&mut fixture, 1000);
    assert_eq!(fixture.agree(&LIMITS, 1), Ok(()));
}

/// Each decoding goes through all end markers, so that a few words more cost as much again.
#[test]
fn decoding_long_weights_again_and_again_is_work() {
    let mut fixture = pixel(1, 1);
    delay_weights(&mut fixture, 1 << 20);
    assert_eq!(fixture.agree(&LIMITS, 1), Ok(()));
    repeat(&mut fixture, 4);
    let stop = Program::decode(&fixture.stream, fixture.accelerator, &LIMITS).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { .. }), "{stop}");
}

/// So does a weight length far beyond the region, which only a run finds out about.
#[test]
fn a_claimed_weight_length_is_work() {
    let mut fixture = pixel(1, 1);
    let at = find(&fixture, |command| matches!(command, Command::WeightLength(_)));
    fixture.stream[at][4..].copy_from_slice(&u32::MAX.to_le_bytes());
    let stop = Program::decode(&fixture.stream, fixture.accelerator, &LIMITS).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { .. }), "{stop}");
    let stop = fixture.agree(&Limits::default(), 1).unwrap_err();
    assert!(matches!(stop.cause, Cause::Bus { .. }), "{stop}");
}

/// Zero runs stand for 64 weights a byte. However many operations have such weights of their own, a plan for them stays small.
#[test]
fn a_plan_holds_no_thousandfold_of_its_constants() {
    const SIDE: u16 = 2048;
    const OPERATIONS: usize = 40;
    let zeros = usize::from(SIDE) * usize::from(SIDE);
    let mut fixture = pixel(SIDE, SIDE);
    let base = weight_base(&fixture);
    let Region::Constant(constants) = &mut fixture.regions[0].1 else { panic!("region 0 has the constants") };
    constants.truncate(base);
    let stream = zero_run(zeros);
    for _ in 0..OPERATIONS {
        constants.extend_from_slice(&stream);
    }
    let size = constants.len();
    let product = fixture.accelerator.product();
    let mut words = Vec::new();
    for operation in 0..OPERATIONS {
        for command in [
            Command::WeightBase((base + operation * stream.len()) as u64),
            Command::WeightLength(stream.len() as u32),
            Command::Conv,
        ] {
            let encoded = command.encode(product).expect("a command of the U55");
            words.extend(encoded.control.to_le_bytes());
            words.extend(encoded.payload.iter().flat_map(|word| word.to_le_bytes()));
        }
    }
    let at = find(&fixture, |command| *command == Command::Conv);
    fixture.stream.splice(at, words);
    let program = Program::decode(&fixture.stream, fixture.accelerator, &Limits::default()).unwrap();
    let plan = Plan::new(&program, &fixture.memory(1));
    let (planned, plain) = plan.coverage();
    assert!(planned > 10 && plain > 0, "{planned} {plain}");
    assert!(plan.weight_bytes() <= 32 * size + (64 << 20), "{} of {size}", plan.weight_bytes());
}

/// A weight stream of one zero run and a zero.
fn zero_run(zeros: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |value: u32, count: u32| bits.extend((0..count).map(|bit| value >> bit & 1 == 1));
    // Runs with a divisor of 3, one symbol, uncompressed, not truncated, a palette without entries, nine bits.
    for (value, count) in [(3, 3), (0, 15), (7, 3), (0, 1), (1, 1), (0, 5), (0, 5), (7, 3)] {
        put(value, count);
    }
    // Eight ones a chunk are 64 zeros. The symbol's remainder comes with the second chunk.
    put(0xFF, 8);
    put(0xFF, 8);
    put(0, 9);
    for _ in 2..zeros.div_ceil(64) {
        put(0xFF, 8);
    }
    put(0, 32);
    put(7, 3);
    let mut bytes: Vec<u8> =
        bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, &bit| sum << 1 | u8::from(bit))).collect();
    bytes.resize(bytes.len().next_multiple_of(16), 0xFF);
    bytes
}
