/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"

#include <stdbool.h>

/* The product in `result`; false if int32_t does not hold it. */
static bool multiplied(int32_t a, int32_t b, int32_t *result)
{
    const int64_t product = (int64_t)a * b;

    *result = (int32_t)product;
    return product >= INT32_MIN && product <= INT32_MAX;
}

/* By squaring: a square is needed, and must be held, while bits of the exponent are left. */
int32_t thimble_pow_s32(int32_t base, int32_t exponent)
{
    int32_t result = 1;
    int32_t square = base;

    for (int32_t rest = exponent; rest > 0; rest /= 2) {
        if (rest % 2 != 0 && !multiplied(result, square, &result)) {
            return INT32_MIN;
        }
        if (rest > 1 && !multiplied(square, square, &square)) {
            return INT32_MIN;
        }
    }
    return result;
}
