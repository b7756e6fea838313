/* SPDX-License-Identifier: Apache-2.0 */
/* A walk over the windows of a convolution, two at a time, each copied to a column of bytes. */
#ifndef THIMBLE_LANE_WINDOWS_H
#define THIMBLE_LANE_WINDOWS_H

#include "thimble_line.h"
#include "thimble_row_bytes.h"

/* What is done with the columns of two neighbouring windows. `first`, `second`: how far from the first output
 * those of the two pixels lie, in elements. Of a pixel that is alone column and output are given twice. */
typedef void (*thimble_put_pair)(
    const void *context, int8_t *column_0, int8_t *column_1, int32_t first, int32_t second);

/* The taps that one output pixel sees, in the filters' order. */
static inline void
thimble_put_edge(const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, int8_t *column)
{
    const uint32_t zero_point = (uint8_t)shape->input_zero_point;
    const thimble_row_span span = thimble_span_at(shape, x);
    const int32_t pitch = thimble_line(shape->input_line, shape->input_w, shape->input_c);
    for (int32_t row = shape->kernel_h; row > 0; row--, y += shape->dilation_h) {
        const int8_t *const line = y >= 0 && y < shape->input_h ? input + y * pitch : NULL;
        column = thimble_put_row_bytes(shape, &span, line, x, zero_point, column);
    }
}

/* All windows. `columns`: room for two columns, the second `step` bytes behind the first. */
__attribute__((always_inline)) static inline void thimble_walk_pairs(const thimble_conv_shape *shape,
                                                                     const int8_t *input,
                                                                     int8_t *columns,
                                                                     int32_t step,
                                                                     thimble_put_pair put,
                                                                     const void *context)
{
    const int32_t depth = shape->depth, row_bytes = shape->kernel_w * depth;
    const int32_t channels = shape->output_c, pixels = shape->output_h * shape->output_w;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, depth);
    const int32_t row = shape->output_w * channels;
    const int32_t gap = thimble_line(shape->output_line, row, 1) - row;
    const int32_t runs = shape->dilation_w == 1 || shape->kernel_w == 1;
    const int32_t last_x = runs ? shape->input_w - shape->kernel_w : -1;
    const int32_t last_y = shape->input_h - (shape->kernel_h - 1) * shape->dilation_h - 1;
    int32_t from = 0;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        int32_t first = from, to = from;
        int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
        for (int32_t pixel = 0; pixel < pixels; pixel++, to += channels) {
            int8_t *const column = columns + (pixel & 1) * step;
            if (y >= 0 && y <= last_y && x >= 0 && x <= last_x) {
                const int8_t *run = input + y * line + x * depth;
                int8_t *at = column;
                for (int32_t rows = shape->kernel_h; rows > 0; rows--, run += shape->dilation_h * line) {
                    at = thimble_copy_bytes(at, run, row_bytes);
                }
            } else {
                thimble_put_edge(shape, input, y, x, column);
            }
            if ((pixel & 1) != 0) {
                put(context, columns, column, first, to);
            } else if (pixel == pixels - 1) {
                put(context, columns, columns, to, to);
            } else {
                /* The next pixel comes with it. */
            }
            first = to;
            x += shape->stride_w;
            if (--left == 0) {
                x = -shape->pad_left;
                y += shape->stride_h;
                to += gap;
                left = shape->output_w;
            }
        }
        input += shape->input_h * shape->input_w * depth;
        from += pixels * channels;
    }
}

#endif
