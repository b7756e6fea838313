/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

/* The square of a difference, as tflite-micro's SquaredDifference computes it: no zero points, no left shift.
 */
void thimble_squared_difference_s16(const int16_t *input_1,
                                    int32_t step_1,
                                    const int16_t *input_2,
                                    int32_t step_2,
                                    int16_t *output,
                                    int32_t size,
                                    const thimble_squared_difference_s16_params *params)
{
    const thimble_squared_difference_s16_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t a = thimble_scaled(*input_1, p.multiplier_1, p.shift_1);
        const int32_t b = thimble_scaled(*input_2, p.multiplier_2, p.shift_2);
        const int32_t square = (a - b) * (a - b);
        const int32_t scaled = thimble_scaled(square, p.output_multiplier, p.output_shift);
        output[i] = (int16_t)thimble_clamp_s16(scaled, INT16_MIN, INT16_MAX);
        input_1 += step_1;
        input_2 += step_2;
    }
}
