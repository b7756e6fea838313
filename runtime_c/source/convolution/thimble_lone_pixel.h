/* SPDX-License-Identifier: Apache-2.0 */
/* The output pixel of one window, read from the image itself. */
#ifndef THIMBLE_LONE_PIXEL_H
#define THIMBLE_LONE_PIXEL_H

#include "thimble_inside.h"

/* Channels up to which a lone pixel is read from the image itself. */
#define THIMBLE_LONE_CHANNELS 16

/* The output pixel of one window, of up to THIMBLE_LONE_CHANNELS channels; written after all is read. */
void thimble_convolve_pixel_s8(const thimble_inside_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               int8_t *output);

/* Sums, with biases, of four channels under one window: two by the parameters at `first`, two by those at
 * `second`. */
void thimble_sum_pixel_s8(const thimble_inside_shape *shape,
                          const int8_t *input,
                          const int32_t *first,
                          const int32_t *second,
                          int32_t *sums);

#endif
