/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float inputs and int8 weights, as LiteRT's hybrid kernels compute them: an image is quantised
 * to int8 when it is known, and int32 sums are scaled in float. */
#ifndef THIMBLE_HYBRID_H
#define THIMBLE_HYBRID_H

#include "thimble_f32.h"

/** asymmetric  the image's zero point is chosen by its range; else it is 0.
 *  in_turn     a sum is multiplied by its filter's scale, then by the image's; else by their product.
 *  gathered    each window is copied, since it does not lie in one piece or its filters see only some
 * channels. per_channel  whether each filter has a scale of its own. */
typedef struct {
    int32_t asymmetric;
    int32_t in_turn;
    int32_t gathered;
    int32_t per_channel;
} thimble_hybrid_params;

/** Quantises `size` values, as NEON's kernels of LiteRT do, with a range that contains 0. Returns the zero
 * point. */
int32_t thimble_quantize_range_f32(
    const float *values, int32_t size, int32_t asymmetric, int8_t *stored, float *scale);

/** Convolution with any stride, dilation, padding and number of groups. Each image of the batch is quantised
 *  on its own: a fully connected layer is that of images of one pixel.
 *
 *  parameters: of each group, for each four filters (padded with zeros to four) four zeros, then for each
 * four taps (padded with zeros) four bytes of each filter in turn. `taps`: the sum of each filter's weights.
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

/** Depthwise convolution: filters [kernel_h][kernel_w][output_c], a scale for each channel, images quantised
 *  with a zero point. `bias` may be NULL. scratch: an image's bytes. */
void thimble_depthwise_hybrid_s8(const thimble_window_f32 *window,
                                 const float *input,
                                 const int8_t *filters,
                                 const float *scales,
                                 const float *bias,
                                 void *scratch,
                                 float *output);

#endif
