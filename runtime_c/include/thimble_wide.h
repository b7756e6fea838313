/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of int16 activations and int8 filters (TFLite's 16x8 scheme). Zero points are 0.
 *
 * Elementwise kernels take `size` contiguous elements in ascending order. A step is 1 if the operand advances
 * with the output, 0 if one element of it serves the whole run. The output may be an operand whose step is 1.
 * No kernel takes scratch.
 */
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

/** Addition (TFLite `reference_ops::Add`). */
void thimble_add_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_add_s16_params *params);

/** Multiplication (TFLite `reference_integer_ops::Mul`). */
void thimble_mul_s16(const int16_t *input_1,
                     int32_t step_1,
                     const int16_t *input_2,
                     int32_t step_2,
                     int16_t *output,
                     int32_t size,
                     const thimble_mul_s16_params *params);

/** The larger, and the smaller, of two elements, which have the scale of the output. */
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

/** Values below 0 have a factor of their own; a factor is multiplier * 2^(shift - 31). */
typedef struct {
    int32_t multiplier;
    int32_t shift;
    int32_t negative_multiplier;
    int32_t negative_shift;
} thimble_leaky_relu_s16_params;

/** Leaky ReLU (TFLite `QuantizeLeakyRelu`). */
void thimble_leaky_relu_s16(const int16_t *input,
                            int16_t *output,
                            int32_t size,
                            const thimble_leaky_relu_s16_params *params);

/** Magnitudes times multiplier * 2^(shift - 31). */
typedef struct {
    int32_t multiplier;
    int32_t shift;
} thimble_abs_s16_params;

/** Absolute value (TFLite `AbsEvalQuantized`). */
void thimble_abs_s16(const int16_t *input,
                     int16_t *output,
                     int32_t size,
                     const thimble_abs_s16_params *params);

/** The scales. */
typedef struct {
    float input_scale;
    float output_scale;
} thimble_sqrt_s16_params;

/** Square root, rounded towards 0; of what is negative, 0 (TFLite `SqrtEval`). */
void thimble_sqrt_s16(const int16_t *input,
                      int16_t *output,
                      int32_t size,
                      const thimble_sqrt_s16_params *params);

/** Factors of both sides, multiplier * 2^(shift - 31); below 0 also that of alpha + alpha_offset. */
typedef struct {
    int32_t multiplier;
    int32_t shift;
    int32_t alpha_offset;
    int32_t alpha_multiplier;
    int32_t alpha_shift;
} thimble_prelu_s16_params;

/** x where x >= 0, alpha * x elsewhere (TFLite `BroadcastPrelu4DSlow`). */
void thimble_prelu_s16(const int16_t *input,
                       int32_t step_input,
                       const int8_t *alpha,
                       int32_t step_alpha,
                       int16_t *output,
                       int32_t size,
                       const thimble_prelu_s16_params *params);

/** (a - b)^2: both operands at twice the larger scale (tflite-micro's `SquaredDifference`). */
typedef struct {
    int32_t multiplier_1;
    int32_t shift_1;
    int32_t multiplier_2;
    int32_t shift_2;
    int32_t output_multiplier;
    int32_t output_shift;
} thimble_squared_difference_s16_params;

void thimble_squared_difference_s16(const int16_t *input_1,
                                    int32_t step_1,
                                    const int16_t *input_2,
                                    int32_t step_2,
                                    int16_t *output,
                                    int32_t size,
                                    const thimble_squared_difference_s16_params *params);

/** The logistic function and tanh (LiteRT's int16 `Logistic` and `Tanh`), in Q0.15. The input times
 * multiplier / 2^shift, rounded halves up, is a place in `table`, whose 256 entries are logistic(i / 24) -
 * 1/2 in Q0.16; the result is interpolated between two of them. */
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

/** A function by its table (LiteRT's `LUTLookup`): the upper 9 bits of a value choose an entry, the lower 7
 * bits interpolate between it and the next. */
void thimble_lookup_s16(const int16_t *input, int16_t *output, int32_t size, const int16_t table[513]);

/** Softmax of each of `rows` rows of `columns` contiguous elements (LiteRT's `SoftmaxInt16`). Differences
 * from the row's maximum times multiplier * 2^(shift - 31) are places in `exponentials`, exp(x) for x from
 * -10 to 0; `reciprocals` is 1 / (1 + x) for x from 0 to 1. All are Q0.15. The output may be the input.
 * CMSIS-NN's kernel wraps if a quotient or a rounded sum reaches 1. */
void thimble_softmax_s16(const int16_t *input,
                         int16_t *output,
                         int32_t rows,
                         int32_t columns,
                         int32_t multiplier,
                         int32_t shift,
                         const int16_t exponentials[513],
                         const int16_t reciprocals[513]);

/** output = round(input / scale) + zero_point, halves away from zero, saturated (TFLite `AffineQuantize`). */
void thimble_quantize_f32_s16(
    const float *input, int16_t *output, int32_t size, float scale, int32_t zero_point);

/** output = scale * (input - zero_point) (TFLite `Dequantize`). */
void thimble_dequantize_s16_f32(
    const int16_t *input, float *output, int32_t size, float scale, int32_t zero_point);

/** `per_channel`: 1 if each unit has a factor of its own, 0 if all share one. */
typedef struct {
    int32_t rows;
    int32_t depth;
    int32_t units;
    int32_t per_channel;
    int32_t min;
    int32_t max;
} thimble_fully_connected_s16_params;

/** Fully connected layer: input [rows][depth], filters [units][depth], output [rows][units]. A sum times its
 *  factor, in double precision as LiteRT computes it, is rounded once, halves away from zero. `factors` holds
 * the bytes of doubles. Input and output may not overlap. */
void thimble_fully_connected_s16(const thimble_fully_connected_s16_params *params,
                                 const int16_t *input,
                                 const int8_t *filters,
                                 const int64_t *bias,
                                 const int64_t *factors,
                                 int16_t *output);

/** For each output channel a bias and a factor, multiplier * 2^(shift - 31), of whose multiplier 16 bits are
 * used; and the range of the output. */
typedef struct {
    const int64_t *bias;
    const int32_t *multiplier;
    const int32_t *shift;
    int32_t min;
    int32_t max;
} thimble_conv_s16_scaling;

/** Convolution of NHWC images with any stride, dilation, padding and number of groups; sums are int64.
 * Filters [output_c][kernel_h][kernel_w][depth]. Input and output may not overlap. */
void thimble_convolve_s16(const thimble_conv_shape *shape,
                          const thimble_conv_s16_scaling *scaling,
                          const int16_t *input,
                          const int8_t *filters,
                          int16_t *output);

/** Transposed convolution of NHWC images; sums are int64. Filters as above. Input and output may not overlap.
 */
void thimble_transpose_conv_s16(const thimble_conv_shape *shape,
                                const thimble_conv_s16_scaling *scaling,
                                const int16_t *input,
                                const int8_t *filters,
                                int16_t *output);

#endif
