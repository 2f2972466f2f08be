//! Vela's configuration files: which system configurations and memory modes one offers, and what they say.
//!
//! The format is Python's ConfigParser with one rule of Vela's: a section may name another in `inherit` and then
//! has its values too, its own taking precedence (Vela 5.2.0, `architecture_features.py`). What Vela refuses is refused, and
//! besides what it only passes over: keys that it doesn't know, and figures outside what can be meant. ConfigParser's `%`
//! stands for itself here.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ethosu_isa::Product;

/// What begins the name of a section that describes clocks and memories.
const SYSTEM_CONFIG: &str = "System_Config.";
/// What begins the name of a section that says which memory holds what.
const MEMORY_MODE: &str = "Memory_Mode.";
/// The section whose values all others have, unless they have their own.
const DEFAULT: &str = "DEFAULT";

/// Memories that a port can lead to.
const MEMORIES: [&str; 4] = ["Sram", "Dram", "OnChipFlash", "OffChipFlash"];
/// What is said about a memory. Vela's Python part reads the first five, its compiler all.
const FIGURES: [&str; 7] =
    ["clock_scale", "ports_used", "burst_length", "read_latency", "write_latency", "max_reads", "max_writes"];

/// From slow logic in an FPGA to several times the fastest NPU, in hertz.
const CORE_CLOCK: RangeInclusive<f64> = 1e4..=1e10;
/// Down to serial flash of one data line beside a fast NPU, up to memory beside a slow one.
const CLOCK_SCALE: RangeInclusive<f64> = 1e-4..=100.0;
/// The largest NPU has four ports to one memory.
const PORTS_USED: RangeInclusive<u32> = 1..=16;
/// An AXI burst stays within 4 KiB.
const BURST_LENGTH: RangeInclusive<u32> = 1..=4096;
/// Cycles; those of Vela's own file are below a thousand.
const LATENCY: RangeInclusive<u32> = 0..=1_000_000;
/// Vela's own file has up to 64. 0 is for memory that is only read.
const OUTSTANDING: RangeInclusive<u32> = 0..=4096;
/// Bytes that an NPU can address (`max_address_offset` of U65 and U85).
const CACHE_SIZE: RangeInclusive<u64> = 0..=1 << 40;

/// Why a configuration file can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IniError {
    /// A line is neither a section, a `key=value`, a comment nor blank.
    #[error("line {line} is neither a [section] nor key=value: {text:?}")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What it says.
        text: String,
    },
    /// A value comes before the first section.
    #[error("line {line} stands before the first [section]")]
    NoSection {
        /// Its number, from 1.
        line: usize,
    },
    /// There is no such section.
    #[error("no section [{section}]")]
    Unknown {
        /// The whole name looked for.
        section: String,
    },
    /// Sections inherit from each other in a circle.
    #[error("section [{section}] inherits from itself")]
    Circle {
        /// The section where the circle closes.
        section: String,
    },
    /// A section is there twice.
    #[error("line {line}: section [{section}] is there a second time")]
    SectionTwice {
        /// The second one's number, from 1.
        line: usize,
        /// The section.
        section: String,
    },
    /// A key is twice in one section.
    #[error("line {line}: [{section}] has {key} a second time")]
    KeyTwice {
        /// The second one's number, from 1.
        line: usize,
        /// The section.
        section: String,
        /// The key.
        key: String,
    },
    /// A section has a key that Vela doesn't know, and would pass over.
    #[error("[{section}] {key}={value}: Vela knows no such key; expected {expected}")]
    Key {
        /// The section that was asked for.
        section: String,
        /// The key.
        key: String,
        /// What stands there.
        value: String,
        /// The keys that Vela knows.
        expected: String,
    },
    /// A section leaves out what is needed.
    #[error("[{section}] has no {key}: expected {expected}")]
    Missing {
        /// The section that was asked for.
        section: String,
        /// The key.
        key: String,
        /// What should stand there.
        expected: String,
    },
    /// A value isn't what its key needs.
    #[error("[{section}] {key}={value}: expected {expected}")]
    Value {
        /// The section that was asked for.
        section: String,
        /// The key.
        key: String,
        /// What stands there.
        value: String,
        /// What should.
        expected: String,
    },
    /// A memory mode puts something into memory that isn't for it.
    #[error("[{section}] {key}={port} is {memory} with [{system}]: expected {expected}")]
    Memory {
        /// The memory mode's section.
        section: String,
        /// The key.
        key: &'static str,
        /// The port.
        port: &'static str,
        /// The system configuration's section.
        system: String,
        /// The memory behind that port.
        memory: &'static str,
        /// Those that it may be.
        expected: &'static str,
    },
}

/// A parsed configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VelaIni {
    sections: Vec<(String, Values)>,
    default: Values,
    only_names: bool,
}

/// Values by their keys, which have no case; each with its key as it is written.
type Values = BTreeMap<String, (String, String)>;

/// A memory as seen through one AXI port.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Port {
    /// Vela's name of the memory: `Sram`, `Dram`, `OnChipFlash` or `OffChipFlash`.
    pub memory: String,
    /// Its clock as a fraction of the core clock.
    pub clock_scale: f64,
    /// AXI ports that lead to it.
    pub ports_used: u32,
    /// Longest burst in bytes.
    pub burst_bytes: u32,
    /// Cycles until a read's first data.
    pub read_latency_cycles: u32,
    /// Cycles until a write is taken.
    pub write_latency_cycles: u32,
    /// Reads that may be outstanding, where the file says.
    pub maximum_reads: Option<u32>,
    /// Writes that may be outstanding, where the file says.
    pub maximum_writes: Option<u32>,
}

/// Clocks and memories of a chip.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SystemConfig {
    /// Clock of the NPU in hertz.
    pub core_clock_hz: f64,
    /// What AXI port 0 leads to.
    pub axi0: Port,
    /// What AXI port 1 leads to.
    pub axi1: Port,
}

/// Which port each kind of data is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryMode {
    /// Port of the constants: `Axi0` or `Axi1`.
    pub constants: String,
    /// Port of the tensor arena.
    pub arena: String,
    /// Port of the fast scratch buffer.
    pub cache: String,
    /// Size of the fast scratch buffer in bytes, where the file says.
    pub arena_cache_bytes: Option<u64>,
}

impl VelaIni {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// [`IniError::Line`], [`IniError::NoSection`], [`IniError::SectionTwice`] and [`IniError::KeyTwice`].
    pub fn parse(text: &str) -> Result<Self, IniError> {
        let mut ini = VelaIni::default();
        let mut section: Option<&str> = None;
        // The last key and how far it is indented: lines that are indented further go on with its value.
        let mut last: Option<(String, usize)> = None;
        for (index, raw) in text.lines().enumerate() {
            let line = raw.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            let number = index + 1;
            let indent = raw.len() - raw.trim_start().len();
            if let (Some(section), Some((key, _))) = (section, last.as_ref().filter(|last| indent > last.1)) {
                if let Some((_, value)) = ini.section_mut(section).and_then(|values| values.get_mut(key)) {
                    value.push('\n');
                    value.push_str(line);
                }
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.get(..rest.rfind(']')?)) {
                if ini.sections.iter().any(|(known, _)| known == name) {
                    return Err(IniError::SectionTwice { line: number, section: name.to_owned() });
                }
                if name != DEFAULT {
                    ini.sections.push((name.to_owned(), Values::new()));
                }
                (section, last) = (Some(name), None);
                continue;
            }
            let Some((written, value)) = line.split_once(['=', ':']) else {
                return Err(IniError::Line { line: number, text: line.to_owned() });
            };
            let Some((section, values)) = section.and_then(|name| Some((name, ini.section_mut(name)?)))
            else {
                return Err(IniError::NoSection { line: number });
            };
            let written = written.trim();
            let key = written.to_lowercase();
            let entry = (written.to_owned(), value.trim().to_owned());
            if values.insert(key.clone(), entry).is_some() {
                let (section, key) = (section.to_owned(), written.to_owned());
                return Err(IniError::KeyTwice { line: number, section, key });
            }
            last = Some((key, indent));
        }
        Ok(ini)
    }

    fn section_mut(&mut self, section: &str) -> Option<&mut Values> {
        if section == DEFAULT {
            return Some(&mut self.default);
        }
        self.sections.iter_mut().find(|(name, _)| name == section).map(|(_, values)| values)
    }

    /// A file that only has names, as Vela lists them.
    pub(crate) fn from_names(names: impl Iterator<Item = String>) -> Self {
        let sections = names.map(|name| (name, Values::new())).collect();
        VelaIni { sections, default: Values::new(), only_names: true }
    }

    /// Whether only the sections' names are known, as of an own Vela's file.
    pub fn has_only_names(&self) -> bool {
        self.only_names
    }

    fn names(&self, prefix: &str) -> Vec<&str> {
        self.sections.iter().filter_map(|(name, _)| name.strip_prefix(prefix)).collect()
    }

    /// Names that `--system-config` takes with this file.
    pub fn system_configs(&self) -> Vec<&str> {
        self.names(SYSTEM_CONFIG)
    }

    /// Names that `--memory-mode` takes with this file.
    pub fn memory_modes(&self) -> Vec<&str> {
        self.names(MEMORY_MODE)
    }

    /// The names of [`system_configs`](VelaIni::system_configs) without those that begin with another product's, as in Vela's
    /// own file.
    pub fn system_configs_for(&self, product: Product) -> Vec<&str> {
        let mut names = self.system_configs();
        let other = |name: &str| {
            [Product::U55, Product::U65, Product::U85].into_iter().any(|other| {
                let prefix = other.to_string().replace('-', "_");
                other != product
                    && name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(&prefix))
            })
        };
        names.retain(|name| !other(name));
        names
    }

    fn section(&self, section: &str) -> Result<&Values, IniError> {
        let found = self.sections.iter().find(|(name, _)| name == section);
        found.map(|(_, values)| values).ok_or_else(|| IniError::Unknown { section: section.to_owned() })
    }

    /// All values of a section, inherited ones included. The name is whole, such as `Memory_Mode.Sram_Only`; keys are in lower
    /// case.
    ///
    /// # Errors
    ///
    /// [`IniError::Unknown`] and [`IniError::Circle`].
    pub fn values(&self, section: &str) -> Result<BTreeMap<String, String>, IniError> {
        let values = self.collected(section, true)?;
        Ok(values.into_iter().map(|(key, (_, value))| (key, value)).collect())
    }

    fn collected(&self, section: &str, with_default: bool) -> Result<Values, IniError> {
        let mut all = Values::new();
        let mut seen = Vec::new();
        let mut next = Some(section.to_owned());
        while let Some(name) = next {
            if seen.contains(&name) {
                return Err(IniError::Circle { section: name });
            }
            let own = self.section(&name)?;
            // ConfigParser finds a default in the section itself, so it comes before what is inherited.
            for (key, entry) in own.iter().chain(self.default.iter().filter(|_| with_default)) {
                all.entry(key.clone()).or_insert_with(|| entry.clone());
            }
            next = own.get("inherit").or_else(|| self.default.get("inherit")).map(|(_, value)| value.clone());
            seen.push(name);
        }
        all.remove("inherit");
        Ok(all)
    }

    /// The values of a section that only has these keys.
    fn known(&self, section: String, keys: &[String]) -> Result<Section, IniError> {
        // What is in [DEFAULT] may be for other sections.
        for (key, (written, value)) in self.collected(&section, false)? {
            if !keys.iter().any(|known| known.eq_ignore_ascii_case(&key)) {
                let (key, expected) = (written, keys.join(", "));
                return Err(IniError::Key { section, key, value, expected });
            }
        }
        Ok(Section { values: self.values(&section)?, section })
    }

    /// A system configuration by its short name, such as `Ethos_U55_High_End_Embedded`.
    ///
    /// Figures that the file leaves out are what Vela assumes: 1, or 0 for latencies. As for Vela, a memory has to have one.
    ///
    /// # Errors
    ///
    /// [`IniError`] for a section that isn't there, a clock or a port that it leaves out, and a value that can't be meant.
    pub fn system_config(&self, name: &str) -> Result<SystemConfig, IniError> {
        let ports = ["core_clock", "axi0_port", "axi1_port"].map(str::to_owned);
        let figures = MEMORIES.iter().flat_map(|memory| FIGURES.map(|figure| format!("{memory}_{figure}")));
        let keys: Vec<String> = ports.into_iter().chain(figures).collect();
        let section = self.known(format!("{SYSTEM_CONFIG}{name}"), &keys)?;
        let port = |key: &str| {
            let memory =
                section.one_of(key, &MEMORIES)?.ok_or_else(|| section.missing(key, &MEMORIES.join(", ")))?;
            let figure = |figure: &str| format!("{memory}_{figure}");
            let whole = |name: &str, range| section.number(&figure(name), &range, "a whole number");
            if !FIGURES.iter().any(|name| section.value(&figure(name)).is_some()) {
                return Err(
                    section.missing(&figure("clock_scale"), &format!("figures of the memory behind {key}"))
                );
            }
            Ok(Port {
                clock_scale: section.number(&figure("clock_scale"), &CLOCK_SCALE, "a number")?.unwrap_or(1.0),
                ports_used: whole("ports_used", PORTS_USED)?.unwrap_or(1),
                burst_bytes: whole("burst_length", BURST_LENGTH)?.unwrap_or(1),
                read_latency_cycles: whole("read_latency", LATENCY)?.unwrap_or(0),
                write_latency_cycles: whole("write_latency", LATENCY)?.unwrap_or(0),
                maximum_reads: whole("max_reads", OUTSTANDING)?,
                maximum_writes: whole("max_writes", OUTSTANDING)?,
                memory: memory.to_owned(),
            })
        };
        let clock = section.number("core_clock", &CORE_CLOCK, "a clock in hertz")?;
        let core_clock_hz =
            clock.ok_or_else(|| section.missing("core_clock", &span("a clock in hertz", &CORE_CLOCK)))?;
        Ok(SystemConfig { core_clock_hz, axi0: port("axi0_port")?, axi1: port("axi1_port")? })
    }

    /// A memory mode by its short name, such as `Shared_Sram`. Vela takes `Axi0` where the file says nothing.
    ///
    /// # Errors
    ///
    /// [`IniError`] for a section that isn't there or a value that can't be meant.
    pub fn memory_mode(&self, name: &str) -> Result<MemoryMode, IniError> {
        let keys =
            ["const_mem_area", "arena_mem_area", "cache_mem_area", "arena_cache_size"].map(str::to_owned);
        let section = self.known(format!("{MEMORY_MODE}{name}"), &keys)?;
        let port = |key| Ok(section.one_of(key, &["Axi0", "Axi1"])?.unwrap_or("Axi0").to_owned());
        Ok(MemoryMode {
            constants: port("const_mem_area")?,
            arena: port("arena_mem_area")?,
            cache: port("cache_mem_area")?,
            arena_cache_bytes: section.number("arena_cache_size", &CACHE_SIZE, "a whole number of bytes")?,
        })
    }

    /// A system configuration and a memory mode that go together: constants in DRAM or flash, or in SRAM with everything else;
    /// the arena in SRAM or DRAM; fast scratch in SRAM.
    ///
    /// # Errors
    ///
    /// [`IniError::Memory`] where they don't; as [`VelaIni::system_config`] and [`VelaIni::memory_mode`].
    pub fn system(
        &self,
        system_config: &str,
        memory_mode: &str,
    ) -> Result<(SystemConfig, MemoryMode), IniError> {
        let (system, mode) = (self.system_config(system_config)?, self.memory_mode(memory_mode)?);
        let together = mode.constants == mode.arena && mode.constants == mode.cache;
        let sram = if together { &["Sram"][..] } else { &[] };
        let areas = [
            (
                "const_mem_area",
                &mode.constants,
                &[&["Dram", "OnChipFlash", "OffChipFlash"], sram].concat()[..],
                "Dram, OnChipFlash or OffChipFlash",
            ),
            ("arena_mem_area", &mode.arena, &["Sram", "Dram"], "Sram or Dram"),
            ("cache_mem_area", &mode.cache, &["Sram"], "Sram"),
        ];
        for (key, area, allowed, expected) in areas {
            let (port, behind) = if area == "Axi0" { ("Axi0", &system.axi0) } else { ("Axi1", &system.axi1) };
            let memory = MEMORIES.into_iter().find(|memory| *memory == behind.memory).unwrap_or_default();
            if !allowed.contains(&memory) {
                return Err(IniError::Memory {
                    section: format!("{MEMORY_MODE}{memory_mode}"),
                    key,
                    port,
                    system: format!("{SYSTEM_CONFIG}{system_config}"),
                    memory,
                    expected,
                });
            }
        }
        Ok((system, mode))
    }
}

/// "a whole number from 1 to 16".
fn span<T: std::fmt::Display>(what: &str, range: &RangeInclusive<T>) -> String {
    format!("{what} from {} to {}", range.start(), range.end())
}

struct Section {
    section: String,
    values: BTreeMap<String, String>,
}

impl Section {
    fn value(&self, key: &str) -> Option<&String> {
        self.values.get(&key.to_lowercase())
    }

    fn missing(&self, key: &str, expected: &str) -> IniError {
        IniError::Missing {
            section: self.section.clone(),
            key: key.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn wrong(&self, key: &str, value: &str, expected: String) -> IniError {
        IniError::Value {
            section: self.section.clone(),
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        }
    }

    /// A name, in its case.
    fn one_of<'n>(&self, key: &str, names: &[&'n str]) -> Result<Option<&'n str>, IniError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let found = names.iter().copied().find(|name| name == value);
        found.map(Some).ok_or_else(|| self.wrong(key, value, names.join(", ")))
    }

    fn number<T>(&self, key: &str, range: &RangeInclusive<T>, what: &str) -> Result<Option<T>, IniError>
    where
        T: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = value.parse().ok().filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, value, span(what, range)))
    }
}

#[cfg(test)]
mod tests;
