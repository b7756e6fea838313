/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of integers, by a reciprocal in fixed point. */
#ifndef THIMBLE_QUOTIENT_H
#define THIMBLE_QUOTIENT_H

#include "thimble_elementwise.h"
#include "thimble_multiplier.h"

/* Redundant sign bits: how far a number may be shifted up. */
static inline int32_t thimble_headroom(int32_t value)
{
    const uint32_t magnitude = (uint32_t)(value < 0 ? ~value : value);
    return magnitude == 0U ? 31 : (int32_t)__builtin_clz(magnitude) - 1;
}

static inline int32_t thimble_held(int64_t value)
{
    return (int32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
}

/* 1 / (1 + x) for x in [0, 1) as Q0.31: three Newton steps (gemmlowp). */
static inline int32_t thimble_inverse_of_one_plus(int32_t x)
{
    const int32_t half_denominator = (int32_t)(((int64_t)x + INT32_MAX + 1) / 2);
    int32_t inverse = 1515870810 + thimble_high_product(half_denominator, -1010580540);
    for (int32_t i = 0; i < 3; i++) {
        const int32_t rest = (1 << 29) - thimble_high_product(half_denominator, inverse);
        const int64_t step = (int64_t)thimble_high_product(inverse, rest) * 4;
        inverse = thimble_held((int64_t)inverse + thimble_held(step));
    }
    return thimble_held((int64_t)inverse * 2);
}

/* dividend / divisor with the reciprocal in fixed point (TFLite `DivElementwise`, gemmlowp). */
static inline int32_t thimble_quotient(int32_t dividend, int32_t divisor, const thimble_div_params *p)
{
    const int32_t leading = (int32_t)__builtin_clz((uint32_t)divisor);
    const int32_t above_one = (int32_t)(((uint32_t)divisor << leading) - (1U << 31));
    const int32_t inverse = thimble_inverse_of_one_plus(above_one);
    const int32_t headroom = thimble_headroom(dividend);
    const int32_t shifted = (int32_t)((uint32_t)dividend << headroom);
    const int32_t ratio = thimble_high_product(shifted, inverse);
    const int32_t product = thimble_high_product(ratio, p->multiplier);
    const int32_t right = 31 - leading + headroom - p->shift;
    if (right > 31 && p->wraps == 0) {
        return 0;
    }
    if (right > 31) { /* what x86, and so the reference, makes of it */
        return (product >> (right & 31)) + (product >= 0 ? 1 : 0);
    }
    const int64_t mask = ((int64_t)1 << right) - 1;
    const int64_t half = (mask >> 1) + (product < 0 ? 1 : 0);
    return (product >> right) + ((product & mask) > half ? 1 : 0);
}

#endif
