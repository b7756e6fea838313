/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_reduce.h"

static float joined(thimble_reduction reduction, float a, float b)
{
    if (reduction == THIMBLE_MAXIMUM) {
        return thimble_max_f32(b, a);
    }
    if (reduction == THIMBLE_PRODUCT) {
        return a * b;
    }
    return reduction == THIMBLE_MINIMUM ? thimble_min_f32(b, a) : a + b;
}

/* NaN is passed over, and no result lies beyond the largest number. */
static float start(thimble_reduction reduction)
{
    const float largest = 3.402823466e38f;
    if (reduction == THIMBLE_MAXIMUM) {
        return -largest;
    }
    if (reduction == THIMBLE_PRODUCT) {
        return 1.0f;
    }
    return reduction == THIMBLE_MINIMUM ? largest : 0.0f;
}

THIMBLE_EXACT_FLOAT void
thimble_reduce_f32(const thimble_reduce_params *params, const float *input, float *output)
{
    const thimble_reduce_params p = *params;
    const float count = (float)(p.first * p.second);
    const int32_t block = p.middle * p.second * p.inner;

    for (int32_t outer = 0; outer < p.outer; outer++, input += p.first * block) {
        for (int32_t middle = 0; middle < p.middle; middle++) {
            for (int32_t inner = 0; inner < p.inner; inner++) {
                const float *from = input + middle * p.second * p.inner + inner;
                float found = start(p.reduction);
                for (int32_t first = 0; first < p.first; first++) {
                    for (int32_t second = 0; second < p.second; second++) {
                        found = joined(p.reduction, found, from[first * block + second * p.inner]);
                    }
                }
                *output++ = p.reduction == THIMBLE_MEAN ? found / count : found;
            }
        }
    }
}
