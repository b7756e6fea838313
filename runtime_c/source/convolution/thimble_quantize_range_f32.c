/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_hybrid.h"

#include <string.h>

/* Halves away from zero, and so is what lies just below a half, in LiteRT's vectors: 0.5 is added first. */
THIMBLE_EXACT_FLOAT static int32_t nearest(float x, int32_t in_vector)
{
    const float near = x > -1024.0f ? (x < 1024.0f ? x : 1024.0f) : -1024.0f;
    if (in_vector != 0) {
        return (int32_t)(near + (near < 0.0f ? -0.5f : 0.5f));
    }
    const int32_t whole = (int32_t)near;
    const float rest = near - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}

/* The zero point that represents a range's better end most exactly. */
THIMBLE_EXACT_FLOAT static int32_t zero_point_of(double low, double high, double step)
{
    const double below = low / step;
    const double above = high / step;
    const double point = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;
    if (!(point > -128.0)) { /* also where a range without end leaves no number */
        return -128;
    }
    if (point >= 127.0) {
        return 127;
    }
    const int32_t whole = (int32_t)point;
    const double rest = point - (double)whole;
    return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

THIMBLE_EXACT_FLOAT int32_t thimble_quantize_range_f32(
    const float *values, int32_t size, int32_t asymmetric, int8_t *stored, float *scale)
{
    float low = 0.0f;
    float high = 0.0f;
    for (int32_t i = 0; i < size; i++) {
        low = values[i] < low ? values[i] : low;
        high = values[i] > high ? values[i] : high;
    }
    if (!(low < high)) {
        (void)memset(stored, 0, (size_t)size);
        *scale = 1.0f;
        return 0;
    }
    int32_t zero_point = 0;
    float inverse;
    if (asymmetric != 0) {
        const double step = (double)(high - low) / 255.0;
        zero_point = zero_point_of((double)low, (double)high, step);
        *scale = (float)step;
        inverse = *scale > 0.0f ? 1.0f / *scale : 0.0f;
    } else {
        const float range = high > -low ? high : -low;
        *scale = range / 127.0f;
        inverse = 127.0f / range;
    }
    const int32_t least = asymmetric != 0 ? -128 : -127;
    for (int32_t i = 0; i < size; i++) {
        const int32_t value = nearest(values[i] * inverse, i < size - size % 8 ? 1 : 0) + zero_point;
        stored[i] = (int8_t)(value < least ? least : value > 127 ? 127 : value);
    }
    return zero_point;
}
