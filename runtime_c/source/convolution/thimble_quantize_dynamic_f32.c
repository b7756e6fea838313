/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_hybrid.h"

THIMBLE_EXACT_FLOAT int32_t thimble_quantize_dynamic_f32(
    const float *all, int32_t all_size, const float *values, int32_t size, int8_t *stored, float *scale)
{
    float low = 0.0f;
    float high = 0.0f;
    for (int32_t i = 0; i < all_size; i++) {
        low = all[i] < low ? all[i] : low;
        high = all[i] > high ? all[i] : high;
    }
    *scale = low < high ? (high - low) / 255.0f : 1.0f;
    const float below = -low / *scale;
    const int32_t zero_point = thimble_nearest(below < 255.0f ? below : 255.0f);
    for (int32_t i = 0; i < size; i++) {
        const float quotient = values[i] / *scale;
        const int32_t ordered = quotient < 0.0f || quotient >= 0.0f;
        const int32_t whole = (ordered ? thimble_nearest(quotient) : 0) + zero_point;
        stored[i] = (int8_t)((whole < 0 ? 0 : whole > 255 ? 255 : whole) - 128);
    }
    return zero_point - 128;
}
