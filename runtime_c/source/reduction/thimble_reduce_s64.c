/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_reduce.h"

static uint64_t joined(thimble_reduction reduction, uint64_t a, int64_t b)
{
    if (reduction == THIMBLE_MAXIMUM) {
        return (uint64_t)((int64_t)a > b ? (int64_t)a : b);
    }
    if (reduction == THIMBLE_MINIMUM) {
        return (uint64_t)((int64_t)a < b ? (int64_t)a : b);
    }
    return reduction == THIMBLE_PRODUCT ? a * (uint64_t)b : a + (uint64_t)b;
}

static int64_t reduced(const thimble_reduce_params *p, const int64_t *from)
{
    const int32_t block = p->middle * p->second * p->inner;
    const int64_t unit = p->reduction == THIMBLE_PRODUCT ? 1 : 0;
    const int32_t extreme = p->reduction == THIMBLE_MAXIMUM || p->reduction == THIMBLE_MINIMUM;
    uint64_t found = (uint64_t)(extreme != 0 ? *from : unit);

    for (int32_t first = 0; first < p->first; first++) {
        for (int32_t second = 0; second < p->second; second++) {
            found = joined(p->reduction, found, from[first * block + second * p->inner]);
        }
    }
    return p->reduction == THIMBLE_MEAN ? (int64_t)found / ((int64_t)p->first * p->second) : (int64_t)found;
}

void thimble_reduce_s64(const thimble_reduce_params *params, const int64_t *input, int64_t *output)
{
    const int32_t row = params->second * params->inner;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t middle = 0; middle < params->middle; middle++) {
            for (int32_t inner = 0; inner < params->inner; inner++) {
                *output++ = reduced(params, &input[middle * row + inner]);
            }
        }
        input += params->first * params->middle * row;
    }
}
