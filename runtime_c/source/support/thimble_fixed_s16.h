/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemmlowp's int16 fixed point (fixedpoint.h), bit for bit: what LiteRT's recurrent kernels compute
 * their gates with. A number with n integer bits is raw / 2^(15 - n); Q0.15 has none.
 */
#ifndef THIMBLE_FIXED_S16_H
#define THIMBLE_FIXED_S16_H

#include "thimble_lanes.h"

#include <stdint.h>

/* a * b / 2^15, halves up. Not both may be INT16_MIN. */
static inline int32_t thimble_product_s16(int32_t a, int32_t b)
{
    return (a * b + (1 << 14)) >> 15;
}

static inline int32_t thimble_saturate_s16(int32_t x)
{
    return x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x;
}

/* x / 2^exponent, halves away from zero; exponent from 1 to 30. */
static inline int32_t thimble_divide_s32(int32_t x, int32_t exponent)
{
    return (x + (1 << (exponent - 1)) - (x < 0)) >> exponent;
}

/* `result` times `factor` where `bit` of `whole` is set. */
static inline int32_t thimble_exp_step_s16(int32_t result, int32_t whole, int32_t bit, int32_t factor)
{
    return ((whole >> bit) & 1) != 0 ? thimble_product_s16(result, factor) : result;
}

/*
 * exp(a), Q0.15, for a < 0 with `integer_bits` integer bits (1 to 7): a Taylor expansion around -1/8 for
 * the part below a quarter, times exp of each power of two above.
 */
static inline int32_t thimble_exp_s16(int32_t a, int32_t integer_bits)
{
    const int32_t one_third = 10923;
    const int32_t exp_of_minus_eighth = 28918;
    const int32_t quarter = 1 << (13 - integer_bits);
    const int32_t rest = (a & (quarter - 1)) - quarter;
    const int32_t x = rest * (1 << integer_bits) + (1 << 12);
    const int32_t x2 = thimble_product_s16(x, x);
    const int32_t x3 = thimble_product_s16(x2, x);
    const int32_t x4 = thimble_product_s16(x2, x2);
    const int32_t high = thimble_product_s16(((x4 + 2) >> 2) + x3, one_third);
    const int32_t series = x + ((high + x2 + 1) >> 1);
    const int32_t whole = (rest - a) >> (13 - integer_bits);
    int32_t result = exp_of_minus_eighth + thimble_product_s16(series, exp_of_minus_eighth);

    if (integer_bits > 5 && a < -(1 << (20 - integer_bits))) {
        return 0;
    }
    result = thimble_exp_step_s16(result, whole, 0, 25520);
    result = thimble_exp_step_s16(result, whole, 1, 19875);
    result = thimble_exp_step_s16(result, whole, 2, 12055);
    result = thimble_exp_step_s16(result, whole, 3, 4435);
    result = thimble_exp_step_s16(result, whole, 4, 600);
    result = thimble_exp_step_s16(result, whole, 5, 11);
    return (whole & 64) != 0 ? 0 : result;
}

/* 2 / (1 + a) with 2 integer bits, for a from 0 to 1 in Q0.15: three steps of Newton and Raphson from the
 * best linear guess, 48/17 - 32/17 (1 + a) / 2. */
static inline int32_t thimble_reciprocal_s16(int32_t a)
{
    const int32_t half = (a + INT16_MAX + 1) >> 1;
    int32_t x = 23130 + thimble_product_s16(half, -15420);

    for (int32_t i = 0; i < 3; i++) {
        x += 4 * thimble_product_s16(x, (1 << 13) - thimble_product_s16(half, x));
    }
    return x;
}

#if THIMBLE_MVE
/* The same of four numbers each, in vectors. */
static inline int32x4_t thimble_products_s16(int32x4_t a, int32x4_t b)
{
    return vrshrq_n_s32(vmulq_s32(a, b), 15);
}

static inline int32x4_t thimble_times_s16(int32x4_t a, int32_t b)
{
    return vrshrq_n_s32(vmulq_n_s32(a, b), 15);
}

/* Results times `factor` where `top` of `wholes`, a number of places from the top, is set. Shifts, as GCC 12
 * does not compile vectors ANDed with a constant. */
static inline int32x4_t
thimble_exp_steps_s16(int32x4_t results, int32x4_t wholes, int32_t top, int32_t factor)
{
    const mve_pred16_t set = vcmpltq_n_s32(vshlq_r_s32(wholes, top), 0);
    return vpselq_s32(thimble_times_s16(results, factor), results, set);
}

static inline int32x4_t thimble_exps_s16(int32x4_t a, int32_t integer_bits)
{
    const int32_t exp_of_minus_eighth = 28918, quarter = 1 << (13 - integer_bits);
    const uint32x4_t below = vshlq_r_u32(vreinterpretq_u32_s32(a), integer_bits + 19);
    const int32x4_t part = vreinterpretq_s32_u32(vshlq_r_u32(below, -19 - integer_bits));
    const int32x4_t rest = vsubq_n_s32(part, quarter);
    const int32x4_t x = vaddq_n_s32(vshlq_r_s32(rest, integer_bits), 1 << 12);
    const int32x4_t x2 = thimble_products_s16(x, x);
    const int32x4_t x3 = thimble_products_s16(x2, x);
    const int32x4_t x4 = thimble_products_s16(x2, x2);
    const int32x4_t high = thimble_times_s16(vaddq_s32(vrshrq_n_s32(x4, 2), x3), 10923);
    const int32x4_t series = vaddq_s32(x, vrshrq_n_s32(vaddq_s32(high, x2), 1));
    const int32x4_t wholes = vshlq_r_s32(vsubq_s32(rest, a), integer_bits - 13);
    int32x4_t results = vaddq_n_s32(thimble_times_s16(series, exp_of_minus_eighth), exp_of_minus_eighth);

    results = thimble_exp_steps_s16(results, wholes, 31, 25520);
    results = thimble_exp_steps_s16(results, wholes, 30, 19875);
    results = thimble_exp_steps_s16(results, wholes, 29, 12055);
    results = thimble_exp_steps_s16(results, wholes, 28, 4435);
    results = thimble_exp_steps_s16(results, wholes, 27, 600);
    results = thimble_exp_steps_s16(results, wholes, 26, 11);
    mve_pred16_t none = vcmpltq_n_s32(vshlq_n_s32(wholes, 25), 0);
    if (integer_bits > 5) {
        none |= vcmpltq_n_s32(a, -(1 << (20 - integer_bits)));
    }
    return vpselq_s32(vdupq_n_s32(0), results, none);
}

static inline int32x4_t thimble_reciprocals_s16(int32x4_t a)
{
    const int32x4_t halves = vshrq_n_s32(vaddq_n_s32(a, INT16_MAX + 1), 1);
    int32x4_t x = vaddq_n_s32(thimble_times_s16(halves, -15420), 23130);
    for (int32_t i = 0; i < 3; i++) {
        const int32x4_t lacking = vsubq_s32(vdupq_n_s32(1 << 13), thimble_products_s16(halves, x));
        x = vaddq_s32(x, vshlq_n_s32(thimble_products_s16(x, lacking), 2));
    }
    return x;
}

/* Within int16. */
static inline int32x4_t thimble_saturated_s16(int32x4_t x)
{
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT16_MIN)), vdupq_n_s32(INT16_MAX));
}

static inline int32x4_t thimble_logistics_s16(int32x4_t x)
{
    const int32x4_t exps = thimble_exps_s16(vnegq_s32(vabsq_s32(x)), 3);
    const int32x4_t positive = thimble_saturated_s16(vshlq_n_s32(thimble_reciprocals_s16(exps), 1));
    const int32x4_t negative = vsubq_s32(vdupq_n_s32(INT16_MAX), positive);
    const int32x4_t found = vpselq_s32(positive, negative, vcmpgtq_n_s32(x, 0));
    return vpselq_s32(vdupq_n_s32(1 << 14), found, vcmpeqq_n_s32(x, 0));
}

static inline int32x4_t thimble_tanhs_s16(int32x4_t x, int32_t integer_bits)
{
    const int32x4_t exps = thimble_exps_s16(vnegq_s32(vabsq_s32(x)), integer_bits + 1);
    const int32x4_t less = vsubq_n_s32(thimble_reciprocals_s16(exps), 1 << 13);
    const int32x4_t magnitude = thimble_saturated_s16(vshlq_n_s32(less, 2));
    const int32x4_t found = vpselq_s32(magnitude, vnegq_s32(magnitude), vcmpgtq_n_s32(x, 0));
    return vpselq_s32(vdupq_n_s32(0), found, vcmpeqq_n_s32(x, 0));
}
#endif

/* 1 / (1 + exp(-x)) in Q0.15, for x with 3 integer bits. */
int32_t thimble_logistic_s16(int32_t x);

/* tanh(x) in Q0.15, for x with `integer_bits` integer bits (0 to 6). */
int32_t thimble_tanh_s16(int32_t x, int32_t integer_bits);

#endif
