/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"

/*
 * Addition and subtraction as TFLite's reference kernels do them: both operands are brought to a
 * common scale, summed and requantized (`reference_integer_ops::Add`, `reference_ops::Sub`).
 */
void thimble_add_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_add_params *params)
{
    const thimble_add_params p = *params;
    const int32_t unit = 1 << p.left_shift;
    for (int32_t i = 0; i < size; i++) {
        const int32_t a = thimble_scaled((*input_1 + p.offset_1) * unit, p.multiplier_1, p.shift_1);
        const int32_t b = thimble_scaled((*input_2 + p.offset_2) * unit, p.multiplier_2, p.shift_2);
        const int32_t sum = thimble_scaled(a + p.sign_2 * b, p.output_multiplier, p.output_shift);
        output[i] = (int8_t)thimble_clamp(sum + p.output_offset, p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}
