/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

#include <string.h>

/** A finite float without its sign: mantissa * 2^exponent, up to a factor that all have. */
typedef struct {
    uint32_t mantissa;
    int32_t exponent;
} thimble_parts_f32;

static thimble_parts_f32 parts_of(float x)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    const uint32_t exponent = (bits >> 23) & 255u;
    const uint32_t fraction = bits & 0x7FFFFFu;
    const thimble_parts_f32 parts = {exponent != 0u ? fraction | 0x800000u : fraction,
                                     exponent != 0u ? (int32_t)exponent : 1};
    return parts;
}

/* Of -0, too. */
static int negative(float x)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    return bits >> 31 != 0u;
}

/* The remainder of a division that rounds towards zero, exactly: by one bit of the quotient after another. */
static float remainder_of(float a, float b)
{
    thimble_parts_f32 rest = parts_of(a);
    const thimble_parts_f32 divisor = parts_of(b);
    uint32_t bits;
    float value;

    if (rest.exponent < divisor.exponent) {
        return a;
    }
    rest.mantissa %= divisor.mantissa;
    for (; rest.exponent > divisor.exponent; rest.exponent--) {
        rest.mantissa = (rest.mantissa << 1) % divisor.mantissa;
    }
    while (rest.mantissa != 0u && rest.mantissa < 0x800000u && rest.exponent > 1) {
        rest.mantissa <<= 1;
        rest.exponent--;
    }
    bits = rest.mantissa;
    if (rest.mantissa >= 0x800000u) {
        bits = (rest.mantissa & 0x7FFFFFu) | ((uint32_t)rest.exponent << 23);
    }
    (void)memcpy(&value, &bits, sizeof(value));
    return negative(a) ? -value : value;
}

float thimble_floor_mod_f32(float a, float b)
{
    const float largest = 3.402823466e38f;

    if (!(a >= -largest && a <= largest) || b != b || b == 0.0f) {
        const float zero = a * 0.0f;
        return zero / zero;
    }
    const float rest = b >= -largest && b <= largest ? remainder_of(a, b) : a;
    return rest != 0.0f && (b < 0.0f) != (rest < 0.0f) ? rest + b : rest;
}
