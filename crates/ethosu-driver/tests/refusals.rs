//! What is refused before anything runs, and in which words.

mod common;

use common::*;
use ethosu_driver::{
    Accelerator, AccessProfile, AccessProfiles, Config, Device, Hooks, InitError, Job, JobError,
    MemoryAttributes, Npu, PayloadJobError, Place, Product, Region, Selector, Waiting, target,
};
use ethosu_isa::registers;
use ethosu_model::device::Npu as Registers;

const U55: Accelerator = Accelerator::U55_256;

/// An NPU with the small jobs' memory.
struct Bench {
    payload: Vec<u8>,
    memory: Shared,
    sim: Sim,
}

fn bench(compiled_for: Accelerator, hardware: Accelerator) -> Bench {
    let payload = payload(compiled_for, &copies(1, compiled_for.product()));
    let memory = memory(&payload);
    let sim = Sim::new(hardware, &memory);
    Bench { payload, memory, sim }
}

fn refusal<H: Hooks>(
    npu: &mut Npu<'_, Sim, impl target::Target, H>,
    job: &mut Job<'_>,
) -> (JobError, String) {
    let error = npu.check(job).unwrap_err();
    let submitted = npu.submit(job).err().map(|error| error.to_string());
    assert_eq!(submitted.as_deref(), Some(&*error.to_string()), "check and submit agree");
    assert_eq!(npu.power_requests(), 0);
    (error, error.to_string())
}

#[test]
fn a_job_for_another_npu() {
    for (compiled_for, hardware, text) in [
        (Accelerator::U55_128, U55, "the job was compiled for ethos-u55-128, this is an ethos-u55-256"),
        (
            Accelerator::U55_256,
            Accelerator::U65_256,
            "the job was compiled for ethos-u55-256, this is an ethos-u65-256",
        ),
        (
            Accelerator::U65_256,
            Accelerator::U85_256,
            "the job was compiled for ethos-u65-256, this is an ethos-u85-256",
        ),
    ] {
        let bench = bench(compiled_for, hardware);
        let device: Device<_> = Device::new(bench.sim.clone(), Config::new());
        let mut npu = device.init().unwrap();
        let (error, message) = refusal(&mut npu, &mut job(&bench.payload));
        assert_eq!(error, JobError::Accelerator { found: compiled_for, hardware });
        assert_eq!(message, text);
        assert_eq!(bench.sim.lock().jobs(), 0);
    }
}

#[test]
fn a_job_for_another_revision() {
    let mut bench = bench(U55, U55);
    let sim = Sim::of(Registers::new(U55, bench.memory.clone()).with_id(0x1000_4201));
    // The payload says 1.0.6; hardware with a smaller patch number will do.
    let device: Device<_> = Device::new(sim, Config::new());
    device.init().unwrap().check(&job(&bench.payload)).unwrap();

    bench.payload[12..16].copy_from_slice(&0x1020_6001u32.to_le_bytes());
    let device: Device<_> = Device::new(bench.sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let (_, message) = refusal(&mut npu, &mut job(&bench.payload));
    assert_eq!(message, "the job was compiled for architecture 1.2.0, this is 1.1.0");

    bench.payload[8..12].copy_from_slice(&0x0000_3018u32.to_le_bytes());
    let (_, message) = refusal(&mut npu, &mut job(&bench.payload));
    assert_eq!(message, "the job's command stream version differs: CONFIG 0x00003018, the NPU's 0x00003008");

    bench.payload[8..12].copy_from_slice(&0x0800_3008u32.to_le_bytes());
    let (_, message) = refusal(&mut npu, &mut job(&bench.payload));
    assert_eq!(message, "the job's need of a custom DMA differs: CONFIG 0x08003008, the NPU's 0x00003008");

    bench.payload[8..12].copy_from_slice(&0x3000_3008u32.to_le_bytes());
    let (error, _) = refusal(&mut npu, &mut job(&bench.payload));
    assert_eq!(error, JobError::NoAccelerator { word: 0x3000_3008 });
}

#[test]
fn addresses() {
    let bench = bench(U55, U55);
    let device: Device<_, target::U55> = Device::new(bench.sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let payload = &bench.payload;
    let with =
        |at, bases: &[u64], sizes: &[usize]| Job::from_addresses(payload, Some(at), bases, sizes).unwrap();

    let (error, _) = refusal(&mut npu, &mut with(FLASH + 8, &[SOURCE, DESTINATION], &[64, 64]));
    assert_eq!(error, JobError::Misaligned { place: Place::Commands, address: FLASH + 8 + 32 });
    let (_, message) = refusal(&mut npu, &mut with(FLASH, &[SOURCE + 4, DESTINATION], &[64, 64]));
    assert_eq!(message, "region 0 is at 0x38001004, not a multiple of 16");
    let (_, message) = refusal(&mut npu, &mut with(FLASH, &[SOURCE], &[64]));
    assert_eq!(message, "the commands use region 1, which has no address");
    let (error, _) = refusal(&mut npu, &mut with(FLASH, &[SOURCE, DESTINATION], &[64]));
    assert_eq!(error, JobError::EmptyRegion { region: 1 });
    let (_, message) = refusal(&mut npu, &mut with(FLASH, &[SOURCE, 0xFFFF_FFC0], &[64, 65]));
    assert_eq!(message, "region 1, 0x41 bytes at 0xffffffc0, lies outside the NPU's 32-bit addresses");
    npu.check(&with(FLASH, &[SOURCE, 0xFFFF_FFC0], &[64, 64])).unwrap();
    let (error, _) = refusal(&mut npu, &mut with(FLASH, &[!15, DESTINATION], &[64, 64]));
    assert!(matches!(error, JobError::Address { place: Place::Region(0), .. }));
    let nine = Job::from_addresses(payload, None, &[0; 9], &[0; 9]);
    assert_eq!(nine.unwrap_err(), PayloadJobError::TooManyRegions { found: 9 });
}

#[test]
fn a_written_region_behind_the_read_only_port() {
    let routing = [
        Selector::S3,
        Selector::S2,
        Selector::S1,
        Selector::S1,
        Selector::S1,
        Selector::S1,
        Selector::S1,
        Selector::S1,
    ];
    let bench55 = bench(U55, U55);
    let device: Device<_> =
        Device::new(bench55.sim.clone(), Config::new().with_routing(Selector::S2, routing));
    let mut npu = device.init().unwrap();
    let (error, message) = refusal(&mut npu, &mut job(&bench55.payload));
    assert_eq!(error, JobError::ReadOnlyPort { region: 1, selector: 2 });
    assert_eq!(
        message,
        "the commands write region 1, whose selector 2 leads to AXI1, where a U55 only reads"
    );

    // The U65's second port writes.
    let bench65 = bench(Accelerator::U65_512, Accelerator::U65_512);
    let device: Device<_> =
        Device::new(bench65.sim.clone(), Config::new().with_routing(Selector::S2, routing));
    device.init().unwrap().invoke(&mut job(&bench65.payload)).unwrap();
    assert!(copied(&bench65.memory, 1));
}

#[test]
fn constants_cache_lines_and_fast_memory() {
    let bench = bench(U55, U55);
    let device: Device<_> = Device::new(bench.sim.clone(), Config::new().with_cache_line(32));
    let mut npu = device.init().unwrap();
    let with = |base, bytes| {
        Job::from_addresses(&bench.payload, Some(FLASH), &[SOURCE + 16, base], &[64, bytes]).unwrap()
    };
    npu.check(&with(DESTINATION, 64)).unwrap();
    let (_, message) = refusal(&mut npu, &mut with(DESTINATION + 16, 64));
    assert_eq!(message, "region 1, 0x40 bytes at 0x21001010, doesn't fill whole 32-byte cache lines");
    let (error, _) = refusal(&mut npu, &mut with(DESTINATION, 80));
    assert!(matches!(error, JobError::CacheLine { line: 32, .. }));

    #[repr(align(16))]
    struct Aligned([u8; 64]);
    let (source, destination) = (Aligned([0; 64]), Aligned([0; 64]));
    let regions = [Region::Constant(&source.0), Region::Constant(&destination.0)];
    let sixty_five = self::bench(Accelerator::U65_256, Accelerator::U65_256);
    let hooks = Low;
    let device: Device<_, target::Any, _> = Device::with_hooks(sixty_five.sim.clone(), Config::new(), hooks);
    let mut npu = device.init().unwrap();
    let mut aligned = vec![0u128; sixty_five.payload.len().div_ceil(16)];
    let payload = aligned_copy(&mut aligned, &sixty_five.payload);
    let (error, _) = refusal(&mut npu, &mut Job::from_payload(payload, regions).unwrap());
    assert_eq!(error, JobError::Constant { region: 1 });

    let config = Config::new().with_fast_memory(SRAM + 0x2000, 0x100);
    let device: Device<_, target::Any> = Device::new(bench.sim.clone(), config);
    drop(npu);
    let mut npu = device.init().unwrap();
    let three = |bytes| {
        Job::from_addresses(&bench.payload, Some(FLASH), &[SOURCE, DESTINATION, 0x8], &[64, 64, bytes])
            .unwrap()
    };
    let (_, message) = refusal(&mut npu, &mut three(0x101));
    assert_eq!(message, "the job needs 0x101 bytes of fast memory, there are 0x100");
    npu.invoke(&mut three(0x100)).unwrap();
    assert_eq!(bench.sim.lock().read(registers::BASEP + 16), 0, "the NPU is off again");
}

/// Where region 2 lies: `BASEP2` while a job runs.
#[test]
fn fast_memory_and_region_2() {
    const FAST: u64 = SRAM + 0x2000;
    let accelerator = Accelerator::U65_256;
    let bench = bench(accelerator, accelerator);
    bench.sim.lock().set_timing(ethosu_model::device::Timing::Manual);
    let base = |fast: bool, job: &mut Job<'_>| {
        let config = if fast { Config::new().with_fast_memory(FAST, 0x100) } else { Config::new() };
        let device = Device::<_, target::Any, _>::with_hooks(bench.sim.clone(), config, Low);
        let mut npu = device.init().unwrap();
        let _running = npu.submit(job).map_err(|error| error.to_string())?;
        Ok::<u64, String>(bench.sim.lock().read(registers::BASEP + 16).into())
    };
    let mut aligned = vec![0u128; bench.payload.len().div_ceil(16)];
    let payload = aligned_copy(&mut aligned, &bench.payload);

    // By address, as in Arm's driver: fast memory takes its place.
    let addresses = |region2| {
        let bases = [SOURCE, DESTINATION, region2];
        Job::from_addresses(payload, Some(FLASH), &bases, &[64, 64, 0x100]).unwrap()
    };
    assert_eq!(base(true, &mut addresses(SRAM + 0x3000)), Ok(FAST));
    assert_eq!(base(false, &mut addresses(SRAM + 0x3000)), Ok(SRAM + 0x3000));

    // As a region: it is what it says.
    let mut own = vec![0u128; 16];
    let own_address = Low.translate(Place::Region(2), own.as_ptr() as u64) & u64::from(u32::MAX);
    let at = |address, bytes| Region::At { address, bytes };
    let mut job =
        Job::from_payload(payload, [at(SOURCE, 64), at(DESTINATION, 64), at(SRAM + 0x3000, 64)]).unwrap();
    assert_eq!(base(true, &mut job), Ok(SRAM + 0x3000));
    // SAFETY: any bytes are valid as u8, and the slice is as long as the words.
    let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(own.as_mut_ptr().cast(), 256) };
    let mut job =
        Job::from_payload(payload, [at(SOURCE, 64), at(DESTINATION, 64), Region::Writable(bytes)]).unwrap();
    assert_eq!(base(true, &mut job), Ok(own_address));

    // Of a file: fast memory takes its place, and then needs no arena.
    let mut builder = npub::BlobBuilder::new(npub::Accel::u65(256));
    builder.command_bytes(&copies_to_2());
    builder.baked(npub::Role::Weights, &[7; 64]);
    builder.runtime(npub::Role::Scratch, 16);
    builder.runtime(npub::Role::Scratch, 64);
    let blob = builder.build().unwrap();
    let load = |packing, arena| {
        npub::load_with(&blob, FLASH, npub::Arena { base: SRAM, bytes: arena }, None, packing).unwrap()
    };
    let with = npub::Packing::new();
    let without = with.without(ethosu_driver::FAST_MEMORY_REGION);
    assert_eq!(base(true, &mut Job::from_npub(&load(with, 80), &blob)), Ok(FAST));
    assert_eq!(base(false, &mut Job::from_npub(&load(with, 80), &blob)), Ok(SRAM + 16));
    assert_eq!(base(true, &mut Job::from_npub(&load(without, 16), &blob)), Ok(FAST));
    let nowhere = base(false, &mut Job::from_npub(&load(without, 16), &blob)).unwrap_err();
    assert_eq!(nowhere, "the job needs 0x40 bytes of fast memory, there are 0x0");
    let mut arena = [0u128; 1];
    // SAFETY: any bytes are valid as u8, and the slice is as long as the words.
    let bytes: &mut [u8] = unsafe { std::slice::from_raw_parts_mut(arena.as_mut_ptr().cast(), 16) };
    assert!(Job::load_with(&blob, bytes, without).is_ok());
    assert!(Job::load(&blob, bytes).is_err());
}

/// A copy from region 0 to region 2.
fn copies_to_2() -> Vec<u8> {
    use ethosu_isa::{Command, DmaRegion, DmaStride};
    let region = |region| DmaRegion { region, internal: false, stride_mode: DmaStride::D1 };
    [
        Command::Dma0SrcRegion(region(0)),
        Command::Dma0DstRegion(region(2)),
        Command::Dma0Src(0),
        Command::Dma0Dst(0),
        Command::Dma0Len(64),
        Command::DmaStart,
        Command::Stop { mask: 0xFFFF },
    ]
    .iter()
    .flat_map(|command| command.encode(Product::U65).unwrap().iter().collect::<Vec<_>>())
    .flat_map(u32::to_le_bytes)
    .collect()
}

/// A file's regions are given whole lines, of any size.
#[test]
fn a_file_with_a_data_cache() {
    let accelerator = Accelerator::U65_256;
    let bench = bench(accelerator, accelerator);
    let mut builder = npub::BlobBuilder::new(npub::Accel::u65(256));
    builder.command_bytes(&copies_to_2());
    builder.baked(npub::Role::Weights, &[7; 72]);
    builder.runtime(npub::Role::Input, 20);
    builder.runtime(npub::Role::Scratch, 65);
    let blob = builder.build().unwrap();
    let parsed = npub::Blob::parse(&blob).unwrap();
    let device: Device<_> = Device::new(bench.sim.clone(), Config::new().with_cache_line(32));
    let npu = device.init().unwrap();
    let verdict = |base, packing| {
        let arena = npub::Arena { base, bytes: parsed.arena_bytes_with(packing) };
        npu.check(&Job::from_npub(&npub::load_with(&blob, FLASH, arena, None, packing).unwrap(), &blob))
    };
    let lines = npub::Packing::new().aligned(32);
    assert_eq!(parsed.arena_bytes_with(lines), 32 + 96);
    assert_eq!(verdict(SRAM, lines), Ok(()));
    assert_eq!(verdict(SRAM, npub::Packing::new().aligned(64)), Ok(()));
    for (base, packing) in [(SRAM, npub::Packing::new()), (SRAM + 16, lines)] {
        assert!(matches!(verdict(base, packing), Err(JobError::CacheLine { region: 2, line: 32, .. })));
    }
}

/// Puts bytes where a command stream may lie.
fn aligned_copy<'a>(place: &'a mut [u128], bytes: &[u8]) -> &'a [u8] {
    for (word, chunk) in place.iter_mut().zip(bytes.chunks(16)) {
        let mut all = [0; 16];
        all[..chunk.len()].copy_from_slice(chunk);
        *word = u128::from_ne_bytes(all);
    }
    // SAFETY: any bytes are valid as u8, and the slice is as long as the words.
    unsafe { std::slice::from_raw_parts(place.as_ptr().cast(), bytes.len()) }
}

/// Shows the NPU the low 40 bits of addresses, so that this machine's own fit.
struct Low;

impl Waiting for Low {}

impl Hooks for Low {
    type Argument = ();

    fn translate(&self, _: Place, address: u64) -> u64 {
        address & 0xFF_FFFF_FFFF
    }
}

#[test]
fn blobs() {
    let mut builder = npub::BlobBuilder::new(npub::Accel::UNKNOWN);
    builder.commands(&[0xFFFF_0000]);
    let unknown = builder.build().unwrap();
    let loaded = npub::load(&unknown, FLASH, npub::Arena::default(), None).unwrap();
    let bench = bench(U55, U55);
    let device: Device<_> = Device::new(bench.sim.clone(), Config::new());
    let mut npu = device.init().unwrap();
    let (error, _) = refusal(&mut npu, &mut Job::from_npub(&loaded, &unknown));
    assert_eq!(error, JobError::UnknownAccelerator);
    npu.check(&Job::from_npub(&loaded, &unknown).assuming(U55)).unwrap();
    let other = Job::from_npub(&loaded, &unknown).assuming(Accelerator::U55_32);
    assert!(matches!(npu.check(&other), Err(JobError::Accelerator { .. })));

    let mut builder = npub::BlobBuilder::new(npub::Accel::u55(100));
    builder.commands(&[0xFFFF_0000]);
    let odd = builder.build().unwrap();
    let loaded = npub::load(&odd, FLASH, npub::Arena::default(), None).unwrap();
    assert_eq!(npu.check(&Job::from_npub(&loaded, &odd)), Err(JobError::NoAccelerator { word: 100 }));
}

#[test]
fn an_npu_that_is_not_the_one() {
    let bench = bench(U55, U55);
    let device: Device<_, target::U65> = Device::new(bench.sim.clone(), Config::new());
    let error = device.init().unwrap_err();
    assert_eq!(error, InitError::Product { found: Product::U55, expected: Product::U65 });
    assert_eq!(error.to_string(), "the hardware is an ethos-u55, the driver is built for ethos-u65");

    let config = Config::new().for_accelerator(Accelerator::U55_128);
    let device: Device<_, target::U55> = Device::new(bench.sim.clone(), config);
    let error = device.init().unwrap_err();
    assert_eq!(error.to_string(), "the hardware is an ethos-u55-256, the set-up is for ethos-u55-128");

    let sim = Sim::of(Registers::new(U55, bench.memory.clone()).with_config(u32::MAX));
    let device: Device<_> = Device::new(sim, Config::new());
    let error = device.init().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("there is no Ethos-U at these registers: configuration word 0xffffffff")
    );

    let device: Device<_> = Device::new(bench.sim.clone(), Config::new());
    let npu = device.init().unwrap();
    assert_eq!(device.init().unwrap_err(), InitError::Taken);
    drop(npu);
    device.init().unwrap();
}

#[test]
fn a_set_up_that_the_hardware_has_no_room_for() {
    let bench = bench(U55, U55);
    let mut profile = AccessProfile::new();
    profile.reads = Some(33);
    let config = Config::new().with_ports(AccessProfiles([profile; 4]));
    let device: Device<_, target::U55> = Device::new(bench.sim.clone(), config);
    let error = device.init().unwrap_err();
    assert_eq!(
        error.to_string(),
        "outstanding reads of an access profile can't be 33: 1 to 32 are possible on this NPU"
    );
    let mut attributes = MemoryAttributes::new();
    attributes.external.reads = Some(33);
    for (accelerator, fits) in [(Accelerator::U85_256, false), (Accelerator::U85_512, true)] {
        let sim = Sim::new(accelerator, &bench.memory);
        let device: Device<_, target::U85> = Device::new(sim, Config::new().with_ports(attributes));
        assert_eq!(device.init().is_ok(), fits, "{accelerator}");
    }
}

proptest::proptest! {
    /// Whatever regions a file has, also empty ones, it loads where its arena is large enough, and each of its runtime regions is
    /// where the arena is.
    #[test]
    fn any_file_loads(
        regions in proptest::collection::vec((0u8..3, 0u32..70), 0..8),
        align in 0u32..100,
        elsewhere in 0u8..12,
        spare in 0usize..40,
    ) {
        let bytes = [0x5A; 70];
        let mut builder = npub::BlobBuilder::new(npub::Accel::u65(256));
        builder.commands(&[0xFFFF_0000]);
        let mut runtime = Vec::new();
        for (slot, &(kind, size)) in regions.iter().enumerate() {
            match (kind, runtime.last()) {
                (0, _) => _ = builder.baked(npub::Role::Weights, &bytes[..size as usize]),
                (1, Some(&of)) => _ = builder.alias(npub::Role::Input, of),
                _ => {
                    builder.runtime(npub::Role::Scratch, size);
                    runtime.push(slot);
                }
            }
        }
        let blob = builder.build().unwrap();
        let packing = npub::Packing::new().aligned(align).without(elsewhere);
        let needed = npub::Blob::parse(&blob).unwrap().arena_bytes_with(packing) as usize;
        let mut arena = vec![0; needed + spare];
        let ends = arena.as_ptr() as usize..=arena.as_ptr() as usize + arena.len();
        let job = Job::load_with(&blob, &mut arena, packing).unwrap();
        for slot in 0..8u8 {
            let there = job.region(slot);
            if runtime.contains(&slot.into()) && slot != elsewhere {
                let there = there.unwrap();
                proptest::prop_assert_eq!(there.len(), regions[usize::from(slot)].1 as usize);
                proptest::prop_assert!(ends.contains(&(there.as_ptr() as usize + there.len())));
            }
            if there.is_none() {
                continue;
            }
            proptest::prop_assert_ne!(regions[usize::from(slot)].0, 0, "what is in the file isn't lent");
        }
        if needed > 0 {
            arena.truncate(needed - 1);
            proptest::prop_assert!(Job::load_with(&blob, &mut arena, packing).is_err());
        }
    }
}
