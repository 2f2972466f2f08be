/* Drops a result: the compiler must warn, so with warnings as errors this mustn't compile. */
#include "npukit.h"

int main(void)
{
  ra8_npu_load(0, 0, 0, 0);
  return 0;
}
