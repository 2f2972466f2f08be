//! What a driver has to be set up with: held against what the model of the NPU really touches, and against docs/driver.md.

mod support;

use std::fs;
use std::sync::Arc;

use ethosu_isa::{Accelerator, Command, DmaRegion, DmaStride, Payload, Product, cop1_header};
use ethosu_model::{BusFault, Cause, Limits, Memory, Program, Stop, reference};
use npub::{Accel, Blob, BlobBuilder, Role, Storage};
use npukit::driver::{DriverNeeds, DriverNeedsError, Route};
use npukit::{BuildOptions, Toolchain, build, splitmix::SplitMix64};
use npukit_vela::distil::IoMode;
use npukit_vela::progress::Silent;
use serde_json::{Value, json};
use support::{Npukit, digits, gesture};

/// One accelerator of each product.
const ACCELERATORS: [Accelerator; 3] = [Accelerator::U55_128, Accelerator::U65_512, Accelerator::U85_256];

fn compile(model: &[u8], accelerator: Accelerator, io: IoMode) -> Vec<u8> {
    let environment =
        Toolchain::from_environment().unwrap().ensure(&mut Silent).expect("the toolchain is installed");
    let mut options = BuildOptions::new(accelerator);
    options.io = io;
    if accelerator.product() == Product::U65 {
        options.system_config = Some("Ethos_U65_High_End".to_owned());
        options.memory_mode = Some("Dedicated_Sram".to_owned());
    }
    build(environment.vela(), model, &options, &mut Silent).expect("Vela compiles it").npub
}

/// What is changed about a region before a run.
#[derive(Clone, Copy, Debug)]
enum Change {
    Absent,
    ReadOnly,
    Bytes(u64),
    Filled(u8),
}

/// Runs a blob on the plain engine, which checks each access on its own, with one region changed. Regions that aren't constant
/// start with the same noise every time.
fn run(blob: &Blob<'_>, slot: u8, change: Change) -> Result<Memory, Stop> {
    let accelerator = npukit::accelerator_of(blob).unwrap();
    let program = Program::decode(blob.command_stream().bytes(), accelerator, &Limits::default())?;
    let mut memory = Memory::new();
    let mut noise = SplitMix64::new(9);
    for (region, descriptor) in (0u8..).zip(blob.regions()) {
        let mut bytes = match descriptor.storage() {
            Storage::Baked { .. } => blob.region_bytes(region.into()).unwrap().to_vec(),
            _ => (0..descriptor.size).map(|_| noise.next_word() as u8).collect(),
        };
        let mut constant = matches!(descriptor.storage(), Storage::Baked { .. });
        match (region == slot, change) {
            (true, Change::Absent) => continue,
            (true, Change::ReadOnly) => constant = true,
            (true, Change::Bytes(size)) => bytes.truncate(size as usize),
            (true, Change::Filled(byte)) => bytes.fill(byte),
            (false, _) => {}
        }
        match descriptor.storage() {
            Storage::Tensors { .. } => {}
            Storage::Alias { of } => memory.bind_alias(region, of as u8),
            _ if constant => memory.bind_constant(region, Arc::from(bytes)),
            _ => {
                memory.bind_writable(region, bytes.len());
                memory.bytes_mut(region).unwrap().copy_from_slice(&bytes);
            }
        }
    }
    reference::run(&program, &mut memory)?;
    Ok(memory)
}

fn fault(ran: Result<Memory, Stop>) -> Option<BusFault> {
    match ran.err()?.cause {
        Cause::Bus { fault, .. } => Some(fault),
        other => panic!("{other}"),
    }
}

/// Each region that the NPU touches is listed with its directions and bytes, and no other.
fn listed_as_touched(bytes: &[u8], case: &str) {
    let blob = Blob::parse(bytes).unwrap();
    let needs = DriverNeeds::of_blob(&blob).unwrap();
    assert_eq!(needs.problems, [""; 0], "{case}");
    for slot in
        (0u8..).zip(blob.regions()).filter(|(_, region)| !region.flags.tensors()).map(|(slot, _)| slot)
    {
        let need = needs.regions.iter().find(|need| need.region == slot);
        let absent = fault(run(&blob, slot, Change::Absent));
        assert_eq!(absent, need.map(|_| BusFault::Unbound { region: slot }), "{case}, region {slot}");
        let Some(need) = need else { continue };
        assert_eq!(need.bytes, u64::from(blob.regions()[usize::from(slot)].size), "{case}, region {slot}");
        if need.storage.starts_with("alias") {
            continue;
        }
        let read_only = fault(run(&blob, slot, Change::ReadOnly));
        assert_eq!(
            matches!(read_only, Some(BusFault::ReadOnly { region, .. }) if region == slot),
            need.written,
            "{case}, region {slot}: {read_only:?}"
        );
        // To the byte.
        let reached = need.reached_bytes;
        assert_eq!(fault(run(&blob, slot, Change::Bytes(reached))), None, "{case}, region {slot}");
        let short = fault(run(&blob, slot, Change::Bytes(reached - 1)));
        assert!(
            matches!(short, Some(BusFault::Outside { region, .. }) if region == slot),
            "{case}: {short:?}"
        );
        // What isn't read has no effect.
        if !need.read {
            let [one, other] =
                [0x00, 0xA5].map(|fill| (fill, run(&blob, slot, Change::Filled(fill)).unwrap()));
            for region in needs.regions.iter().map(|need| need.region) {
                let pairs = one.1.bytes(region).unwrap().iter().zip(other.1.bytes(region).unwrap());
                let untouched = |pair: (&u8, &u8)| region == slot && (*pair.0, *pair.1) == (one.0, other.0);
                assert!(
                    pairs.into_iter().all(|pair| pair.0 == pair.1 || untouched(pair)),
                    "{case}, region {region}"
                );
            }
        }
    }
    assert!(needs.regions.iter().any(|need| need.written) && needs.regions.iter().any(|need| need.read));
}

#[test]
fn regions_are_listed_as_the_npu_touches_them() {
    let examples = [digits(), gesture()].map(std::path::PathBuf::from);
    let models = npukit_testkit::MODELS.iter().filter_map(|name| npukit_testkit::model(name));
    for path in examples.into_iter().chain(models) {
        let model = fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for accelerator in ACCELERATORS {
            let io = if name.len() % 2 == 0 { IoMode::Arena } else { IoMode::Separate };
            let bytes = compile(&model, accelerator, io);
            listed_as_touched(&bytes, &format!("{name} on {accelerator}, io {io}"));
        }
    }
}

/// The rows of docs/driver.md: system configuration, memory mode, commands, regions 0, 1, 3 and 2, QCONFIG and REGIONCFG.
fn documented() -> Vec<Vec<String>> {
    let text = fs::read_to_string(npukit_testkit::repository().join("docs/driver.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| Ethos_U"));
    let rows: Vec<Vec<String>> = rows
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect();
    assert_eq!(rows.len(), 33, "11 system configurations, 3 modes");
    rows
}

#[test]
fn settings_are_those_of_the_document() {
    let mut compared = 0;
    let networks = [Some(digits().into()), npukit_testkit::model("vww_96_int8.tflite")];
    for path in networks.into_iter().flatten() {
        let model = fs::read(path).unwrap();
        for accelerator in ACCELERATORS {
            let bytes = compile(&model, accelerator, IoMode::Separate);
            let needs = DriverNeeds::of_blob(&Blob::parse(&bytes).unwrap()).unwrap();
            let routings = needs.routings(None, None);
            assert!(!routings.memory_modes.is_empty());
            assert_eq!(routings.memory_modes.len() + routings.excluded_modes.len(), 6);
            for routing in &routings.memory_modes {
                for memory in &routing.system_configs {
                    let mode = routing
                        .memory_mode
                        .trim_end_matches("KB")
                        .trim_end_matches(|c: char| c.is_ascii_digit());
                    let mode = mode.trim_end_matches('_');
                    let row =
                        documented().into_iter().find(|row| row[0] == memory.system_config && row[1] == mode);
                    let row = row.unwrap();
                    let cell =
                        |memory: &str, Route { selector, port, .. }| format!("{memory}, {selector} → {port}");
                    assert_eq!(row[2], cell(memory.constants, routing.commands));
                    for region in &routing.regions {
                        let (column, memory) = match region.region {
                            0 => (3, memory.constants),
                            1 => (4, memory.arena),
                            2 => (6, memory.fast.unwrap()),
                            _ => (5, memory.arena),
                        };
                        assert_eq!(row[column], cell(memory, region.route), "{row:?}");
                        compared += 1;
                    }
                    assert_eq!(row[7], routing.qconfig.to_string());
                    assert_eq!(row[8], format!("{:#06x}", routing.regioncfg));
                }
            }
            // The mode it was compiled with is one of them.
            let (name, default) = match accelerator.product() {
                Product::U55 => ("Shared_Sram", true),
                Product::U65 => ("Dedicated_Sram", false),
                Product::U85 => ("Dedicated_Sram_384KB", true),
            };
            let own = routings.memory_modes.iter().find(|routing| routing.memory_mode == name).unwrap();
            assert_eq!(own.vela_default, default);
            assert_eq!(own.driver_default, accelerator.product() == Product::U55);
            // Fast scratch only is where a Dedicated_Sram mode put it.
            assert_eq!(needs.fast_memory_bytes.is_some(), needs.regions.iter().any(|need| need.region == 2));
            assert_eq!(needs.fast_memory_bytes.is_some(), accelerator.product() != Product::U55);
        }
    }
    assert!(compared > 100, "{compared}");
}

fn stream(commands: &[Command], product: Product) -> Vec<u8> {
    let words =
        commands.iter().flat_map(|command| command.encode(product).unwrap().iter().collect::<Vec<_>>());
    words.flat_map(u32::to_le_bytes).collect()
}

/// Copies 16 bytes from the start of one region to an offset of another.
fn copy(from: u8, to: u8, offset: u64) -> Vec<Command> {
    let side = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    vec![
        Command::Dma0SrcRegion(side(from)),
        Command::Dma0Src(0),
        Command::Dma0DstRegion(side(to)),
        Command::Dma0Dst(offset),
        Command::Dma0Len(16),
        Command::DmaStart,
        Command::Stop { mask: 0xFFFF },
    ]
}

fn blob(accelerator: Accel, commands: &[u8], regions: &[(Role, Option<&[u8]>, u32)]) -> Vec<u8> {
    let mut builder = BlobBuilder::new(accelerator);
    builder.command_bytes(commands);
    for (role, baked, size) in regions {
        match baked {
            Some(bytes) => builder.baked(*role, bytes),
            None => builder.runtime(*role, *size),
        };
    }
    builder.build().unwrap()
}

fn needs(bytes: &[u8]) -> Result<DriverNeeds, DriverNeedsError> {
    DriverNeeds::of_blob(&Blob::parse(bytes).unwrap())
}

#[test]
fn what_no_driver_can_run_is_said() {
    let scratch = (Role::Scratch, None, 64);
    let weights: (Role, Option<&[u8]>, u32) = (Role::Weights, Some(&[1; 32]), 32);
    let problems = |commands: &[Command], regions: &[(Role, Option<&[u8]>, u32)]| {
        needs(&blob(Accel::u55(64), &stream(commands, Product::U55), regions)).unwrap().problems
    };
    assert_eq!(problems(&copy(0, 1, 48), &[weights, scratch]), [""; 0]);
    assert_eq!(
        problems(&copy(0, 1, 49), &[weights, scratch]),
        ["the commands reach 0x41 bytes of region 1, which has 0x40"]
    );
    assert_eq!(
        problems(&copy(1, 0, 0), &[weights, scratch]),
        ["the commands write region 0, which holds constants"]
    );
    assert_eq!(
        problems(&copy(0, 5, 0), &[weights, scratch]),
        ["the commands use region 5, which the blob doesn't have"]
    );
    let custom = [Command::UserDefined3(7), Command::Stop { mask: 0xFFFF }];
    let error = needs(&blob(Accel::u55(64), &stream(&custom, Product::U55), &[])).unwrap_err();
    assert!(error.to_string().contains("NPU_SET_USER_DEFINED3"), "a custom DMA isn't passed over: {error}");

    let stop = stream(&[Command::Stop { mask: 0xFFFF }], Product::U55);
    assert!(matches!(needs(&blob(Accel::default(), &stop, &[])), Err(DriverNeedsError::UnknownAccelerator)));
    let none = Accel::u55(77);
    assert!(
        matches!(needs(&blob(none, &stop, &[])), Err(DriverNeedsError::NoSuchAccelerator { found }) if found == none)
    );
    let error = needs(&blob(Accel::u55(64), &[0xFF; 8], &[])).unwrap_err();
    assert!(matches!(error, DriverNeedsError::Program(_)), "{error}");
}

/// Region 0, written: with Shared_Sram it would lie behind the port through which a U55 only reads.
#[test]
fn a_written_region_never_goes_through_the_read_only_port() {
    for (accelerator, expected) in [
        (Accel::u55(64), &["Sram_Only"][..]),
        (Accel::u65(256), &["Sram_Only", "Shared_Sram", "Dedicated_Sram"]),
    ] {
        let product = if accelerator == Accel::u55(64) { Product::U55 } else { Product::U65 };
        let commands = stream(&copy(1, 0, 0), product);
        let regions: [(Role, Option<&[u8]>, u32); 2] = [(Role::Other, None, 64), (Role::Scratch, None, 64)];
        let needs = needs(&blob(accelerator, &commands, &regions)).unwrap();
        let routings = needs.routings(None, None);
        let modes: Vec<&str> = routings.memory_modes.iter().map(|mode| mode.memory_mode).collect();
        assert_eq!(&modes[..expected.len()], expected);
        assert_eq!(modes.len(), if product == Product::U55 { 1 } else { 6 });
        let forbidden: &[&str] = if product == Product::U55 { &["AXI1"] } else { &[] };
        assert_eq!(needs.regions[0].forbidden_ports, forbidden);
        assert!(needs.regions[1].forbidden_ports.is_empty(), "only read");
        if product == Product::U55 {
            let shared =
                routings.excluded_modes.iter().find(|mode| mode.memory_mode == "Shared_Sram").unwrap();
            assert_eq!(shared.reason, "region 0 is written, and AXI1 of an ethos-u55 only reads");
        } else {
            // Where it is written, it can't lie in flash.
            let shared = &routings.memory_modes[1];
            assert!(shared.system_configs.iter().all(|memory| memory.constants == "Dram"), "{shared:?}");
        }
    }
}

#[test]
fn payloads_say_more() {
    let commands = stream(&copy(0, 2, 0), Product::U65);
    let mut bytes = cop1_header(Accelerator::U65_256, commands.len() / 4).unwrap().to_vec();
    bytes.extend(&commands);
    let payload = Payload::parse(&bytes).unwrap();
    let needs = DriverNeeds::of_payload(&payload, 32, 0, Some(4096)).unwrap();
    assert_eq!((needs.framing.as_str(), needs.arm_driver), ("COP1", true));
    assert_eq!((needs.architecture.as_deref(), needs.stream_version), (Some("1.0.6"), 0));
    assert_eq!((needs.fast_memory_bytes, needs.regions[1].reached_bytes), (Some(4096), 16));
    let modes = needs.routings(None, None).memory_modes;
    assert!(modes.iter().all(|mode| mode.memory_mode.starts_with("Dedicated_Sram")) && modes.len() == 4);
    let shared = DriverNeeds::of_payload(&payload, 32, 64, None).unwrap();
    assert_eq!((shared.fast_memory_bytes, shared.regions[1].storage.as_str()), (None, "alias of 1"));
    let modes: Vec<&str> =
        shared.routings(None, None).memory_modes.iter().map(|mode| mode.memory_mode).collect();
    assert_eq!(modes, ["Sram_Only", "Shared_Sram"]);
}

#[test]
fn inspect_prints_them() {
    let npukit = Npukit::new();
    npukit.json(0, &["build", &digits(), "--accel", "ethos-u55-128", "-o", "d.npub"]);
    let text = npukit.run(&["inspect", "d.npub"]).stdout;
    let section = text.split_once("driver\n").unwrap().1;
    let lines: Vec<&str> = section.lines().map(str::trim).collect();
    assert_eq!(lines[0], "needs ethos-u55-128, command stream version 0, no custom DMA (CONFIG 0x00001807)");
    let line = |start: &str| {
        let found = lines.iter().find(|line| line.starts_with(start));
        found
            .unwrap_or_else(|| panic!("no {start:?} in {section}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert!(line("region 1").contains("scratch read, written"), "{section}");
    assert!(line("region 4").ends_with("not through AXI1"), "{section}");
    assert_eq!(line("Sram_Only"), "Sram_Only 1 (AXI0) 0x5551 1 (AXI0) 0 (AXI0) 1 (AXI0) 1 (AXI0)");
    assert_eq!(
        line("Shared_Sram"),
        "Shared_Sram 2 (AXI1) 0x5553 3 (AXI1) 0 (AXI0) 1 (AXI0) 1 (AXI0) the drivers' default, Vela's default for the ethos-u55"
    );

    let object = npukit.json(0, &["inspect", "d.npub"])["driver"].take();
    for (key, value) in [
        ("accel", json!("ethos-u55-128")),
        ("macs", json!(128)),
        ("framing", json!("bare")),
        ("arm_driver", json!(false)),
        ("alignment", json!(16)),
        ("fast_memory_bytes", Value::Null),
        ("problems", json!([])),
    ] {
        assert_eq!(object[key], value, "{key}");
    }
    assert_eq!(object["regions"][3]["region"], 4);
    assert_eq!(
        (&object["regions"][3]["read"], &object["regions"][3]["written"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        object["memory_modes"][1]["regions"][0],
        json!({ "region": 0, "selector": 3, "port": "AXI1" })
    );
    assert_eq!(object["excluded_modes"][0]["memory_mode"], "Dedicated_Sram");

    // One mode, one system configuration.
    let one =
        ["inspect", "d.npub", "--memory-mode", "Shared_Sram", "--system-config", "Ethos_U55_Deep_Embedded"];
    let object = npukit.json(0, &one)["driver"].take();
    assert_eq!(object["memory_modes"].as_array().map(Vec::len), Some(1));
    assert_eq!(object["memory_modes"][0]["system_configs"].as_array().map(Vec::len), Some(1));
    let text = npukit.run(&one).stdout;
    assert!(!text.contains("Sram_Only") && text.contains("commands and constants in OffChipFlash"), "{text}");
    // The answer is no.
    let ran = npukit.run(&["inspect", "d.npub", "--memory-mode", "Dedicated_Sram"]);
    assert!(
        ran.status == 1 && ran.stdout.contains("not with Dedicated_Sram: Dedicated_Sram with"),
        "{ran:?}"
    );
    let object = npukit.json(1, &["inspect", "d.npub", "--memory-mode", "Dedicated_Sram"]);
    assert_eq!(object["driver"]["memory_modes"], json!([]));
    assert_eq!(object["driver"]["excluded_modes"][0]["memory_mode"], "Dedicated_Sram");
}

#[test]
fn options_of_inspect_that_fit_nothing() {
    let npukit = Npukit::new();
    npukit.file("d.npub", &blob(Accel::u55(64), &0xFFFF_0000u32.to_le_bytes(), &[]));
    npukit.refused(
        2,
        &["inspect", "d.npub", "--memory-mode", "None"],
        &["\"None\"", "Shared_Sram, Dedicated_Sram"],
    );
    npukit.refused(
        2,
        &["inspect", "d.npub", "--system-config", "Mine"],
        &["\"Mine\"", "Ethos_U55_Deep_Embedded"],
    );
    let ran = npukit.run(&["inspect", "d.npub", "--system-config", "Mine"]);
    assert!(!ran.stderr.contains("Ethos_U85"), "{ran:?}");
    npukit.refused(
        2,
        &["inspect", "d.npub", "--system-config", "Ethos_U65_High_End"],
        &["d.npub", "ethos-u55-64", "is for the ethos-u65", "Ethos_U55_Deep_Embedded"],
    );
    npukit.refused(
        2,
        &["inspect", &digits(), "--memory-mode", "Sram_Only"],
        &["digits", "--memory-mode", "_vela.tflite"],
    );
    npukit.file("unknown.npub", &blob(Accel::default(), &0xFFFF_0000u32.to_le_bytes(), &[]));
    let ran = npukit.run(&["inspect", "unknown.npub"]);
    assert!(ran.status == 0 && ran.stdout.contains("it doesn't say which NPU it is for"), "{ran:?}");
    let object = npukit.json(0, &["inspect", "unknown.npub"]);
    assert_eq!(object["driver"], json!({ "obstacle": "it doesn't say which NPU it is for" }));
}
