/*
 * The C interface of npukit: loads a .npub on the target.
 *
 * Generated from the Rust sources by `NPUKIT_BLESS=1 cargo test -p npukit-capi --test header`; don't edit.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */

#ifndef NPUKIT_H
#define NPUKIT_H

#include <stdint.h>

/* Warns when a result is dropped, where the compiler can. */
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define NPUKIT_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define NPUKIT_NODISCARD __attribute__((warn_unused_result))
#else
#define NPUKIT_NODISCARD
#endif

/**
 * BASEP slots of the NPU, and the most regions a blob may have.
 */
#define k_ra8_npu_region_count 8

/**
 * Alignment, in bytes, of a runtime region within the arena. The NPU takes base addresses and command streams only at
 * multiples of it, so align the arena and the blob likewise.
 */
#define k_ra8_npu_blob_arena_align 16

/**
 * What a call came to. 0 is success, so `if (err)` finds every failure.
 */
enum ra8_err_t
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint16_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * 0: Done.
   */
  k_ra8_ok = 0,
  /**
   * 0x102: The runtime regions don't fit the arena.
   */
  k_ra8_err_no_mem = 258,
  /**
   * 0x103: Not an NPU1 blob of version 1, more than ::k_ra8_npu_region_count regions, or a blob that contradicts itself.
   */
  k_ra8_err_invalid_arg = 259,
  /**
   * 0x105: Fewer bytes than a header has, or no commands.
   */
  k_ra8_err_invalid_size = 261,
  /**
   * 0x208: An offset or size of the blob falls outside it, or the length it states isn't the buffer's.
   */
  k_ra8_err_out_of_range = 520,
  /**
   * 0x502: The payload was damaged.
   */
  k_ra8_err_checksum_mismatch = 1282,
  /**
   * 0x504: A pointer was NULL.
   */
  k_ra8_err_null_ptr = 1284,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum ra8_err_t ra8_err_t;
#else
typedef uint16_t ra8_err_t;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Memory that the NPU can read and write, lent for a model's runtime regions (scratch, inputs, outputs).
 */
typedef struct {
  /**
   * First byte. Align it to ::k_ra8_npu_blob_arena_align bytes. May be NULL when `bytes` is 0.
   */
  uint8_t *base;
  /**
   * Length in bytes; 0 for a model without runtime regions.
   */
  uint32_t bytes;
} ra8_npu_arena_t;

/**
 * What the NPU needs to run a model. Addresses are those of this program, which the NPU must share.
 */
typedef struct {
  /**
   * First command word, for QBASE. It points into the blob.
   */
  const void *cmd_stream;
  /**
   * Length of the command stream in bytes, for QSIZE; above 0.
   */
  uint32_t cmd_stream_bytes;
  /**
   * How many of `region_base` are in use.
   */
  uint8_t region_count;
  /**
   * Address of each region, for BASEP; 0 in slots that aren't in use. A baked region lies in the blob, a runtime region
   * in the arena.
   */
  uint64_t region_base[k_ra8_npu_region_count];
} ra8_npu_job_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Checks a `.npub` blob and turns it into a job for the NPU.
 *
 * `out_job` gets the command stream's place in the blob and the address of each region: a baked region's in the blob, a
 * runtime region's in the arena, 16-byte aligned within it, in the table's order. Nothing is copied and no register is
 * touched; blob and arena must stay where they are for as long as the job is in use.
 *
 * The checks, in this order: NULL pointers; at least 32 bytes; magic; version; the stated length equals `blob_bytes`; at
 * most ::k_ra8_npu_region_count regions; the region table lies inside; there are commands; they lie inside; the checksum;
 * region by region, that a baked one lies inside and a runtime one fits the rest of the arena. A command stream that is
 * still in Arm's COP1 or COP2 payload framing is unwrapped.
 *
 * Not checked: that blob and arena are aligned to 16 bytes, which the NPU needs, and that the commands are for the NPU
 * that is there.
 *
 * Re-entrant: it keeps no state.
 *
 * @param blob        First byte of the blob, in memory that the NPU can read.
 * @param blob_bytes  Length of the blob in bytes.
 * @param arena       Memory for the runtime regions; not NULL, may be of 0 bytes.
 * @param out_job     Filled on success, untouched on failure.
 * @retval k_ra8_ok                     `out_job` describes a job that can run.
 * @retval k_ra8_err_null_ptr           `blob`, `arena` or `out_job` is NULL.
 * @retval k_ra8_err_invalid_size       `blob_bytes` is below 32, or there are no commands.
 * @retval k_ra8_err_invalid_arg        Wrong magic or version, too many regions, or a blob that contradicts itself.
 * @retval k_ra8_err_out_of_range       An offset or size falls outside the blob, or the stated length isn't `blob_bytes`.
 * @retval k_ra8_err_checksum_mismatch  The payload was damaged.
 * @retval k_ra8_err_no_mem             The runtime regions don't fit the arena.
 *
 * # Safety
 * A pointer that isn't NULL must be valid: `blob` for reading `blob_bytes` bytes that nobody writes during the call,
 * `arena` for reading, `out_job` for writing. What `arena->base` points at isn't accessed.
 */
NPUKIT_NODISCARD
ra8_err_t ra8_npu_load(const void *blob,
                       uint32_t blob_bytes,
                       const ra8_npu_arena_t *arena,
                       ra8_npu_job_t *out_job);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* NPUKIT_H */
