//! The exported functions. The only module with `unsafe` code: C's pointers become slices and references here, and
//! nothing else happens here.
#![allow(unsafe_code, reason = "a C interface takes raw pointers")]

use core::ffi::c_void;
use core::slice;

use npub::{Arena, Error, ErrorKind, Job};

use crate::types::{k_ra8_npu_region_count, ra8_err_t, ra8_npu_arena_t, ra8_npu_job_t};

const _: () = assert!(k_ra8_npu_region_count == npub::layout::MAX_REGIONS);
const _: () = assert!(crate::types::k_ra8_npu_blob_arena_align == npub::layout::ALIGN);

/// Checks a `.npub` blob and turns it into a job for the NPU.
///
/// `out_job` gets the command stream's place in the blob and the address of each region: a baked region's in the blob, a
/// runtime region's in the arena, 16-byte aligned within it, in the table's order. Nothing is copied and no register is
/// touched; blob and arena must stay where they are for as long as the job is in use.
///
/// The checks, in this order: NULL pointers; at least 32 bytes; magic; version; the stated length equals `blob_bytes`; at
/// most ::k_ra8_npu_region_count regions; the region table lies inside; there are commands; they lie inside; the checksum;
/// region by region, that a baked one lies inside and a runtime one fits the rest of the arena. A command stream that is
/// still in Arm's COP1 or COP2 payload framing is unwrapped.
///
/// Not checked: that blob and arena are aligned to 16 bytes, which the NPU needs, and that the commands are for the NPU
/// that is there.
///
/// Re-entrant: it keeps no state.
///
/// @param blob        First byte of the blob, in memory that the NPU can read.
/// @param blob_bytes  Length of the blob in bytes.
/// @param arena       Memory for the runtime regions; not NULL, may be of 0 bytes.
/// @param out_job     Filled on success, untouched on failure.
/// @retval k_ra8_ok                     `out_job` describes a job that can run.
/// @retval k_ra8_err_null_ptr           `blob`, `arena` or `out_job` is NULL.
/// @retval k_ra8_err_invalid_size       `blob_bytes` is below 32, or there are no commands.
/// @retval k_ra8_err_invalid_arg        Wrong magic or version, too many regions, or a blob that contradicts itself.
/// @retval k_ra8_err_out_of_range       An offset or size falls outside the blob, or the stated length isn't `blob_bytes`.
/// @retval k_ra8_err_checksum_mismatch  The payload was damaged.
/// @retval k_ra8_err_no_mem             The runtime regions don't fit the arena.
///
/// # Safety
/// A pointer that isn't NULL must be valid: `blob` for reading `blob_bytes` bytes that nobody writes during the call,
/// `arena` for reading, `out_job` for writing. What `arena->base` points at isn't accessed.
#[must_use]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ra8_npu_load(
    blob: *const c_void,
    blob_bytes: u32,
    arena: *const ra8_npu_arena_t,
    out_job: *mut ra8_npu_job_t,
) -> ra8_err_t {
    if blob.is_null() || arena.is_null() || out_job.is_null() {
        return ra8_err_t::k_ra8_err_null_ptr;
    }
    let base = blob.addr();
    let length = blob_bytes as usize;
    // A slice of more than half the address space, or one that wraps around, can't exist.
    if isize::try_from(length).is_err() || base.checked_add(length).is_none() {
        return ra8_err_t::k_ra8_err_out_of_range;
    }
    // SAFETY: not NULL, and the caller promises that it can be read.
    let arena = unsafe { arena.read() };
    // SAFETY: not NULL, no longer than a slice may be (checked above), and the caller promises that its bytes can be read
    // and aren't written meanwhile. Bytes need no alignment.
    let bytes = unsafe { slice::from_raw_parts(blob.cast::<u8>(), length) };

    let arena = Arena { base: arena.base.addr() as u64, bytes: arena.bytes.into() };
    match npub::load(bytes, base as u64, arena, None) {
        Ok(job) => {
            let job = to_c(&job, bytes);
            // SAFETY: not NULL, and the caller promises that it can be written. `bytes` isn't used any more, so it does no
            // harm if the two overlap.
            unsafe { out_job.write(job) };
            ra8_err_t::k_ra8_ok
        }
        Err(error) => code(&error),
    }
}

fn to_c(job: &Job, blob: &[u8]) -> ra8_npu_job_t {
    ra8_npu_job_t {
        // The offset lies inside the blob: `npub` has checked it. Staying within the slice keeps the pointer's provenance.
        cmd_stream: blob.get(job.command_offset as usize..).unwrap_or_default().as_ptr().cast(),
        cmd_stream_bytes: job.command_bytes,
        region_count: job.region_count,
        region_base: job.region_base,
    }
}

fn code(error: &Error) -> ra8_err_t {
    match error.kind() {
        ErrorKind::InvalidSize => ra8_err_t::k_ra8_err_invalid_size,
        ErrorKind::InvalidArg => ra8_err_t::k_ra8_err_invalid_arg,
        ErrorKind::OutOfRange => ra8_err_t::k_ra8_err_out_of_range,
        ErrorKind::ChecksumMismatch => ra8_err_t::k_ra8_err_checksum_mismatch,
        ErrorKind::NoMem => ra8_err_t::k_ra8_err_no_mem,
    }
}
