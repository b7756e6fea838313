/* SPDX-License-Identifier: Apache-2.0
 *
 * Thimble: functions of one operand, PReLU, and conversions to and from float.
 *
 * Kernels read element i before they write element i, in ascending order: the output may begin at,
 * or anywhere below, an input of the same element size.
 */
#ifndef THIMBLE_ACTIVATION_H
#define THIMBLE_ACTIVATION_H

#include <stdint.h>

/** out = clamp((factor * x + bias) >> shift, min, max); no sum may overflow. */
typedef struct {
    int32_t factor;
    int32_t bias;
    int32_t shift;
    int32_t min;
    int32_t max;
} thimble_rescale_params;

/** x = input + input_offset.
 *  Where x >= 0: h = high word of x * factor * multiplier; out = saturate((h + bias) >> shift).
 *  Elsewhere: h = high word of x * alpha_factor * (alpha + alpha_offset) * alpha_multiplier, plus
 *  alpha_negative_bias where that is negative; out = saturate((h + alpha_bias) >> alpha_shift).
 *  No step may overflow. */
typedef struct {
    int32_t input_offset;
    int32_t factor;
    int32_t multiplier;
    int32_t bias;
    int32_t shift;
    int32_t alpha_offset;
    int32_t alpha_factor;
    int32_t alpha_multiplier;
    int32_t alpha_bias;
    int32_t alpha_negative_bias;
    int32_t alpha_shift;
} thimble_prelu_params;

/** output[i] = table[byte of input[i]]; int8 bytes count 0..127, -128..-1. */
void thimble_lookup_s8(const int8_t *input, int8_t *output, int32_t size, const int8_t table[256]);

void thimble_rescale_s8(const int8_t *input,
                        int8_t *output,
                        int32_t size,
                        const thimble_rescale_params *params);

/** Steps as in thimble_elementwise.h. */
void thimble_prelu_s8(const int8_t *input,
                      int32_t step_input,
                      const int8_t *alpha,
                      int32_t step_alpha,
                      int8_t *output,
                      int32_t size,
                      const thimble_prelu_params *params);

/** output = round(input / scale) + zero_point, halves away from zero, saturated; NaN gives zero_point. */
void thimble_quantize_f32_s8(
    const float *input, int8_t *output, int32_t size, float scale, int32_t zero_point);

void thimble_quantize_f32_u8(
    const float *input, uint8_t *output, int32_t size, float scale, int32_t zero_point);

/** output = scale * (input - zero_point). */
void thimble_dequantize_s8_f32(
    const int8_t *input, float *output, int32_t size, float scale, int32_t zero_point);

void thimble_dequantize_u8_f32(
    const uint8_t *input, float *output, int32_t size, float scale, int32_t zero_point);

#endif
