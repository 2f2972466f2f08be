//! A network on the driver and an NPU in software: synchronously, as a future, and in a pool with an interrupt handler; then
//! what the performance monitor has counted.
//!
//!     cargo run -p ethosu-driver --example digits
//!
//! Only what is marked "here" differs on a chip: there the bus is `Mmio`, memory is memory, and the interrupt comes by itself.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ethosu_driver::placement::{MemoryMode, SystemConfig, placement};
use ethosu_driver::{Accelerator, Bus, Config, CounterMask, Device, Job, PmuEvent, Pool, Want, target};
use ethosu_model::clock::{Meter, System};
use ethosu_model::device::{Banks, Npu as Registers, Timing};
use npub::{Arena, Blob, DType, Place};

/// `examples/digits` of this repository, compiled for an Ethos-U55 with 128 MACs: by `npukit build` for one.
static NETWORK: &[u8] = include_bytes!("../../ethosu-model/tests/streams/digits_int8_u55_128.npub");
/// Images of 8 by 8, behind the header of a NumPy file.
static IMAGES: &[u8] = include_bytes!("../../../examples/digits/samples.npy");
static LABELS: &str = include_str!("../../../examples/digits/samples_labels.txt");

const ACCELERATOR: Accelerator = Accelerator::U55_128;
/// Here: where the flash and the SRAM of the board lie.
const FLASH: u64 = 0x3800_0000;
const SRAM: u64 = 0x2100_0000;

/// Here: the board's memory, which program and NPUs share.
type Memory = Arc<Mutex<Banks>>;

/// Here: the register block of an NPU in software.
#[derive(Clone)]
struct Board(Arc<Mutex<Registers<Memory>>>);

impl Bus for Board {
    fn read(&self, offset: u32) -> u32 {
        self.0.lock().unwrap().read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.0.lock().unwrap().write(offset, value);
    }
}

impl Board {
    fn new(memory: &Memory) -> Board {
        let mut npu = Registers::new(ACCELERATOR, memory.clone());
        // Without a meter the monitor counts nothing. It needs the memories of the system: which port is used for what, the job's
        // registers say. `usual` is what Vela assumes where it is told nothing; others are made with `System::new` from the
        // figures of a system configuration in vela.ini.
        npu.set_activity(Meter::new(System::usual(ACCELERATOR).memories));
        Board(Arc::new(Mutex::new(npu)))
    }
}

/// A network's memory on the board.
struct Network {
    loaded: npub::Job,
    input: Place,
    input_bytes: usize,
    output: Place,
    output_bytes: usize,
}

impl Network {
    /// Each user of a pool needs an arena of its own; the flash is for all.
    fn load(arena: u64) -> Result<Network, Box<dyn Error>> {
        let blob = Blob::parse(NETWORK)?;
        let arena = Arena { base: arena, bytes: blob.arena_bytes() };
        // On a chip, where an address has 32 bits: `Job::load(blob, &mut arena)`, which borrows the memory. A pointer of this
        // machine has more bits than an NPU's base pointer, so here memory goes by the board's addresses.
        let loaded = npub::load(NETWORK, FLASH, arena, None)?;
        // Names, shapes and places of what goes in and comes out are in the blob's table of tensors.
        let tensors = blob.tensors().ok_or("no table of tensors")?;
        let input = tensors.inputs().next().ok_or("no input")?;
        let output = tensors.outputs().next().ok_or("no output")?;
        assert_eq!((input.dtype, output.dtype), (DType::Int8, DType::Int8));
        Ok(Network {
            loaded,
            input: input.place.ok_or("an input that isn't in memory")?,
            input_bytes: input.size as usize,
            output: output.place.ok_or("an output that isn't in memory")?,
            output_bytes: output.size as usize,
        })
    }

    fn job(&self) -> Job<'static> {
        Job::from_npub(&self.loaded, NETWORK)
    }

    /// On a chip: `job.region_mut(input.region)`, from `input.offset` on.
    fn put(&self, memory: &Memory, image: &[u8]) {
        let address = self.loaded.address(self.input).expect("it has a region");
        memory
            .lock()
            .unwrap()
            .bytes_mut(address, self.input_bytes)
            .expect("it is on the board")
            .copy_from_slice(image);
    }

    /// The class with the highest score.
    fn class(&self, memory: &Memory) -> usize {
        let address = self.loaded.address(self.output).expect("it has a region");
        let memory = memory.lock().unwrap();
        let scores = memory.bytes(address, self.output_bytes).expect("it is on the board");
        (0..scores.len()).max_by_key(|&class| scores[class] as i8).expect("ten classes")
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let images = IMAGES[IMAGES.len() - 20 * 64..].as_chunks::<64>().0;
    let labels: Vec<usize> = LABELS.lines().map(str::parse).collect::<Result<_, _>>()?;

    let mut banks = Banks::new();
    banks.rom(FLASH, NETWORK.to_vec());
    banks.ram(SRAM, 0x1_0000);
    let memory: Memory = Arc::new(Mutex::new(banks));

    // What the network was compiled for decides the set-up: `npukit inspect` says it. `Config::new()` is right for some modes
    // only.
    let mode = MemoryMode::from_name("Shared_Sram").ok_or("no such mode")?;
    let system = SystemConfig::from_name("Ethos_U55_High_End_Embedded").ok_or("no such system")?;
    let placement = placement(mode, system)?;
    let config = || Config::<target::Any>::new().with_routing(placement.commands, placement.regions);

    let board = Board::new(&memory);
    let device = Device::new(board.clone(), config());
    let mut npu = device.init()?;
    println!("{}, architecture {}", npu.info().accelerator, npu.info().identity.architecture());
    let network = Network::load(SRAM)?;
    let mut job = network.job();

    // Synchronously.
    let mut right = 0;
    for (image, &label) in images.iter().zip(&labels) {
        network.put(&memory, image);
        npu.invoke(&mut job)?;
        right += usize::from(network.class(&memory) == label);
    }
    println!("synchronously: {right} of {} right", labels.len());

    // As a future. A real executor sleeps until the interrupt handler wakes it.
    network.put(&memory, &images[0]);
    embassy_futures::block_on(npu.submit(&mut job)?)?;
    assert_eq!(network.class(&memory), labels[0]);
    println!("as a future: a {}, should be a {}", network.class(&memory), labels[0]);

    // What it takes.
    let mut pmu = npu.pmu()?;
    pmu.counters().set_event(0, PmuEvent::NpuActive)?;
    pmu.counters().set_event(1, PmuEvent::MacActive)?;
    pmu.counters().enable(CounterMask::CYCLES | CounterMask::counter(0) | CounterMask::counter(1));
    pmu.invoke(&mut job)?;
    let counters = pmu.counters();
    println!(
        "{} cycles, active in {}, MACs in {}",
        counters.cycles(),
        counters.count(0)?,
        counters.count(1)?
    );
    drop(pmu);
    drop(npu);

    // Three threads, two NPUs, and a handler for the interrupt of each.
    let second = Board::new(&memory);
    let other = Device::new(second.clone(), config());
    let devices = [(&board, &device), (&second, &other)];
    let pool: Pool<'_, _, _, _, 2> = Pool::new(devices.map(|(_, device)| device))?;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // Here: the hardware, which takes its time and then pulls the line.
        for (board, device) in devices {
            board.0.lock().unwrap().set_timing(Timing::Manual);
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    board.0.lock().unwrap().advance();
                    let line = board.0.lock().unwrap().interrupt();
                    if line {
                        // All that the handler has to do.
                        device.on_interrupt();
                    }
                    thread::sleep(Duration::from_micros(50));
                }
            });
        }
        let (pool, memory, labels) = (&pool, &memory, &labels);
        let users: Vec<_> = (0..3u64)
            .map(|user| {
                scope.spawn(move || {
                    let network = Network::load(SRAM + (user + 1) * 0x1000).expect("it loaded before");
                    let mut job = network.job();
                    let mut right = 0;
                    for (image, &label) in images.iter().zip(labels) {
                        network.put(memory, image);
                        let mut npu =
                            pool.reserve_blocking(Want::Accelerator(ACCELERATOR)).expect("the pool has some");
                        npu.invoke(&mut job).expect("nothing goes wrong");
                        drop(npu);
                        right += usize::from(network.class(memory) == label);
                    }
                    right
                })
            })
            .collect();
        let right: usize = users.into_iter().map(|user| user.join().unwrap()).sum();
        println!("three threads on two NPUs: {right} of {} right", 3 * labels.len());
        done.store(true, Ordering::Relaxed);
    });
    Ok(())
}

#[cfg(test)]
#[test]
fn it_runs() {
    main().unwrap();
}
