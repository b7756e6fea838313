/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_boxes.h"

#include <string.h>

/* 2^n for n from -1022 to 1023. */
static double power_of_two(int32_t n)
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double power;
    (void)memcpy(&power, &bits, sizeof(power));
    return power;
}

/* 2^n exp(r) with |r| below log(2) / 2, exp(r) as its Taylor series. log(2) is taken away in two parts, of
 * which the first has 32 bits, so that n times it is exact. */
THIMBLE_EXACT_FLOAT double thimble_exp_f64(double x)
{
    static const double series[] = {
        1.0 / 6227020800.0,
        1.0 / 479001600.0,
        1.0 / 39916800.0,
        1.0 / 3628800.0,
        1.0 / 362880.0,
        1.0 / 40320.0,
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    };
    if (!(x <= 709.0)) {
        return x > 0.0 ? 1.0e300 * 1.0e300 : x;
    }
    if (x < -708.0) {
        return 0.0;
    }
    const double round = 6755399441055744.0; /* 1.5 * 2^52 */
    const double whole = (x * 1.4426950408889634 + round) - round;
    const int32_t n = (int32_t)whole;
    const double r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10;
    double p = series[0];
    for (int32_t i = 1; i < (int32_t)(sizeof(series) / sizeof(series[0])); i++) {
        p = p * r + series[i];
    }
    const int32_t half = n >> 1;
    return p * power_of_two(half) * power_of_two(n - half);
}
