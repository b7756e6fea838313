/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

void thimble_mul_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_mul_s16_params *params)
{
    const thimble_mul_s16_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t product = thimble_scaled(*input_1 * *input_2, p.multiplier, p.shift);
        output[i] = (int16_t)thimble_clamp_s16(product, p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}
