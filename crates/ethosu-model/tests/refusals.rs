//! What isn't known to be right is refused, and the refusal names the command and the field.

use ethosu_isa::{
    Accelerator, Activation, ActivationFunction, ClipRange, Command, Decomposition, DmaRegion, DmaStride,
    ElementSize, ElementwiseMode, Ifm2Broadcast, IfmPrecision, KernelStride, Layout, OfmPrecision,
    OfmScaleMode, OperandScaleMode, PoolMode, Product, Rounding, ScaleShift, Upscale,
};
use ethosu_model::{Cause, Limits, Memory, Program, Stop, fast, reference};

const ACCELERATOR: Accelerator = Accelerator::U55_128;

fn encode(commands: &[Command]) -> Vec<u8> {
    let mut stream = Vec::new();
    for command in commands {
        for word in command.encode(Product::U55).expect("the command is one of U55's").iter() {
            stream.extend(word.to_le_bytes());
        }
    }
    stream
}

fn decode(commands: &[Command]) -> Result<Program, Stop> {
    Program::decode(&encode(commands), ACCELERATOR, &Limits::default())
}

fn ifm_precision(size: ElementSize) -> IfmPrecision {
    IfmPrecision {
        signed: true,
        size,
        layout: Layout::Nhwc,
        scale_mode: OperandScaleMode::Both16,
        rounding: Rounding::Double,
    }
}

fn ofm_precision(size: ElementSize) -> OfmPrecision {
    OfmPrecision {
        signed: true,
        size,
        layout: Layout::Nhwc,
        scale_mode: OfmScaleMode::Global,
        rounding: Rounding::Natural,
    }
}

/// All registers that any operation on a map of one row of four elements needs: input at 0, second input at 64, output at 128
/// of region 1.
fn setup(size: ElementSize) -> Vec<Command> {
    use Command::*;
    let bytes = i64::from(size.bytes());
    vec![
        IfmPrecision(ifm_precision(size)),
        IfmUpscale(Upscale::None),
        IfmZeroPoint(0),
        IfmWidth0M1(3),
        IfmHeight0M1(0),
        IfmHeight1M1(0),
        IfmRegion(1),
        IfmBase0(0),
        IfmBase1(0),
        IfmBase2(0),
        IfmBase3(0),
        IfmStrideX(bytes),
        IfmStrideY(4 * bytes),
        IfmStrideC(bytes),
        IfmDepthM1(0),
        IfmPadTop(0),
        IfmPadLeft(0),
        IfmPadBottom(0),
        IfmPadRight(0),
        OfmPrecision(ofm_precision(size)),
        OfmZeroPoint(0),
        OfmWidthM1(3),
        OfmHeightM1(0),
        OfmDepthM1(0),
        OfmWidth0M1(3),
        OfmHeight0M1(0),
        OfmHeight1M1(0),
        OfmRegion(1),
        OfmBase0(128),
        OfmBase1(0),
        OfmBase2(0),
        OfmBase3(0),
        OfmStrideX(bytes),
        OfmStrideY(4 * bytes),
        OfmStrideC(bytes),
        KernelWidthM1(0),
        KernelHeightM1(0),
        KernelStride(stride()),
        AccFormat(ethosu_isa::AccFormat::Int32),
        Activation(activation(ActivationFunction::None, ClipRange::Ofm)),
        ActivationMin(0x8000),
        ActivationMax(0x7FFF),
        OfmScale(ScaleShift { scale: 1, shift: 0 }),
        OpaScale(ScaleShift { scale: 1, shift: 0 }),
        OpbScale(1),
        Ifm2Broadcast(broadcast(false)),
        Ifm2Precision(ethosu_isa::Ifm2Precision { signed: true, size, layout: Layout::Nhwc }),
        Ifm2ZeroPoint(0),
        Ifm2Width0M1(3),
        Ifm2Height0M1(0),
        Ifm2Height1M1(0),
        Ifm2Region(1),
        Ifm2Base0(64),
        Ifm2Base1(0),
        Ifm2Base2(0),
        Ifm2Base3(0),
        Ifm2StrideX(bytes),
        Ifm2StrideY(4 * bytes),
        Ifm2StrideC(bytes),
    ]
}

fn stride() -> KernelStride {
    KernelStride {
        stride_x: 1,
        stride_y: 1,
        part_kernel_first: false,
        dilation_x: 1,
        dilation_y: 1,
        decomposition: Decomposition::D8x8,
    }
}

fn activation(function: ActivationFunction, clip: ClipRange) -> Activation {
    Activation { function, clip }
}

fn broadcast(scalar: bool) -> Ifm2Broadcast {
    Ifm2Broadcast { height: false, width: false, depth: false, operand_order_reversed: false, scalar }
}

const STOP: Command = Command::Stop { mask: 0xFFFF };

/// The setup, then changes, then an operation.
fn program(size: ElementSize, changes: &[Command], operation: Command) -> Vec<Command> {
    let mut commands = setup(size);
    commands.extend(changes);
    commands.extend([operation, STOP]);
    commands
}

/// The field that a decoding names.
#[track_caller]
fn refused(size: ElementSize, changes: &[Command], operation: Command) -> &'static str {
    match decode(&program(size, changes, operation)) {
        Err(Stop { operation: name, cause: Cause::NotModelled(refusal), .. }) => {
            assert_eq!(name, operation.name());
            refusal.field
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Runs both engines on four elements for each input; gives the output's bytes, or the field that a run names.
fn run(
    size: ElementSize,
    changes: &[Command],
    operation: Command,
    a: &[i32; 4],
    b: &[i32; 4],
) -> Result<Vec<u8>, &'static str> {
    let program = decode(&program(size, changes, operation)).expect("the program is known");
    let bytes = size.bytes() as usize;
    let mut memory = Memory::new();
    memory.bind_writable(1, 256);
    for (start, values) in [(0, a), (64, b)] {
        for (i, value) in values.iter().enumerate() {
            let at = start + i * bytes;
            memory.bytes_mut(1).unwrap()[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }
    let mut planned = memory.clone();
    let plan = fast::Plan::new(&program, &memory);
    let result = reference::run(&program, &mut memory);
    assert_eq!(plan.run(&mut planned, &mut fast::Workspace::default()), result);
    assert_eq!(planned.bytes(1), memory.bytes(1));
    match result {
        Ok(()) => Ok(memory.bytes(1).unwrap()[128..128 + 4 * bytes].to_vec()),
        Err(Stop { cause: Cause::NotModelled(refusal), .. }) => Err(refusal.field),
        Err(other) => panic!("{other}"),
    }
}

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn the_setup_itself_runs() {
    let sum = run(
        ElementSize::Bits8,
        &[],
        Command::Elementwise(ElementwiseMode::Add),
        &[1, 2, 100, -100],
        &[1, -5, 100, -100],
    );
    assert_eq!(sum.unwrap(), [2, -3i8 as u8, 127, -128i8 as u8]);
    let largest = run(
        ElementSize::Bits32,
        &[],
        Command::Elementwise(ElementwiseMode::Max),
        &[1, 2, 3, 4],
        &[4, 3, 2, 1],
    );
    assert_eq!(words(&largest.unwrap()), [4, 3, 3, 4]);
}

#[test]
fn an_operation_needs_each_register_that_it_consults_and_no_other() {
    // A pool consults none of the second input's; an addition none of the kernel's.
    let spared = |operation: &Command, name: &str| match operation {
        Command::Pool(_) => {
            name.contains("IFM2")
                || name.contains("OPA")
                || name.contains("OPB")
                || name.ends_with("IFM_DEPTH_M1")
        }
        _ => name.contains("KERNEL") || name.contains("PAD") || name.ends_with("IFM_DEPTH_M1"),
    };
    for operation in [Command::Pool(PoolMode::Average), Command::Elementwise(ElementwiseMode::Add)] {
        for left_out in setup(ElementSize::Bits8) {
            let mut commands: Vec<Command> = setup(ElementSize::Bits8)
                .into_iter()
                .filter(|command| command.name() != left_out.name())
                .collect();
            commands.extend([operation, STOP]);
            let name = left_out.name();
            // The accumulators' width can only make a difference where they overflow.
            let never = spared(&operation, name) || name == "NPU_SET_ACC_FORMAT";
            match decode(&commands) {
                Ok(_) => assert!(never, "{name} isn't needed by {operation:?}"),
                Err(Stop { cause: Cause::NeverSet { register }, operation: at, .. }) => {
                    assert_eq!(Some(register), name.strip_prefix("NPU_SET_"));
                    assert_eq!(at, operation.name());
                    assert!(!never, "{name} is needed by {operation:?}");
                }
                Err(other) => panic!("{name}: {other}"),
            }
        }
    }
}

#[test]
fn forms_that_no_reference_confirms() {
    use Command::*;
    use ElementSize::{Bits8, Bits16, Bits32};
    let add = Elementwise(ElementwiseMode::Add);
    let average = Pool(PoolMode::Average);
    let truncated = |precision: ethosu_isa::OfmPrecision| {
        OfmPrecision(ethosu_isa::OfmPrecision { rounding: Rounding::Truncate, ..precision })
    };
    assert_eq!(refused(Bits8, &[truncated(ofm_precision(Bits8))], add), "OFM_PRECISION rounding");
    assert_eq!(refused(Bits8, &[truncated(ofm_precision(Bits8))], average), "OFM_PRECISION rounding");
    let operand = ethosu_isa::IfmPrecision {
        scale_mode: OperandScaleMode::A32,
        rounding: Rounding::Truncate,
        ..ifm_precision(Bits8)
    };
    assert_eq!(refused(Bits8, &[IfmPrecision(operand)], add), "IFM_PRECISION rounding");
    let wide = ethosu_isa::IfmPrecision { scale_mode: OperandScaleMode::B32, ..ifm_precision(Bits32) };
    assert_eq!(refused(Bits32, &[IfmPrecision(wide)], add), "IFM_PRECISION scale mode");
    assert_eq!(refused(Bits32, &[IfmZeroPoint(3)], add), "IFM_ZERO_POINT");
    assert_eq!(refused(Bits32, &[Ifm2ZeroPoint(3)], add), "IFM2_ZERO_POINT");
    assert_eq!(refused(Bits8, &[OpaScale(ScaleShift { scale: 2, shift: 1 })], add), "OPA_SCALE shift");
    assert_eq!(refused(Bits8, &[IfmUpscale(Upscale::Nearest)], add), "IFM_UPSCALE");
    for clip in [ClipRange::U8, ClipRange::I8, ClipRange::I16] {
        let change = Activation(activation(ActivationFunction::None, clip));
        assert_eq!(refused(Bits8, &[change], add), "ACTIVATION clip range");
    }
    let tanh = Activation(activation(ActivationFunction::Tanh, ClipRange::Ofm));
    assert_eq!(refused(Bits16, &[tanh, OfmZeroPoint(1)], average), "OFM_ZERO_POINT");
    assert_eq!(refused(Bits8, &[tanh], average), "OFM_PRECISION");
    let table = |slot| Activation(activation(ActivationFunction::Table(slot), ClipRange::Ofm));
    assert_eq!(refused(Bits16, &[table(1)], average), "the table's first byte");
    assert_eq!(refused(Bits8, &[ActivationMin(5), ActivationMax(4)], average), "ACTIVATION_MIN");
    let far = |change: fn(&mut ethosu_isa::KernelStride)| {
        let mut stride = stride();
        change(&mut stride);
        KernelStride(stride)
    };
    assert_eq!(refused(Bits8, &[far(|stride| stride.stride_x = 4)], average), "KERNEL_STRIDE stride_x");
    assert_eq!(refused(Bits8, &[far(|stride| stride.stride_y = 4)], average), "KERNEL_STRIDE stride_y");
    let decomposed = far(|stride| stride.decomposition = Decomposition::D4x4);
    assert_eq!(refused(Bits8, &[decomposed], average), "KERNEL_STRIDE decomposition");
    assert_eq!(refused(Bits8, &[AccFormat(ethosu_isa::AccFormat::Float16)], average), "ACC_FORMAT");
    assert_eq!(
        refused(Bits8, &[IfmPadTop(1), OfmScale(ScaleShift { scale: 2, shift: 0 })], average),
        "the IFM height that output, kernel and padding give"
    );
    let padded = [KernelHeightM1(1), IfmPadTop(1), OfmScale(ScaleShift { scale: 2, shift: 0 })];
    assert_eq!(refused(Bits8, &padded, average), "OFM_SCALE");
    assert_eq!(refused(Bits8, &[IfmUpscale(Upscale::Zeros)], Pool(PoolMode::Max)), "IFM_UPSCALE");
    assert_eq!(refused(Bits8, &[KernelWidthM1(1)], Pool(PoolMode::ReduceSum)), "KERNEL_WIDTH_M1");
    let global =
        [OfmBlkDepthM1(7), WeightRegion(0), WeightBase(0), WeightLength(16), ScaleRegion(0), ScaleBase(0)];
    assert_eq!(refused(Bits8, &global, Conv), "OFM_PRECISION scale mode");
    let copy = |side: DmaRegion| {
        [
            Dma0SrcRegion(side),
            Dma0DstRegion(DmaRegion { region: 1, internal: false, stride_mode: DmaStride::D1 }),
            Dma0Src(0),
            Dma0Dst(0),
            Dma0Len(16),
        ]
    };
    let internal = copy(DmaRegion { region: 0, internal: true, stride_mode: DmaStride::D1 });
    assert_eq!(refused(Bits8, &internal, DmaStart), "DMA0_SRC_REGION internal");
}

#[test]
fn values_that_no_reference_confirms() {
    use Command::*;
    use ElementSize::{Bits8, Bits32};
    let element = |mode| Elementwise(mode);
    let clz = element(ElementwiseMode::Clz);
    assert_eq!(words(&run(Bits32, &[], clz, &[1, -1, 256, i32::MAX], &[0; 4]).unwrap()), [31, 0, 23, 1]);
    assert_eq!(run(Bits32, &[], clz, &[1, 0, 1, 1], &[0; 4]), Err("the operand of CLZ"));
    let shr = element(ElementwiseMode::Shr);
    assert_eq!(words(&run(Bits32, &[], shr, &[5, -5, 6, 7], &[1, 2, 2, 0]).unwrap()), [3, -1, 2, 7]);
    assert_eq!(run(Bits32, &[], shr, &[0, -5, 0, 0], &[1; 4]), Err("the operand of SHR"));
    assert_eq!(run(Bits32, &[], shr, &[0; 4], &[32; 4]), Err("the shift of SHR"));
    let shl = element(ElementwiseMode::Shl);
    assert_eq!(
        words(&run(Bits32, &[], shl, &[1, -1, 3, 0], &[30, 31, 1, 9]).unwrap()),
        [1 << 30, i32::MIN, 6, 0]
    );
    assert_eq!(run(Bits32, &[], shl, &[1; 4], &[31; 4]), Err("the result of SHL"));
    let add = element(ElementwiseMode::Add);
    assert_eq!(run(Bits32, &[], add, &[i32::MAX; 4], &[1; 4]), Err("the 32-bit output"));
    let scaled = [
        OpaScale(ScaleShift { scale: 1 << 14, shift: 0 }),
        OpbScale(1 << 14),
        OfmScale(ScaleShift { scale: 1 << 30, shift: 44 }),
    ];
    assert_eq!(words(&run(Bits32, &scaled, add, &[7, -9, 100, 1], &[1; 4]).unwrap()), [8, -8, 101, 2]);
    assert_eq!(run(Bits32, &scaled, add, &[1 << 18; 4], &[1; 4]), Err("a scaled operand"));
    let table = Activation(activation(ActivationFunction::Table(0), ClipRange::Ofm));
    assert_eq!(
        run(Bits8, &[table], Pool(PoolMode::Average), &[1; 4], &[0; 4]),
        Err("the table's first byte")
    );
    // The multiplier of a 32-bit multiplication has no effect, only its shift.
    let mul = element(ElementwiseMode::Mul);
    let scale = OfmScale(ScaleShift { scale: 12345, shift: 1 });
    assert_eq!(
        words(&run(Bits32, &[scale], mul, &[3, -3, 1 << 15, 10], &[3, 3, 4, 10]).unwrap()),
        [5, -4, 1 << 16, 50]
    );
}

#[test]
fn faults_are_told_apart_from_refusals() {
    let average = Command::Pool(PoolMode::Average);
    let far = program(ElementSize::Bits8, &[Command::OfmBase0(1 << 20)], average);
    let mut memory = Memory::new();
    memory.bind_writable(1, 256);
    let stop = reference::run(&decode(&far).unwrap(), &mut memory).unwrap_err();
    assert!(stop.is_fault());
    assert_eq!(
        stop.to_string(),
        format!(
            "NPU_OP_POOL at byte {:#x} of the command stream: OFM: 1 bytes at 0x100000 don't lie in region 1, which has 0x100 bytes",
            stop.offset
        )
    );
    memory = Memory::new();
    memory.bind_constant(1, vec![0; 256].into());
    let stop = reference::run(&decode(&program(ElementSize::Bits8, &[], average)).unwrap(), &mut memory)
        .unwrap_err();
    assert!(stop.is_fault() && stop.to_string().contains("region 1, which is read-only"), "{stop}");
    let endless = decode(&setup(ElementSize::Bits8)).unwrap_err();
    assert!(endless.is_fault() && endless.cause == Cause::Endless);
    let unknown = Program::decode(&[0xFF, 0x03, 0, 0], ACCELERATOR, &Limits::default()).unwrap_err();
    assert!(unknown.is_fault());
    let unset = decode(&[average, STOP]).unwrap_err();
    assert!(!unset.is_fault());
}

#[test]
fn work_is_limited() {
    let commands = program(
        ElementSize::Bits8,
        &[Command::OfmHeightM1(999), Command::OfmWidthM1(999)],
        Command::Pool(PoolMode::Max),
    );
    let decode = |limits: Limits| {
        Program::decode(&encode(&commands), ACCELERATOR, &limits).map(|program| program.work())
    };
    assert_eq!(decode(Limits::default()), Ok(2_000_000));
    let stop = decode(Limits { work: 1_999_999, ..Limits::default() }).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { limit: 1_999_999, .. }), "{stop}");
    let stop = decode(Limits { map_elements: 999_999, ..Limits::default() }).unwrap_err();
    assert!(matches!(stop.cause, Cause::WorkLimit { limit: 999_999, .. }), "{stop}");
}

#[test]
fn an_unscaled_product_near_the_ends_of_32_bits_is_not_wrapped_by_the_zero_point() {
    // The largest product is 53,687 * 40,000 = 2,147,480,000, which is below 2^31 by less than the zero point.
    let changes = [Command::IfmZeroPoint(20919), Command::Ifm2ZeroPoint(7232), Command::OfmZeroPoint(32767)];
    let mul = Command::Elementwise(ElementwiseMode::Mul);
    let products =
        run(ElementSize::Bits16, &changes, mul, &[-32768, 32767, 20919, 20920], &[-32768, 32767, 0, 7231]);
    let expected = [32767i16, 32767, 32767, 32766].map(i16::to_le_bytes).concat();
    assert_eq!(products, Ok(expected));
}
