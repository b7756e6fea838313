/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on two int8 operands.
 *
 * Every kernel works on one run of `size` contiguous elements; generated C loops over the outer dimensions of
 * a broadcast. A step is 1 if the operand advances with the output, 0 if one element of it serves the whole
 * run. Kernels read element i before they write element i, in ascending order: the output may begin at or
 * below an operand whose step is 1.
 */
#ifndef THIMBLE_ELEMENTWISE_H
#define THIMBLE_ELEMENTWISE_H

#include <stdint.h>

/** v = factor_1 * a + factor_2 * b + bias, plus negative_bias where that is negative;
 *  out = clamp((v + rounding) >> shift, min, max). No sum may overflow. A negative_bias of 0, with
 *  the rounding in the bias, is the fast case. */
typedef struct {
    int32_t factor_1;
    int32_t factor_2;
    int32_t bias;
    int32_t negative_bias;
    int32_t rounding;
    int32_t shift;
    int32_t min;
    int32_t max;
} thimble_weighted_sum_params;

/** TFLite's addition (sign_2 = 1) and subtraction (sign_2 = -1), spelt out step by step. */
typedef struct {
    int32_t offset_1;
    int32_t multiplier_1;
    int32_t shift_1;
    int32_t offset_2;
    int32_t multiplier_2;
    int32_t shift_2;
    int32_t sign_2;
    int32_t left_shift;
    int32_t output_offset;
    int32_t output_multiplier;
    int32_t output_shift;
    int32_t min;
    int32_t max;
} thimble_add_params;

/** h = the high word of (a * factor_1 + offset_1) * (b + offset_2) * multiplier, plus negative_bias
 *  where that is negative; out = clamp((h + bias) >> shift, min, max). The product of 32 bits wraps. */
typedef struct {
    int32_t factor_1;
    int32_t offset_1;
    int32_t offset_2;
    int32_t multiplier;
    int32_t bias;
    int32_t negative_bias;
    int32_t shift;
    int32_t min;
    int32_t max;
} thimble_mul_params;

/** TFLite's SquaredDifference: both operands at twice the larger scale, then squared. */
typedef struct {
    int32_t left_shift;
    int32_t output_offset;
    int32_t offset_1;
    int32_t multiplier_1;
    int32_t shift_1;
    int32_t offset_2;
    int32_t multiplier_2;
    int32_t shift_2;
    int32_t output_multiplier;
    int32_t output_shift;
} thimble_squared_difference_params;

/** out = clamp((a + offset_1) / (b + offset_2) * multiplier * 2^(shift - 31) + output_offset, min, max) */
typedef struct {
    int32_t offset_1;
    int32_t offset_2;
    int32_t output_offset;
    int32_t multiplier;
    int32_t shift;
    int32_t min;
    int32_t max;
    int32_t wraps; /**< 1: quotients too small to shift down come out as x86 makes them; 0: as 0 */
} thimble_div_params;

/** Addition or subtraction as one sum of two products: see thimble_weighted_sum_params. */
void thimble_weighted_sum_s8(const int8_t *input_1,
                             int32_t step_1,
                             const int8_t *input_2,
                             int32_t step_2,
                             int8_t *output,
                             int32_t size,
                             const thimble_weighted_sum_params *params);

/** Addition or subtraction with all roundings of TFLite: see thimble_add_params. */
void thimble_add_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_add_params *params);

/** Multiplication: see thimble_mul_params. */
void thimble_mul_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_mul_params *params);

/** The base to a power of 0 or more; INT32_MIN where int32_t does not hold it (LiteRT's Pow, by a double). */
int32_t thimble_pow_s32(int32_t base, int32_t exponent);

/** The same, but that products wrap (LiteRT's `IntegerExponentPow`). */
int32_t thimble_pow_wrapped_s32(int32_t base, int32_t exponent);

/** (a - b)^2: see thimble_squared_difference_params. */
void thimble_squared_difference_s8(const int8_t *input_1,
                                   int32_t step_1,
                                   const int8_t *input_2,
                                   int32_t step_2,
                                   int8_t *output,
                                   int32_t size,
                                   const thimble_squared_difference_params *params);

/** Division: see thimble_div_params. */
void thimble_div_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_div_params *params);

void thimble_div_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_div_params *params);

/** The smaller of a and b, which have the scale and zero point of the output. */
void thimble_minimum_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        int8_t *output,
                        int32_t size);

/** The larger of a and b, which have the scale and zero point of the output. */
void thimble_maximum_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        int8_t *output,
                        int32_t size);

/** Sums of two runs of plain integers, which wrap. The output may be either. */
void thimble_add_values_s32(const int32_t *first, const int32_t *second, int32_t *output, int32_t size);

#endif
