//! Vela's configuration files: which system configurations and memory modes one offers, and what they say.
//!
//! The format is Python's ConfigParser with one rule of Vela's: a section may name another in `inherit` and then
//! has its values too, its own taking precedence (Vela 5.2.0, `architecture_features.py`).

use std::collections::BTreeMap;

/// What begins the name of a section that describes clocks and memories.
const SYSTEM_CONFIG: &str = "System_Config.";
/// What begins the name of a section that says which memory holds what.
const MEMORY_MODE: &str = "Memory_Mode.";

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
        expected: &'static str,
    },
}

/// A parsed configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VelaIni {
    sections: Vec<(String, BTreeMap<String, String>)>,
}

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
    /// [`IniError::Line`] and [`IniError::NoSection`].
    pub fn parse(text: &str) -> Result<Self, IniError> {
        let mut sections: Vec<(String, BTreeMap<String, String>)> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with([';', '#']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                sections.push((name.to_owned(), BTreeMap::new()));
                continue;
            }
            let Some((key, value)) = line.split_once(['=', ':']) else {
                return Err(IniError::Line { line: line_number, text: line.to_owned() });
            };
            let Some((_, values)) = sections.last_mut() else {
                return Err(IniError::NoSection { line: line_number });
            };
            // ConfigParser's keys have no case.
            values.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
        Ok(VelaIni { sections })
    }

    /// A file that only has names, as Vela lists them.
    pub(crate) fn from_names(names: impl Iterator<Item = String>) -> Self {
        VelaIni { sections: names.map(|name| (name, BTreeMap::new())).collect() }
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

    fn section(&self, section: &str) -> Result<&BTreeMap<String, String>, IniError> {
        let found = self.sections.iter().find(|(name, _)| name == section);
        found.map(|(_, values)| values).ok_or_else(|| IniError::Unknown { section: section.to_owned() })
    }

    /// All values of a section, inherited ones included. The name is whole, such as `Memory_Mode.Sram_Only`.
    ///
    /// # Errors
    ///
    /// [`IniError::Unknown`] and [`IniError::Circle`].
    pub fn values(&self, section: &str) -> Result<BTreeMap<String, String>, IniError> {
        let mut all = BTreeMap::new();
        let mut seen = Vec::new();
        let mut next = Some(section.to_owned());
        while let Some(name) = next {
            if seen.contains(&name) {
                return Err(IniError::Circle { section: name });
            }
            let values = self.section(&name)?;
            for (key, value) in values {
                all.entry(key.clone()).or_insert_with(|| value.clone());
            }
            next = values.get("inherit").cloned();
            seen.push(name);
        }
        all.remove("inherit");
        Ok(all)
    }

    /// A system configuration by its short name, such as `Ethos_U55_High_End_Embedded`.
    ///
    /// Values that the file leaves out are what Vela assumes: 1, or 0 for latencies.
    ///
    /// # Errors
    ///
    /// [`IniError`] for a section that isn't there or a value that isn't a number.
    pub fn system_config(&self, name: &str) -> Result<SystemConfig, IniError> {
        let section = format!("{SYSTEM_CONFIG}{name}");
        let values = Values { values: self.values(&section)?, section };
        let port = |key: &str| {
            let memory = values.values.get(key).cloned().unwrap_or_else(|| "Sram".to_owned());
            let prefix = memory.to_lowercase();
            Ok(Port {
                clock_scale: values.number(&format!("{prefix}_clock_scale"))?.unwrap_or(1.0),
                ports_used: values.number(&format!("{prefix}_ports_used"))?.unwrap_or(1),
                burst_bytes: values.number(&format!("{prefix}_burst_length"))?.unwrap_or(1),
                read_latency_cycles: values.number(&format!("{prefix}_read_latency"))?.unwrap_or(0),
                write_latency_cycles: values.number(&format!("{prefix}_write_latency"))?.unwrap_or(0),
                maximum_reads: values.number(&format!("{prefix}_max_reads"))?,
                maximum_writes: values.number(&format!("{prefix}_max_writes"))?,
                memory,
            })
        };
        let core_clock_hz = values.number("core_clock")?.unwrap_or(1.0);
        Ok(SystemConfig { core_clock_hz, axi0: port("axi0_port")?, axi1: port("axi1_port")? })
    }

    /// A memory mode by its short name, such as `Shared_Sram`.
    ///
    /// # Errors
    ///
    /// [`IniError`] for a section that isn't there or a size that isn't a number.
    pub fn memory_mode(&self, name: &str) -> Result<MemoryMode, IniError> {
        let section = format!("{MEMORY_MODE}{name}");
        let values = Values { values: self.values(&section)?, section };
        let port = |key: &str| values.values.get(key).cloned().unwrap_or_else(|| "Axi0".to_owned());
        Ok(MemoryMode {
            constants: port("const_mem_area"),
            arena: port("arena_mem_area"),
            cache: port("cache_mem_area"),
            arena_cache_bytes: values.number("arena_cache_size")?,
        })
    }
}

struct Values {
    section: String,
    values: BTreeMap<String, String>,
}

impl Values {
    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, IniError> {
        let Some(value) = self.values.get(key) else { return Ok(None) };
        value.parse().map(Some).map_err(|_| IniError::Value {
            section: self.section.clone(),
            key: key.to_owned(),
            value: value.clone(),
            expected: "a number",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "; a comment\n[System_Config.Board]\ncore_clock=400e6\naxi0_port=Sram\naxi1_port = OffChipFlash\n\
        Sram_burst_length=32\nOffChipFlash_clock_scale=0.125\nOffChipFlash_max_writes=0\n\
        [Memory_Mode.Base]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n\
        # another\n[Memory_Mode.Small]\ninherit=Memory_Mode.Base\narena_mem_area=Axi1\narena_cache_size: 16384\n";

    #[test]
    fn names_values_and_inheritance() {
        let ini = VelaIni::parse(SAMPLE).unwrap();
        assert_eq!(ini.system_configs(), ["Board"]);
        assert_eq!(ini.memory_modes(), ["Base", "Small"]);
        let board = ini.system_config("Board").unwrap();
        assert_eq!(board.core_clock_hz, 400e6);
        assert_eq!((board.axi0.burst_bytes, board.axi0.maximum_writes), (32, None));
        assert_eq!(board.axi1.memory, "OffChipFlash");
        assert_eq!((board.axi1.clock_scale, board.axi1.maximum_writes), (0.125, Some(0)));
        let small = ini.memory_mode("Small").unwrap();
        assert_eq!((small.constants.as_str(), small.arena.as_str()), ("Axi1", "Axi1"));
        assert_eq!(small.arena_cache_bytes, Some(16384));
        assert_eq!(ini.memory_mode("Base").unwrap().arena_cache_bytes, None);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(VelaIni::parse("a=b\n"), Err(IniError::NoSection { line: 1 }));
        assert_eq!(
            VelaIni::parse("[x]\nnonsense\n"),
            Err(IniError::Line { line: 2, text: "nonsense".into() })
        );
        let ini = VelaIni::parse(
            "[Memory_Mode.A]\ninherit=Memory_Mode.B\n[Memory_Mode.B]\ninherit=Memory_Mode.A\n",
        );
        assert_eq!(ini.unwrap().memory_mode("A"), Err(IniError::Circle { section: "Memory_Mode.A".into() }));
        let ini = VelaIni::parse("[Memory_Mode.A]\narena_cache_size=many\n").unwrap();
        assert!(matches!(ini.memory_mode("A"), Err(IniError::Value { .. })));
        assert!(matches!(ini.memory_mode("Z"), Err(IniError::Unknown { .. })));
    }
}
