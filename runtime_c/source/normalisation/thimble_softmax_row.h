/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of TFLite's fixed-point softmax (`reference_ops::Softmax`) that its kernels share, with the
 * exponential of every possible difference from a row's maximum computed beforehand.
 */
#ifndef THIMBLE_SOFTMAX_ROW_H
#define THIMBLE_SOFTMAX_ROW_H

#include <stdint.h>

#define THIMBLE_SOFTMAX_SUM_BITS 12

/** `exponentials` in Q0.31 of differences below `entries`, and a row's largest element. */
typedef struct {
    const int32_t *exponentials;
    int32_t entries;
    int32_t max;
} thimble_softmax_row;

static inline int32_t thimble_softmax_high_mul(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

static inline int32_t thimble_softmax_max(const int8_t *input, int32_t columns)
{
    int32_t max = INT8_MIN;
    for (int32_t i = 0; i < columns; i++) {
        max = input[i] > max ? input[i] : max;
    }
    return max;
}

/* The sum of a row's exponentials in Q12.19. */
static inline uint64_t
thimble_softmax_sum(const thimble_softmax_row *row, const int8_t *input, int32_t columns)
{
    uint64_t sum = 0;
    for (int32_t i = 0; i < columns; i++) {
        const int32_t difference = row->max - input[i];
        if (difference < row->entries) {
            sum += ((uint32_t)row->exponentials[difference] + (1u << (THIMBLE_SOFTMAX_SUM_BITS - 1))) >>
                   THIMBLE_SOFTMAX_SUM_BITS;
        }
    }
    return sum;
}

/* 1 / sum in Q0.31, over 2^(12 - headroom); three steps of Newton's method in Q2.29 (gemmlowp
 * `one_over_one_plus_x_for_x_in_0_1`). */
static inline int32_t thimble_softmax_reciprocal(uint32_t sum, int32_t *headroom)
{
    *headroom = 0;
    while ((sum & 0x80000000u) == 0) {
        sum <<= 1;
        (*headroom)++;
    }
    const int32_t half_denominator = (int32_t)(((uint64_t)sum) >> 1);
    int32_t guess = 1515870810 + thimble_softmax_high_mul(half_denominator, -1010580540);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t residue = (1 << 29) - thimble_softmax_high_mul(half_denominator, guess);
        guess += thimble_softmax_high_mul(guess, residue) * 4;
    }
    return guess < (1 << 30) ? guess * 2 : INT32_MAX;
}

/* One quotient, rounded to `bits` fraction bits; 2^bits - 1 at most. */
static inline int32_t thimble_softmax_quotient(
    const thimble_softmax_row *row, int32_t input, int32_t reciprocal, int32_t headroom, int32_t bits)
{
    const int32_t shift = THIMBLE_SOFTMAX_SUM_BITS - headroom + 31 - bits;
    const int32_t difference = row->max - input;
    const uint32_t largest = (1u << bits) - 1u;
    if (difference >= row->entries) {
        return 0;
    }
    const uint32_t fine = (uint32_t)thimble_softmax_high_mul(row->exponentials[difference], reciprocal);
    const uint32_t quotient = (fine + (1u << (shift - 1))) >> shift;
    return (int32_t)(quotient < largest ? quotient : largest);
}

#endif
