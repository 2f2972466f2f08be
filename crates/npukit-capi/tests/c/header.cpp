// The header in a C++ program: it compiles without a warning, and the function has C linkage.
#include "npukit.h"

static_assert(sizeof(ra8_err_t) == 2, "16 bits, as in C");

int main()
{
  ra8_npu_arena_t arena = {nullptr, 0};
  ra8_npu_job_t job = {};
  const ra8_err_t result = ra8_npu_load(&arena, 0, &arena, &job);
  return result == k_ra8_err_invalid_size ? 0 : 1;
}
