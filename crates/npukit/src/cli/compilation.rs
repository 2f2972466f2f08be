//! Options that say how a network is compiled, and the compilation itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use npukit::defects::{self, KnownDefect};
use npukit::{Accelerator, BuildOptions, Built, build};
use npukit_vela::PayloadKind;
use npukit_vela::compile::{Optimise, Prepared, prepare};
use npukit_vela::distil::IoMode;
use npukit_vela::progress::Progress;
use npukit_vela::tflite::Model;
use npukit_vela::toolchain::{Settings, Toolchain, Vela};
use serde::Serialize;

use super::failure::{Failure, Outcome};
use super::inspect::Kind;

/// How a network is compiled.
#[derive(Args, Debug)]
#[command(next_help_heading = "Compilation")]
pub(super) struct Options {
    /// The NPU to compile for [default: ethos-u55-256]
    #[arg(long, value_name = "NPU")]
    accel: Option<Accelerator>,
    /// Vela's system configuration [default: Vela's for the NPU]
    #[arg(long, value_name = "NAME")]
    system_config: Option<String>,
    /// Vela's memory mode [default: Vela's for the NPU]
    #[arg(long, value_name = "NAME")]
    memory_mode: Option<String>,
    /// An own vela.ini, which the two names above refer to
    #[arg(long, value_name = "FILE")]
    vela_config: Option<PathBuf>,
    /// Where inputs and outputs live: in regions of their own, or in the arena [default: separate]
    #[arg(long, value_name = "WHERE")]
    io: Option<Io>,
    /// An own Vela, in the place of the one that npukit installs
    #[arg(long, value_name = "PROGRAM")]
    vela: Option<PathBuf>,
    /// Framing that Vela puts around the commands; the .npub holds them bare [default: what --io needs]
    #[arg(long, value_name = "FORMAT", ignore_case = true)]
    cop_format: Option<CopFormat>,
    /// What Vela strives for [default: performance]
    #[arg(long, value_name = "GOAL", ignore_case = true, alias = "optimize")]
    optimise: Option<Goal>,
    /// Size of the fast memory in bytes, in the place of the memory mode's
    #[arg(long, value_name = "BYTES")]
    arena_cache_size: Option<u64>,
    /// One more argument for Vela, as it is; may be given several times
    #[arg(long = "vela-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    vela_arguments: Vec<String>,
    /// Stop Vela after so many seconds
    #[arg(long, value_name = "SECONDS")]
    vela_time_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Io {
    Separate,
    Arena,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CopFormat {
    #[value(name = "COP1")]
    Cop1,
    #[value(name = "COP2")]
    Cop2,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Goal {
    Performance,
    Size,
}

/// What the options that name the system around the NPU mean to a command that is given a compiled network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SystemOptions {
    /// They only say how a network is compiled.
    Compiling,
    /// They say something about the compiled network as well.
    Meant,
}

/// A network that was looked at and can be compiled.
pub(super) struct Source {
    path: PathBuf,
    bytes: Vec<u8>,
    pub(super) prepared: Prepared,
    pub(super) defects: Vec<KnownDefect>,
}

/// What a compilation settled on, for a report.
#[derive(Debug, Serialize)]
pub(super) struct Settled {
    pub(super) model: String,
    pub(super) accel: String,
    system_config: String,
    memory_mode: String,
    pub(super) vela_version: String,
    io: String,
}

impl Source {
    /// Looks at a network, before anything costs time.
    fn new(path: &Path, bytes: Vec<u8>) -> Outcome<Source> {
        if Kind::of(&bytes) == Some(Kind::Npub) {
            return Err(Failure::of_file("not_a_tflite", path, "it is an .npub, which is compiled already")
                .advise("Give the .tflite that it was made from; npukit run runs an .npub."));
        }
        let prepared = prepare(&bytes).map_err(|error| Failure::compile(path, error))?;
        let model = Model::parse(&prepared.network).map_err(|error| Failure::tflite(path, &error))?;
        let defects = defects::find(&model);
        Ok(Source { path: path.to_owned(), bytes, prepared, defects })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn model(&self) -> Outcome<Model<'_>> {
        Model::parse(&self.prepared.network).map_err(|error| Failure::tflite(&self.path, &error))
    }

    /// Says on standard error what the compiled network is known to compute wrong.
    pub(super) fn warn_of_defects(&self) {
        for defect in &self.defects {
            super::warn(&format!("Vela compiles this wrong: {defect}"));
        }
    }
}

impl Options {
    /// The toolchain, with an own Vela if one is named.
    pub(super) fn toolchain(&self) -> Outcome<Toolchain> {
        let mut settings = Settings::from_environment();
        if let Some(vela) = &self.vela {
            settings.vela = Some(vela.clone());
        }
        Toolchain::new(settings).map_err(Failure::toolchain)
    }

    /// Reads a network that will be compiled for this NPU, and looks at it before anything costs time.
    pub(super) fn source(&self, path: &Path) -> Outcome<Source> {
        let bytes = npukit_files::read(path, npukit_files::NETWORK_BYTES)
            .map_err(|error| Failure::reading(path, &error))?;
        self.source_of(path, bytes)
    }

    /// The same for one that has been read.
    pub(super) fn source_of(&self, path: &Path, bytes: Vec<u8>) -> Outcome<Source> {
        let mut source = Source::new(path, bytes)?;
        let options = self.build_options();
        source.defects.retain(|defect| defect.applies_to(&options));
        Ok(source)
    }

    /// The options as the library takes them.
    fn build_options(&self) -> BuildOptions {
        let mut options = BuildOptions::new(self.accel());
        options.system_config = self.system_config.clone();
        options.memory_mode = self.memory_mode.clone();
        options.vela_config = self.vela_config.clone();
        options.io = match self.io {
            None | Some(Io::Separate) => IoMode::Separate,
            Some(Io::Arena) => IoMode::Arena,
        };
        options.payload = self.cop_format.map(|format| match format {
            CopFormat::Cop1 => PayloadKind::Cop1,
            CopFormat::Cop2 => PayloadKind::Cop2,
        });
        options.optimise = self.optimise.map(|goal| match goal {
            Goal::Performance => Optimise::Performance,
            Goal::Size => Optimise::Size,
        });
        options.arena_cache_bytes = self.arena_cache_size;
        options.vela_arguments = self.vela_arguments.clone();
        if let Some(seconds) = self.vela_time_limit {
            options.time_limit = Duration::from_secs(seconds);
        }
        options
    }

    /// Refuses options that only say how Vela compiles, for a file that is compiled already.
    pub(super) fn only_for_compiling(&self, path: &Path, system: SystemOptions) -> Outcome<()> {
        let compiling = system == SystemOptions::Compiling;
        let given = [
            (compiling && self.system_config.is_some(), "--system-config"),
            (compiling && self.memory_mode.is_some(), "--memory-mode"),
            (compiling && self.vela_config.is_some(), "--vela-config"),
            (compiling && self.vela.is_some(), "--vela"),
            (self.io.is_some(), "--io"),
            (self.cop_format.is_some(), "--cop-format"),
            (self.optimise.is_some(), "--optimise"),
            (self.arena_cache_size.is_some(), "--arena-cache-size"),
            (!self.vela_arguments.is_empty(), "--vela-arg"),
            (self.vela_time_limit.is_some(), "--vela-time-limit"),
        ];
        match given.into_iter().find(|(given, _)| *given) {
            Some((_, option)) => {
                let message =
                    format_args!("{option} says how a network is compiled, and this one is compiled already");
                Err(Failure::of_file("usage", path, message).advise("Leave it out, or give the .tflite."))
            }
            None => Ok(()),
        }
    }

    /// The NPU to compile for.
    pub(super) fn accel(&self) -> Accelerator {
        self.accel.unwrap_or(Accelerator::U55_256)
    }

    /// The NPU that was named.
    pub(super) fn named_accel(&self) -> Option<Accelerator> {
        self.accel
    }

    /// The system configuration that was named.
    pub(super) fn system_config(&self) -> Option<&str> {
        self.system_config.as_deref()
    }

    /// The memory mode that was named.
    pub(super) fn memory_mode(&self) -> Option<&str> {
        self.memory_mode.as_deref()
    }

    /// The configuration file that was named.
    pub(super) fn vela_config(&self) -> Option<&Path> {
        self.vela_config.as_deref()
    }

    /// Whether neither a system configuration, a memory mode nor a file with others was named.
    pub(super) fn names_nothing(&self) -> bool {
        self.system_config.is_none() && self.memory_mode.is_none() && self.vela_config.is_none()
    }

    /// Compiles and packs.
    pub(super) fn build(&self, vela: &Vela, source: &Source, progress: &mut dyn Progress) -> Outcome<Built> {
        self.build_with(vela, source, &[], progress)
    }

    /// The same with more arguments for Vela.
    pub(super) fn build_with(
        &self,
        vela: &Vela,
        source: &Source,
        arguments: &[&str],
        progress: &mut dyn Progress,
    ) -> Outcome<Built> {
        let mut options = self.build_options();
        options.vela_arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        build(vela, &source.bytes, &options, progress).map_err(|error| {
            let failure = Failure::compile(&source.path, error).with("accel", self.accel().name());
            let own = [
                (self.vela_config.is_some(), "--vela-config"),
                (!self.vela_arguments.is_empty(), "--vela-arg"),
                (vela.is_named_by_user(), "--vela"),
            ];
            let own: Vec<&str> = own.into_iter().filter_map(|(given, name)| given.then_some(name)).collect();
            if own.is_empty() { failure } else { failure.suspect(&own.join(" and ")) }
        })
    }
}

impl Settled {
    pub(super) fn new(source: &Source, built: &Built) -> Settled {
        let configuration = &built.compiled.configuration;
        Settled {
            model: source.path.display().to_string(),
            accel: configuration.accelerator.to_string(),
            system_config: configuration.system_config.clone(),
            memory_mode: configuration.memory_mode.clone(),
            vela_version: configuration.vela_version.clone(),
            io: built.io.to_string(),
        }
    }
}
