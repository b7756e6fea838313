/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels of float32. Each operation is rounded once and sums run in the order of LiteRT's reference
 * kernels, with no fused multiply-add, so that every core gives the same bits.
 */
#ifndef THIMBLE_F32_H
#define THIMBLE_F32_H

#include "thimble_float.h"

/** Functions of one value, within two units in the last place of the real function; erf within eight units in
 *  the last place of 1. Results below the smallest normal number may be 0. */
float thimble_exp_f32(float x);
float thimble_log_f32(float x);
float thimble_tanh_f32(float x);
float thimble_erf_f32(float x);
float thimble_logistic_f32(float x);
float thimble_gelu_f32(float x);      /**< by the error function */
float thimble_gelu_tanh_f32(float x); /**< its approximation by tanh */
float thimble_sqrt_f32(float x);      /**< correctly rounded */
float thimble_sin_f32(float x);
float thimble_cos_f32(float x);
float thimble_pow_f32(float x, float y); /**< computed in double */
/** As LiteRT computes a power where one exponent serves all bases: by multiplications, each clamped to finite
 *  numbers, where the exponent is within 1e-5 of a whole number from 1 to 2147483520; else as
 * `thimble_pow_f32`. */
float thimble_pow_multiplied_f32(float x, float y);
float thimble_atan2_f32(float y, float x); /**< the angle of the point (x, y), from -pi to pi */

/** The nearest integer below, and the nearest one, halves to the even one. */
float thimble_floor_f32(float x);
float thimble_round_f32(float x);

/** The floor of a / b, computed in double, and what is left of `a`, with the sign of `b`. */
float thimble_floor_div_f32(float a, float b);
float thimble_floor_mod_f32(float a, float b);

/** The smaller and the larger of two values; `b` if either is NaN, as in TFLite's MINIMUM and MAXIMUM. */
static inline float thimble_min_f32(float a, float b)
{
    return a < b ? a : b;
}

static inline float thimble_max_f32(float a, float b)
{
    return a > b ? a : b;
}

/** `x` held within a range, as by `std::min(std::max(x, low), high)`: NaN stays NaN, and -0 stays -0 if a
 *  bound is 0. */
static inline float thimble_clamp_f32(float x, float low, float high)
{
    const float raised = x < low ? low : x;
    return high < raised ? high : raised;
}

/** Sums of two runs of values. The output may be either. */
void thimble_add_values_f32(const float *first, const float *second, float *output, int32_t size);

/** Softmax of beta * x for each of `rows` rows of `columns` values. The output may be the input. */
void thimble_softmax_f32(const float *input, float *output, int32_t rows, int32_t columns, float beta);

/** Logarithm of the softmax of each row. The output may be the input. */
void thimble_log_softmax_f32(const float *input, float *output, int32_t rows, int32_t columns);

/** Rows divided by their Euclidean length, or by 1e-6 if that is more. The output may be the input. */
void thimble_l2_normalization_f32(const float *input, float *output, int32_t rows, int32_t columns);

/** output = input * (bias + alpha * s)^-beta, with s the sum of the squares from `radius` columns before
 *  to as many behind. */
typedef struct {
    int32_t rows;
    int32_t columns;
    int32_t radius;
    float bias;
    float alpha;
    float beta;
} thimble_local_response_norm_params;

/** Local response normalization (LiteRT's optimised kernel). Input and output may not
 *  overlap. */
void thimble_local_response_norm_f32(const thimble_local_response_norm_params *params,
                                     const float *input,
                                     float *output);

/** NHWC images and the window that moves over them. `depth`: input channels that one filter of a convolution
 *  sees. Results are held within min and max. */
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

/** Convolution with any stride, dilation, padding and number of groups (input_c / depth). Filters
 *  [output_c][kernel_h][kernel_w][depth]; `bias` may be NULL. No scratch. */
void thimble_convolve_f32(const thimble_window_f32 *window,
                          const float *input,
                          const float *filters,
                          const float *bias,
                          float *output);

/** Depthwise convolution: output_c / input_c filters for each input channel. Filters
 *  [kernel_h][kernel_w][output_c]; `bias` may be NULL. No scratch. */
void thimble_depthwise_conv_f32(const thimble_window_f32 *window,
                                const float *input,
                                const float *filters,
                                const float *bias,
                                float *output);

/** Transposed convolution: the window moves over the output, by one stride for each input pixel. Filters
 *  [output_c][kernel_h][kernel_w][input_c]; `bias` may be NULL. No scratch. */
void thimble_transpose_conv_f32(const thimble_window_f32 *window,
                                const float *input,
                                const float *filters,
                                const float *bias,
                                float *output);

/** Volumes [batches][planes][rows][columns][channels] and the window that moves over them; arrays are by
 * plane, row and column. Results are held within min and max. */
typedef struct {
    int32_t batches;
    int32_t input[3];
    int32_t input_c;
    int32_t output[3];
    int32_t output_c;
    int32_t kernel[3];
    int32_t stride[3];
    int32_t dilation[3];
    int32_t pad[3]; /**< before the first voxel */
    float min;
    float max;
} thimble_volume_f32;

/** Convolution of volumes with any stride, dilation and padding. Filters
 *  [planes][rows][columns][input_c][output_c]; `bias` may be NULL. No scratch. */
void thimble_convolve_3d_f32(const thimble_volume_f32 *window,
                             const float *input,
                             const float *filters,
                             const float *bias,
                             float *output);

/** Average and maximum over windows, without the taps in the padding. A channel of a window is read before
 * the output element under it is written. */
void thimble_average_pool_f32(const thimble_window_f32 *window, const float *input, float *output);
void thimble_max_pool_f32(const thimble_window_f32 *window, const float *input, float *output);

/** Root of the mean square, likewise. */
void thimble_l2_pool_f32(const thimble_window_f32 *window, const float *input, float *output);

/** Strides of one operand, in elements: `outer` along the output's rows (x) or columns (y), `inner` along the
 *  dimension that is summed over, `batch` along each batch dimension (0: broadcast). */
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

/** Matrix product: output[batch, i, j] = sum over k of x[batch, i, k] * y[batch, k, j], row-major. No
 * scratch; the output may not overlap x or y. */
void thimble_batch_matmul_f32(const thimble_matmul_f32_params *params,
                              const float *x,
                              const float *y,
                              float *output);

/** Strides count rows. The cell state is held within -cell_clip and cell_clip unless that is 0. `backwards`:
 * the last step comes first. */
typedef struct {
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
    int32_t batch_stride;
    int32_t step_stride;
    int32_t backwards;
    float cell_clip;
} thimble_sequence_lstm_f32_params;

/** Long short-term memory: all steps of all batches (TFLite `LstmStepFloat`). Row (batch, step) of input and
 *  output is number batch * batch_stride + step * step_stride. Gates are in the order input, forget, cell,
 *  output: weights [4][units][inputs], recurrent [4][units][units], bias [4][units]. The states `hidden` and
 *  `cell`, [batches][units], are updated. `gates`: scratch of 4 * units. */
void thimble_sequence_lstm_f32(const thimble_sequence_lstm_f32_params *params,
                               const float *input,
                               const float *weights,
                               const float *recurrent,
                               const float *bias,
                               float *hidden,
                               float *cell,
                               float *gates,
                               float *output);

typedef enum {
    THIMBLE_RNN_PLAIN,
    THIMBLE_RNN_TANH,
    THIMBLE_RNN_RECTIFIED,
    THIMBLE_RNN_CLAMPED
} thimble_rnn_activation;

/** As of the LSTM. `activation`: none, tanh, at least min, or also at most max; NaN becomes min. */
typedef struct {
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
    int32_t batch_stride;
    int32_t step_stride;
    int32_t backwards;
    thimble_rnn_activation activation;
    float min;
    float max;
} thimble_sequence_rnn_f32_params;

/** A layer whose output is its state (TFLite `RnnBatchStep`): rows as of the LSTM, weights [units][inputs],
 *  recurrent [units][units], bias [units]. The state `hidden`, [batches][units], is updated. */
void thimble_sequence_rnn_f32(const thimble_sequence_rnn_f32_params *params,
                              const float *input,
                              const float *weights,
                              const float *recurrent,
                              const float *bias,
                              float *hidden,
                              float *output);

/** A unit of the output sums `rank` filters. `memory`: past values of a filter that the state keeps. */
typedef struct {
    int32_t batches;
    int32_t depth;
    int32_t units;
    int32_t rank;
    int32_t memory;
    int32_t clamped; /**< whether results are held within min and max; NaN becomes min */
    float min;
    float max;
} thimble_svdf_f32_params;

/** SVDF, a layer over time (TFLite `EvalFloatSVDF`). Input [batches][depth], output [batches][units],
 * features [units * rank][depth], time [units * rank][memory]. The state [batches][units * rank][memory] is
 * updated. `bias` may be NULL. Input, state and output may not overlap. */
void thimble_svdf_f32(const thimble_svdf_f32_params *params,
                      const float *input,
                      const float *features,
                      const float *time,
                      const float *bias,
                      float *state,
                      float *output);

/** Resize NHWC images by bilinear interpolation (TFLite `ResizeBilinear<float>`). Pixels are written in
 * ascending order, each element after its four neighbours are read. */
void thimble_resize_bilinear_f32(const thimble_resize_float_params *params,
                                 const float *source,
                                 float *target);

/** An NHWC image and its new size, the neighbours of each output row and column, and what these weigh. */
typedef struct {
    int32_t batches;
    int32_t input_height;
    int32_t input_width;
    int32_t output_height;
    int32_t output_width;
    int32_t channels;
    const int16_t *rows;    /**< two for each output row */
    const int16_t *columns; /**< two for each output column */
    const float *row_weights;
    const float *column_weights;
} thimble_resize_linear_f32_params;

/** Resize NHWC images by bilinear interpolation (ONNX Resize, mode linear). Pixels are written in ascending
 * order, each element after its four neighbours are read. */
void thimble_resize_linear_f32(const thimble_resize_linear_f32_params *params,
                               const float *source,
                               float *target);

#endif
