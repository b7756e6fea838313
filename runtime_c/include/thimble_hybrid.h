/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float inputs and int8 weights, as LiteRT's hybrid kernels compute them: an image is quantised
 * to int8 when it is known, and int32 sums are scaled in float. */
#ifndef THIMBLE_HYBRID_H
#define THIMBLE_HYBRID_H

#include "thimble_f32.h"

/** How floats are quantised by the range that they have, together with 0: as LiteRT does, around 0 or with a
 *  zero point, or as DynamicQuantizeLinear of ONNX, all images together (uint8 values stored 128 lower). */
typedef enum { THIMBLE_RANGE_SYMMETRIC, THIMBLE_RANGE_ASYMMETRIC, THIMBLE_RANGE_ONNX } thimble_range;

/** range        how images are quantised.
 *  in_turn      a sum is multiplied by its filter's scale, then by the image's; else by their product.
 *  gathered     each window is copied, since it does not lie in one piece or its filters see only some
 *               channels.
 *  per_channel  whether each filter has a scale of its own.
 *  shifted      whether filters have zero points other than 0. */
typedef struct {
    thimble_range range;
    int32_t in_turn;
    int32_t gathered;
    int32_t per_channel;
    int32_t shifted;
} thimble_hybrid_params;

/** Quantises `size` values, as NEON's kernels of LiteRT do, with a range that contains 0. Returns the zero
 * point. */
int32_t thimble_quantize_range_f32(
    const float *values, int32_t size, int32_t asymmetric, int8_t *stored, float *scale);

/** Quantises `size` values as DynamicQuantizeLinear of ONNX does, by the range of all `all_size` values, 128
 *  lower than its uint8. Returns the zero point, as much lower. */
int32_t thimble_quantize_dynamic_f32(
    const float *all, int32_t all_size, const float *values, int32_t size, int8_t *stored, float *scale);

/** Convolution with any stride, dilation, padding and number of groups. LiteRT's ranges are those of each
 *  image of the batch: a fully connected layer is a convolution of images of one pixel.
 *
 *  parameters: of each group, for each four filters (padded with zeros to four) their zero points, then for
 * each four taps (padded with zeros) four bytes of each filter in turn. `taps`: the sum of each filter's
 * weights, less their zero point.
 *  `bias` may be NULL. scratch: an image's bytes, and those of a window's depth if `gathered`, each rounded
 * up to a multiple of four. */
void thimble_convolve_hybrid_s8(const thimble_window_f32 *window,
                                const thimble_hybrid_params *params,
                                const float *input,
                                const int32_t *parameters,
                                const int32_t *taps,
                                const float *scales,
                                const float *bias,
                                void *scratch,
                                float *output);

/** The same for vectors of sixteen lanes: for each sixteen taps (padded with zeros), sixteen bytes of each
 * filter in turn. */
void thimble_convolve_hybrid_lanes_s8(const thimble_window_f32 *window,
                                      const thimble_hybrid_params *params,
                                      const float *input,
                                      const int32_t *parameters,
                                      const int32_t *taps,
                                      const float *scales,
                                      const float *bias,
                                      void *scratch,
                                      float *output);

/** A fully connected layer of rows that are stored already: `window` is a line of pixels, one a row, whose
 *  scale is 1. Otherwise as `thimble_convolve_hybrid_s8`. */
void thimble_rows_hybrid_s8(const thimble_window_f32 *window,
                            const thimble_hybrid_params *params,
                            const int8_t *input,
                            int32_t zero_point,
                            const int32_t *parameters,
                            const int32_t *taps,
                            const float *scales,
                            const float *bias,
                            float *output);

/** The same with the parameters of `thimble_convolve_hybrid_lanes_s8`. */
void thimble_rows_hybrid_lanes_s8(const thimble_window_f32 *window,
                                  const thimble_hybrid_params *params,
                                  const int8_t *input,
                                  int32_t zero_point,
                                  const int32_t *parameters,
                                  const int32_t *taps,
                                  const float *scales,
                                  const float *bias,
                                  float *output);

/** Depthwise convolution: filters [kernel_h][kernel_w][output_c], a scale for each channel, and one zero
 * point for all. `bias` may be NULL. scratch: an image's bytes. */
void thimble_depthwise_hybrid_s8(const thimble_window_f32 *window,
                                 thimble_range range,
                                 int32_t filters_zero_point,
                                 const float *input,
                                 const int8_t *filters,
                                 const float *scales,
                                 const float *bias,
                                 void *scratch,
                                 float *output);

/** Transposed convolution: filters [output_c][kernel_h][kernel_w][input_c], a scale for each channel. Images
 * are quantised with a zero point, each product is scaled by itself. `bias` may be NULL. scratch: an image's
 * bytes. */
void thimble_transpose_conv_hybrid_s8(const thimble_window_f32 *window,
                                      const float *input,
                                      const int8_t *filters,
                                      const float *scales,
                                      const float *bias,
                                      void *scratch,
                                      float *output);

/** As `thimble_svdf_f32_params`; time filters are int8 of scale `time_scale`. */
typedef struct {
    int32_t batches;
    int32_t units;
    int32_t rank;
    int32_t memory;
    int32_t clamped;
    float min;
    float max;
    float time_scale;
} thimble_svdf_hybrid_params;

/** SVDF after its feature filters (TFLite `EvalHybridSVDF`): their results `newest` [batches][units * rank]
 *  enter the state [batches][units * rank][memory], which filters `time` [units * rank][memory] read. Output
 *  [batches][units]. `bias` may be NULL. */
void thimble_svdf_hybrid_s8(const thimble_svdf_hybrid_params *params,
                            const float *newest,
                            const int8_t *time,
                            const float *bias,
                            float *state,
                            float *output);

/** Weights of four gates, one after another, packed as for `thimble_convolve_hybrid_s8`, whose zero points
 *  are 0. `taps`: the sum of each filter's weights. `scales`: of each gate. */
typedef struct {
    const int32_t *parameters;
    const int32_t *taps;
    const float *scales;
} thimble_hybrid_matrix;

typedef struct {
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
    int32_t batch_stride;
    int32_t step_stride;
    int32_t asymmetric; /**< whether rows are quantised with a zero point */
    float cell_clip;    /**< 0 for none */
    thimble_hybrid_matrix weights;
    thimble_hybrid_matrix recurrent;
} thimble_sequence_lstm_hybrid_params;

/** LSTM layer over sequences (TFLite `LstmStepHybrid`). Row (batch, step) of input [inputs] and output
 * [units] is number batch * batch_stride + step * step_stride. Bias [4][units]: of the gates input, forget,
 * cell, output. The states [batches][units] are updated. scratch: 4 * units floats; `stored`: the bytes of
 * the longer one of an input row and a state. */
void thimble_sequence_lstm_hybrid_s8(const thimble_sequence_lstm_hybrid_params *params,
                                     const float *input,
                                     const float *bias,
                                     float *hidden,
                                     float *cell,
                                     float *gates,
                                     int8_t *stored,
                                     float *output);

/** The same with the parameters of `thimble_convolve_hybrid_lanes_s8`. */
void thimble_sequence_lstm_hybrid_lanes_s8(const thimble_sequence_lstm_hybrid_params *params,
                                           const float *input,
                                           const float *bias,
                                           float *hidden,
                                           float *cell,
                                           float *gates,
                                           int8_t *stored,
                                           float *output);

#endif
