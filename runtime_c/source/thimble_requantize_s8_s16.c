/* SPDX-License-Identifier: Apache-2.0 */
#include "arm_nnsupportfunctions.h"
#include "thimble_wide.h"

void thimble_requantize_s8_s16(const int8_t *input,
                               int16_t *output,
                               int32_t size,
                               const thimble_requantize_params *params)
{
    const thimble_requantize_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t scaled = arm_nn_requantize(input[i] + p.input_offset, p.multiplier, p.shift);
        output[i] = (int16_t)thimble_clamp_s16(scaled + p.output_offset, p.min, p.max);
    }
}
