/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of one int8 operand, PReLU, and conversions between int8 or uint8 and float.
 *
 * Every kernel takes `size` contiguous elements, in ascending order, and reads element i before it writes
 * element i: the output may begin at or below an input whose elements have the same size.
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

/** output[i] = table[input[i]]; the table holds the results of 0 to 127, then of -128 to -1. */
void thimble_lookup_s8(const int8_t *input, int8_t *output, int32_t size, const int8_t table[256]);

/** Another scale and zero point, or an activation that clamps: see thimble_rescale_params. */
void thimble_rescale_s8(const int8_t *input,
                        int8_t *output,
                        int32_t size,
                        const thimble_rescale_params *params);

/** PReLU: negative inputs are multiplied by `alpha`, see thimble_prelu_params. A step is 1 if the operand
 * advances with the output, 0 if one element of it serves all. */
void thimble_prelu_s8(const int8_t *input,
                      int32_t step_input,
                      const int8_t *alpha,
                      int32_t step_alpha,
                      int8_t *output,
                      int32_t size,
                      const thimble_prelu_params *params);

/** output = round(input / scale) + zero_point, halves away from zero, saturated (TFLite `AffineQuantize`);
 * NaN gives zero_point. */
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
