//! Where the time of a compiled network goes, by the model's clocks.

use std::fmt;
use std::str::FromStr;

use ethosu_isa::{Accelerator, Product};
use ethosu_model::Program;
use ethosu_model::clock::{
    Beats, Bottleneck, ClockError, Cost, Port, System, beat_bytes, estimate_layers, simulate,
};
use npukit_vela::compile::DebugDatabase;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Which clock tells the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clock {
    /// What a real NPU would take, command by command.
    #[default]
    Sim,
    /// What Vela 5.2.0 would say, layer by layer.
    Compiler,
}

impl Clock {
    /// Both.
    pub const ALL: [Clock; 2] = [Clock::Sim, Clock::Compiler];

    /// How far it can be believed on a product, in a sentence. The figures are those of docs/clock.md.
    pub const fn accuracy(self, product: Product) -> &'static str {
        match (self, product) {
            (Clock::Sim, Product::U55 | Product::U65) => {
                "totals within 7 % of those published of Arm's simulator for two networks; how a total divides among its commands \
                 is unproven, and a board may take longer"
            }
            (Clock::Sim, Product::U85) => {
                "it ranks, it doesn't predict: totals 19 % below to 14 % above those published of Arm's simulator, single small \
                 convolutions on maps in DRAM up to 43 % below; beats are exact where published"
            }
            (Clock::Compiler, Product::U55 | Product::U65) => {
                "within 3 % of Vela's own totals on the networks compared; it says what Vela believes, not what a chip takes"
            }
            (Clock::Compiler, Product::U85) => {
                "within 7 % of Vela's own totals on the networks compared; it says what Vela believes, not what a chip takes"
            }
        }
    }
}

/// "sim" or "compiler".
impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Clock::Sim => "sim",
            Clock::Compiler => "compiler",
        })
    }
}

impl FromStr for Clock {
    type Err = String;

    fn from_str(name: &str) -> Result<Clock, String> {
        Clock::ALL.into_iter().find(|clock| clock.to_string() == name).ok_or_else(|| {
            format!("{name:?} is no clock: it's \"sim\" (a real NPU) or \"compiler\" (Vela's own estimate)")
        })
    }
}

/// What a program takes: totals, and each command or layer.
///
/// ```
/// use ethosu_isa::Accelerator;
/// use ethosu_model::clock::System;
/// use ethosu_model::{Limits, Program};
/// use npukit::profile::{Clock, Profile};
///
/// let stream = 0xFFFF_0000u32.to_le_bytes(); // NPU_OP_STOP
/// let program = Program::decode(&stream, Accelerator::U55_128, &Limits::default())?;
/// let profile = Profile::new(&program, &System::usual(Accelerator::U55_128), Clock::Sim, None)?;
/// assert_eq!((profile.total_cycles, profile.steps.len(), profile.core_clock_hz), (0, 0, 500e6));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Profile {
    /// The accelerator's name.
    pub accel: String,
    /// The clock.
    #[serde(serialize_with = "display")]
    pub clock: Clock,
    /// How far to believe it.
    pub accuracy: &'static str,
    /// The NPU's clock in hertz.
    pub core_clock_hz: f64,
    /// Cycles of an inference.
    pub total_cycles: u64,
    /// The same in milliseconds.
    pub milliseconds: f64,
    /// Multiply-accumulates.
    pub macs: u64,
    /// What part of the multiply-accumulates that the NPU could do in this time these are, 0 to 1.
    pub mac_utilisation: f64,
    /// Bytes of a beat, through any port.
    pub beat_bytes: u32,
    /// Words through the ports, those of the commands included.
    pub beats: PortTraffic,
    /// Words of reading the commands themselves.
    pub command_beats: PortTraffic,
    /// Each command (clock sim) or layer (clock compiler), in the order of the stream.
    pub steps: Vec<Step>,
    #[serde(skip)]
    accelerator: Accelerator,
}

/// Data words through each port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PortTraffic {
    /// Read through AXI0; AXI_SRAM on U85.
    pub axi0_read: u64,
    /// Written through it.
    pub axi0_written: u64,
    /// Read through AXI1; AXI_EXT on U85.
    pub axi1_read: u64,
    /// Written through it.
    pub axi1_written: u64,
}

/// What one command or layer takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Byte offset of its first command in the stream.
    pub offset: usize,
    /// What it does, such as `CONV`.
    pub command: &'static str,
    /// What Vela calls its layer, where that is known.
    pub layer: Option<String>,
    /// Commands it is made of.
    pub commands: usize,
    /// When it starts, in cycles from the beginning.
    pub start: u64,
    /// Cycles from its start to its end.
    pub cycles: u64,
    /// That in percent of the total. Transfers run beside commands, so these may add up to more than 100.
    pub percent: f64,
    /// Cycles in which the MACs work.
    pub mac_cycles: u64,
    /// Cycles in which the output stage works.
    pub output_cycles: u64,
    /// Cycles in which the weight decoder works, within those of the MACs.
    pub weight_decoder_cycles: u64,
    /// Cycles of copies from memory to memory.
    pub dma_cycles: u64,
    /// Cycles that the memories behind AXI0 and AXI1 need.
    pub port_cycles: [u64; 2],
    /// Words through the ports.
    pub beats: PortTraffic,
    /// Multiply-accumulates.
    pub macs: u64,
    /// What bounds it.
    pub bound_by: String,
    /// Whether it is a copy, which runs beside commands.
    #[serde(skip)]
    pub is_transfer: bool,
}

impl Profile {
    /// Asks a clock. Layers have names, and with the compiler's clock are Vela's own, where there is its database.
    ///
    /// # Errors
    /// [`ClockError`]: a register that decides the time is never set, or a memory moves nothing.
    pub fn new(
        program: &Program,
        system: &System,
        clock: Clock,
        database: Option<&DebugDatabase>,
    ) -> Result<Profile, ClockError> {
        let accelerator = program.accelerator();
        let number = |offset| database.and_then(|database| database.layer_number(offset));
        let report = match clock {
            Clock::Sim => simulate(program, system)?,
            Clock::Compiler => estimate_layers(program, system, number)?,
        };
        let total = report.total();
        let possible = total as f64 * f64::from(accelerator.macs());
        let step = |cost: &Cost| {
            let layer = database.and_then(|database| database.layer_at(cost.offset));
            Step::new(cost, total, layer.map(|layer| layer.name.clone()), accelerator.product())
        };
        Ok(Profile {
            accel: accelerator.to_string(),
            clock,
            accuracy: clock.accuracy(accelerator.product()),
            core_clock_hz: report.core_clock_hz,
            total_cycles: total,
            milliseconds: report.seconds() * 1e3,
            macs: report.macs(),
            mac_utilisation: if total == 0 { 0.0 } else { report.macs() as f64 / possible },
            beat_bytes: beat_bytes(accelerator.product()),
            beats: report.beats().into(),
            command_beats: report.command_beats.into(),
            steps: report.costs.iter().map(step).collect(),
            accelerator,
        })
    }

    /// The accelerator.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// A trace of one inference in Chrome's trace-event format, which Perfetto and chrome://tracing show. `title` names it.
    /// Times are microseconds; commands and transfers have a track each.
    pub fn trace(&self, title: &str) -> Value {
        const COMMANDS: u32 = 1;
        const TRANSFERS: u32 = 2;
        let meta = |name: &str, thread: u32, value: &str| json!({ "ph": "M", "name": name, "pid": 1, "tid": thread, "args": { "name": value } });
        let mut events = vec![
            meta("process_name", 0, &format!("{title} on {}, clock {}", self.accel, self.clock)),
            meta("thread_name", COMMANDS, "commands"),
            meta("thread_name", TRANSFERS, "transfers"),
        ];
        let microseconds = |cycles: u64| cycles as f64 / self.core_clock_hz * 1e6;
        events.extend(self.steps.iter().map(|step| {
            json!({
                "ph": "X",
                "pid": 1,
                "tid": if step.is_transfer { TRANSFERS } else { COMMANDS },
                "name": step.title(),
                "cat": step.command,
                "ts": microseconds(step.start),
                "dur": microseconds(step.cycles),
                "args": step,
            })
        }));
        json!({
            "traceEvents": events,
            "displayTimeUnit": "ns",
            "otherData": { "accuracy": self.accuracy, "total_cycles": self.total_cycles },
        })
    }
}

impl Step {
    fn new(cost: &Cost, total: u64, layer: Option<String>, product: Product) -> Step {
        Step {
            offset: cost.offset,
            command: cost.name,
            layer,
            commands: cost.commands,
            start: cost.start,
            cycles: cost.cycles,
            percent: if total == 0 { 0.0 } else { 100.0 * cost.cycles as f64 / total as f64 },
            mac_cycles: cost.mac_cycles,
            output_cycles: cost.output_cycles,
            weight_decoder_cycles: cost.weight_cycles,
            dma_cycles: cost.transfer_cycles,
            port_cycles: cost.port_cycles,
            beats: cost.beats.into(),
            macs: cost.macs,
            bound_by: match cost.bottleneck {
                Bottleneck::Port(port) => port_name(port, product).to_owned(),
                other => other.to_string(),
            },
            is_transfer: cost.name == TRANSFER,
        }
    }

    /// The layer's name, or the command's.
    pub fn title(&self) -> &str {
        self.layer.as_deref().unwrap_or(self.command)
    }
}

/// What the simulating clock calls a copy.
const TRANSFER: &str = "DMA";

/// The port's name on a product.
pub fn port_name(port: Port, product: Product) -> &'static str {
    let port = match port {
        Port::Axi0 => ethosu_driver::AxiPort::Sram,
        Port::Axi1 => ethosu_driver::AxiPort::External,
    };
    port.name(product)
}

impl From<Beats> for PortTraffic {
    fn from(beats: Beats) -> PortTraffic {
        PortTraffic {
            axi0_read: beats.axi0.read,
            axi0_written: beats.axi0.written,
            axi1_read: beats.axi1.read,
            axi1_written: beats.axi1.written,
        }
    }
}

fn display<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
