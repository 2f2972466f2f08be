//! The two engines do the same with every form of an operation that the registers can express.

mod support;

use ethosu_isa::{
    AccFormat, Accelerator, ElementSize, ElementwiseMode, Ifm2Broadcast, Layout, OperandScaleMode, PoolMode,
    Rounding, ScaleShift, Upscale,
};
use ethosu_model::Limits;
use proptest::prelude::*;
use support::synthetic::{Kind, Map, Synthetic};

const LIMITS: Limits = Limits { work: 1 << 22, map_elements: 1 << 18 };

fn kinds() -> impl Strategy<Value = Kind> {
    let pool =
        prop_oneof![3 => Just(PoolMode::Max), 3 => Just(PoolMode::Average), 1 => Just(PoolMode::ReduceSum)];
    let elementwise = prop_oneof![
        3 => Just(ElementwiseMode::Add),
        3 => Just(ElementwiseMode::Sub),
        3 => Just(ElementwiseMode::Mul),
        2 => Just(ElementwiseMode::Min),
        2 => Just(ElementwiseMode::Max),
        1 => Just(ElementwiseMode::LeakyRelu),
        1 => Just(ElementwiseMode::Abs),
        1 => Just(ElementwiseMode::Clz),
        1 => Just(ElementwiseMode::Shr),
        1 => Just(ElementwiseMode::Shl),
    ];
    prop_oneof![
        4 => any::<bool>().prop_map(|part_kernel_first| Kind::Conv { part_kernel_first }),
        4 => Just(Kind::Depthwise),
        3 => pool.prop_map(Kind::Pool),
        4 => elementwise.prop_map(Kind::Elementwise),
    ]
}

fn sizes() -> impl Strategy<Value = ElementSize> {
    prop_oneof![12 => Just(ElementSize::Bits8), 3 => Just(ElementSize::Bits16), 1 => Just(ElementSize::Bits32)]
}

fn maps() -> impl Strategy<Value = Map> {
    let one = || Just((u16::MAX, u16::MAX, u16::MAX));
    let tiles = prop_oneof![3 => one(), 1 => (1u16..9, 1u16..9, 1u16..9)];
    let zero_point =
        prop_oneof![3 => (-128i16..128).prop_map(|zero| zero as u16), 1 => any::<u16>(), 2 => Just(0)];
    (sizes(), any::<bool>(), any::<bool>(), zero_point, tiles, prop_oneof![2 => Just(0u16), 1 => 0u16..40])
        .prop_map(|(size, signed, bricks, zero_point, tiles, gap)| {
            let layout = if bricks { Layout::Nhcwb16 } else { Layout::Nhwc };
            Map { size, signed, layout, zero_point, tiles, gap }
        })
}

fn scales() -> impl Strategy<Value = ScaleShift> {
    // Multipliers of a normalised fraction with shifts that keep some bits, mostly.
    prop_oneof![
        4 => ((1u32 << 30)..(1 << 31), 28u8..45).prop_map(|(scale, shift)| ScaleShift { scale, shift }),
        1 => (1u32..1000, 0u8..12).prop_map(|(scale, shift)| ScaleShift { scale, shift }),
        1 => (any::<u32>(), 0u8..64).prop_map(|(scale, shift)| ScaleShift { scale, shift }),
    ]
}

fn activations() -> impl Strategy<Value = (u16, u16)> {
    prop_oneof![
        3 => Just((-128i16 as u16, 127)),
        1 => Just((0, 255)),
        2 => (i16::MIN..=0, 0..=i16::MAX).prop_map(|(low, high)| (low as u16, high as u16)),
        1 => any::<(u16, u16)>(),
    ]
}

prop_compose! {
    fn operations()(
        (kind, accelerator, seed, overlap) in (
            kinds(),
            prop_oneof![Just(Accelerator::U55_32), Just(Accelerator::U55_128), Just(Accelerator::U65_256)],
            any::<u64>(),
            prop_oneof![3 => Just(None), 1 => any::<u32>().prop_map(Some), 1 => Just(Some(0))],
        ),
        ofm in (1u16..9, 1u16..20, 1u16..40), ifm_depth in prop_oneof![1u16..40, Just(16u16), Just(32u16)],
        (kernel, stride, dilation) in ((1u16..6, 1u16..6), (1u8..4, 1u8..4), (1u8..3, 1u8..3)),
        one_by_one in prop_oneof![1 => Just(true), 2 => Just(false)],
        pad in prop_oneof![Just((0u8, 0u8, 0u8, 0u8)), (0u8..4, 0u8..4, 0u8..4, 0u8..4)],
        upscale in prop_oneof![6 => Just(Upscale::None), 1 => Just(Upscale::Nearest), 1 => Just(Upscale::Zeros)],
        (ifm_map, ifm2_map, ofm_map) in (maps(), maps(), maps()), alike in any::<bool>(),
        (height, width, depth, operand_order_reversed, scalar) in any::<(bool, bool, bool, bool, bool)>(), narrow in any::<bool>(),
        scalar_value in prop_oneof![any::<i8>(), 0i8..32], rigid in prop_oneof![9 => Just(true), 1 => Just(false)],
        operands in (0usize..3, scales(), any::<bool>(), any::<u16>()),
        scale in scales(), global_scale in any::<bool>(), double in any::<bool>(), activation in activations(), wide in any::<bool>(),
        weight_range in prop_oneof![Just(127u16), 0u16..256],
    ) -> Synthetic {
        let mode = [OperandScaleMode::Both16, OperandScaleMode::A32, OperandScaleMode::B32][operands.0];
        let both = mode == OperandScaleMode::Both16;
        let opa = if both && operands.2 { ScaleShift { scale: 1, shift: 0 } }
            else if both { ScaleShift { scale: operands.1.scale & 0xFFFF, shift: 0 } }
            else { operands.1 };
        let elementwise = matches!(kind, Kind::Elementwise(_));
        let reduce = matches!(kind, Kind::Pool(PoolMode::ReduceSum));
        let ofm_map = if alike { Map { zero_point: ofm_map.zero_point, ..ifm_map } } else { ofm_map };
        // The limits in order, in the output's sign.
        let limits = if ofm_map.signed {
            let (a, b) = (activation.0 as i16, activation.1 as i16);
            (a.min(b) as u16, a.max(b) as u16)
        } else {
            (activation.0.min(activation.1), activation.0.max(activation.1))
        };
        let kernel = if one_by_one || elementwise || reduce { (1, 1) } else { kernel };
        // Mostly no more padding than the kernel has taps beside the first.
        let less = |pad: u8, kernel: u16| if rigid { pad % kernel as u8 } else { pad };
        Synthetic {
            accelerator,
            kind,
            ofm: if reduce { (ofm.0, ofm.1, 1) } else { ofm },
            ifm_depth,
            kernel,
            stride: if elementwise { (1, 1) } else { stride },
            dilation,
            pad: if elementwise || reduce {
                (0, 0, 0, 0)
            } else {
                (less(pad.0, kernel.0), less(pad.1, kernel.1), less(pad.2, kernel.0), less(pad.3, kernel.1))
            },
            upscale: if elementwise { Upscale::None } else { upscale },
            ifm_map,
            ifm2_map: if alike { ifm_map } else { ifm2_map },
            ofm_map,
            broadcast: if narrow {
                Ifm2Broadcast { height, width, depth, operand_order_reversed, scalar }
            } else {
                Ifm2Broadcast { height: false, width: false, depth: false, operand_order_reversed, scalar: false }
            },
            scalar: i16::from(scalar_value) as u16,
            operand_scale: (mode, opa, if operands.2 { 1 } else { operands.3 }),
            scale,
            global_scale: global_scale || reduce,
            rounding: if double { Rounding::Double } else { Rounding::Natural },
            activation: limits,
            accumulators: if wide { AccFormat::Int40 } else { AccFormat::Int32 },
            overlap,
            weight_range,
            seed,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(2000), ..ProptestConfig::default() })]

    #[test]
    fn engines_agree_on_every_form(operation in operations(), seed in any::<u64>()) {
        if let Some(fixture) = operation.fixture() {
            let _ = fixture.agree(&LIMITS, seed);
        }
    }
}
