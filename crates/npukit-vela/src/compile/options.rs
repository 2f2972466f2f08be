//! What a compilation is asked for, and the arguments that say it to Vela.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use ethosu_isa::{Accelerator, PayloadKind, Product};

use super::CompileError;
use crate::distil::IoMode;
use crate::ini::VelaIni;
use crate::toolchain::Vela;

/// Long enough for the largest networks on a slow machine, short enough that a hanging compiler is noticed.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);
/// Vela only takes configuration files with this ending.
const CONFIG_FILE: &str = "configuration.ini";
/// The configuration file that comes with Vela.
const SHIPPED_CONFIG: &str = "Arm/vela.ini";

/// What Vela writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// A `.tflite` file with an `ethos-u` operator, which also holds what isn't on the NPU.
    #[default]
    Tflite,
    /// An `.npz` archive of the parts.
    Raw,
}

impl OutputFormat {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Tflite => "tflite",
            Self::Raw => "npz",
        }
    }
}

/// What Vela strives for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Optimise {
    /// Fewest cycles.
    Performance,
    /// Least memory.
    Size,
}

impl fmt::Display for Optimise {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Performance => "Performance",
            Self::Size => "Size",
        })
    }
}

impl FromStr for Optimise {
    type Err = String;

    /// Reads `Performance` or `Size`, in any case.
    fn from_str(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().as_str() {
            "performance" => Ok(Self::Performance),
            "size" => Ok(Self::Size),
            _ => Err(format!("Vela optimises for \"Performance\" or \"Size\", not for {name:?}")),
        }
    }
}

/// What a network is compiled for, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BuildOptions {
    /// The NPU.
    pub accelerator: Accelerator,
    /// A system configuration of the configuration file. By default Vela's own default for the NPU.
    pub system_config: Option<String>,
    /// A memory mode of the configuration file. By default Vela's own default for the NPU.
    pub memory_mode: Option<String>,
    /// An own configuration file in the place of the one that comes with Vela.
    pub vela_config: Option<PathBuf>,
    /// Where inputs and outputs live.
    pub io: IoMode,
    /// The framing of the command stream. By default COP2 where the I/O mode needs it, else COP1. No difference in the
    /// `.npub`, which holds the bare stream.
    pub payload: Option<PayloadKind>,
    /// What Vela writes.
    pub output_format: OutputFormat,
    /// What Vela strives for; its default is [`Optimise::Performance`].
    pub optimise: Option<Optimise>,
    /// Size in bytes of the fast memory, in the place of the memory mode's.
    pub arena_cache_bytes: Option<u64>,
    /// More arguments for Vela, passed on as they are.
    pub vela_arguments: Vec<String>,
    /// A compiler that takes longer is stopped.
    pub time_limit: Duration,
}

impl BuildOptions {
    /// Defaults for an NPU.
    pub fn new(accelerator: Accelerator) -> Self {
        BuildOptions {
            accelerator,
            system_config: None,
            memory_mode: None,
            vela_config: None,
            io: IoMode::default(),
            payload: None,
            output_format: OutputFormat::default(),
            optimise: None,
            arena_cache_bytes: None,
            vela_arguments: Vec::new(),
            time_limit: TIME_LIMIT,
        }
    }
}

/// What was settled on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Configuration {
    /// The NPU.
    pub accelerator: Accelerator,
    /// The system configuration's name.
    pub system_config: String,
    /// The memory mode's name.
    pub memory_mode: String,
    /// The own configuration file, if it isn't the one that comes with Vela.
    pub vela_config: Option<PathBuf>,
    /// What that file said when it was read. It is read once: it may be a pipe.
    pub vela_config_text: Option<String>,
    /// Which Vela compiled.
    pub vela_version: String,
}

/// The system configuration and the memory mode that Vela 5.2.0 takes when it is given none (`architecture_features.py`). U55
/// chips keep constants in flash, behind the port that can't write; U65 and U85 chips have DRAM behind it.
pub fn default_names(product: Product) -> (&'static str, &'static str) {
    match product {
        Product::U55 => ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
        Product::U65 => ("Ethos_U65_Client_Server", "Dedicated_Sram_384KB"),
        Product::U85 => ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    }
}

impl BuildOptions {
    /// Fills in the defaults and checks the names against the configuration file.
    pub(super) fn configuration(&self, vela: &Vela) -> Result<Configuration, CompileError> {
        let (ini, vela_config_text) = match &self.vela_config {
            Some(path) => {
                let problem = |problem: String| CompileError::ConfigFile { path: path.clone(), problem };
                let text = npukit_files::read_text(path).map_err(|error| problem(error.to_string()))?;
                let ini = VelaIni::parse(&text).map_err(|error| problem(error.to_string()))?;
                for (kind, known) in
                    [("System_Config", ini.system_configs()), ("Memory_Mode", ini.memory_modes())]
                {
                    if known.is_empty() {
                        return Err(problem(format!("it has no section [{kind}.NAME]")));
                    }
                }
                (ini, Some(text))
            }
            None => (vela.configurations()?, None),
        };
        let (system, memory) = default_names(self.accelerator.product());
        // Those that aren't offered, since they are for another product, may be asked for.
        let choose = |kind, asked: Option<&str>, default: &str, known: Vec<&str>, offered: &[&str]| {
            let owned = || offered.iter().map(|&name| name.to_owned()).collect();
            match asked {
                // An own Vela that doesn't list its names is left to judge them itself.
                Some(name) if known.contains(&name) || known.is_empty() && self.vela_config.is_none() => {
                    Ok(name.to_owned())
                }
                Some(name) => Err(CompileError::UnknownName { kind, name: name.to_owned(), known: owned() }),
                None if known.contains(&default) || known.is_empty() && self.vela_config.is_none() => {
                    Ok(default.to_owned())
                }
                None => match known.as_slice() {
                    [only] => Ok((*only).to_owned()),
                    _ => Err(CompileError::NameNeeded { kind, known: owned() }),
                },
            }
        };
        Ok(Configuration {
            accelerator: self.accelerator,
            system_config: choose(
                "system configuration",
                self.system_config.as_deref(),
                system,
                ini.system_configs(),
                &ini.system_configs_for(self.accelerator.product()),
            )?,
            memory_mode: choose(
                "memory mode",
                self.memory_mode.as_deref(),
                memory,
                ini.memory_modes(),
                &ini.memory_modes(),
            )?,
            vela_config: self.vela_config.clone(),
            vela_config_text,
            vela_version: vela.version().to_owned(),
        })
    }

    /// Says it to Vela. An own configuration file is copied to `folder` first.
    pub(super) fn arguments(
        &self,
        configuration: &Configuration,
        folder: &Path,
        command: &mut Command,
    ) -> Result<(), CompileError> {
        command.args(["--accelerator-config", configuration.accelerator.name()]);
        command.args([
            "--system-config",
            &configuration.system_config,
            "--memory-mode",
            &configuration.memory_mode,
        ]);
        match &configuration.vela_config_text {
            None => command.args(["--config", SHIPPED_CONFIG]),
            Some(text) => {
                // Vela looks a path of two parts up among its own files, and wants the ending .ini.
                let copy = folder.join(CONFIG_FILE);
                fs::write(&copy, text).map_err(CompileError::Temporary)?;
                command.arg("--config").arg(copy)
            }
        };
        if self.output_format == OutputFormat::Raw {
            command.args(["--output-format", "raw"]);
        }
        let payload = match (self.payload, self.io) {
            (Some(PayloadKind::Cop1), IoMode::Separate) => return Err(CompileError::SeparateNeedsCop2),
            (Some(payload), _) => Some(payload),
            (None, IoMode::Separate) => Some(PayloadKind::Cop2),
            (None, IoMode::Arena) => None,
        };
        if payload == Some(PayloadKind::Cop2) {
            command.args(["--cop-format", "COP2"]);
        }
        if self.io == IoMode::Separate {
            command.arg("--separate-io-regions");
        }
        if let Some(optimise) = self.optimise {
            command.arg("--optimise").arg(optimise.to_string());
        }
        if let Some(bytes) = self.arena_cache_bytes {
            command.arg("--arena-cache-size").arg(bytes.to_string());
        }
        Ok(())
    }
}
