/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_spectrum.h"

void thimble_scaled_roots_u64(const uint64_t *sums, int32_t count, const int32_t *shift, uint32_t *roots)
{
    thimble_square_roots_u64(sums, count, *shift & 31, roots);
}
