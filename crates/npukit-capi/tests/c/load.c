/*
 * ra8_npu_load from C: the good case, every error value, and an out_job that failure leaves alone.
 * Prints one line per failed check; the exit status tells whether there was one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npukit.h"

/* The layout, written down a second time: this program stands for producers other than npukit. */
enum {
  word_magic = 0,
  word_version = 1,
  word_total_bytes = 2,
  word_region_count = 3,
  word_cmd_offset = 4,
  word_cmd_bytes = 5,
  word_checksum = 7,
  word_first_region = 8,
  region_words = 4,
  region_flags = 1,
  region_size = 2,
  region_data_offset = 3,
  flag_baked = 1,
  flag_alias = 2,
};

enum { cmd_offset = 96, weights_offset = 112, weights_bytes = 20, blob_bytes = 132 };

static int failures = 0;

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);         \
      failures += 1;                                                 \
    }                                                                \
  } while (false)

static void put(uint8_t *blob, size_t word, uint32_t value)
{
  for (size_t byte = 0; byte < 4; byte += 1) {
    blob[4 * word + byte] = (uint8_t)(value >> (8 * byte));
  }
}

static void put_region(uint8_t *blob, size_t slot, size_t field, uint32_t value)
{
  put(blob, word_first_region + region_words * slot + field, value);
}

static void seal(uint8_t *blob, size_t bytes)
{
  uint32_t hash = 0x811C9DC5u;
  for (size_t at = 32; at < bytes; at += 1) {
    hash = (hash ^ blob[at]) * 0x01000193u;
  }
  put(blob, word_checksum, hash);
}

/* Weights in the blob, scratch, the same memory again, an output: slots 0 to 3. On the heap, so that the address sanitizer sees
 * a read outside. */
static uint8_t *make_blob(void)
{
  uint8_t *blob = aligned_alloc(16, 144);
  if (blob == NULL) {
    abort();
  }
  memset(blob, 0, 144);
  put(blob, word_magic, 0x3155504Eu);
  put(blob, word_version, 1);
  put(blob, word_total_bytes, blob_bytes);
  put(blob, word_region_count, 4);
  put(blob, word_cmd_offset, cmd_offset);
  put(blob, word_cmd_bytes, 8);
  put_region(blob, 0, region_flags, flag_baked);
  put_region(blob, 0, region_size, weights_bytes);
  put_region(blob, 0, region_data_offset, weights_offset);
  put_region(blob, 1, region_size, 100);
  put_region(blob, 2, region_flags, flag_alias);
  put_region(blob, 2, region_size, 100);
  put_region(blob, 2, region_data_offset, 1);
  put_region(blob, 3, region_size, 30);
  put(blob, cmd_offset / 4, 0x00000012u);
  put(blob, cmd_offset / 4 + 1, 0xFFFF0000u);
  memset(blob + weights_offset, 0x5A, weights_bytes);
  seal(blob, blob_bytes);
  return blob;
}

static _Alignas(16) uint8_t memory[142];
static const ra8_npu_arena_t whole_arena = {memory, sizeof memory};

/* Loads with an out_job full of a pattern, and checks that failure leaves the pattern. */
static ra8_err_t load(const void *blob, uint32_t bytes, const ra8_npu_arena_t *arena)
{
  ra8_npu_job_t job;
  ra8_npu_job_t untouched;
  memset(&job, 0xA5, sizeof job);
  memset(&untouched, 0xA5, sizeof untouched);
  const ra8_err_t result = ra8_npu_load(blob, bytes, arena, &job);
  CHECK((memcmp(&job, &untouched, sizeof job) == 0) == (result != k_ra8_ok));
  return result;
}

static void good_blob(void)
{
  uint8_t *blob = make_blob();
  ra8_npu_job_t job;
  memset(&job, 0xA5, sizeof job);
  CHECK(ra8_npu_load(blob, blob_bytes, &whole_arena, &job) == k_ra8_ok);
  CHECK(job.cmd_stream == blob + cmd_offset);
  CHECK(job.cmd_stream_bytes == 8);
  CHECK(job.region_count == 4);
  CHECK(job.region_base[0] == (uint64_t)(uintptr_t)(blob + weights_offset));
  CHECK(job.region_base[1] == (uint64_t)(uintptr_t)memory);
  CHECK(job.region_base[2] == (uint64_t)(uintptr_t)memory);
  CHECK(job.region_base[3] == (uint64_t)(uintptr_t)(memory + 112));
  for (size_t slot = 4; slot < k_ra8_npu_region_count; slot += 1) {
    CHECK(job.region_base[slot] == 0);
  }
  free(blob);
}

static void no_runtime_regions(void)
{
  uint8_t *blob = make_blob();
  put(blob, word_region_count, 1);
  seal(blob, blob_bytes);
  const ra8_npu_arena_t none = {NULL, 0};
  CHECK(load(blob, blob_bytes, &none) == k_ra8_ok);
  free(blob);
}

/* A blob at an odd address loads: the loader reads bytes. */
static void unaligned_blob(void)
{
  uint8_t *blob = make_blob();
  uint8_t *odd = malloc(blob_bytes + 1);
  if (odd == NULL) {
    abort();
  }
  memcpy(odd + 1, blob, blob_bytes);
  CHECK(load(odd + 1, blob_bytes, &whole_arena) == k_ra8_ok);
  free(odd);
  free(blob);
}

static void wrapped_commands_are_unwrapped(void)
{
  uint8_t *blob = make_blob();
  put(blob, cmd_offset / 4, 0x31504F43u);     /* COP1 */
  put(blob, cmd_offset / 4 + 1, 0x00010002u); /* one word follows */
  put(blob, cmd_offset / 4 + 2, 0xFFFF0000u);
  put(blob, word_cmd_bytes, 12);
  seal(blob, blob_bytes);
  ra8_npu_job_t job;
  CHECK(ra8_npu_load(blob, blob_bytes, &whole_arena, &job) == k_ra8_ok);
  CHECK(job.cmd_stream == blob + cmd_offset + 8);
  CHECK(job.cmd_stream_bytes == 4);
  free(blob);
}

static void null_pointers(void)
{
  uint8_t *blob = make_blob();
  ra8_npu_job_t job;
  CHECK(load(NULL, blob_bytes, &whole_arena) == k_ra8_err_null_ptr);
  CHECK(load(blob, blob_bytes, NULL) == k_ra8_err_null_ptr);
  CHECK(ra8_npu_load(blob, blob_bytes, &whole_arena, NULL) == k_ra8_err_null_ptr);
  /* Before anything else is looked at. */
  CHECK(load(NULL, 0, &whole_arena) == k_ra8_err_null_ptr);
  CHECK(ra8_npu_load(NULL, 0, NULL, &job) == k_ra8_err_null_ptr);
  free(blob);
}

static void sizes(void)
{
  uint8_t *blob = make_blob();
  CHECK(load(blob, 0, &whole_arena) == k_ra8_err_invalid_size);
  CHECK(load(blob, 31, &whole_arena) == k_ra8_err_invalid_size);
  put(blob, word_cmd_bytes, 0);
  CHECK(load(blob, blob_bytes, &whole_arena) == k_ra8_err_invalid_size);
  free(blob);
}

/* Sets one header word and loads. */
static ra8_err_t with_word(size_t word, uint32_t value)
{
  uint8_t *blob = make_blob();
  put(blob, word, value);
  const ra8_err_t result = load(blob, blob_bytes, &whole_arena);
  free(blob);
  return result;
}

static void header_words(void)
{
  CHECK(with_word(word_magic, 0x4E505531u) == k_ra8_err_invalid_arg);
  CHECK(with_word(word_version, 2) == k_ra8_err_invalid_arg);
  CHECK(with_word(word_region_count, 9) == k_ra8_err_invalid_arg);
  CHECK(with_word(word_region_count, 0xFFFFFFFFu) == k_ra8_err_invalid_arg);
  CHECK(with_word(word_region_count, 8) == k_ra8_err_out_of_range);
  CHECK(with_word(word_total_bytes, blob_bytes + 1) == k_ra8_err_out_of_range);
  CHECK(with_word(word_total_bytes, blob_bytes - 1) == k_ra8_err_out_of_range);
  CHECK(with_word(word_cmd_offset, blob_bytes - 7) == k_ra8_err_out_of_range);
  CHECK(with_word(word_cmd_offset, 0xFFFFFFFCu) == k_ra8_err_out_of_range);
  CHECK(with_word(word_cmd_bytes, 0xFFFFFFFFu) == k_ra8_err_out_of_range);
  CHECK(with_word(word_checksum, 0) == k_ra8_err_checksum_mismatch);
}

/* Sets one word of a region, makes the checksum right and loads. */
static ra8_err_t with_region(size_t slot, size_t field, uint32_t value)
{
  uint8_t *blob = make_blob();
  put_region(blob, slot, field, value);
  seal(blob, blob_bytes);
  const ra8_err_t result = load(blob, blob_bytes, &whole_arena);
  free(blob);
  return result;
}

static void regions(void)
{
  CHECK(with_region(0, region_size, weights_bytes + 1) == k_ra8_err_out_of_range);
  CHECK(with_region(0, region_data_offset, 0xFFFFFFF0u) == k_ra8_err_out_of_range);
  CHECK(with_region(0, 0, 77) == k_ra8_ok); /* an unknown role */
  CHECK(with_region(0, region_flags, flag_baked | flag_alias) == k_ra8_err_invalid_arg);
  CHECK(with_region(2, region_data_offset, 3) == k_ra8_err_out_of_range);
  CHECK(with_region(2, region_size, 99) == k_ra8_err_invalid_arg);
  CHECK(with_region(3, region_size, 31) == k_ra8_err_no_mem);
  CHECK(with_region(3, region_size, 0xFFFFFFFFu) == k_ra8_err_no_mem);
}

static void arenas(void)
{
  uint8_t *blob = make_blob();
  const ra8_npu_arena_t one_short = {memory, sizeof memory - 1};
  const ra8_npu_arena_t none = {NULL, 0};
  CHECK(load(blob, blob_bytes, &one_short) == k_ra8_err_no_mem);
  CHECK(load(blob, blob_bytes, &none) == k_ra8_err_no_mem);
  free(blob);
}

static void damage(void)
{
  uint8_t *blob = make_blob();
  for (size_t bit = 32 * 8; bit < (size_t)blob_bytes * 8; bit += 1) {
    blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
    CHECK(load(blob, blob_bytes, &whole_arena) == k_ra8_err_checksum_mismatch);
    blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
  for (uint32_t bytes = 0; bytes < blob_bytes; bytes += 1) {
    uint8_t *truncated = malloc(bytes == 0 ? 1 : bytes); /* of its own, so that a read beyond is seen */
    if (truncated == NULL) {
      abort();
    }
    memcpy(truncated, blob, bytes);
    const ra8_err_t expected = bytes < 32 ? k_ra8_err_invalid_size : k_ra8_err_out_of_range;
    CHECK(load(truncated, bytes, &whole_arena) == expected);
    free(truncated);
  }
  free(blob);
}

/* The values are part of the interface. */
static void values(void)
{
  _Static_assert(k_ra8_ok == 0, "k_ra8_ok");
  _Static_assert(k_ra8_err_no_mem == 0x102, "k_ra8_err_no_mem");
  _Static_assert(k_ra8_err_invalid_arg == 0x103, "k_ra8_err_invalid_arg");
  _Static_assert(k_ra8_err_invalid_size == 0x105, "k_ra8_err_invalid_size");
  _Static_assert(k_ra8_err_out_of_range == 0x208, "k_ra8_err_out_of_range");
  _Static_assert(k_ra8_err_checksum_mismatch == 0x502, "k_ra8_err_checksum_mismatch");
  _Static_assert(k_ra8_err_null_ptr == 0x504, "k_ra8_err_null_ptr");
  _Static_assert(sizeof(ra8_err_t) == 2, "ra8_err_t");
  _Static_assert(k_ra8_npu_region_count == 8, "k_ra8_npu_region_count");
  _Static_assert(k_ra8_npu_blob_arena_align == 16, "k_ra8_npu_blob_arena_align");
}

int main(void)
{
  values();
  good_blob();
  no_runtime_regions();
  unaligned_blob();
  wrapped_commands_are_unwrapped();
  null_pointers();
  sizes();
  header_words();
  regions();
  arenas();
  damage();
  if (failures == 0) {
    puts("all checks hold");
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
