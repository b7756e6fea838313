/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <string.h>

/* 2^n for n from -126 to 127. */
static float power_of_two(int32_t n)
{
    const uint32_t bits = (uint32_t)(n + 127) << 23;
    float power;
    (void)memcpy(&power, &bits, sizeof(power));
    return power;
}

/* 2^n exp(r) with |r| below log(2) / 2, exp(r) as its Taylor series. log(2) is taken away in two parts, of
 * which the first has 9 bits, so that n times it is exact. */
THIMBLE_EXACT_FLOAT float thimble_exp_f32(float x)
{
    if (!(x <= 88.72283f)) {
        return x > 0.0f ? 3.402823466e38f * 2.0f : x;
    }
    if (x < -87.33654f) {
        return 0.0f;
    }
    const float whole = (x * 1.442695041f + 12582912.0f) - 12582912.0f;
    const int32_t n = (int32_t)whole;
    const int32_t half = n >> 1;
    const float r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
    float p = 1.984126984e-4f;
    p = p * r + 1.388888889e-3f;
    p = p * r + 8.333333333e-3f;
    p = p * r + 4.166666667e-2f;
    p = p * r + 1.666666667e-1f;
    p = p * r + 0.5f;
    p = (p * (r * r) + r) + 1.0f;
    return p * power_of_two(half) * power_of_two(n - half);
}
