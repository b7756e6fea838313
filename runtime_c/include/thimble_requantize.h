/* SPDX-License-Identifier: Apache-2.0 */
/* Between integers of 8, 16 and 32 bits (TFLite `Requantize`). Ascending: an output of elements no wider than
 * the input's may begin at or below it. */
#ifndef THIMBLE_REQUANTIZE_H
#define THIMBLE_REQUANTIZE_H

#include <stdint.h>

/** (in + input_offset) * multiplier * 2^(shift - 31) + output_offset, within min and max. */
typedef struct {
    int32_t input_offset;
    int32_t multiplier;
    int32_t shift;
    int32_t output_offset;
    int32_t min;
    int32_t max;
} thimble_requantize_params;

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

/* One value; sums of int32 wrap. */
static inline int32_t thimble_requantized(int32_t x, const thimble_requantize_params *p)
{
    const int32_t centred = (int32_t)((uint32_t)x + (uint32_t)p->input_offset);
    const int32_t scaled = thimble_scaled(centred, p->multiplier, p->shift);
    const int32_t moved = (int32_t)((uint32_t)scaled + (uint32_t)p->output_offset);
    return moved < p->min ? p->min : moved > p->max ? p->max : moved;
}

void thimble_requantize_s8_s16(const int8_t *input,
                               int16_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_u8_s16(const uint8_t *input,
                               int16_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s8_s32(const int8_t *input,
                               int32_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s16_s8(const int16_t *input,
                               int8_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s16_s16(const int16_t *input,
                                int16_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s16_s32(const int16_t *input,
                                int32_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s32_s8(const int32_t *input,
                               int8_t *output,
                               int32_t size,
                               const thimble_requantize_params *params);

void thimble_requantize_s32_s16(const int32_t *input,
                                int16_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

void thimble_requantize_s32_s32(const int32_t *input,
                                int32_t *output,
                                int32_t size,
                                const thimble_requantize_params *params);

#endif
