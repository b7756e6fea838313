/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fixed_s16.h"

int32_t thimble_logistic_s16(int32_t x)
{
    int32_t positive;

    if (x == 0) {
        return 1 << 14;
    }
    positive = thimble_reciprocal_s16(thimble_exp_s16(x > 0 ? -x : x, 3));
    positive = thimble_saturate_s16(positive * 2);
    return x > 0 ? positive : INT16_MAX - positive;
}
