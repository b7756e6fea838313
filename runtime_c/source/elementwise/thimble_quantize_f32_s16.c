/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_quantize.h"
#include "thimble_wide.h"

void thimble_quantize_f32_s16(
    const float *input, int16_t *output, int32_t size, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int16_t)thimble_quantize(input[i], scale, zero_point, INT16_MIN, INT16_MAX);
    }
}
