/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"

#include <string.h>

#if defined(__ARM_FP) && (__ARM_FP & 4)
float thimble_sqrt_f32(float x)
{
    float root;
    __asm("vsqrt.f32 %0, %1" : "=t"(root) : "t"(x));
    return root;
}
#else
/* Digit by digit on the bits, then rounded to nearest: what a floating-point unit gives. */
float thimble_sqrt_f32(float x)
{
    uint32_t bits;
    int32_t exponent;

    if (!(x > 0.0f) || x > 3.402823466e38f) {
        const float zero = x - x;
        return x < 0.0f ? zero / zero : x;
    }
    const int32_t tiny = x < 1.175494351e-38f;
    x = tiny ? x * 16777216.0f : x;
    (void)memcpy(&bits, &x, sizeof(bits));
    exponent = (int32_t)(bits >> 23) - 127;
    uint64_t rest = (uint64_t)((bits & 0x7FFFFFu) | 0x800000u) << (exponent & 1 ? 26 : 25);
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 24; bit > 0; bit >>= 1) {
        const uint64_t next = (root << 1 | bit) * bit;
        if (next <= rest) {
            rest -= next;
            root |= bit;
        }
    }
    bits = (uint32_t)((root + 1) >> 1); /* 25 bits, of which the last decides: no square root is a half */
    bits += (uint32_t)((exponent >> 1) + 126) << 23;
    float result;
    (void)memcpy(&result, &bits, sizeof(result));
    return tiny ? result * 0.000244140625f : result;
}
#endif
