//! One region: what a BASEP slot of the NPU points at.

use core::fmt;

use crate::layout::{self, flag, region, word};

/// A region descriptor. Its index in the table is the slot by which the command stream addresses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region {
    /// What the region is for. Informational: binding goes by index.
    pub role: Role,
    /// The flags word.
    pub flags: Flags,
    /// Length in bytes.
    pub size: u32,
    /// BAKED: where the bytes start in the blob. ALIAS: the slot whose base it shares. Else without meaning.
    pub data_offset: u32,
}

/// What a region is for; informational.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Weights and other constants.
    Weights,
    /// Scratch: activations between the layers.
    Scratch,
    /// The network's inputs.
    Input,
    /// The network's outputs.
    Output,
    /// Anything else, the tensor table for one.
    Other,
    /// A number that this version has no name for; harmless.
    Unknown(u32),
}

/// A region's flags word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(u32);

/// Where a region's memory comes from: the flags read together with `data_offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// In the blob, used in place, never written.
    Baked {
        /// Bytes from the blob's first.
        offset: u32,
    },
    /// In the blob: the tensor table. No command refers to it.
    Tensors {
        /// Bytes from the blob's first.
        offset: u32,
    },
    /// In the arena that the caller lends.
    Runtime,
    /// In the arena, at the same base as an earlier region.
    Alias {
        /// The earlier region's slot.
        of: u32,
    },
}

impl Region {
    /// Where the region's memory comes from. A checked [`Blob`](crate::Blob) has no contradictory flags; in a
    /// descriptor of other origin BAKED wins over ALIAS, and TENSORS counts only with BAKED.
    pub fn storage(&self) -> Storage {
        let offset = self.data_offset;
        match (self.flags.baked(), self.flags.tensors(), self.flags.alias()) {
            (true, true, _) => Storage::Tensors { offset },
            (true, false, _) => Storage::Baked { offset },
            (false, _, true) => Storage::Alias { of: offset },
            (false, _, false) => Storage::Runtime,
        }
    }

    /// The 16 bytes of the descriptor.
    pub fn to_bytes(&self) -> [u8; layout::REGION_BYTES] {
        let mut bytes = [0; layout::REGION_BYTES];
        for (offset, value) in [
            (region::ROLE, self.role.word()),
            (region::FLAGS, self.flags.word()),
            (region::SIZE, self.size),
            (region::DATA_OFFSET, self.data_offset),
        ] {
            bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// The descriptor that starts at byte `at`, if it is there.
    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Region> {
        let field = |offset| word(bytes, at + offset);
        Some(Region {
            role: Role::from_word(field(region::ROLE)?),
            flags: Flags::from_word(field(region::FLAGS)?),
            size: field(region::SIZE)?,
            data_offset: field(region::DATA_OFFSET)?,
        })
    }

    /// Fills the array of a blob that has fewer regions than slots.
    pub(crate) const NONE: Region = Region { role: Role::Other, flags: Flags(0), size: 0, data_offset: 0 };
}

impl Role {
    /// The role of a descriptor's word (NPU1 format document, section 3.2).
    pub const fn from_word(word: u32) -> Role {
        match word {
            0 => Role::Weights,
            1 => Role::Scratch,
            2 => Role::Input,
            3 => Role::Output,
            4 => Role::Other,
            _ => Role::Unknown(word),
        }
    }

    /// The word as it stands in a descriptor.
    pub const fn word(self) -> u32 {
        match self {
            Role::Weights => 0,
            Role::Scratch => 1,
            Role::Input => 2,
            Role::Output => 3,
            Role::Other => 4,
            Role::Unknown(word) => word,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Weights => f.write_str("weights"),
            Role::Scratch => f.write_str("scratch"),
            Role::Input => f.write_str("input"),
            Role::Output => f.write_str("output"),
            Role::Other => f.write_str("other"),
            Role::Unknown(word) => write!(f, "role {word:#x}"),
        }
    }
}

impl Flags {
    /// The word as it stands in a descriptor. Every value is taken.
    pub const fn from_word(word: u32) -> Flags {
        Flags(word)
    }

    /// The word as it stands in a descriptor.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The region's bytes are in the blob.
    pub const fn baked(self) -> bool {
        self.0 & flag::BAKED != 0
    }

    /// The region shares an earlier one's base.
    pub const fn alias(self) -> bool {
        self.0 & flag::ALIAS != 0
    }

    /// The region's bytes are the tensor table.
    pub const fn tensors(self) -> bool {
        self.0 & flag::TENSORS != 0
    }

    /// The bits without a meaning in this version; loading ignores them.
    pub const fn unknown(self) -> u32 {
        self.0 & !flag::KNOWN
    }
}

impl fmt::Display for Flags {
    /// `BAKED|TENSORS`, `0x10` for bits without a name, `none`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.baked(), "BAKED"), (self.alias(), "ALIAS"), (self.tensors(), "TENSORS")];
        let mut separator = "";
        for (_, name) in names.into_iter().filter(|(set, _)| *set) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        match (self.unknown(), separator) {
            (0, "") => f.write_str("none"),
            (0, _) => Ok(()),
            (bits, _) => write!(f, "{separator}{bits:#x}"),
        }
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flags({self})")
    }
}
