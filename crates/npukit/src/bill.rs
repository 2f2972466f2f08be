//! What a blob takes: flash for what is in it, RAM for what isn't.

use npub::{Blob, Storage, layout};
use serde::Serialize;

/// The memory that a blob takes on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MemoryBill {
    /// Bytes of flash: the whole blob.
    pub flash_bytes: u64,
    /// Of these, the command stream, framing included.
    pub command_bytes: u64,
    /// Of these, constants: weights, biases, scales, tables.
    pub constant_bytes: u64,
    /// Of these, the tensor table.
    pub tensor_table_bytes: u64,
    /// Of these, header, region table and padding.
    pub overhead_bytes: u64,
    /// Bytes of RAM: the arena, padding between the regions included.
    pub arena_bytes: u64,
    /// Of these, padding that keeps each region's base at a multiple of 16.
    pub arena_padding_bytes: u64,
    /// Each region.
    pub regions: Vec<RegionBill>,
}

/// One region's part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RegionBill {
    /// The slot, by which the command stream names it.
    pub slot: usize,
    /// What it is for.
    pub role: String,
    /// `flash`, `arena`, `tensor table`, or `alias of` another slot.
    pub storage: String,
    /// Its length.
    pub bytes: u32,
    /// Where it starts: in the blob, or in the arena.
    pub offset: u64,
}

impl MemoryBill {
    /// The bill of a blob.
    pub fn of(blob: &Blob<'_>) -> MemoryBill {
        let mut regions: Vec<RegionBill> = Vec::new();
        let (mut constants, mut table, mut arena, mut runtime) = (0, 0, 0u64, 0);
        for (slot, region) in blob.regions().iter().enumerate() {
            let bytes = u64::from(region.size);
            let (storage, offset) = match region.storage() {
                Storage::Baked { offset } => {
                    constants += bytes;
                    ("flash".to_owned(), offset.into())
                }
                Storage::Tensors { offset } => {
                    table += bytes;
                    ("tensor table".to_owned(), offset.into())
                }
                Storage::Runtime => {
                    let start = arena.next_multiple_of(layout::ALIGN.into());
                    arena = start + bytes;
                    runtime += bytes;
                    ("arena".to_owned(), start)
                }
                Storage::Alias { of } => {
                    let start = regions.get(of as usize).map_or(0, |target| target.offset);
                    (format!("alias of {of}"), start)
                }
            };
            regions.push(RegionBill {
                slot,
                role: region.role.to_string(),
                storage,
                bytes: region.size,
                offset,
            });
        }
        let flash_bytes = blob.bytes().len() as u64;
        let command_bytes = u64::from(blob.header().cmd_bytes);
        // Baked regions may overlap, so that the parts add up to more than the whole.
        let overhead_bytes = flash_bytes.saturating_sub(command_bytes + constants + table);
        MemoryBill {
            flash_bytes,
            command_bytes,
            constant_bytes: constants,
            tensor_table_bytes: table,
            overhead_bytes,
            arena_bytes: blob.arena_bytes(),
            arena_padding_bytes: blob.arena_bytes().saturating_sub(runtime),
            regions,
        }
    }
}

#[cfg(test)]
mod tests {
    use npub::{Accel, BlobBuilder, Role};

    use super::*;

    #[test]
    fn the_parts_add_up() {
        let mut builder = BlobBuilder::new(Accel::u55(128));
        builder.commands(&[0xFFFF_0000]);
        builder.baked(Role::Weights, &[1; 100]);
        builder.runtime(Role::Scratch, 33);
        builder.alias(Role::Scratch, 1);
        builder.runtime(Role::Output, 10);
        let bytes = builder.build().unwrap();
        let bill = MemoryBill::of(&Blob::parse(&bytes).unwrap());
        assert_eq!(bill.flash_bytes, bytes.len() as u64);
        assert_eq!(
            bill.flash_bytes,
            bill.command_bytes + bill.constant_bytes + bill.tensor_table_bytes + bill.overhead_bytes
        );
        assert_eq!((bill.arena_bytes, bill.arena_padding_bytes), (58, 15));
        let offsets: Vec<u64> = bill.regions.iter().skip(1).map(|region| region.offset).collect();
        assert_eq!(offsets, [0, 0, 48]);
        assert_eq!(bill.regions[2].storage, "alias of 1");
    }
}
