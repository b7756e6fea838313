/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: pooling windows; sums, means and extremes over axes. */
#ifndef THIMBLE_POOL_H
#define THIMBLE_POOL_H

#include "arm_nn_types.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Maximum over windows; arguments as those of arm_max_pool_s8, ctx unused.
 *
 * Four channels at a time, on cores with the DSP extension in two instructions. An output pixel is written
 * after all that lies under it is read.
 */
arm_cmsis_nn_status thimble_max_pool_s8(const cmsis_nn_context *ctx,
                                        const cmsis_nn_pool_params *pool_params,
                                        const cmsis_nn_dims *input_dims,
                                        const int8_t *src,
                                        const cmsis_nn_dims *filter_dims,
                                        const cmsis_nn_dims *output_dims,
                                        int8_t *dst);

/**
 * Average over windows, padding not counted; arguments as those of arm_avgpool_s8, ctx unused.
 *
 * An output pixel is written after all that lies under it is read.
 */
arm_cmsis_nn_status thimble_average_pool_s8(const cmsis_nn_context *ctx,
                                            const cmsis_nn_pool_params *pool_params,
                                            const cmsis_nn_dims *input_dims,
                                            const int8_t *src,
                                            const cmsis_nn_dims *filter_dims,
                                            const cmsis_nn_dims *output_dims,
                                            int8_t *dst);

/**
 * The same of values lowered by `lift`, which the average sees as they were: of legacy uint8 models, with
 * lift 128, halves round up.
 */
arm_cmsis_nn_status thimble_average_pool_lifted_s8(int32_t lift,
                                                   const cmsis_nn_pool_params *pool_params,
                                                   const cmsis_nn_dims *input_dims,
                                                   const int8_t *src,
                                                   const cmsis_nn_dims *filter_dims,
                                                   const cmsis_nn_dims *output_dims,
                                                   int8_t *dst);

/** A rectangle of elements; strides in bytes. */
typedef struct {
    int32_t rows;
    int32_t columns;
    ptrdiff_t row_stride;
    ptrdiff_t column_stride;
} thimble_window;

/** Sums over a window of `channels` neighbouring channels, at most 4, that begin at `corner`. */
void thimble_sum_window_s8(const thimble_window *window,
                           const int8_t *corner,
                           int32_t channels,
                           int32_t sums[4]);

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
 * Sum or mean over axes, requantized and saturated (TFLite QuantizedMeanOrSum).
 *
 * The output, [outer][middle][inner], may begin at or below the input.
 */
void thimble_reduce_sum_s8(const thimble_reduce_sum_params *params, const int8_t *input, int8_t *output);

/**
 * Largest element over axes (flip 0), or smallest (flip -1).
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

/** Sums of int16 (they fit int32) times multiplier * 2^(shift - 31), saturated. */
void thimble_reduce_sum_s16(const thimble_reduce_shape *shape,
                            int32_t multiplier,
                            int32_t shift,
                            const int16_t *input,
                            int16_t *output);

#ifdef __cplusplus
}
#endif

#endif
