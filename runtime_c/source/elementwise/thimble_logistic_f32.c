/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* With LiteRT's bounds, beyond which it takes the limit of the function. */
THIMBLE_EXACT_FLOAT float thimble_logistic_f32(float x)
{
    if (x > 16.619047164916992f) {
        return 1.0f;
    }
    return x < -9.0f ? thimble_exp_f32(x) : 1.0f / (1.0f + thimble_exp_f32(-x));
}
