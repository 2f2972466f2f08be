//! What an NPU's performance monitor would have counted.

use ethosu_isa::{PmuEvent, Product};

use super::beats::Beats;
use super::report::Report;
use crate::device::{Activity, Counts, JobView};
use crate::program::Program;

use super::sim::simulate_steps;
use super::system::{Memory, MemoryMode, Port, System};

/// Counters of a run, as the simulating clock fills them.
///
/// They add up: the cycles are the active and the idle ones, and no unit works longer than the NPU is active. Beats come from the
/// stream alone and don't depend on memory's speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// From the run command to NPU_OP_STOP (NPU_ACTIVE).
    pub active: u64,
    /// Counted outside of that (NPU_IDLE).
    pub idle: u64,
    /// The MACs work, by the bits of the input's elements: 8, 16, 32 (MAC_ACTIVE_8BIT and so on).
    pub mac: [u64; 3],
    /// The output stage works, by the bits of the output's elements: 8, 16, more (AO_ACTIVE_8BIT, AO_ACTIVE_16BIT).
    pub output: [u64; 3],
    /// The weight decoder works (WD_ACTIVE).
    pub weight_decoder: u64,
    /// Data words through each port.
    pub beats: Beats,
}

impl Counters {
    /// Those of a run, followed by so many idle cycles.
    ///
    /// Meant for reports of [`simulate`](super::simulate); those of the compiler's clock know layers, not types.
    pub fn new(report: &Report, idle: u64) -> Self {
        let mut counters = Self { active: report.total(), idle, beats: report.beats(), ..Self::default() };
        for cost in &report.costs {
            let add = |sum: &mut u64, cycles| *sum = sum.saturating_add(cycles);
            add(&mut counters.mac[width(cost.input_bits)], cost.mac_cycles);
            add(&mut counters.output[width(cost.output_bits)], cost.output_cycles);
            add(&mut counters.weight_decoder, cost.weight_cycles);
        }
        counters
    }

    /// All cycles (CYCLE).
    pub fn cycles(&self) -> u64 {
        self.active.saturating_add(self.idle)
    }

    /// Cycles in which the MACs work, whatever they compute (MAC_ACTIVE).
    pub fn mac_active(&self) -> u64 {
        self.mac.iter().copied().fold(0, u64::saturating_add)
    }

    /// Cycles in which the output stage works (AO_ACTIVE).
    pub fn output_active(&self) -> u64 {
        self.output.iter().copied().fold(0, u64::saturating_add)
    }

    /// The count of an event; `None` for one that the clock doesn't know, or that `product` doesn't have.
    pub fn event(&self, event: PmuEvent, product: Product) -> Option<u64> {
        event.number(product)?;
        let (axi0, axi1) = (self.beats.axi0, self.beats.axi1);
        Some(match event {
            PmuEvent::NoEvent => 0,
            PmuEvent::Cycle => self.cycles(),
            PmuEvent::NpuIdle => self.idle,
            PmuEvent::NpuActive => self.active,
            PmuEvent::MacActive => self.mac_active(),
            PmuEvent::MacActive8bit => self.mac[0],
            PmuEvent::MacActive16bit => self.mac[1],
            PmuEvent::MacActive32bit => self.mac[2],
            PmuEvent::AoActive => self.output_active(),
            PmuEvent::AoActive8bit => self.output[0],
            PmuEvent::AoActive16bit => self.output[1],
            PmuEvent::WdActive => self.weight_decoder,
            PmuEvent::Axi0RdDataBeatReceived | PmuEvent::SramRdDataBeatReceived => axi0.read,
            PmuEvent::Axi0WrDataBeatWritten | PmuEvent::SramWrDataBeatWritten => axi0.written,
            PmuEvent::Axi1RdDataBeatReceived | PmuEvent::ExtRdDataBeatReceived => axi1.read,
            PmuEvent::Axi1WrDataBeatWritten | PmuEvent::ExtWrDataBeatWritten => axi1.written,
            _ => return None,
        })
    }

    /// All events that are known.
    pub fn events(&self, product: Product) -> impl Iterator<Item = (PmuEvent, u64)> + '_ {
        PmuEvent::ALL.iter().filter_map(move |&event| Some((event, self.event(event, product)?)))
    }
}

/// The place of a type in the counters.
fn width(bits: u8) -> usize {
    match bits {
        ..=8 => 0,
        9..=16 => 1,
        _ => 2,
    }
}

/// Gives the performance monitor of a register-level NPU what the simulating clock says.
///
/// The ports behind regions and commands are those that the job's registers select.
///
/// ```
/// use ethosu_isa::Accelerator;
/// use ethosu_model::clock::{Meter, System};
/// use ethosu_model::device::{Banks, Npu};
///
/// let mut npu = Npu::new(Accelerator::U55_128, Banks::new());
/// npu.set_activity(Meter::new(System::usual(Accelerator::U55_128).memories));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Meter {
    memories: [Memory; 2],
    idle: u64,
}

impl Meter {
    /// A meter of a system with these memories behind its ports, by [`Port::index`].
    pub const fn new(memories: [Memory; 2]) -> Self {
        Self { memories, idle: 0 }
    }

    /// The same where each job is followed by so many cycles in which the NPU idles and is still counted.
    pub const fn idle(self, idle: u64) -> Self {
        Self { idle, ..self }
    }

    /// What the monitor counts in a run of the first `steps` operations; `None` where no clock can tell.
    fn counters(&self, program: &Program, steps: usize, job: &JobView<'_>) -> Option<Counters> {
        let port = |number: u8| if number == 0 { Port::Axi0 } else { Port::Axi1 };
        let [axi0, axi1] = self.memories;
        let mut system = System::new(1.0, axi0, axi1, MemoryMode::SRAM_ONLY);
        system.regions = job.ports.map(port);
        system.commands = port(job.command_port);
        let report = simulate_steps(program, &system, steps).ok()?;
        Some(Counters::new(&report, self.idle))
    }
}

impl Activity for Meter {
    fn counts(&mut self, job: &JobView<'_>) -> Counts {
        let Some(counters) = self.counters(job.program, job.steps, job) else { return Counts::default() };
        let events = counters.events(job.accelerator.product()).collect();
        Counts { cycles: Some(counters.cycles()), events }
    }
}
