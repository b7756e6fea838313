/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemmlowp's int16 fixed point (fixedpoint.h), bit for bit: what LiteRT's recurrent kernels compute
 * their gates with. A number with n integer bits is raw / 2^(15 - n); Q0.15 has none.
 */
#ifndef THIMBLE_FIXED_S16_H
#define THIMBLE_FIXED_S16_H

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

/* 1 / (1 + exp(-x)) in Q0.15, for x with 3 integer bits. */
int32_t thimble_logistic_s16(int32_t x);

/* tanh(x) in Q0.15, for x with `integer_bits` integer bits (0 to 6). */
int32_t thimble_tanh_s16(int32_t x, int32_t integer_bits);

#endif
