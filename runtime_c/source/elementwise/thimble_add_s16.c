/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

void thimble_add_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_add_s16_params *params)
{
    const thimble_add_s16_params p = *params;
    const int32_t unit = 1 << p.left_shift;
    for (int32_t i = 0; i < size; i++) {
        const int32_t a = thimble_scaled(*input_1 * unit, p.multiplier_1, p.shift_1);
        const int32_t b = thimble_scaled(*input_2 * unit, p.multiplier_2, p.shift_2);
        const int32_t sum = thimble_scaled(a + b, p.output_multiplier, p.output_shift);
        output[i] = (int16_t)thimble_clamp_s16(sum, p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}
