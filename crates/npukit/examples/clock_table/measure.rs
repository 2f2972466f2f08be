//! Compiles networks and holds both clocks against what others say: Vela's own totals, and published counters of Arm's simulators.
//!
//! The example `clock_table` prints it, the test `clock` checks it.

use std::path::{Path, PathBuf};

use ethosu_isa::{Accelerator, Product};
use ethosu_model::clock::{Beats, Port, PortBeats, Report, System, estimate, estimate_layers, simulate};
use ethosu_model::{Limits, Program};
use npukit::clock;
use npukit_vela::compile::{BuildOptions, Compiled, DEBUG_DATABASE_ARGUMENT, DebugDatabase, compile};
use npukit_vela::distil::{self, IoMode};
use npukit_vela::ini::VelaIni;
use npukit_vela::progress::Silent;
use npukit_vela::toolchain::Vela;

/// Whatever went wrong; the reader is a person.
pub type Failure = Box<dyn std::error::Error>;

/// The networks that the compiler's clock is compared on: the four of MLPerf Tiny, and person_detect.
pub const NETWORKS: [&str; 5] = [
    "ad01_int8.tflite",
    "kws_ref_model.tflite",
    "pretrainedResnet_quant.tflite",
    "vww_96_int8.tflite",
    "person_detect.tflite",
];

/// A system configuration and memory mode, by the names of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub system_config: &'static str,
    pub memory_mode: &'static str,
}

const fn setup(system_config: &'static str, memory_mode: &'static str) -> Setup {
    Setup { system_config, memory_mode }
}

/// The setups of Vela's own configuration file that an accelerator is compared with.
pub fn setups(accelerator: Accelerator) -> Vec<Setup> {
    match (accelerator.product(), accelerator.macs()) {
        (Product::U55, _) => vec![
            setup("Ethos_U55_High_End_Embedded", "Shared_Sram"),
            setup("Ethos_U55_Deep_Embedded", "Sram_Only"),
        ],
        (Product::U65, _) => {
            vec![setup("Ethos_U65_High_End", "Dedicated_Sram"), setup("Ethos_U65_Embedded", "Shared_Sram")]
        }
        (Product::U85, 128) => vec![setup("Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram")],
        (Product::U85, 256) => vec![
            setup("Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram"),
            setup("Ethos_U85_SYS_Flash_High", "Shared_Sram"),
        ],
        (Product::U85, 512 | 1024) => vec![setup("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram")],
        (Product::U85, _) => vec![setup("Ethos_U85_SYS_DRAM_High", "Dedicated_Sram")],
    }
}

/// A network by the compiler's clock and by Vela.
#[derive(Clone, Debug)]
pub struct Estimated {
    /// Vela's total.
    pub vela: u64,
    /// The total from the stream alone.
    pub stream: u64,
    /// The total with the layers of Vela's debug database.
    pub layered: u64,
    /// Layers, and how many of them have exactly Vela's cycles.
    pub layers: (usize, usize),
}

/// By how many percent a figure differs from what it should be.
pub fn percent(found: u64, wanted: u64) -> f64 {
    100.0 * (found as f64 - wanted as f64) / wanted as f64
}

/// Compiles a network with Vela and estimates it.
pub fn estimated(
    vela: &Vela,
    network: &Path,
    accelerator: Accelerator,
    setup: Setup,
) -> Result<Estimated, Failure> {
    let mut options = options(accelerator, setup);
    options.vela_arguments.push(DEBUG_DATABASE_ARGUMENT.to_owned());
    let compiled = compile(vela, &std::fs::read(network)?, &options, &mut Silent)?;
    let total = compiled.summary.as_ref().and_then(|summary| summary.number("cycles_total"));
    let total = total.ok_or("Vela left no total")? as u64;
    let (program, system) = (program(&compiled)?, system(&vela.configurations()?, setup)?);
    let database = DebugDatabase::of(&compiled).ok_or("Vela left no debug database")?;
    let layered = estimate_layers(&program, &system, |offset| database.layer_number(offset))?;
    let exact = |cost: &&ethosu_model::clock::Cost| {
        database.layer_at(cost.offset).is_some_and(|layer| layer.cycles == cost.cycles)
    };
    Ok(Estimated {
        vela: total,
        stream: estimate(&program, &system)?.total(),
        layered: layered.total(),
        layers: (layered.costs.len(), layered.costs.iter().filter(exact).count()),
    })
}

fn options(accelerator: Accelerator, setup: Setup) -> BuildOptions {
    let mut options = BuildOptions::new(accelerator);
    options.system_config = Some(setup.system_config.to_owned());
    options.memory_mode = Some(setup.memory_mode.to_owned());
    options.io = IoMode::Arena;
    options
}

fn program(compiled: &Compiled) -> Result<Program, Failure> {
    let distilled = distil::from_vela_tflite(&compiled.output)?;
    Ok(Program::decode(&distilled.commands, distilled.accelerator, &Limits::default())?)
}

/// The clock's system for names of a configuration file.
fn system(file: &VelaIni, setup: Setup) -> Result<System, Failure> {
    Ok(clock::system(file, setup.system_config, setup.memory_mode)?)
}

/// What Arm's simulator counted while it ran kws_micronet_m.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    pub accelerator: Accelerator,
    pub setup: Setup,
    /// NPU_TOTAL, which the runner sees in steps of a thousand.
    pub total: u64,
    /// NPU_ACTIVE.
    pub active: u64,
    /// Read and written through AXI0 (SRAM on U85), read through AXI1 (EXT), and, on U85, written.
    pub beats: (u64, u64, u64, Option<u64>),
}

/// The network that the simulator ran.
pub const SIMULATED: &str = "kws_micronet_m.tflite";

const fn published(
    accelerator: Accelerator,
    setup: Setup,
    [total, active]: [u64; 2],
    beats: (u64, u64, u64, Option<u64>),
) -> Published {
    Published { accelerator, setup, total, active, beats }
}

const U55: Setup = setup("Ethos_U55_High_End_Embedded", "Shared_Sram");
const U65: Setup = setup("Ethos_U65_High_End", "Dedicated_Sram");
const U85_LOW: Setup = setup("Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram");
const U85_512: Setup = setup("Ethos_U85_SYS_DRAM_Mid_512", "Dedicated_Sram");
const U85_1024: Setup = setup("Ethos_U85_SYS_DRAM_Mid_1024", "Dedicated_Sram");
const U85_2048: Setup = setup("Ethos_U85_SYS_DRAM_High_2048", "Dedicated_Sram");

/// Source: github.com/Kwon-GiHwan/mps4_prototyping_board, docs/paper/evidence/FORMAL_EVIDENCE_FROZEN.json (U55 and U65, Corstone-300)
/// and docs/paper/raw_data_report/remeasure/R1_MEMORY_COUNTERS.csv (U85, Corstone-320). Compiled with Vela 5.0.0.
pub const PUBLISHED: [Published; 11] = [
    published(Accelerator::U55_32, U55, [1_416_050, 1_415_272], (147_346, 48_562, 17_472, None)),
    published(Accelerator::U55_64, U55, [730_050, 729_107], (147_454, 48_592, 17_513, None)),
    published(Accelerator::U55_128, U55, [405_050, 404_092], (127_826, 48_602, 17_563, None)),
    published(Accelerator::U55_256, U55, [244_050, 243_666], (92_400, 48_616, 17_631, None)),
    published(Accelerator::U65_256, U65, [217_068, 216_553], (44_310, 23_393, 10_173, None)),
    published(Accelerator::U65_512, U65, [130_068, 129_459], (46_600, 23_413, 10_257, None)),
    published(Accelerator::U85_128, U85_LOW, [369_068, 368_696], (60_729, 23_431, 10_695, Some(1))),
    published(Accelerator::U85_256, U85_LOW, [199_068, 198_564], (41_813, 23_431, 10_025, Some(1))),
    published(Accelerator::U85_512, U85_512, [114_068, 113_986], (22_294, 17_505, 15_790, Some(1))),
    published(Accelerator::U85_1024, U85_1024, [90_068, 89_138], (22_664, 17_760, 15_815, Some(1))),
    published(Accelerator::U85_2048, U85_2048, [67_068, 66_777], (15_673, 15_673, 12_172, Some(1))),
];

impl Published {
    /// Whether these are exactly the published beats.
    pub fn has(&self, beats: Beats) -> bool {
        let Beats { axi0: PortBeats { read, written }, axi1 } = beats;
        (read, written, axi1.read) == (self.beats.0, self.beats.1, self.beats.2)
            && self.beats.3.is_none_or(|written| axi1.written == written)
    }

    /// Compiles the network as it was, and simulates it.
    pub fn simulated(&self, vela: &Vela, network: &Path) -> Result<Report, Failure> {
        simulated(vela, network, self.accelerator, self.setup)
    }
}

/// Totals of Arm's simulator for MobileNetV2 (mobilenet_v2_1.0_224_INT8); the source is that of [`PUBLISHED`].
pub const MOBILENET: [(Accelerator, Setup, u64); 11] = [
    (Accelerator::U55_32, U55, 22_781_050),
    (Accelerator::U55_64, U55, 12_100_050),
    (Accelerator::U55_128, U55, 7_365_050),
    (Accelerator::U55_256, U55, 5_474_050),
    (Accelerator::U65_256, U65, 3_730_068),
    (Accelerator::U65_512, U65, 2_424_068),
    (Accelerator::U85_128, U85_LOW, 5_079_068),
    (Accelerator::U85_256, U85_LOW, 2_874_068),
    (Accelerator::U85_512, U85_512, 1_914_068),
    (Accelerator::U85_1024, U85_1024, 1_406_068),
    (Accelerator::U85_2048, U85_2048, 1_067_068),
];

/// Compiles a network for the system that a simulator was set to, and simulates it.
pub fn simulated(
    vela: &Vela,
    network: &Path,
    accelerator: Accelerator,
    setup: Setup,
) -> Result<Report, Failure> {
    let path = simulator_ini();
    let mut options = options(accelerator, setup);
    options.vela_config = Some(path.clone());
    let compiled = compile(vela, &std::fs::read(network)?, &options, &mut Silent)?;
    let mut system = system(&VelaIni::parse(&std::fs::read_to_string(path)?)?, setup)?;
    if setup == U85_LOW {
        // The timing adapter answers the two smaller U85 twice as fast as the configuration they are compiled with says
        // (EXT_RLATENCY 250 and EXT_WLATENCY 125 in the kit's ta_config_u85_sys_dram_low).
        let memory = &mut system.memories[Port::Axi1.index()];
        (memory.read_latency, memory.write_latency) = (250, 125);
    }
    Ok(simulate(&program(&compiled)?, &system)?)
}

fn simulator_ini() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/clock_table/simulator.ini")
}

/// Where a Vela 5.0.0 is named; the streams that the simulator ran are its.
pub const VELA_5_0_0: &str = "NPUKIT_VELA_5_0_0";

/// The Vela 5.0.0 that the environment names; where it doesn't, says so on standard error.
pub fn vela_5_0_0() -> Result<Option<Vela>, Failure> {
    let Some(path) = std::env::var_os(VELA_5_0_0).filter(|path| !path.is_empty()) else {
        eprintln!(
            "skipped: {VELA_5_0_0} names no Vela 5.0.0 (python3 -m venv v && v/bin/pip install ethos-u-vela==5.0.0, then v/bin/vela)"
        );
        return Ok(None);
    };
    let vela = Vela::own(Path::new(&path))?;
    if vela.version() != "5.0.0" {
        return Err(format!("{VELA_5_0_0} names a Vela {}", vela.version()).into());
    }
    Ok(Some(vela))
}
