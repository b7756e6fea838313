/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <string.h>

/* x = 2^e (1 + f), 1 + f from sqrt(1/2) to sqrt(2); log(1 + f) as the series of 2 artanh(f / (2 + f)). */
THIMBLE_EXACT_FLOAT float thimble_log_f32(float x)
{
    uint32_t bits;
    int32_t e = 0;

    if (!(x > 0.0f)) {
        const float zero = x - x;
        return x < 0.0f || x > 0.0f ? zero / zero : (x != x ? x : -1.0f / zero);
    }
    if (x > 3.402823466e38f) {
        return x;
    }
    if (x < 1.175494351e-38f) {
        x *= 33554432.0f;
        e = -25;
    }
    (void)memcpy(&bits, &x, sizeof(bits));
    const int32_t exponent = (int32_t)(bits - 0x3F3504F3u) >> 23;
    bits -= (uint32_t)exponent << 23;
    (void)memcpy(&x, &bits, sizeof(x));
    e += exponent;
    const float f = x - 1.0f;
    const float s = f / (2.0f + f);
    const float z = s * s;
    float r = 2.222222222e-1f;
    r = r * z + 2.857142857e-1f;
    r = r * z + 4.000000000e-1f;
    r = r * z + 6.666666667e-1f;
    r = r * z;
    return (float)e * 0.693359375f + ((f - s * (f - r)) + (float)e * -2.12194440e-4f);
}
