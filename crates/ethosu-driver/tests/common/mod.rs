//! A board for tests: NPUs at register level, flash and SRAM, small jobs.
#![allow(dead_code, unreachable_pub)]

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use ethosu_driver::{Accelerator, Bus, Clock, Job, Product, Waiting};
use ethosu_isa::{Command, DmaDestination85, DmaRegion, DmaSource85, DmaStride, cop1_header};
use ethosu_model::device::{Banks, Npu};

/// Memory that NPUs and the program share.
pub type Shared = Arc<Mutex<Banks>>;

pub const FLASH: u64 = 0x3800_0000;
pub const SRAM: u64 = 0x2100_0000;
pub const SRAM_BYTES: usize = 0x4000;
/// Where the source and destination of copies lie.
pub const SOURCE: u64 = FLASH + 0x1000;
pub const DESTINATION: u64 = SRAM + 0x1000;
pub const COPY_BYTES: usize = 64;

/// An NPU behind a bus.
#[derive(Clone)]
pub struct Sim {
    npu: Arc<Mutex<Npu<Shared>>>,
}

impl Sim {
    pub fn new(accelerator: Accelerator, memory: &Shared) -> Sim {
        Sim::of(Npu::new(accelerator, memory.clone()))
    }

    pub fn of(mut npu: Npu<Shared>) -> Sim {
        npu.set_power_gating(true);
        Sim { npu: Arc::new(Mutex::new(npu)) }
    }

    pub fn lock(&self) -> MutexGuard<'_, Npu<Shared>> {
        self.npu.lock().unwrap()
    }
}

impl Bus for Sim {
    fn read(&self, offset: u32) -> u32 {
        self.lock().read(offset)
    }

    fn write(&self, offset: u32, value: u32) {
        self.lock().write(offset, value);
    }
}

fn words(commands: &[Command], product: Product) -> Vec<u8> {
    commands
        .iter()
        .flat_map(|command| command.encode(product).unwrap().iter().collect::<Vec<_>>())
        .flat_map(u32::to_le_bytes)
        .collect()
}

/// Copies of `COPY_BYTES` each from region 0 to region 1, one after the other.
pub fn copies(count: u64, product: Product) -> Vec<u8> {
    let stride_mode = DmaStride::D1;
    let region = |region| DmaRegion { region, internal: false, stride_mode };
    let mut commands = match product {
        Product::U85 => vec![
            Command::Dma0SrcRegion85(DmaSource85 { region: 0, internal: false, stride_mode, indexed: false }),
            Command::Dma0DstRegion85(DmaDestination85 { region: 1, internal: false, indexed: false }),
        ],
        Product::U55 | Product::U65 => {
            vec![Command::Dma0SrcRegion(region(0)), Command::Dma0DstRegion(region(1))]
        }
    };
    for copy in 0..count {
        commands.extend([
            Command::Dma0Src(copy * COPY_BYTES as u64),
            Command::Dma0Dst(copy * COPY_BYTES as u64),
            Command::Dma0Len(COPY_BYTES as u64),
            Command::DmaStart,
        ]);
    }
    commands.push(Command::DmaWait { outstanding: 0 });
    commands.push(Command::Stop { mask: 0xFFFF });
    words(&commands, product)
}

/// A payload 1 around a stream.
pub fn payload(accelerator: Accelerator, stream: &[u8]) -> Vec<u8> {
    [&cop1_header(accelerator, stream.len() / 4).unwrap()[..], stream].concat()
}

/// Flash with a payload at its start and something to copy, and SRAM.
pub fn memory(payload: &[u8]) -> Shared {
    let mut flash = vec![0; 0x2000];
    flash[..payload.len()].copy_from_slice(payload);
    for (index, byte) in flash[0x1000..].iter_mut().enumerate() {
        *byte = (index * 7 + 3) as u8;
    }
    let mut banks = Banks::new();
    banks.rom(FLASH, flash);
    banks.ram(SRAM, SRAM_BYTES);
    Arc::new(Mutex::new(banks))
}

/// The job of a payload that lies at the start of the flash.
pub fn job(payload: &[u8]) -> Job<'_> {
    Job::from_addresses(payload, Some(FLASH), &[SOURCE, DESTINATION], &[0x1000, 0x1000]).unwrap()
}

/// Whether `count` copies have arrived.
pub fn copied(memory: &Shared, count: usize) -> bool {
    let memory = memory.lock().unwrap();
    memory.bytes(SOURCE, count * COPY_BYTES) == memory.bytes(DESTINATION, count * COPY_BYTES)
}

/// Makes the destination something else than the source.
pub fn spoil(memory: &Shared) {
    memory.lock().unwrap().bytes_mut(DESTINATION, 0x1000).unwrap().fill(0xA5);
}

/// A clock on which each look costs a millisecond.
#[derive(Default)]
pub struct Ticks(Mutex<u64>);

impl Clock for Ticks {
    fn now(&self) -> Duration {
        let mut ticks = self.0.lock().unwrap();
        *ticks += 1;
        Duration::from_millis(*ticks)
    }
}

/// The machine's clock.
pub struct Wall(Instant);

impl Wall {
    pub fn new() -> Wall {
        Wall(Instant::now())
    }
}

impl Clock for Wall {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Blocks threads as an RTOS' event would.
#[derive(Default)]
pub struct Event {
    number: Mutex<u32>,
    changed: Condvar,
}

impl Waiting for Event {
    fn ticket(&self) -> u32 {
        *self.number.lock().unwrap()
    }

    fn wait(&self, ticket: u32, limit: Option<Duration>) {
        let number = self.number.lock().unwrap();
        match limit {
            None => drop(self.changed.wait_while(number, |number| *number == ticket).unwrap()),
            Some(limit) => {
                drop(self.changed.wait_timeout_while(number, limit, |number| *number == ticket).unwrap());
            }
        }
    }

    fn notify(&self) {
        *self.number.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}
