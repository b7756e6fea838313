/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantized.h"

void thimble_requantize_s32_s8(const int32_t *input,
                               int8_t *output,
                               int32_t size,
                               const thimble_requantize_params *params)
{
    const thimble_requantize_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_requantized(input[i], &p);
    }
}
