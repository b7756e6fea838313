/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"

THIMBLE_EXACT_FLOAT void thimble_quantize_f32_s8_even(
    const float *input, int8_t *output, int32_t size, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < size; i++) {
        const float quotient = input[i] / scale;
        const int32_t ordered = quotient < 0.0f || quotient >= 0.0f;
        const int32_t whole = (ordered ? thimble_nearest(quotient) : 0) + zero_point;
        output[i] = (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
    }
}
