/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* Squares from the highest bit of the exponent on, each product clamped. */
THIMBLE_EXACT_FLOAT static float multiplied(float base, int32_t exponent)
{
    const float largest = 3.402823466e38f;
    int32_t bit = 1;
    float power = base;

    while (exponent / 2 >= bit) {
        bit *= 2;
    }
    for (bit /= 2; bit > 0; bit /= 2) {
        power = thimble_clamp_f32(power * power, -largest, largest);
        if (exponent / bit % 2 != 0) {
            power = thimble_clamp_f32(base * power, -largest, largest);
        }
    }
    return power;
}

THIMBLE_EXACT_FLOAT float thimble_pow_multiplied_f32(float x, float y)
{
    if (y >= 0.5f && y < 2147483648.0f) {
        const int32_t below = (int32_t)y;
        const int32_t whole = y - (float)below < 0.5f ? below : below + 1;
        const float off = y - (float)whole;
        if (off < 1e-5f && off > -1e-5f) {
            return multiplied(x, whole);
        }
    }
    return thimble_pow_f32(x, y);
}
