/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <string.h>

#define THIMBLE_LOG_TERMS 10
#define THIMBLE_EXP_TERMS 12

/* Of a positive number m 2^e, m from sqrt(1/2) to sqrt(2): log m as the series of 2 artanh((m - 1) / (m +
 * 1)). */
THIMBLE_EXACT_FLOAT static double binary_logarithm(double x)
{
    uint64_t bits;
    double m;

    (void)memcpy(&bits, &x, sizeof(bits));
    const int32_t exponent = (int32_t)((int64_t)(bits - 0x3FE6A09E667F3BCDu) >> 52);
    bits -= (uint64_t)(int64_t)exponent << 52;
    (void)memcpy(&m, &bits, sizeof(m));
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 0.0;
    for (int32_t odd = 2 * THIMBLE_LOG_TERMS - 1; odd > 0; odd -= 2) {
        p = p * z + 1.0 / (double)odd;
    }
    return (double)exponent + s * p * 2.8853900817779268;
}

/* Of a number from -160 to 160. */
THIMBLE_EXACT_FLOAT static double binary_power(double x)
{
    const int32_t whole = (int32_t)(x < 0.0 ? x - 0.5 : x + 0.5);
    const double r = (x - (double)whole) * 0.6931471805599453;
    const uint64_t bits = (uint64_t)(whole + 1023) << 52;
    double p = 1.0;
    double scale;

    for (int32_t term = THIMBLE_EXP_TERMS; term > 0; term--) {
        p = p * r / (double)term + 1.0;
    }
    (void)memcpy(&scale, &bits, sizeof(scale));
    return p * scale;
}

/* In double, because an error of the logarithm grows with y. */
THIMBLE_EXACT_FLOAT float thimble_pow_f32(float x, float y)
{
    const float largest = 3.402823466e38f;
    const float half = y * 0.5f;
    const int whole = thimble_floor_f32(y) == y;
    const int odd = whole && thimble_floor_f32(half) != half;
    const float size = x <= 0.0f ? 0.0f - x : x; /* of -0, too */
    float power;

    if (y == 0.0f || x == 1.0f) {
        return 1.0f;
    }
    if (x != x || y != y || (x < 0.0f && !whole && size <= largest)) {
        const float zero = (x + y) - (x + y);
        return zero / zero;
    }
    if (size == 1.0f) {
        power = 1.0f;
    } else if (size == 0.0f) {
        power = y < 0.0f ? 1.0f / size : 0.0f;
    } else if (size > largest) {
        power = y < 0.0f ? 0.0f : size;
    } else {
        const double exponent = (double)y * binary_logarithm((double)size);
        power = (float)binary_power(exponent > 160.0 ? 160.0 : exponent < -160.0 ? -160.0 : exponent);
    }
    if (odd && (x < 0.0f || 1.0f / x < 0.0f)) {
        return -power;
    }
    return power;
}
