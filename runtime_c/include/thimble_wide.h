/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of int16 activations (TFLite's 16x8 scheme). Zero points are 0. */
#ifndef THIMBLE_WIDE_H
#define THIMBLE_WIDE_H

#include "thimble_conv.h"

#include <stdint.h>

/** Both operands are shifted left, brought to a common scale, summed, and requantized to the output. */
typedef struct {
    int32_t left_shift;
    int32_t multiplier_1;
    int32_t shift_1;
    int32_t multiplier_2;
    int32_t shift_2;
    int32_t output_multiplier;
    int32_t output_shift;
    int32_t min;
    int32_t max;
} thimble_add_s16_params;

/** A factor, multiplier * 2^(shift - 31), and the output's range. */
typedef struct {
    int32_t multiplier;
    int32_t shift;
    int32_t min;
    int32_t max;
} thimble_mul_s16_params;

/** TFLite `reference_ops::Add`. A step is 1, or 0 where the operand stands still; in place if it moves. */
void thimble_add_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_add_s16_params *params);

/** TFLite `reference_integer_ops::Mul`; steps as above. */
void thimble_mul_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_mul_s16_params *params);

/** The larger, or the smaller, of each two; steps as above. */
void thimble_maximum_s16(const int16_t *input_1,
                         int32_t step_1,
                         const int16_t *input_2,
                         int32_t step_2,
                         int16_t *output,
                         int32_t size);
void thimble_minimum_s16(const int16_t *input_1,
                         int32_t step_1,
                         const int16_t *input_2,
                         int32_t step_2,
                         int16_t *output,
                         int32_t size);

/** TFLite `QuantizeLeakyRelu`: values below 0 have a factor of their own, multiplier * 2^(shift - 31). */
typedef struct {
    int32_t multiplier;
    int32_t shift;
    int32_t negative_multiplier;
    int32_t negative_shift;
} thimble_leaky_relu_s16_params;

/** In place. */
void thimble_leaky_relu_s16(const int16_t *input,
                            int16_t *output,
                            int32_t size,
                            const thimble_leaky_relu_s16_params *params);

/** LiteRT's int16 `Logistic` and `Tanh`: the input times multiplier / 2^shift (halves up) is a place between
 * the 256 entries of `table`, logistic(i / 24) - 1/2 in Q0.16, where it interpolates. Output in Q0.15; in
 * place. */
void thimble_logistic_table_s16(const int16_t *input,
                                int16_t *output,
                                int32_t size,
                                int32_t multiplier,
                                int32_t shift,
                                const int16_t *table);
void thimble_tanh_table_s16(const int16_t *input,
                            int16_t *output,
                            int32_t size,
                            int32_t multiplier,
                            int32_t shift,
                            const int16_t *table);

/** LiteRT's `LUTLookup`: 7 bits of each value lie between the entries of `table`; in place. */
void thimble_lookup_s16(const int16_t *input, int16_t *output, int32_t size, const int16_t table[513]);

/** LiteRT's `SoftmaxInt16` over rows of `columns`: differences from the maximum times
 * multiplier * 2^(shift - 31) are places in `exponentials`, exp(x) for x from -10 to 0; `reciprocals` is
 * 1 / (1 + x) for x from 0 to 1; all Q0.15, in place. CMSIS-NN's wraps where a quotient or a rounded sum
 * reaches 1. */
void thimble_softmax_s16(const int16_t *input,
                         int16_t *output,
                         int32_t rows,
                         int32_t columns,
                         int32_t multiplier,
                         int32_t shift,
                         const int16_t exponentials[513],
                         const int16_t reciprocals[513]);

/** TFLite `AffineQuantize`, saturating where the quotient leaves int32. */
void thimble_quantize_f32_s16(
    const float *input, int16_t *output, int32_t size, float scale, int32_t zero_point);

/** TFLite `Dequantize`: one rounding, that of the product. */
void thimble_dequantize_s16_f32(
    const int16_t *input, float *output, int32_t size, float scale, int32_t zero_point);

/** `per_channel`: 1 where each unit has a factor of its own, 0 where all share one. */
typedef struct {
    int32_t rows;
    int32_t depth;
    int32_t units;
    int32_t per_channel;
    int32_t min;
    int32_t max;
} thimble_fully_connected_s16_params;

/** Rows of `depth` elements by filters [units][depth]; a sum times its factor, in double precision as LiteRT
 *  has it, is rounded once, halves away from zero. `factors` holds the bytes of doubles. Input and
 *  output may not overlap. */
void thimble_fully_connected_s16(const thimble_fully_connected_s16_params *params,
                                 const int16_t *input,
                                 const int8_t *filters,
                                 const int64_t *bias,
                                 const int64_t *factors,
                                 int16_t *output);

/** Of each output channel: bias, and the factor multiplier * 2^(shift - 31), of which 16 bits count; the
 * output's range. */
typedef struct {
    const int64_t *bias;
    const int32_t *multiplier;
    const int32_t *shift;
    int32_t min;
    int32_t max;
} thimble_conv_s16_scaling;

/** Convolution, any stride, dilation, padding and grouping; sums of int64. Filters are [channel][row][column]
 * [depth]. Input and output may not overlap. */
void thimble_convolve_s16(const thimble_conv_shape *shape,
                          const thimble_conv_s16_scaling *scaling,
                          const int16_t *input,
                          const int8_t *filters,
                          int16_t *output);

/** Transposed convolution; as above. */
void thimble_transpose_conv_s16(const thimble_conv_shape *shape,
                                const thimble_conv_s16_scaling *scaling,
                                const int16_t *input,
                                const int8_t *filters,
                                int16_t *output);

#endif
