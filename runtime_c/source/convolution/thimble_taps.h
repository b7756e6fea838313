/* SPDX-License-Identifier: Apache-2.0 */
/* The pixels under one window of a convolution, as one of several interleaved columns of int16. */
#ifndef THIMBLE_TAPS_H
#define THIMBLE_TAPS_H

#include "thimble_columns.h"
#include "thimble_line.h"
#include "thimble_row_bytes.h"

static uint32_t *
thimble_fill_words(uint32_t *column, int32_t count, int32_t interleaved, uint32_t zero_points)
{
    const uint32_t pair = thimble_sxtb16(zero_points);
    for (; count > 0; count -= 4, column += 2 * interleaved) {
        column[0] = pair;
        column[1] = pair;
    }
    return column;
}

/* One kernel row, of whole words for each pixel, straight into the interleaved column. */
static uint32_t *thimble_put_row_words(const thimble_conv_shape *shape,
                                       const thimble_row_span *span,
                                       const int8_t *line,
                                       int32_t x,
                                       uint32_t zero_points,
                                       int32_t interleaved,
                                       uint32_t *column)
{
    const int32_t depth = shape->depth, step = shape->dilation_w;
    if (!line) {
        return thimble_fill_words(column, shape->kernel_w * depth, interleaved, zero_points);
    }
    column = thimble_fill_words(column, span->before * depth, interleaved, zero_points);
    const int8_t *from = line + (x + span->before * step) * shape->input_c;
    if (span->contiguous != 0) {
        thimble_expand_column_s8(from, span->inside * depth / 4, interleaved, column);
        column += span->inside * depth / 2 * interleaved;
    } else {
        for (int32_t tap = 0; tap < span->inside; tap++, from += step * shape->input_c) {
            thimble_expand_column_s8(from, depth / 4, interleaved, column);
            column += depth / 2 * interleaved;
        }
    }
    return thimble_fill_words(column, span->after * depth, interleaved, zero_points);
}

/* A window wholly inside the image whose kernel rows are runs of bytes. Copies go by words: what a row has
 * too much the next one overwrites. `pitch`: bytes from one line of the image to the next. */
static void thimble_put_inside(const thimble_conv_shape *shape,
                               const int8_t *from,
                               int32_t pitch,
                               int32_t words,
                               int32_t interleaved,
                               uint32_t *column,
                               int8_t *staging)
{
    const int32_t row_bytes = shape->kernel_w * shape->depth;
    const int32_t line = shape->dilation_h * pitch;
    if ((row_bytes & 3) == 0) {
        for (int32_t row = shape->kernel_h; row > 0; row--, from += line) {
            thimble_expand_column_s8(from, row_bytes >> 2, interleaved, column);
            column += row_bytes / 2 * interleaved;
        }
        return;
    }
    int8_t *to = staging;
    for (int32_t row = shape->kernel_h; row > 0; row--, from += line, to += row_bytes) {
        for (int32_t i = 0; i < row_bytes; i += 4) {
            (void)memcpy(to + i, from + i, 4);
        }
    }
    thimble_expand_column_s8(staging, words, interleaved, column);
}

/* The taps that one output pixel sees, in the filters' order. Pixels that are not whole words go through
 * `staging`: row by row where kernel rows are, else all together. */
static void thimble_put_window(const thimble_conv_shape *shape,
                               const int8_t *input,
                               int32_t y,
                               int32_t x,
                               int32_t words,
                               int32_t interleaved,
                               uint32_t *column,
                               int8_t *staging)
{
    const uint32_t zero_points = (uint8_t)shape->input_zero_point * 0x01010101U;
    const thimble_row_span span = thimble_span_at(shape, x);
    const int32_t row_bytes = shape->kernel_w * shape->depth;
    const int32_t pitch = thimble_line(shape->input_line, shape->input_w, shape->input_c);
    int8_t *to = staging;
    for (int32_t row = 0; row < shape->kernel_h; row++, y += shape->dilation_h) {
        const int32_t exists = y >= 0 && y < shape->input_h;
        const int8_t *const line = exists ? input + y * pitch : NULL;
        if ((row_bytes & 3) != 0) {
            to = thimble_put_row_bytes(shape, &span, line, x, zero_points, to);
        } else if ((shape->depth & 3) == 0) {
            column = thimble_put_row_words(shape, &span, line, x, zero_points, interleaved, column);
        } else {
            (void)thimble_put_row_bytes(shape, &span, line, x, zero_points, staging);
            thimble_expand_column_s8(staging, row_bytes / 4, interleaved, column);
            column += row_bytes / 2 * interleaved;
        }
    }
    if ((row_bytes & 3) != 0) {
        thimble_expand_column_s8(staging, words, interleaved, column);
    }
}

/* The greatest coordinates at which thimble_put_inside may be used; -1: nowhere. It may read up to three
 * bytes behind a window: where the window ends in the image's last line, these must be the line's, too. */
typedef struct {
    int32_t greatest_x, greatest_y;
    int32_t greatest_x_at_end;
} thimble_inside_range;

static inline int32_t thimble_is_inside(const thimble_inside_range *range, int32_t y, int32_t x)
{
    return y >= 0 && y <= range->greatest_y && x >= 0 &&
           x <= (y < range->greatest_y ? range->greatest_x : range->greatest_x_at_end);
}

static thimble_inside_range thimble_range_of(const thimble_conv_shape *shape)
{
    const int32_t contiguous =
        shape->kernel_w == 1 || (shape->dilation_w == 1 && shape->depth == shape->input_c);
    const int32_t last_x = shape->input_w - shape->kernel_w;
    thimble_inside_range range = {last_x, shape->input_h - (shape->kernel_h - 1) * shape->dilation_h - 1,
                                  last_x};
    if (!contiguous || shape->input_w * shape->input_c < 4) {
        range.greatest_x = -1;
        range.greatest_x_at_end = -1;
    } else if (((shape->kernel_w * shape->depth) & 3) != 0) {
        range.greatest_x_at_end -= (shape->input_c + 2) / shape->input_c;
    } else {
        /* Rows are whole words. */
    }
    return range;
}

#endif
