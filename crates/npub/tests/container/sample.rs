//! Blobs for the tests, and the means to break them.

use npub::layout::{self, header, region};
use npub::{Accel, BlobBuilder, DType, Place, Quantisation, Role, Shape, TensorEntry, TensorKind};

/// What Vela made of the digits example, see data/README.md.
pub(crate) const REAL: &[u8] = include_bytes!("../data/digits_int8.npub");

pub(crate) const STOP: u32 = 0xFFFF_0000;

/// Slots of [`network`].
pub(crate) mod slot {
    pub(crate) const WEIGHTS: usize = 0;
    pub(crate) const SCRATCH: usize = 1;
    pub(crate) const FAST: usize = 2;
    pub(crate) const INPUT: usize = 3;
    pub(crate) const OUTPUT: usize = 4;
    pub(crate) const TENSORS: usize = 5;
}

/// A network like those that Vela's output becomes: constants, scratch, fast scratch that is the same memory, inputs
/// and outputs in regions of their own, a tensor table. `weights` bytes of constants.
pub(crate) fn network(weights: usize) -> Vec<u8> {
    let weights: Vec<u8> =
        (0..weights as u32).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut builder = BlobBuilder::new(Accel::u55(128));
    builder.commands(&[0x0001_0100, 0x0000_4000, 0x0000_0010, 0x0005_0111, 0x0000_0002, STOP]);
    builder.baked(Role::Weights, &weights);
    builder.runtime(Role::Scratch, 200);
    builder.alias(Role::Scratch, slot::SCRATCH);
    builder.runtime(Role::Input, 49 * 10);
    builder.runtime(Role::Output, 12);
    builder.tensor(int8(TensorKind::Input, "input_1", &[1, 49, 10, 1], slot::INPUT, 0));
    builder.tensor(int8(TensorKind::Output, "Identity", &[1, 12], slot::OUTPUT, 0));
    builder.build().expect("the sample network is valid")
}

pub(crate) fn int8(kind: TensorKind, name: &str, shape: &[u32], region: usize, offset: u32) -> TensorEntry {
    TensorEntry {
        kind,
        name: name.into(),
        dtype: DType::Int8,
        shape: Shape::new(shape).expect("at most eight dimensions"),
        quantisation: Some(Quantisation { scale: 0.5, zero_point: -3 }),
        place: Some(Place { region: region as u8, offset }),
        fed_from: None,
    }
}

/// A blob of two words and two regions: the smallest that has everything that section 7 of the format document breaks.
pub(crate) fn small() -> Vec<u8> {
    let mut builder = BlobBuilder::new(Accel::UNKNOWN);
    builder.commands(&[0x0000_0012, STOP]);
    builder.baked(Role::Weights, &[1, 2, 3, 4, 5, 6, 7, 8]);
    builder.runtime(Role::Scratch, 100);
    builder.build().expect("the small blob is valid")
}

pub(crate) fn get(blob: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes(blob[offset..offset + 4].try_into().expect("four bytes"))
}

pub(crate) fn set(blob: &mut [u8], offset: usize, word: u32) {
    blob[offset..offset + 4].copy_from_slice(&word.to_le_bytes());
}

/// Sets a word of a region descriptor.
pub(crate) fn set_region(blob: &mut [u8], slot: usize, field: usize, word: u32) {
    set(blob, layout::HEADER_BYTES + slot * layout::REGION_BYTES + field, word);
}

/// Sets a word of the tensor table of [`network`].
pub(crate) fn set_table(blob: &mut [u8], offset: usize, word: u32) {
    let descriptor = layout::HEADER_BYTES + slot::TENSORS * layout::REGION_BYTES;
    let table = get(blob, descriptor + region::DATA_OFFSET) as usize;
    set(blob, table + offset, word);
}

/// Makes length and checksum right again, so that the checks behind them are reached.
pub(crate) fn seal(mut blob: Vec<u8>) -> Vec<u8> {
    let total = blob.len() as u32;
    set(&mut blob, header::TOTAL_BYTES, total);
    let checksum = npub::checksum(&blob[layout::HEADER_BYTES..]);
    set(&mut blob, header::CHECKSUM, checksum);
    blob
}
