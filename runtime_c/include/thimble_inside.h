/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions whose windows all lie inside the image, as those of inner blocks of a split one do. */
#ifndef THIMBLE_INSIDE_H
#define THIMBLE_INSIDE_H

#include "thimble_requant.h"

#include <stdint.h>

/* Shape of such a convolution. A row of a window is 4 * row_words contiguous bytes. Steps are in bytes:
 * row_step from one row of a window to the next, pixel_step from one window to the next along a line,
 * line_step from one line of windows to the next, output_step from one line of outputs to the next. at_once
 * is as in thimble_conv_shape. */
typedef struct {
    int32_t output_h, output_w, output_c;
    int32_t kernel_h, row_words;
    int32_t row_step, pixel_step, line_step;
    int32_t output_step;
    int32_t at_once;
} thimble_inside_shape;

/* Convolution of one image, in one group, without a weight zero point. `input` is the first window's first
 * byte.
 *
 * parameters: as for thimble_convolve_s8.
 *
 * scratch: 8 * at_once * kernel_h * row_words bytes, word aligned. */
void thimble_convolve_inside_s8(const thimble_inside_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output);

/* The same, with parameters as for thimble_convolve_s4; at_once is two or four. */
void thimble_convolve_inside_s4(const thimble_inside_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output);

#endif
