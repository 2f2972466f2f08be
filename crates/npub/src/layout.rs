//! Every number of the container's wire format, once.
//!
//! Sections are those of the NPU1 format document (bsikar/ra8-firmware, docs/formats/NPU1.md); what npukit adds
//! through the flags that section 8 leaves open is described in this repository's docs/npu1.md.
//! All fields are little-endian 32-bit words, all offsets are bytes.

/// First word of a blob: the bytes `NPU1` (section 3.1).
pub const MAGIC: u32 = 0x3155_504E;
/// The only layout revision there is (section 3.1).
pub const VERSION: u32 = 1;
/// The header: eight words (section 3.1). The checksum covers everything from here on.
pub const HEADER_BYTES: usize = 32;
/// One region descriptor: four words (section 3.2).
pub const REGION_BYTES: usize = 16;
/// BASEP slots of the hardware, hence the most regions a blob may have (`k_ra8_npu_region_count`, ra8_npu.h).
pub const MAX_REGIONS: usize = 8;
/// Alignment of a runtime region inside the arena (section 3.3), and of what the writer places in the blob: Arm's
/// core driver refuses a command stream or a base pointer that isn't a multiple of it.
pub const ALIGN: u32 = 16;

/// Byte offsets of the header's words (section 3.1).
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// [`VERSION`](super::VERSION).
    pub const VERSION: usize = 4;
    /// Length of the whole blob.
    pub const TOTAL_BYTES: usize = 8;
    /// Number of region descriptors.
    pub const REGION_COUNT: usize = 12;
    /// Where the command stream starts.
    pub const CMD_OFFSET: usize = 16;
    /// Length of the command stream.
    pub const CMD_BYTES: usize = 20;
    /// The accelerator, see [`Accel`](crate::Accel).
    pub const ACCEL: usize = 24;
    /// FNV-1a over the payload, see [`checksum`](crate::checksum).
    pub const CHECKSUM: usize = 28;
}

/// Byte offsets of a region descriptor's words (section 3.2).
pub mod region {
    /// What the region is for; informational.
    pub const ROLE: usize = 0;
    /// See [`flag`](super::flag).
    pub const FLAGS: usize = 4;
    /// Length of the region.
    pub const SIZE: usize = 8;
    /// BAKED: where its bytes start. ALIAS: the slot whose base it shares. Else unused.
    pub const DATA_OFFSET: usize = 12;
}

/// Bits of a region's flags word.
pub mod flag {
    /// The region's bytes are in the blob (section 3.2).
    pub const BAKED: u32 = 1 << 0;
    /// A runtime region that shares the base of the earlier slot named in `data_offset` (docs/npu1.md).
    pub const ALIAS: u32 = 1 << 1;
    /// A baked region whose bytes are the tensor table (docs/npu1.md).
    pub const TENSORS: u32 = 1 << 2;
    /// The bits with a meaning.
    pub const KNOWN: u32 = BAKED | ALIAS | TENSORS;
}

/// Numbers of the tensor table (docs/npu1.md, "Tensor table").
pub mod table {
    /// The table's own header: four words.
    pub const HEADER_BYTES: usize = 16;
    /// Header word: number of records.
    pub const COUNT: usize = 0;
    /// Header word: distance from one record to the next.
    pub const RECORD_STRIDE: usize = 4;
    /// Header word: where the names start, from the table's first byte.
    pub const NAMES_OFFSET: usize = 8;
    /// Header word: length of all names together.
    pub const NAMES_BYTES: usize = 12;

    /// One record: twenty words.
    pub const RECORD_BYTES: usize = 80;
    /// Record word: see [`TensorKind`](crate::TensorKind).
    pub const KIND: usize = 0;
    /// Record word: see [`DType`](crate::DType).
    pub const DTYPE: usize = 4;
    /// Record word: where the name starts among the names.
    pub const NAME_OFFSET: usize = 8;
    /// Record word: length of the name.
    pub const NAME_BYTES: usize = 12;
    /// Record word: the region that holds the tensor, or [`NONE`].
    pub const REGION: usize = 16;
    /// Record word: where the tensor starts in its region.
    pub const OFFSET: usize = 20;
    /// Record word: length of the tensor.
    pub const SIZE: usize = 24;
    /// Record word: bit 0 [`QUANTISED`].
    pub const FLAGS: usize = 28;
    /// Record word: the bits of a 32-bit float.
    pub const SCALE: usize = 32;
    /// Record word: two's complement.
    pub const ZERO_POINT: usize = 36;
    /// Record word: the tensor that a state takes its next value from, or [`NONE`].
    pub const FED_FROM: usize = 40;
    /// Record word: number of dimensions.
    pub const RANK: usize = 44;
    /// Eight record words: the dimensions, outermost first.
    pub const DIMS: usize = 48;

    /// The most dimensions a record holds.
    pub const MAX_RANK: usize = 8;
    /// "No region" or "no tensor".
    pub const NONE: u32 = 0xFFFF_FFFF;
    /// Record flag: scale and zero point mean something.
    pub const QUANTISED: u32 = 1 << 0;
}

/// FNV-1a, 32 bits (Fowler, Noll, Vo; named in section 3.1).
pub mod fnv {
    /// The value before the first byte.
    pub const OFFSET_BASIS: u32 = 0x811C_9DC5;
    /// The multiplier.
    pub const PRIME: u32 = 0x0100_0193;
}

/// The framing of Arm's custom operator payload, which other producers leave around the command words.
///
/// Sources: Arm core driver, src/ethosu_driver.c (the "driver actions") for COP1; Vela 5.2.0,
/// regor/tflite/custom_operator_ethosu.hpp for COP2.
pub mod cop {
    /// The bytes `COP1`.
    pub const COP1: u32 = 0x3150_4F43;
    /// The bytes `COP2`.
    pub const COP2: u32 = 0x3250_4F43;
    /// COP1 action: this word, the config word, the arch word.
    pub const ACTION_CONFIG: u32 = 1;
    /// COP1 action: the command stream, its length in words in bits 31..16 (low part) and 15..8 (high part).
    pub const ACTION_STREAM: u32 = 2;
    /// COP1 action: nothing; fills up to the stream's alignment.
    pub const ACTION_NOP: u32 = 5;
    /// COP2: length of everything from byte 16 on, 64 bits.
    pub const COP2_LENGTH: usize = 8;
    /// COP2: where the length word's reach starts counting.
    pub const COP2_LENGTH_FROM: u64 = 16;
    /// COP2: length of the first entry, counted from [`COP2_METADATA_BYTES`].
    pub const COP2_ENTRY_BYTES: usize = 20;
    /// COP2: length of the metadata, counted from [`COP2_METADATA`]. The stream follows at the next multiple of 16.
    pub const COP2_METADATA_BYTES: usize = 24;
    /// COP2: the metadata starts here with the bytes `VEUM`.
    pub const COP2_METADATA: usize = 28;
    /// The bytes `VEUM`.
    pub const VEUM: u32 = 0x4D55_4556;
    /// COP2: the config word; COP1 has the same word after [`ACTION_CONFIG`].
    pub const COP2_CONFIG: usize = 40;
}

/// The word at `offset`, if it is there.
pub(crate) fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    let field = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(field.try_into().ok()?))
}

/// `offset` rounded up to [`ALIGN`].
pub(crate) const fn align_up(offset: u64) -> u64 {
    round_up(offset, ALIGN)
}

/// `offset` rounded up to a multiple of `align`, a power of two. A division could be one by zero, as far as the compiler knows, and
/// bring a panic into the firmware.
pub(crate) const fn round_up(offset: u64, align: u32) -> u64 {
    let below = align as u64 - 1;
    (offset + below) & !below
}
