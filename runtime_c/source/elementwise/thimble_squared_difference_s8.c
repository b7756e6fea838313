/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"

/* The square of a difference, as TFLite's SquaredDifference computes it. */
void thimble_squared_difference_s8(const int8_t *input_1,
                                   int32_t step_1,
                                   const int8_t *input_2,
                                   int32_t step_2,
                                   int8_t *output,
                                   int32_t size,
                                   const thimble_squared_difference_params *params)
{
    const thimble_squared_difference_params p = *params;
    const int32_t unit = 1 << p.left_shift;
    for (int32_t i = 0; i < size; i++) {
        const int32_t a = thimble_scaled((*input_1 + p.offset_1) * unit, p.multiplier_1, p.shift_1);
        const int32_t b = thimble_scaled((*input_2 + p.offset_2) * unit, p.multiplier_2, p.shift_2);
        const int32_t square = (a - b) * (a - b);
        const int32_t scaled = thimble_scaled(square, p.output_multiplier, p.output_shift);
        output[i] = thimble_saturate_s8(scaled + p.output_offset);
        input_1 += step_1;
        input_2 += step_2;
    }
}
