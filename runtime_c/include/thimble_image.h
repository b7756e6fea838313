/* SPDX-License-Identifier: Apache-2.0 */
/* A camera's frame to an input: resized as Pillow before 13 does it, bit for bit, quantised by a table. */
#ifndef THIMBLE_IMAGE_H
#define THIMBLE_IMAGE_H

#include <stdint.h>

/** How a pixel lies in memory. */
enum {
    THIMBLE_RGB888,
    THIMBLE_BGR888,
    THIMBLE_RGB565LE,
    THIMBLE_RGB565BE,
    THIMBLE_GREY8,
};

/** The pixels of a line that make each pixel of the output: `count` from `starts[i]`, by `weights[i * count]`
 * with 22 fractional bits. */
typedef struct {
    int32_t count;
    const uint16_t *starts;
    const int32_t *weights;
} thimble_taps;

/** `line_bytes`: from a line of the frame to the next. `width` and `channels` (1 or 3) are the output's.
 *  `values[channels * 256]`: what each level of a channel becomes. */
typedef struct {
    int32_t format;
    int32_t line_bytes;
    int32_t width;
    int32_t channels;
    thimble_taps columns;
    thimble_taps rows;
    const int8_t *values;
} thimble_image;

/** Line `row` of the output: width * channels values. */
void thimble_image_row_s8(const thimble_image *image, const uint8_t *frame, int32_t row, int8_t *output);

#endif
