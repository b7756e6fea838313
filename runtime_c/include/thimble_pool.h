/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: maximum and average over windows; sums, means and extremes over axes. */
#ifndef THIMBLE_POOL_H
#define THIMBLE_POOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * NHWC images and the window that moves over them. Results are held within min and max. Taps in the padding
 * do not count.
 */
typedef struct {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t output_h;
    int32_t output_w;
    int32_t channels;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t stride_h;
    int32_t stride_w;
    int32_t pad_top;
    int32_t pad_left;
    int32_t min;
    int32_t max;
} thimble_pool_params;

/**
 * Maximum over windows.
 *
 * It takes four channels at a time, with two instructions on cores with the DSP extension. It reads a whole
 * window before it writes the output pixel, and writes pixels in ascending order. No scratch.
 */
void thimble_max_pool_s8(const thimble_pool_params *params, const int8_t *input, int8_t *output);

/**
 * Average over windows. Halves are rounded away from zero, of the stored value plus `lift`: 0, or 128 in
 * legacy uint8 models, whose values are stored lowered by 128.
 *
 * It reads a whole window before it writes the output pixel, and writes pixels in ascending order. No
 * scratch.
 */
void thimble_average_pool_s8(const thimble_pool_params *params,
                             int32_t lift,
                             const int8_t *input,
                             int8_t *output);

/** A dense input seen as [outer][first][middle][second][inner]: `first` and `second` are reduced. */
typedef struct {
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t inner;
} thimble_reduce_shape;

typedef struct {
    thimble_reduce_shape shape;
    int32_t input_sum;     /**< the input's zero point times first times second */
    int32_t output_offset; /**< the output's zero point */
    int32_t multiplier;    /**< output = requantize(sum - input_sum) + output_offset */
    int32_t shift;
    int32_t once;  /**< not 0: the right shift of (sum - input_sum) * multiplier, rounded once (ONNX) */
    int32_t count; /**< not 0: divide by this instead, halves to even (ONNX) */
} thimble_reduce_sum_params;

/**
 * Sum or mean of int8 over axes, requantized and saturated (TFLite `QuantizedMeanOrSum`).
 *
 * The output, [outer][middle][inner], may begin at or below the input.
 */
void thimble_reduce_sum_s8(const thimble_reduce_sum_params *params, const int8_t *input, int8_t *output);

/**
 * Largest int8 element over axes (flip 0), or smallest (flip -1).
 *
 * The output, [outer][middle][inner], may begin at or below the input.
 */
void thimble_reduce_max_s8(const thimble_reduce_shape *shape,
                           int32_t flip,
                           const int8_t *input,
                           int8_t *output);

/** The same of int16. */
void thimble_reduce_max_s16(const thimble_reduce_shape *shape,
                            int32_t flip,
                            const int16_t *input,
                            int16_t *output);

/** Sum or mean of int16 over axes: sums, which fit int32, times multiplier * 2^(shift - 31), saturated;
 * output [outer][middle][inner]. */
void thimble_reduce_sum_s16(const thimble_reduce_shape *shape,
                            int32_t multiplier,
                            int32_t shift,
                            const int16_t *input,
                            int16_t *output);

#ifdef __cplusplus
}
#endif

#endif
