//! What is done to the NPU, as bytes: read from a fuzzer's input, written as its seeds.

use ethosu_driver::Protection;
use ethosu_isa::registers;
use ethosu_model::device::Injection;

use super::{FLASH, SRAM, STREAM_BYTES};

/// One thing that is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// A register's offset and value.
    Write(u32, u32),
    Read(u32),
    /// Bytes into SRAM, at an offset.
    Fill(u16, Vec<u8>),
    /// Words as commands.
    Stream(Vec<u8>),
    /// Runs them by registers: base pointers, and QCONFIG above REGIONCFG.
    RunRaw([u64; 8], u32),
    Inject(Injection),
    RaiseInterrupt,
    /// A job that was started and waits runs.
    Advance,
    /// Whether jobs wait for that.
    Timing(bool),
    OnInterrupt,
    /// The driver gives the NPU back.
    LetGo,
    /// The driver runs the commands: base addresses and the bytes of each region.
    Invoke([u64; 8], usize),
    /// The driver starts the plain job, polls it so often, then drops, stops, forgets or waits for it.
    Submit(u8, u8),
    Reset,
    /// A guard that keeps the NPU on while the plain job runs, forgotten or dropped.
    KeepOn(bool),
    /// The performance monitor with an event while the plain job runs.
    Count(u8),
    Plain,
}

/// Bytes that become numbers; zeros once they have run out.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bytes(&mut self, number: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(number.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn word(&mut self) -> u32 {
        u32::from(self.half()) | u32::from(self.half()) << 16
    }
}

/// A register: mostly one that is there.
fn register(code: u16) -> u32 {
    const FIRST: u32 = registers::BASEP + 8 * registers::REGIONS as u32;
    match code >> 14 {
        0 => u32::from(code & 0x3F) * 4,
        1 => u32::from(code) * 4 % FIRST,
        2 => registers::BASEP + u32::from(code & 0xF) * 4,
        _ => u32::from(code & 0x3FFF),
    }
}

/// A base address: mostly one in memory. Two bytes.
fn base(code: u16) -> u64 {
    let offset = u64::from(code & 0xFFF) * 16;
    match code >> 12 {
        0..10 => SRAM + offset % 0x8000,
        10 | 11 => FLASH + offset % 0x2000,
        12 => SRAM + u64::from(code & 0xFFF),
        13 => 0,
        14 => u64::from(code & 0xFFF) << 28,
        _ => offset,
    }
}

/// The code of a base address in SRAM, a multiple of 16 from its start.
fn code_of(address: u64) -> u16 {
    ((address - SRAM) / 16) as u16
}

impl Op {
    /// The next one; `None` when there are no more bytes.
    pub fn read(input: &mut Input<'_>) -> Option<Op> {
        if input.is_empty() {
            return None;
        }
        let bases = |input: &mut Input<'_>| std::array::from_fn(|_| base(input.half()));
        Some(match input.byte() % 20 {
            0 => Op::Write(register(input.half()), input.word()),
            // Values that mean something to CMD and RESET.
            1 => Op::Write(registers::CMD, u32::from(input.byte())),
            2 => Op::Write(registers::RESET, u32::from(input.byte() & 3)),
            3 => Op::Read(register(input.half())),
            4 => {
                let (offset, bytes) = (input.half() & 0x7FFF, input.half() & 0x1FFF);
                Op::Fill(offset, input.bytes(bytes.into()).to_vec())
            }
            5 | 6 => {
                let words = usize::from(input.half()) % (STREAM_BYTES / 4);
                let mut bytes = input.bytes(4 * words).to_vec();
                bytes.truncate(bytes.len() & !3);
                Op::Stream(bytes)
            }
            7 => Op::RunRaw(bases(input), u32::from(input.half()) | u32::from(input.byte()) << 16),
            8 => Op::Inject(injection(input)),
            9 => Op::RaiseInterrupt,
            10 => Op::Advance,
            11 => Op::Timing(input.byte() & 1 != 0),
            12 => Op::OnInterrupt,
            13 => Op::LetGo,
            14 => Op::Invoke(bases(input), input.half().into()),
            15 => Op::Submit(input.byte() % 4, input.byte() % 4),
            16 => Op::Reset,
            17 => Op::KeepOn(input.byte() & 3 == 0),
            18 => Op::Count(input.byte()),
            _ => Op::Plain,
        })
    }
}

fn injection(input: &mut Input<'_>) -> Injection {
    let offset = u32::from(input.half()) % 0x400;
    match input.byte() % 9 {
        0 => Injection::BusError { address: SRAM + u64::from(offset) * 16 },
        1 => Injection::BusError { address: FLASH + u64::from(offset) * 4 },
        2 => Injection::Parse { offset },
        3 => Injection::WeightDecoder { offset },
        4 => Injection::Ecc { offset },
        5 => Injection::Hang { offset },
        6 => Injection::MissingInterrupt,
        7 => match input.byte() & 3 {
            0 => Injection::EndlessReset,
            wrong => Injection::WrongProtection(Protection::from_word(wrong.into())),
        },
        _ => {
            let writes = usize::from(input.byte() & 3);
            Injection::SecondMaster((0..writes).map(|_| (register(input.half()), input.word())).collect())
        }
    }
}

/// Writes what [`Op::read`] reads, as far as seeds need it.
#[derive(Clone, Debug, Default)]
pub struct Script(Vec<u8>);

impl Script {
    /// For the accelerator with this index of `Accelerator::ALL`.
    pub fn new(accelerator: u8, switches: u8) -> Script {
        Script(vec![accelerator, switches])
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }

    fn push(mut self, code: u8, bytes: impl IntoIterator<Item = u8>) -> Script {
        self.0.push(code);
        self.0.extend(bytes);
        self
    }

    pub fn fill(self, offset: u16, bytes: &[u8]) -> Script {
        let length = (bytes.len() as u16).to_le_bytes();
        self.push(4, offset.to_le_bytes().into_iter().chain(length).chain(bytes.iter().copied()))
    }

    pub fn stream(self, bytes: &[u8]) -> Script {
        let words = (bytes.len() / 4) as u16;
        self.push(5, words.to_le_bytes().into_iter().chain(bytes.iter().copied()))
    }

    pub fn run_raw(self, bases: [u64; 8]) -> Script {
        self.push(7, bases.into_iter().flat_map(|base| code_of(base).to_le_bytes()).chain([0, 0, 0]))
    }

    pub fn invoke(self, bases: [u64; 8], bytes: u16) -> Script {
        let bases = bases.into_iter().flat_map(|base| code_of(base).to_le_bytes());
        self.push(14, bases.chain(bytes.to_le_bytes()))
    }

    /// An operation that has no more than these bytes.
    pub fn op(self, code: u8, bytes: &[u8]) -> Script {
        self.push(code, bytes.iter().copied())
    }
}
