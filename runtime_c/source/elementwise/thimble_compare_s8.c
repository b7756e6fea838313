/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_choice.h"
#include "thimble_multiplier.h"

void thimble_compare_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        uint8_t *output,
                        int32_t size,
                        const thimble_compare_params *params)
{
    const thimble_compare_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t a = thimble_scaled((*input_1 + p.offset_1) * 256, p.multiplier_1, p.shift_1);
        const int32_t b = thimble_scaled((*input_2 + p.offset_2) * 256, p.multiplier_2, p.shift_2);
        const int32_t place = 1 + (a > b) - (a < b);
        output[i] = (uint8_t)((p.relation >> place) & 1);
        input_1 += step_1;
        input_2 += step_2;
    }
}
