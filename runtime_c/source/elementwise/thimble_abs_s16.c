/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

void thimble_abs_s16(const int16_t *input,
                     int16_t *output,
                     int32_t size,
                     const thimble_abs_s16_params *params)
{
    const thimble_abs_s16_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t x = input[i];
        const int32_t scaled = thimble_scaled(x < 0 ? -x : x, p.multiplier, p.shift);
        output[i] = (int16_t)thimble_clamp_s16(scaled, INT16_MIN, INT16_MAX); /* what wraps is negative */
    }
}
