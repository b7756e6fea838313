/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* Near 0 a Pade approximation, elsewhere 1 - 2 / (exp(2 x) + 1). */
THIMBLE_EXACT_FLOAT float thimble_tanh_f32(float x)
{
    const float a = x < 0.0f ? -x : x;
    if (!(a >= 0.625f)) {
        const float z = x * x;
        const float top = ((z + 378.0f) * z + 17325.0f) * z + 135135.0f;
        const float bottom = ((28.0f * z + 3150.0f) * z + 62370.0f) * z + 135135.0f;
        return x * top / bottom;
    }
    const float t = a > 9.1f ? 1.0f : 1.0f - 2.0f / (thimble_exp_f32(2.0f * a) + 1.0f);
    return x < 0.0f ? -t : t;
}
