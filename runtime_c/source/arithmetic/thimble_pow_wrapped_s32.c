/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"

int32_t thimble_pow_wrapped_s32(int32_t base, int32_t exponent)
{
    uint32_t result = 1;
    uint32_t square = (uint32_t)base;

    for (int32_t rest = exponent; rest > 0; rest /= 2) {
        result *= rest % 2 != 0 ? square : 1U;
        square *= square;
    }
    return (int32_t)result;
}
