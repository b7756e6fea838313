/* SPDX-License-Identifier: Apache-2.0
 *
 * Thimble: float32 kernels. Each operation is rounded once and sums run in the order of LiteRT's reference
 * kernels, with no fused multiply-add, so that every core gives the same bits.
 */
#ifndef THIMBLE_F32_H
#define THIMBLE_F32_H

#include "thimble_float.h"

/** Functions of one value. Within two units in the last place of the real function (erf: of 1, and
 *  eight); results below the
 *  smallest normal number may be 0. */
float thimble_exp_f32(float x);
float thimble_log_f32(float x);
float thimble_tanh_f32(float x);
float thimble_erf_f32(float x);
float thimble_logistic_f32(float x);
float thimble_gelu_f32(float x);      /**< by the error function */
float thimble_gelu_tanh_f32(float x); /**< its approximation by tanh */
float thimble_sqrt_f32(float x);      /**< correctly rounded */

/** The second where either is NaN, as TFLite's MINIMUM and MAXIMUM. */
static inline float thimble_min_f32(float a, float b)
{
    return a < b ? a : b;
}

static inline float thimble_max_f32(float a, float b)
{
    return a > b ? a : b;
}

/** `std::min(std::max(x, low), high)`: NaN stays NaN, and -0 stays -0 where a bound is 0. */
static inline float thimble_clamp_f32(float x, float low, float high)
{
    const float raised = x < low ? low : x;
    return high < raised ? high : raised;
}

/** Softmax of each row; in place where that is wanted. */
void thimble_softmax_f32(const float *input, float *output, int32_t rows, int32_t columns, float beta);

typedef enum { THIMBLE_SUM, THIMBLE_MEAN, THIMBLE_MAXIMUM, THIMBLE_MINIMUM } thimble_reduction;

/** A shape folded to kept, reduced, kept, reduced, kept elements. */
typedef struct {
    thimble_reduction reduction;
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t inner;
} thimble_reduce_f32_params;

void thimble_reduce_f32(const thimble_reduce_f32_params *params, const float *input, float *output);

/** NHWC images and a window over them. `depth`: channels a filter sees (convolution). */
typedef struct {
    int32_t batches;
    int32_t input_h;
    int32_t input_w;
    int32_t input_c;
    int32_t output_h;
    int32_t output_w;
    int32_t output_c;
    int32_t kernel_h;
    int32_t kernel_w;
    int32_t depth;
    int32_t stride_h;
    int32_t stride_w;
    int32_t dilation_h;
    int32_t dilation_w;
    int32_t pad_top;
    int32_t pad_left;
    float min;
    float max;
} thimble_window_f32;

/** Filters OHWI; `bias` may be NULL. Groups where depth < input_c. */
void thimble_convolve_f32(const thimble_window_f32 *window,
                          const float *input,
                          const float *filters,
                          const float *bias,
                          float *output);

/** Filters 1HWC, output_c / input_c of them a channel. */
void thimble_depthwise_conv_f32(const thimble_window_f32 *window,
                                const float *input,
                                const float *filters,
                                const float *bias,
                                float *output);

/** Filters OHWI; the output's rows and columns are those that the forward window would see. */
void thimble_transpose_conv_f32(const thimble_window_f32 *window,
                                const float *input,
                                const float *filters,
                                const float *bias,
                                float *output);

/** Padding is not counted. A window is read before its pixel is written, channel by channel. */
void thimble_average_pool_f32(const thimble_window_f32 *window, const float *input, float *output);
void thimble_max_pool_f32(const thimble_window_f32 *window, const float *input, float *output);

/** Steps between neighbours along rows (columns of y), depth, and each batch dimension; 0 stands still. */
typedef struct {
    int32_t outer;
    int32_t inner;
    int32_t batch[3];
} thimble_matrix_f32;

typedef struct {
    int32_t batch[3];
    int32_t rows;
    int32_t depth;
    int32_t columns;
    thimble_matrix_f32 x;
    thimble_matrix_f32 y;
} thimble_matmul_f32_params;

void thimble_batch_matmul_f32(const thimble_matmul_f32_params *params,
                              const float *x,
                              const float *y,
                              float *output);

/** TFLite `ResizeBilinear<float>`. No overlap. */
void thimble_resize_bilinear_f32(const thimble_resize_float_params *params,
                                 const float *source,
                                 float *target);

#endif
