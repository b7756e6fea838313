/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions over volumes: depth, height and width, with the channels last. */
#ifndef THIMBLE_CONV3D_H
#define THIMBLE_CONV3D_H

#include <stdint.h>

/** `pad_*`: planes, rows and columns of zeros before the volume. The activation holds outputs in
 *  [`min`, `max`]. */
typedef struct {
    int32_t batches;
    int32_t input_d, input_h, input_w, input_c;
    int32_t output_d, output_h, output_w, output_c;
    int32_t kernel_d, kernel_h, kernel_w;
    int32_t stride_d, stride_h, stride_w;
    int32_t dilation_d, dilation_h, dilation_w;
    int32_t pad_front, pad_top, pad_left;
    float min, max;
} thimble_volume_f32;

/** Filters are [kernel_d][kernel_h][kernel_w][input_c][output_c], as in TFLite. The bias may be NULL. Sums
 * run over planes, rows, columns and channels, in this order; the bias comes last. */
void thimble_convolve_3d_f32(const thimble_volume_f32 *volume,
                             const float *input,
                             const float *filters,
                             const float *bias,
                             float *output);

#endif
