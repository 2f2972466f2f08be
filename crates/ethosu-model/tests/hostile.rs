//! Streams that would take far more time or memory than their size suggests are refused, or stay within their limits.

mod support;

use std::ops::Range;

use ethosu_isa::{
    AccFormat, Accelerator, Command, Decoder, Ifm2Broadcast, Layout, OperandScaleMode, Rounding, ScaleShift,
    Upscale,
};
use ethosu_model::{Cause, Limits, Program};
use support::synthetic::{Kind, Map, Synthetic};
use support::{Fixture, Region};

const LIMITS: Limits = Limits { work: 1 << 22, map_elements: 1 << 18 };

/// The smallest convolution.
fn tiny() -> Fixture {
    let map = Map::bytes(Layout::Nhwc);
    let operation = Synthetic {
        accelerator: Accelerator::U55_128,
        kind: Kind::Conv { part_kernel_first: false },
        ofm: (1, 1, 1),
        ifm_depth: 1,
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

/// Repeats the operation so often.
fn repeat(fixture: &mut Fixture, times: usize) {
    let at = find(fixture, |command| *command == Command::Conv);
    let copies = fixture.stream[at.clone()].repeat(times - 1);
    fixture.stream.splice(at.end..at.end, copies);
}

/// Puts so many end markers before the weights.
fn delay_weights(fixture: &mut Fixture, bytes: usize) {
    let base = find(fixture, |command| matches!(command, Command::WeightBase(_)));
    let start = u32::from_le_bytes(fixture.stream[base][4..].try_into().expect("four bytes")) as usize;
    let Region::Constant(constants) = &mut fixture.regions[0].1 else { panic!("region 0 has the constants") };
    constants.splice(start..start, vec![0xFF; bytes]);
    let length = (constants.len() - start) as u32;
    let at = find(fixture, |command| matches!(command, Command::WeightLength(_)));
    fixture.stream[at][4..].copy_from_slice(&length.to_le_bytes());
}

#[test]
fn a_tiny_operation_runs_often() {
    let mut fixture = tiny();
    repeat(&mut fixture, 1000);
    assert_eq!(fixture.agree(&LIMITS, 1), Ok(()));
}

/// Each decoding goes through all end markers, so that a few words more cost as much again.
#[test]
fn decoding_long_weights_again_and_again_is_work() {
    let mut fixture = tiny();
    delay_weights(&mut fixture, 1 << 20);
    assert_eq!(fixture.agree(&LIMITS, 1), Ok(()));
    repeat(&mut fixture, 4);
    let stop = Program::decode(&fixture.stream, fixture.accelerator, &LIMITS).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { .. }), "{stop}");
}

/// So does a weight length far beyond the region, which only a run finds out about.
#[test]
fn a_claimed_weight_length_is_work() {
    let mut fixture = tiny();
    let at = find(&fixture, |command| matches!(command, Command::WeightLength(_)));
    fixture.stream[at][4..].copy_from_slice(&u32::MAX.to_le_bytes());
    let stop = Program::decode(&fixture.stream, fixture.accelerator, &LIMITS).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { .. }), "{stop}");
    let stop = fixture.agree(&Limits::default(), 1).unwrap_err();
    assert!(matches!(stop.cause, Cause::Bus { .. }), "{stop}");
}
