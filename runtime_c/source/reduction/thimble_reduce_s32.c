/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_reduce.h"

static uint32_t joined(thimble_reduction reduction, uint32_t a, int32_t b)
{
    if (reduction == THIMBLE_MAXIMUM) {
        return (uint32_t)((int32_t)a > b ? (int32_t)a : b);
    }
    if (reduction == THIMBLE_MINIMUM) {
        return (uint32_t)((int32_t)a < b ? (int32_t)a : b);
    }
    return reduction == THIMBLE_PRODUCT ? a * (uint32_t)b : a + (uint32_t)b;
}

/* The sum of a mean, which may need 64 bits. */
static int64_t total(const thimble_reduce_params *p, const int32_t *from)
{
    const int32_t block = p->middle * p->second * p->inner;
    int64_t sum = 0;

    for (int32_t first = 0; first < p->first; first++) {
        for (int32_t second = 0; second < p->second; second++) {
            sum += from[first * block + second * p->inner];
        }
    }
    return sum;
}

static int32_t reduced(const thimble_reduce_params *p, const int32_t *from)
{
    const int32_t block = p->middle * p->second * p->inner;
    const int32_t unit = p->reduction == THIMBLE_PRODUCT ? 1 : 0;
    const int32_t extreme = p->reduction == THIMBLE_MAXIMUM || p->reduction == THIMBLE_MINIMUM;
    uint32_t found = (uint32_t)(extreme != 0 ? *from : unit);

    if (p->reduction == THIMBLE_MEAN) {
        return (int32_t)(total(p, from) / (p->first * p->second));
    }
    for (int32_t first = 0; first < p->first; first++) {
        for (int32_t second = 0; second < p->second; second++) {
            found = joined(p->reduction, found, from[first * block + second * p->inner]);
        }
    }
    return (int32_t)found;
}

void thimble_reduce_s32(const thimble_reduce_params *params, const int32_t *input, int32_t *output)
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
