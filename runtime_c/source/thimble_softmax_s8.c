/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_softmax.h"

#define SUM_INTEGER_BITS 12

static int32_t high_mul(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b + (1 << 30)) >> 31);
}

/* 1 / (1 + x) in Q0.31 for x in [0, 1) in Q0.31, by three steps of Newton's method in Q2.29
 * (gemmlowp `one_over_one_plus_x_for_x_in_0_1`). */
static int32_t reciprocal_of_one_plus(int32_t x)
{
    const int32_t half_denominator = (int32_t)(((uint32_t)x + 0x80000000u) >> 1);
    int32_t guess = 1515870810 + high_mul(half_denominator, -1010580540);
    for (int32_t step = 0; step < 3; step++) {
        const int32_t residue = (1 << 29) - high_mul(half_denominator, guess);
        guess += high_mul(guess, residue) * 4;
    }
    return guess < (1 << 30) ? guess * 2 : INT32_MAX;
}

/* Quotients of one row, the sum of whose exponentials is `sum` in Q12.19. */
static void divide(const int8_t *input,
                   int8_t *output,
                   int32_t columns,
                   int32_t max,
                   uint32_t sum,
                   const int32_t *exponentials,
                   int32_t entries)
{
    int32_t headroom = 0;
    while ((sum & 0x80000000u) == 0) {
        sum <<= 1;
        headroom++;
    }
    const int32_t reciprocal = reciprocal_of_one_plus((int32_t)(sum - 0x80000000u));
    const int32_t shift = SUM_INTEGER_BITS - headroom + 31 - 8;
    for (int32_t i = 0; i < columns; i++) {
        const int32_t difference = max - input[i];
        uint32_t quotient = 0;
        if (difference < entries) {
            const uint32_t fine = (uint32_t)high_mul(exponentials[difference], reciprocal);
            quotient = (fine + (1u << (shift - 1))) >> shift;
        }
        output[i] = (int8_t)((int32_t)(quotient < 255 ? quotient : 255) - 128);
    }
}

/*
 * TFLite's fixed-point softmax (`reference_ops::Softmax`) with the exponential of every possible
 * difference from the maximum computed beforehand. Where the sum reaches 512, every quotient is
 * below half a unit and rounds to 0.
 */
void thimble_softmax_s8(const int8_t *input,
                        int8_t *output,
                        int32_t rows,
                        int32_t columns,
                        const int32_t *exponentials,
                        int32_t entries)
{
    for (int32_t row = 0; row < rows; row++) {
        int32_t max = INT8_MIN;
        for (int32_t i = 0; i < columns; i++) {
            max = input[i] > max ? input[i] : max;
        }
        uint64_t sum = 0;
        for (int32_t i = 0; i < columns; i++) {
            const int32_t difference = max - input[i];
            if (difference < entries) {
                sum +=
                    ((uint32_t)exponentials[difference] + (1u << (SUM_INTEGER_BITS - 1))) >> SUM_INTEGER_BITS;
            }
        }
        if (sum < (uint64_t)1 << 28) {
            divide(input, output, columns, max, (uint32_t)sum, exponentials, entries);
        } else {
            for (int32_t i = 0; i < columns; i++) {
                output[i] = INT8_MIN;
            }
        }
        input += columns;
        output += columns;
    }
}
