//! Both clocks on the compiled streams beside the tests: against what Vela says of them, and what must hold for any stream.

mod support;

use std::collections::HashMap;

use ethosu_isa::registers::{self, PmuBlock, command, pmcr};
use ethosu_isa::{Accelerator, Command, Decoder, PmuEvent};
use ethosu_model::clock::{
    ClockError, Cost, Counters, Memory, MemoryMode, Meter, Port, Report, System, estimate, estimate_layers,
    simulate, simulate_steps,
};
use ethosu_model::device::{Banks, Npu};
use ethosu_model::{Limits, Operation, Program};
use proptest::prelude::*;
use support::{Fixture, Region, fixtures};

/// Vela 5.2.0's total (`cycles_total` of the summary it writes) for each stream, compiled as `streams/make.py` does; and by how
/// many percent the estimate may differ.
///
/// Where it differs, the stream doesn't tell which operations the compiler took for one, or which weights it took for loaded.
const VELA: [(&str, u64, f64); 35] = [
    ("abs_int16_28_u55_128", 288, 0.0),
    ("add_int16_24_u55_128", 18, 0.0),
    ("add_int8_29_u55_128", 6, 0.0),
    ("arg_max_int8_4_u65_256", 2299, 35.0),
    ("average_pool_2d_int16_4_u55_128", 1327, 0.0),
    ("average_pool_2d_int8_13_u55_128", 589, 0.0),
    ("concatenation_int8_34_u55_64", 13229, 0.0),
    ("conv_2d_int16_22_u65_256", 1318, 0.0),
    ("conv_2d_int8_21_u55_32", 1248, 0.0),
    ("conv_2d_int8_32_u65_512", 1026, 1.1),
    ("conv_2d_uint8_7_u55_256", 4954, 0.0),
    ("depthwise_conv_2d_int16_2_u65_512", 4344, 0.0),
    ("depthwise_conv_2d_int8_36_u55_128", 1101, 0.0),
    ("digits_int8_u55_128", 5881, 2.0),
    ("fully_connected_int8_6_u65_512", 1072, 0.0),
    ("gesture_int16_u65_512", 3835, 5.0),
    ("leaky_relu_int16_31_u55_128", 138, 6.0),
    ("leaky_relu_int8_12_u55_128", 864, 0.0),
    ("logistic_int16_13_u65_512", 879, 0.0),
    ("logistic_int8_21_u55_128", 504, 0.0),
    ("max_pool_2d_uint8_6_u65_256", 814, 0.0),
    ("maximum_int16_5_u55_128", 3, 0.0),
    ("mean_int8_17_u55_256", 694, 35.0),
    ("minimum_int8_12_u65_256", 32, 0.0),
    ("mul_int16_7_u55_32", 4800, 0.0),
    ("mul_int32_2_u55_128", 60, 0.0),
    ("mul_int8_1_u55_256", 12, 0.0),
    ("resize_bilinear_int8_7_u55_128", 13200, 0.0),
    ("resize_nearest_neighbor_int8_12_u65_512", 1440, 0.0),
    ("softmax_int16_17_u65_256", 1504, 0.0),
    ("softmax_int8_14_u55_128", 1003, 12.0),
    ("strided_slice_int8_21_u55_128", 95, 0.0),
    ("sub_uint8_31_u55_64", 21, 0.0),
    ("tanh_int16_37_u55_256", 108, 0.0),
    ("transpose_conv_int8_13_u55_64", 662, 0.0),
];

fn program(fixture: &Fixture) -> Program {
    Program::decode(&fixture.stream, fixture.accelerator, &Limits::default()).expect("a fixture decodes")
}

fn is_transfer(program: &Program, offset: usize) -> bool {
    let step = program.steps().iter().find(|step| step.offset == offset).expect("an offset of a step");
    matches!(step.operation, Operation::Dma(_))
}

#[test]
fn estimates_are_those_of_vela() {
    let fixtures: HashMap<String, Fixture> = fixtures().into_iter().collect();
    for (name, vela, percent) in VELA {
        let fixture = &fixtures[name];
        let report = estimate(&program(fixture), &System::usual(fixture.accelerator)).unwrap();
        let difference = 100.0 * (report.total() as f64 - vela as f64).abs() / vela as f64;
        assert!(difference <= percent, "{name}: {} cycles, Vela says {vela}", report.total());
    }
}

/// What must hold for a report of the simulating clock.
fn check_simulation(program: &Program, report: &Report) {
    let offsets: Vec<usize> = report.costs.iter().map(|cost| cost.offset).collect();
    let steps: Vec<usize> = program.steps().iter().map(|step| step.offset).collect();
    assert_eq!(offsets, steps, "each command has its cost");
    let counters = Counters::new(report, 7);
    assert_eq!(counters.cycles(), counters.active + 7);
    for units in [counters.mac_active(), counters.output_active(), counters.weight_decoder] {
        assert!(units <= counters.active, "{units} of {} cycles", counters.active);
    }
    assert!(counters.weight_decoder <= counters.mac_active());
    for cost in &report.costs {
        assert!(cost.end() <= report.total());
        assert!(cost.mac_cycles <= cost.cycles && cost.output_cycles <= cost.cycles, "{cost:?}");
        assert!(cost.weight_cycles <= cost.mac_cycles, "{cost:?}");
    }
    // Commands run one after the other; only transfers run beside them.
    let commands: Vec<&Cost> =
        report.costs.iter().filter(|cost| !is_transfer(program, cost.offset)).collect();
    assert!(commands.windows(2).all(|pair| pair[0].end() <= pair[1].start));
}

#[test]
fn simulated_counters_add_up() {
    for (name, fixture) in fixtures() {
        println!("{name}");
        let program = program(&fixture);
        let system = System::usual(fixture.accelerator);
        let report = simulate(&program, &system).unwrap();
        check_simulation(&program, &report);
        assert_eq!(report.macs(), estimate(&program, &system).unwrap().macs());
        // A run that ends early has done a part of it.
        let mut before = 0;
        for steps in 0..=program.steps().len() {
            let part = simulate_steps(&program, &system, steps).unwrap();
            assert_eq!(part.costs[..], report.costs[..steps]);
            assert!(part.total() >= before);
            before = part.total();
        }
        assert_eq!(before, report.total());
    }
}

#[test]
fn beats_are_independent_of_timing_and_cycles_are_not() {
    for (name, fixture) in fixtures() {
        println!("{name}");
        let program = program(&fixture);
        let system = System::usual(fixture.accelerator);
        let report = simulate(&program, &system).unwrap();
        let mut cycles = report.total();
        for slower in [2u32, 5, 40] {
            let mut slow = system;
            for memory in &mut slow.memories {
                memory.clock_scale /= f64::from(slower);
                memory.read_latency *= slower;
                memory.write_latency *= slower;
            }
            let slow = simulate(&program, &slow).unwrap();
            assert_eq!(slow.beats(), report.beats());
            assert!(slow.total() >= cycles, "{slower} times slower memory");
            cycles = slow.total();
        }
        // Every word of the stream is read, and every result written, through some port.
        let beats = report.beats();
        assert!(beats.axi1.read >= fixture.stream.len() as u64 / 16);
        let written = beats.axi0.written + beats.axi1.written;
        assert!(written > 0);
        // With everything behind one port, that one has all beats.
        let one = System::new(500e6, Memory::new(), Memory::new(), MemoryMode::SRAM_ONLY);
        let one = simulate(&program, &one).unwrap().beats();
        assert_eq!(one.axi0.read, beats.axi0.read + beats.axi1.read);
        assert_eq!(one.axi0.written, written);
        assert_eq!(one.axi1, Default::default());
    }
}

#[test]
fn layers_can_be_given() {
    for (name, fixture) in fixtures() {
        println!("{name}");
        let program = program(&fixture);
        let system = System::usual(fixture.accelerator);
        let commands = program.steps().iter().filter(|step| !matches!(step.operation, Operation::Dma(_)));
        let commands: Vec<usize> = commands.map(|step| step.offset).collect();
        let found = estimate(&program, &system).unwrap();
        assert_eq!(found.costs.iter().map(|cost| cost.commands).sum::<usize>(), commands.len());
        // All commands in one layer, and each in its own but for the pieces of a transposition.
        let one = estimate_layers(&program, &system, |_| Some(3)).unwrap();
        assert!(one.costs.len() == 1 || one.costs.iter().any(|cost| cost.name == "TRANSPOSE"));
        let each = estimate_layers(&program, &system, |offset| Some(offset as u32)).unwrap();
        assert!(each.costs.len() >= found.costs.len() && each.costs.len() <= commands.len());
        assert_eq!(each.costs[0].offset, commands[0]);
        for report in [&found, &one, &each] {
            let starts: Vec<u64> = report.costs.iter().map(|cost| cost.start).collect();
            let ends: Vec<u64> = report.costs.iter().map(Cost::end).collect();
            assert_eq!(starts[1..], ends[..ends.len() - 1], "layers follow one another");
        }
    }
}

/// A fixture by name.
fn fixture(name: &str) -> Fixture {
    fixtures().into_iter().find(|(found, _)| found == name).expect("the fixture is there").1
}

#[test]
fn what_is_missing_is_named() {
    let fixture = fixture("digits_int8_u55_128");
    let product = fixture.accelerator.product();
    let mut stream = Vec::new();
    for instruction in Decoder::new(&fixture.stream, product).map(Result::unwrap) {
        if !matches!(instruction.command, Command::OfmBlkWidthM1(_)) {
            stream.extend_from_slice(&fixture.stream[instruction.offset..][..instruction.words.bytes()]);
        }
    }
    let program = Program::decode(&stream, fixture.accelerator, &Limits::default()).unwrap();
    let system = System::usual(fixture.accelerator);
    let first = program.steps().iter().find(|step| !matches!(step.operation, Operation::Dma(_))).unwrap();
    for result in [simulate(&program, &system), estimate(&program, &system)] {
        let Err(ClockError::NeverSet { offset, register }) = result else { panic!("{result:?}") };
        assert_eq!(offset, first.offset);
        assert!(register.contains("OFM_BLK_WIDTH_M1"));
    }
    let mut still = system;
    still.memories[Port::Axi1.index()].clock_scale = 0.0;
    let error = simulate(&program, &still).unwrap_err();
    assert_eq!(error, ClockError::Bandwidth { port: Port::Axi1, bytes_per_cycle: 0.0 });
    assert!(error.to_string().contains("AXI1"));
}

/// A fixture's job on a register-level NPU, with constants and commands behind AXI1 and everything else behind AXI0.
fn run_on_device(fixture: &Fixture, npu: &mut Npu<Banks>, command_port: u32) {
    let base = |region: u8| 0x1_0000 * (u32::from(region) + 1);
    let mut ports = 0;
    for (region, content) in &fixture.regions {
        match content {
            Region::Constant(bytes) => {
                npu.memory_mut().rom(base(*region).into(), bytes.clone());
                ports |= 2 << (2 * region);
            }
            Region::Writable(size) => npu.memory_mut().ram(base(*region).into(), *size),
            Region::Alias(_) => unreachable!("not in this fixture"),
        }
        npu.write(registers::BASEP + 8 * u32::from(*region), base(*region));
    }
    npu.memory_mut().rom(0x100_0000, fixture.stream.clone());
    npu.write(registers::REGIONCFG, ports);
    npu.write(registers::QCONFIG, command_port);
    npu.write(registers::QBASE, 0x100_0000);
    npu.write(registers::QSIZE, fixture.stream.len() as u32);
    npu.write(registers::CMD, command::RUN);
}

#[test]
fn a_performance_monitor_counts_what_the_clock_says() {
    let fixture = fixture("digits_int8_u55_128");
    let product = fixture.accelerator.product();
    let mut npu = Npu::new(fixture.accelerator, Banks::new());
    let usual = System::usual(fixture.accelerator);
    npu.set_activity(Meter::new(usual.memories).idle(50));
    let monitor = PmuBlock::of(product);
    let events = [
        PmuEvent::NpuActive,
        PmuEvent::Axi0RdDataBeatReceived,
        PmuEvent::Axi1RdDataBeatReceived,
        PmuEvent::MacActive8bit,
    ];
    for (index, event) in (0..).zip(events) {
        npu.write(monitor.event(index), event.number(product).unwrap().into());
    }
    npu.write(monitor.control(), pmcr::ENABLE);
    npu.write(monitor.enable_set(), registers::CYCLE_COUNTER | 0xF);
    run_on_device(&fixture, &mut npu, 2);
    assert_eq!(npu.refusal(), None);

    let program = program(&fixture);
    let mut system = usual;
    for (region, content) in &fixture.regions {
        let constant = matches!(content, Region::Constant(_));
        system.regions[usize::from(*region)] = if constant { Port::Axi1 } else { Port::Axi0 };
    }
    let counters = Counters::new(&simulate(&program, &system).unwrap(), 50);
    assert_eq!(u64::from(npu.read(monitor.cycles())), counters.cycles());
    for (index, event) in (0..).zip(events) {
        let expected = counters.event(event, product).unwrap();
        assert!(expected > 0, "{event}");
        assert_eq!(u64::from(npu.read(monitor.counter(index))), expected, "{event}");
    }
    assert_eq!(
        counters.event(PmuEvent::SramRdDataBeatReceived, product),
        None,
        "an event of another product"
    );
    assert_eq!(counters.event(PmuEvent::AxiLatencyAny, product), None, "nothing is known of it");
    assert_eq!(counters.events(product).count(), 16);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Streams that were compiled, with words exchanged for others: the clocks give a report or say what is missing, and what
    /// they report adds up.
    #[test]
    fn any_stream_that_decodes_has_a_price_or_a_reason(
        which in any::<prop::sample::Index>(), accelerator in prop::sample::select(&Accelerator::ALL[..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u16>(), 0u32..16), 0..8),
        scale in 1u32..2000, latency in 0u32..5000, deaf in any::<bool>(),
    ) {
        let fixtures = fixtures();
        let fixture = &fixtures[which.index(fixtures.len())].1;
        let mut stream = fixture.stream.clone();
        for (at, value, shift) in changes {
            // The parameter of a command, made small more often than not.
            let word = at.index(stream.len() / 4) * 4;
            stream[word + 2..word + 4].copy_from_slice(&(value >> shift).to_le_bytes());
        }
        let accelerator = if deaf { accelerator } else { fixture.accelerator };
        let limits = Limits { work: 1 << 26, map_elements: 1 << 20 };
        let Ok(program) = Program::decode(&stream, accelerator, &limits) else { return Ok(()) };
        let mut system = System::usual(accelerator);
        for memory in &mut system.memories {
            memory.clock_scale = f64::from(scale) / 1000.0;
            memory.read_latency = latency;
        }
        match simulate(&program, &system) {
            Ok(report) => check_simulation(&program, &report),
            Err(error) => prop_assert!(matches!(error, ClockError::NeverSet { .. }), "{}", error),
        }
        if let Ok(report) = estimate(&program, &system) {
            prop_assert!(report.costs.iter().all(|cost| cost.cycles >= cost.npu_cycles));
        }
    }
}
