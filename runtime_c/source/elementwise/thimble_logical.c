/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_choice.h"

void thimble_logical(const uint8_t *input_1,
                     int32_t step_1,
                     const uint8_t *input_2,
                     int32_t step_2,
                     uint8_t *output,
                     int32_t size,
                     const thimble_logical_params *params)
{
    for (int32_t i = 0; i < size; i++) {
        const uint32_t place = 2u * (*input_1 != 0) + (*input_2 != 0);
        output[i] = (uint8_t)((params->table >> place) & 1u);
        input_1 += step_1;
        input_2 += step_2;
    }
}
