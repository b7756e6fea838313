/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cumsum.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"

int8_t thimble_fine_sum_s8(int32_t total, int32_t multiplier, int32_t shift, int32_t output_offset)
{
    const int32_t fine = (int32_t)((uint32_t)total << 19);

    return thimble_saturate_s8(thimble_scaled(fine, multiplier, shift) + output_offset);
}
