//! What crosses the border between C and Rust.
#![allow(
    non_camel_case_types,
    non_upper_case_globals,
    reason = "C names, so that header and source read alike"
)]

use core::ffi::c_void;

/// BASEP slots of the NPU, and the most regions a blob may have.
pub const k_ra8_npu_region_count: usize = 8;

/// Alignment, in bytes, of a runtime region within the arena. The NPU takes base addresses and command streams only at
/// multiples of it, so align the arena and the blob likewise.
pub const k_ra8_npu_blob_arena_align: u32 = 16;

/// What a call came to. 0 is success, so `if (err)` finds every failure.
#[repr(u16)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ra8_err_t {
    /// 0: Done.
    k_ra8_ok = 0,
    /// 0x102: The runtime regions don't fit the arena.
    k_ra8_err_no_mem = 0x102,
    /// 0x103: Not an NPU1 blob of version 1, more than ::k_ra8_npu_region_count regions, or a blob that contradicts itself.
    k_ra8_err_invalid_arg = 0x103,
    /// 0x105: Fewer bytes than a header has, or no commands.
    k_ra8_err_invalid_size = 0x105,
    /// 0x208: An offset or size of the blob falls outside it, or the length it states isn't the buffer's.
    k_ra8_err_out_of_range = 0x208,
    /// 0x502: The payload was damaged.
    k_ra8_err_checksum_mismatch = 0x502,
    /// 0x504: A pointer was NULL.
    k_ra8_err_null_ptr = 0x504,
}

/// Memory that the NPU can read and write, lent for a model's runtime regions (scratch, inputs, outputs).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ra8_npu_arena_t {
    /// First byte. Align it to ::k_ra8_npu_blob_arena_align bytes. May be NULL when `bytes` is 0.
    pub base: *mut u8,
    /// Length in bytes; 0 for a model without runtime regions.
    pub bytes: u32,
}

/// What the NPU needs to run a model. Addresses are those of this program, which the NPU must share.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ra8_npu_job_t {
    /// First command word, for QBASE. It points into the blob.
    pub cmd_stream: *const c_void,
    /// Length of the command stream in bytes, for QSIZE; above 0.
    pub cmd_stream_bytes: u32,
    /// How many of `region_base` are in use.
    pub region_count: u8,
    /// Address of each region, for BASEP; 0 in slots that aren't in use. A baked region lies in the blob, a runtime region
    /// in the arena.
    pub region_base: [u64; k_ra8_npu_region_count],
}
