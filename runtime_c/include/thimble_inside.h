/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of which no window leaves the image, as inner blocks of a larger one. */
#ifndef THIMBLE_INSIDE_H
#define THIMBLE_INSIDE_H

#include "thimble_requant.h"

#include <stdint.h>

/* What is the same for all such blocks of one convolution. A row of a window is a run of `row_words` * 4
 * bytes; steps are in bytes: from one row of a window to the next, from window to window along a line, from
 * one line of windows to the next, and from one line of outputs to the next. */
typedef struct {
    int32_t output_h, output_w, output_c;
    int32_t kernel_h, row_words;
    int32_t row_step, pixel_step, line_step;
    int32_t output_step;
} thimble_inside_shape;

/* One image, no groups, no weight zero point; parameters as for thimble_convolve_s8. scratch: 16 * kernel_h *
 * row_words bytes, word aligned. */
void thimble_convolve_inside_s8(const thimble_inside_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output);

#endif
