/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fixed_s16.h"

int32_t thimble_tanh_s16(int32_t x, int32_t integer_bits)
{
    int32_t magnitude;

    if (x == 0) {
        return 0;
    }
    /* (1 - exp(-2x)) / (1 + exp(-2x)): one integer bit more doubles x. */
    magnitude = thimble_reciprocal_s16(thimble_exp_s16(x > 0 ? -x : x, integer_bits + 1)) - (1 << 13);
    magnitude = thimble_saturate_s16(magnitude * 4);
    return x > 0 ? magnitude : -magnitude;
}
