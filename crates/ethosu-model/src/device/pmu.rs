//! The performance monitor's registers, and where its numbers come from.

use ethosu_isa::registers::{CYCLE_BITS, CYCLE_COUNTER, PmuBlock, pmcr};
use ethosu_isa::{Accelerator, PmuEvent, Product};

use crate::program::Program;

/// A job that has run, for who knows what it costs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct JobView<'a> {
    /// The NPU.
    pub accelerator: Accelerator,
    /// The operations that ran are the first [`steps`](JobView::steps) of this.
    pub program: &'a Program,
    /// How many of them ran.
    pub steps: usize,
    /// The command stream.
    pub stream: &'a [u8],
    /// The port behind each region: 0 is AXI0 or AXI_SRAM, 1 is AXI1 or AXI_EXT.
    pub ports: [u8; ethosu_isa::registers::REGIONS],
    /// The port of the command stream.
    pub command_port: u8,
}

/// What happened while a job ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Cycles; `None` if not known.
    pub cycles: Option<u64>,
    /// Occurrences of events. What isn't listed isn't known.
    pub events: Vec<(PmuEvent, u64)>,
}

impl Counts {
    fn of(&self, event: PmuEvent) -> Option<u64> {
        match event {
            // Nothing happens without end.
            PmuEvent::NoEvent => Some(0),
            PmuEvent::Cycle => self.cycles,
            event => self.events.iter().find(|(known, _)| *known == event).map(|(_, count)| *count),
        }
    }
}

/// Knows what a job costs: the clock behind the performance monitor.
pub trait Activity {
    /// What happened while a job ran.
    fn counts(&mut self, job: &JobView<'_>) -> Counts;
}

/// Knows nothing: every counter stays as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoClock;

impl Activity for NoClock {
    fn counts(&mut self, _: &JobView<'_>) -> Counts {
        Counts::default()
    }
}

/// The registers.
#[derive(Debug, Clone)]
pub(super) struct Monitor {
    product: Product,
    control: u32,
    enabled: u32,
    overflow: u32,
    interrupts: u32,
    cycles: u64,
    cycles_config: u32,
    latency_channel: u32,
    counters: Vec<u32>,
    events: Vec<u32>,
    /// An overflow asked for the interrupt.
    pub(super) irq: bool,
}

impl Monitor {
    pub(super) fn new(product: Product) -> Self {
        let counters = product.event_counters() as usize;
        Self {
            product,
            control: 0,
            enabled: 0,
            overflow: 0,
            interrupts: 0,
            cycles: 0,
            cycles_config: 0,
            latency_channel: 0,
            counters: vec![0; counters],
            events: vec![0; counters],
            irq: false,
        }
    }

    fn mask(&self) -> u32 {
        CYCLE_COUNTER | ((1 << self.counters.len()) - 1)
    }

    /// Which array register an offset is.
    fn index(&self, offset: u32, first: u32) -> Option<usize> {
        let index = offset.checked_sub(first)? as usize / 4;
        (index < self.counters.len()).then_some(index)
    }

    /// The register's value; `None` if the offset is none of the monitor's.
    pub(super) fn read(&self, offset: u32) -> Option<u32> {
        let block = PmuBlock::of(self.product);
        Some(match offset {
            _ if offset == block.control() => self.control | (self.counters.len() as u32) << pmcr::COUNTERS,
            _ if offset == block.enable_set() || offset == block.enable_clear() => self.enabled,
            _ if offset == block.overflow_set() || offset == block.overflow_clear() => self.overflow,
            _ if offset == block.interrupt_set() || offset == block.interrupt_clear() => self.interrupts,
            _ if offset == block.cycles() => self.cycles as u32,
            _ if offset == block.cycles() + 4 => (self.cycles >> 32) as u32,
            _ if offset == block.cycles_config() => self.cycles_config,
            _ if offset == block.latency_channel() => self.latency_channel,
            _ => match (self.index(offset, block.counter(0)), self.index(offset, block.event(0))) {
                (Some(index), _) => self.counters[index],
                (_, Some(index)) => self.events[index],
                _ => return None,
            },
        })
    }

    /// Writes a register; false if the offset is none of the monitor's.
    pub(super) fn write(&mut self, offset: u32, value: u32) -> bool {
        let block = PmuBlock::of(self.product);
        let mask = self.mask();
        match offset {
            _ if offset == block.control() => {
                self.control = value & (pmcr::ENABLE | pmcr::MASK_ENABLE);
                if value & pmcr::RESET_EVENTS != 0 {
                    self.counters.fill(0);
                }
                if value & pmcr::RESET_CYCLES != 0 {
                    self.cycles = 0;
                }
            }
            _ if offset == block.enable_set() => self.enabled |= value & mask,
            _ if offset == block.enable_clear() => self.enabled &= !value,
            _ if offset == block.overflow_set() => self.overflow |= value & mask,
            _ if offset == block.overflow_clear() => self.overflow &= !value,
            _ if offset == block.interrupt_set() => self.interrupts |= value & mask,
            _ if offset == block.interrupt_clear() => self.interrupts &= !value,
            _ if offset == block.cycles() => self.cycles = self.cycles >> 32 << 32 | u64::from(value),
            _ if offset == block.cycles() + 4 => {
                let high = u64::from(value) << 32 & ((1 << CYCLE_BITS) - 1);
                self.cycles = high | self.cycles & u64::from(u32::MAX);
            }
            _ if offset == block.cycles_config() => self.cycles_config = value,
            _ if offset == block.latency_channel() => self.latency_channel = value,
            _ => match (self.index(offset, block.counter(0)), self.index(offset, block.event(0))) {
                (Some(index), _) => self.counters[index] = value,
                (_, Some(index)) => self.events[index] = value & 0xFFFF,
                _ => return false,
            },
        }
        true
    }

    /// Whether anything is being counted.
    pub(super) fn is_on(&self) -> bool {
        self.control & pmcr::ENABLE != 0 && self.enabled != 0
    }

    /// Adds what a job did to the counters that are on.
    pub(super) fn count(&mut self, counts: &Counts) {
        if !self.is_on() {
            return;
        }
        let mut overflowed = 0;
        if let (true, Some(cycles)) = (self.enabled & CYCLE_COUNTER != 0, counts.cycles) {
            let sum = u128::from(self.cycles) + u128::from(cycles);
            if sum >> CYCLE_BITS != 0 {
                overflowed |= CYCLE_COUNTER;
            }
            self.cycles = sum as u64 & ((1 << CYCLE_BITS) - 1);
        }
        for (index, counter) in self.counters.iter_mut().enumerate() {
            let event = PmuEvent::from_number((self.events[index] & 0x3FF) as u16, self.product);
            let Some(count) = event.and_then(|event| counts.of(event)) else { continue };
            if self.enabled & 1 << index != 0 {
                let sum = u128::from(*counter) + u128::from(count);
                if sum >> 32 != 0 {
                    overflowed |= 1 << index;
                }
                *counter = sum as u32;
            }
        }
        self.overflow |= overflowed;
        self.irq |= overflowed & self.interrupts != 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_overflow_and_say_so() {
        let block = PmuBlock::of(Product::U85);
        let mut monitor = Monitor::new(Product::U85);
        assert_eq!(monitor.read(block.control()), Some(8 << 11));
        assert!(monitor.write(block.event(7), PmuEvent::NpuActive.number(Product::U85).unwrap().into()));
        monitor.write(block.counter(7), u32::MAX);
        monitor.write(block.cycles(), u32::MAX);
        monitor.write(block.cycles() + 4, u32::MAX);
        assert_eq!(monitor.read(block.cycles() + 4), Some(0xFFFF), "the counter has 48 bits");
        monitor.write(block.interrupt_set(), CYCLE_COUNTER);
        let counts = Counts { cycles: Some(3), events: vec![(PmuEvent::NpuActive, 2)] };
        monitor.count(&counts);
        assert_eq!(monitor.read(block.overflow_set()), Some(0), "nothing is enabled yet");
        monitor.write(block.enable_set(), 1 << 7);
        monitor.write(block.control(), pmcr::ENABLE);
        monitor.count(&counts);
        assert_eq!((monitor.read(block.counter(7)), monitor.irq), (Some(1), false));
        monitor.write(block.enable_set(), CYCLE_COUNTER);
        monitor.count(&counts);
        assert_eq!((monitor.read(block.cycles()), monitor.read(block.cycles() + 4)), (Some(2), Some(0)));
        assert!(monitor.irq);
        assert_eq!(monitor.read(block.overflow_set()), Some(CYCLE_COUNTER | 1 << 7));
        monitor.write(block.overflow_clear(), 1 << 7);
        assert_eq!(monitor.read(block.overflow_clear()), Some(CYCLE_COUNTER));
        assert_eq!(monitor.read(block.counter(8)), None);
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        let block = PmuBlock::of(Product::U55);
        let mut monitor = Monitor::new(Product::U55);
        monitor.write(block.event(0), PmuEvent::MacActive.number(Product::U55).unwrap().into());
        monitor.write(block.enable_set(), u32::MAX);
        monitor.write(block.control(), pmcr::ENABLE);
        assert_eq!(monitor.read(block.enable_set()), Some(CYCLE_COUNTER | 0xF));
        monitor.count(&Counts::default());
        assert_eq!((monitor.read(block.counter(0)), monitor.read(block.cycles())), (Some(0), Some(0)));
    }
}
