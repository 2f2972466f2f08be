//! Where things lie in a file, by version. The public part is that of TIM-VX's `gc_vip_nbg_format.h` and its parser
//! (MIT licence), which knows versions up to 0x10014; what differs in 0x1001E and 0x10020 was measured on real files.

/// The first four bytes.
pub const MAGIC: [u8; 4] = *b"VPMN";
/// The header's length, the same in all versions.
pub const HEADER_BYTES: u32 = 0x5C;
pub(super) const NAME_BYTES: u64 = 64;
/// Feature words from here on.
pub(super) const FEATURES_FROM: u32 = 0x1_0003;
pub(super) const FEATURE_BYTES: u32 = 256;
/// VIP SRAM and layer uids from here on.
pub(super) const VIP_SRAM_FROM: u32 = 0x1_0008;
/// The new data regions, longer operations and patches from here on (measured).
pub(super) const REGIONS_FROM: u32 = 0x1_001E;
/// Where the checksum lies (measured).
pub(super) const CHECKSUM_OFFSET: u32 = 0x6C;
/// The version whose checksum is known to cover the whole file (measured).
pub(super) const CHECKSUM_KNOWN_IN: u32 = 0x1_001E;
/// The versions met in real files.
pub(super) const MET: [u32; 5] = [0x1_0009, 0x1_000E, 0x1_000F, 0x1_001E, 0x1_0020];

/// Places in the section list.
pub(super) mod section {
    pub(crate) const INPUT: usize = 0;
    pub(crate) const OUTPUT: usize = 1;
    pub(crate) const LAYER: usize = 2;
    pub(crate) const OPERATION: usize = 3;
    pub(crate) const LCD_TABLE: usize = 4;
    pub(crate) const LCD: usize = 5;
    pub(crate) const NN: usize = 6;
    pub(crate) const TP: usize = 7;
    pub(crate) const SH: usize = 8;
    pub(crate) const PATCH: usize = 9;
    pub(crate) const LAYER_PARAM: usize = 10;
    pub(crate) const SW: usize = 11;
    pub(crate) const HW_INIT: usize = 12;
    pub(crate) const ICD_TABLE: usize = 13;
    pub(crate) const ICD: usize = 14;
    pub(crate) const PPU_PARAM: usize = 15;
    pub(crate) const PROGRAMS_TABLE: usize = 24;
    pub(crate) const STATES_TABLE: usize = 26;
    pub(crate) const STATES: usize = 20;
}

/// How many sections a list has at the least.
pub(super) const FEWEST_SECTIONS: u32 = 12;
/// More than any file has (68 in 0x10020): a bound on what a lying offset makes us read.
pub(super) const MOST_SECTIONS: u32 = 256;

/// The tables of {offset, size} pairs and the regions that they divide: LCD and ICD in all versions, the others from
/// 0x1001E on (measured: each table's last end lies in its region in all files met).
pub(super) const DIVIDED: [(usize, usize); 6] = [
    (section::LCD_TABLE, section::LCD),
    (section::ICD_TABLE, section::ICD),
    (22, 23),
    (section::PROGRAMS_TABLE, 18),
    (25, 19),
    (section::STATES_TABLE, section::STATES),
];

/// The name of a section by its place in the list.
pub fn section_name(index: usize) -> String {
    let name = match index {
        section::INPUT => "inputs",
        section::OUTPUT => "outputs",
        section::LAYER => "layers",
        section::OPERATION => "operations",
        section::LCD_TABLE => "LCD table",
        section::LCD => "LCD",
        section::NN => "NN commands",
        section::TP => "TP commands",
        section::SH => "SH operations",
        section::PATCH => "patches",
        section::LAYER_PARAM => "layer parameters",
        section::SW => "SW operations",
        section::HW_INIT => "hardware init operations",
        section::ICD_TABLE => "ICD table",
        section::ICD => "ICD",
        section::PPU_PARAM => "shader parameters",
        18 => "shader programs",
        19 => "constants",
        section::STATES => "command states",
        22 => "weights table",
        23 => "weights",
        section::PROGRAMS_TABLE => "shader programs table",
        25 => "constants table",
        section::STATES_TABLE => "command states table",
        _ => return format!("section {index}"),
    };
    name.to_owned()
}

/// Where the fixed part's pieces lie.
pub(super) struct Fixed {
    pub features: Option<u32>,
    pub pool: u32,
    pub axi_sram: u32,
    pub vip_sram: Option<u32>,
    pub sections: u32,
}

pub(super) fn fixed(version: u32) -> Fixed {
    let features = (version >= FEATURES_FROM).then_some(HEADER_BYTES);
    let pool = HEADER_BYTES + if features.is_some() { FEATURE_BYTES } else { 0 };
    let axi_sram = pool + 12;
    let vip_sram = (version >= VIP_SRAM_FROM).then_some(axi_sram + 8);
    Fixed { features, pool, axi_sram, vip_sram, sections: axi_sram + if vip_sram.is_some() { 16 } else { 8 } }
}

/// An input or output record: its size, how many dimensions it holds, whether it has a name.
pub(super) fn io_record(version: u32) -> (u32, u32, bool) {
    match version {
        0x1_000B.. => (116, 6, true),
        0x1_0004.. => (108, 4, true),
        _ => (44, 4, false),
    }
}

pub(super) fn layer_record(version: u32) -> u32 {
    if version >= VIP_SRAM_FROM { 76 } else { 72 }
}

pub(super) fn shader_record(version: u32) -> u32 {
    if version >= 0x1_000E { 8 } else { 4 }
}

pub(super) fn tp_record(version: u32) -> u32 {
    if version >= REGIONS_FROM { 192 } else { 128 }
}

pub(super) fn patch_record(version: u32) -> u32 {
    if version >= REGIONS_FROM { 40 } else { 28 }
}

/// The two sizes of an NN or TP command.
pub(super) const COMMAND_BYTES: [u32; 2] = [128, 192];
pub(super) const HW_INIT_RECORD: u32 = 12;
pub(super) const PAIR_RECORD: u32 = 8;
pub(super) const LAYER_PARAM_RECORD: u32 = 76;
pub(super) const SW_RECORD: u32 = 68;
pub(super) const PPU_PARAM_RECORD: u32 = 48;
/// The two sizes of an operation record.
pub(super) const OPERATION_RECORDS: [u32; 2] = [24, 32];

/// Names of the element formats.
pub(super) fn format_name(number: u32) -> Option<&'static str> {
    const NAMES: [&str; 13] =
        ["f32", "f16", "u8", "i8", "u16", "i16", "char", "bf16", "i32", "u32", "i64", "u64", "f64"];
    NAMES.get(number as usize).copied()
}

/// Bytes of one element.
pub(super) fn format_bytes(number: u32) -> Option<u64> {
    const BYTES: [u64; 13] = [4, 2, 1, 1, 2, 2, 1, 2, 4, 4, 8, 8, 8];
    BYTES.get(number as usize).copied()
}

/// Names of the kinds of data.
pub(super) fn kind_name(number: u32) -> Option<&'static str> {
    ["tensor", "image", "array", "scalar"].get(number as usize).copied()
}
