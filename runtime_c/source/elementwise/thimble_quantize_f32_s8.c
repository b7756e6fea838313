/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"
#include "thimble_quantize.h"

void thimble_quantize_f32_s8(
    const float *input, int8_t *output, int32_t size, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_quantize(input[i], scale, zero_point, INT8_MIN, INT8_MAX);
    }
}
