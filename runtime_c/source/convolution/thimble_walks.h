/* SPDX-License-Identifier: Apache-2.0 */
/* How convolutions go over their windows, whatever multiplies these with the filters. */
#ifndef THIMBLE_WALKS_H
#define THIMBLE_WALKS_H

#include "thimble_columns.h"
#include "thimble_conv.h"
#include "thimble_inside.h"

/* thimble_mat_mult_windows_s8, or another. */
typedef void (*thimble_multiply_windows)(const int32_t *parameters,
                                         int32_t words,
                                         int32_t channels,
                                         const thimble_requant *requant,
                                         uint32_t *columns,
                                         int32_t at_once,
                                         thimble_next_windows next,
                                         void *walk);

/* thimble_convolve_pixel_s8, or another. */
typedef void (*thimble_multiply_pixel)(const thimble_inside_shape *shape,
                                       const thimble_requant *requant,
                                       const int8_t *input,
                                       const int32_t *parameters,
                                       int8_t *output);

/* All windows of images of any shape. `lanes` channels make up a block of the parameters: 2 words for each
 * four taps, and 7 for each two channels. */
void thimble_walk_windows(const thimble_conv_shape *shape,
                          const thimble_requant *requant,
                          const int8_t *input,
                          const int32_t *parameters,
                          void *scratch,
                          int8_t *output,
                          thimble_multiply_windows multiply,
                          int32_t lanes);

/* All windows of one image, each inside of it. `multiply_pixel`, if it is not null, takes a last window that
 * is alone. */
void thimble_walk_inside(const thimble_inside_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output,
                         thimble_multiply_windows multiply,
                         thimble_multiply_pixel multiply_pixel);

#endif
