//! What a driver has to be set up with, as options, object and text.

use std::fmt::{self, Write};
use std::path::Path;

use clap::Args;
use ethosu_driver::placement::SystemConfig;
use npukit::driver::{DriverNeeds, DriverNeedsError, Route, Routing, Routings};
use serde::Serialize;

use crate::cli::describe::grouped;
use crate::cli::failure::{Failure, Outcome};
use crate::cli::placement;
use crate::cli::report::{caution, heading, table};

/// Which of the memory modes and system configurations to show.
#[derive(Args, Debug)]
pub(super) struct Options {
    /// Driver settings for this memory mode only [default: for each one the network can have been compiled with]
    #[arg(long, value_name = "NAME")]
    memory_mode: Option<String>,
    /// The system configuration, to say which memory has what
    #[arg(long, value_name = "NAME")]
    system_config: Option<String>,
}

/// What a driver has to be set up with, or why that isn't known.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Known {
    Settings(Box<Settings>),
    Unknown { obstacle: String },
}

#[derive(Serialize)]
pub(super) struct Settings {
    #[serde(flatten)]
    needs: DriverNeeds,
    #[serde(flatten)]
    routings: Routings,
    #[serde(skip)]
    system: Option<SystemConfig>,
    /// Whether it can't run with what was asked for.
    #[serde(skip)]
    no: bool,
}

impl Options {
    /// The settings for a network in a file.
    pub(super) fn settings(
        &self,
        path: &Path,
        needs: Result<DriverNeeds, DriverNeedsError>,
    ) -> Outcome<Known> {
        let product = needs.as_ref().ok().map(|needs| needs.accelerator().product());
        let (mode, system) =
            placement::look_up(self.memory_mode.as_deref(), self.system_config.as_deref(), product)?;
        match needs {
            Ok(needs) => {
                if let Some(system) = system {
                    placement::fits_product(path, needs.accelerator(), system)?;
                }
                let routings = needs.routings(mode, system);
                let no = (mode.is_some() || system.is_some()) && routings.memory_modes.is_empty();
                Ok(Known::Settings(Box::new(Settings { needs, routings, system, no })))
            }
            Err(error) => Ok(Known::Unknown { obstacle: error.to_string() }),
        }
    }

    /// Refuses the options for a file that they say nothing about.
    pub(super) fn only_for_compiled(&self, path: &Path) -> Outcome<()> {
        let given = [(&self.memory_mode, "--memory-mode"), (&self.system_config, "--system-config")];
        match given.into_iter().find(|(name, _)| name.is_some()) {
            Some((_, option)) => Err(Failure::of_file(
                "usage",
                path,
                format_args!("{option} is for networks compiled for an Ethos-U, and this is none"),
            )
            .advise("Leave it out, or give the .npub or the _vela.tflite.")),
            None => Ok(()),
        }
    }
}

impl Known {
    /// Whether it can't run with what was asked for.
    pub(super) fn is_no(&self) -> bool {
        matches!(self, Known::Settings(settings) if settings.no)
    }
}

impl fmt::Display for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Known::Settings(settings) => f.write_str(&settings.text()),
            Known::Unknown { obstacle } => {
                writeln!(f, "{}: driver settings aren't known: {obstacle}", caution("warning"))
            }
        }
    }
}

impl Settings {
    fn text(&self) -> String {
        let DriverNeeds { accel, stream_version, config, custom_dma, alignment, .. } = &self.needs;
        let mut text = format!("{}\n", heading("driver"));
        let architecture = self.needs.architecture.as_deref();
        let architecture =
            architecture.map(|version| format!("architecture {version}, ")).unwrap_or_default();
        let dma = if *custom_dma { "a custom DMA" } else { "no custom DMA" };
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "  needs {accel}, {architecture}command stream version {stream_version}, {dma} (CONFIG {config:#010x})"
        );
        let arm = if self.needs.arm_driver {
            "and Arm's core driver take them"
        } else {
            "takes them; Arm's core driver only takes COP1 payloads"
        };
        let _ = writeln!(text, "  {} commands: ethosu-driver {arm}", self.needs.framing);
        let _ = writeln!(text, "  commands and regions start at multiples of {alignment} bytes");
        text += &table(&self.regions(), 2);
        if let Some(bytes) = self.needs.fast_memory_bytes {
            let _ = writeln!(
                text,
                "  fast memory of {} bytes takes the place of region {} (Config::fast_memory)",
                grouped(bytes),
                ethosu_driver::FAST_MEMORY_REGION
            );
        }
        text += &table(&self.modes(), 2);
        for excluded in self.unlisted() {
            let _ = writeln!(text, "  {excluded}");
        }
        if let Some(system) = self.system {
            text += &self.memories(system);
        }
        for problem in &self.needs.problems {
            let _ = writeln!(text, "{}: {problem}: no driver can run it", caution("warning"));
        }
        text
    }

    fn regions(&self) -> Vec<Vec<String>> {
        let commands = vec![
            "commands".to_owned(),
            String::new(),
            "read".to_owned(),
            format!("{} bytes", grouped(self.needs.command_bytes)),
        ];
        let regions = self.needs.regions.iter().map(|region| {
            let direction = match (region.read, region.written) {
                (true, true) => "read, written",
                (false, true) => "written",
                _ => "read",
            };
            let mut row = vec![
                format!("region {}", region.region),
                region.role.clone(),
                direction.to_owned(),
                format!("{} bytes", grouped(region.bytes)),
            ];
            if !region.forbidden_ports.is_empty() {
                row.push(format!("not through {}", region.forbidden_ports.join(", ")));
            }
            row
        });
        std::iter::once(commands).chain(regions).collect()
    }

    /// One row for all modes with the same registers.
    fn modes(&self) -> Vec<Vec<String>> {
        let modes = &self.routings.memory_modes;
        let Some(first) = modes.first() else { return Vec::new() };
        let mut head = vec!["memory mode".to_owned(), "QCONFIG".to_owned(), "REGIONCFG".to_owned()];
        head.extend(first.regions.iter().map(|route| format!("region {}", route.region)));
        let mut rows = vec![head];
        for alike in modes.chunk_by(|a, b| (a.qconfig, a.regioncfg) == (b.qconfig, b.regioncfg)) {
            let Some(mode) = alike.first() else { continue };
            let mut row = vec![names(alike), route(mode.commands), format!("{:#06x}", mode.regioncfg)];
            row.extend(mode.regions.iter().map(|region| route(region.route)));
            let defaults = [
                (mode.driver_default, "the drivers' default".to_owned()),
                (
                    alike.iter().any(|mode| mode.vela_default),
                    format!("Vela's default for the {}", self.needs.product),
                ),
            ];
            let defaults: Vec<String> =
                defaults.into_iter().filter_map(|(is, name)| is.then_some(name)).collect();
            row.push(defaults.join(", "));
            rows.push(row);
        }
        rows
    }

    /// Modes that it can't run with, if they were asked for or there is no other.
    fn unlisted(&self) -> Vec<String> {
        if !self.routings.memory_modes.is_empty() {
            return Vec::new();
        }
        let excluded = self.routings.excluded_modes.iter();
        excluded.map(|mode| format!("not with {}: {}", mode.memory_mode, mode.reason)).collect()
    }

    fn memories(&self, system: SystemConfig) -> String {
        let modes = &self.routings.memory_modes;
        let mut rows = Vec::new();
        for mode in modes {
            for memory in mode.system_configs.iter().filter(|memory| memory.system_config == system.name) {
                let mut row = vec![
                    mode.memory_mode.to_owned(),
                    format!("commands and constants in {}", memory.constants),
                    format!("arena, inputs and outputs in {}", memory.arena),
                ];
                if let Some(fast) = memory.fast {
                    let limit = mode
                        .fast_memory_limit
                        .map(|bytes| format!(", at most {} bytes", grouped(bytes.into())));
                    row.push(format!("fast memory in {fast}{}", limit.unwrap_or_default()));
                }
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return String::new();
        }
        format!("  in {}:\n{}", system.name, table(&rows, 4))
    }
}

/// "2 (AXI1)".
fn route(route: Route) -> String {
    format!("{} ({})", route.selector, route.port)
}

/// "Dedicated_Sram, _256KB, _512KB".
fn names(modes: &[Routing]) -> String {
    let mut text = String::new();
    let mut before = "";
    for mode in modes.iter().map(|mode| mode.memory_mode) {
        match mode.strip_prefix(before).filter(|rest| !before.is_empty() && rest.starts_with('_')) {
            Some(rest) => {
                let _ = write!(text, ", {rest}");
            }
            None => {
                text += if text.is_empty() { "" } else { ", " };
                text += mode;
                before = mode;
            }
        }
    }
    text
}
