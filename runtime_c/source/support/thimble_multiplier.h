/* SPDX-License-Identifier: Apache-2.0 */
/* Products with TFLite's multipliers, fractions in Q0.31 with a shift. */
#ifndef THIMBLE_MULTIPLIER_H
#define THIMBLE_MULTIPLIER_H

#include <stdint.h>

/* a * b / 2^31, halves away from zero; the one product that int32_t does not hold saturates (gemmlowp's
 * `SaturatingRoundingDoublingHighMul`). */
static inline int32_t thimble_high_product(int32_t a, int32_t b)
{
    const int64_t half = (a < 0) != (b < 0) ? 1 - ((int64_t)1 << 30) : (int64_t)1 << 30;
    const int64_t product = (half + (int64_t)a * b) / ((int64_t)1 << 31);
    return product > INT32_MAX ? INT32_MAX : (int32_t)product;
}

/* x * multiplier * 2^(shift - 31), rounded twice, halves away from zero the second time (TFLite's
 * `MultiplyByQuantizedMultiplier`); x << shift wraps. */
static inline int32_t thimble_scaled(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    const int32_t shifted = (int32_t)((uint32_t)x << left);
    const int32_t high = (int32_t)(((int64_t)shifted * multiplier + ((int64_t)1 << 30)) >> 31);
    const int32_t mask = (int32_t)((1u << right) - 1u);
    const int32_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
    return (high >> right) + ((high & mask) > threshold ? 1 : 0);
}

/* x + offset, which wraps as TFLite's sums of int32 do. */
static inline int32_t thimble_moved(int32_t x, int32_t offset)
{
    return (int32_t)((uint32_t)x + (uint32_t)offset);
}

/* The upper 16 bits of a multiplier in Q0.31, rounded. */
static inline int32_t thimble_multiplier_s16(int32_t multiplier)
{
    return multiplier < 0x7FFF0000 ? (multiplier + (1 << 15)) >> 16 : 0x7FFF;
}

/* sum * multiplier * 2^(shift - 15), halves up, which wraps to int32 (TFLite's
 * `MultiplyByQuantizedMultiplier` of int64); the multiplier is one of `thimble_multiplier_s16`, and the shift
 * at most 14. */
static inline int32_t thimble_scaled_s64(int64_t sum, int32_t multiplier, int32_t shift)
{
    const int64_t doubled = sum * multiplier >> (14 - shift);
    return (int32_t)((doubled + 1) >> 1);
}

#endif
