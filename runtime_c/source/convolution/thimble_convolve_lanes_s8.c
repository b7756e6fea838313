/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_columns.h"
#include "thimble_line.h"
#include "thimble_row_bytes.h"

/* The taps that one output pixel sees, in the filters' order. */
static void
put_window(const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, int8_t *column)
{
    const uint32_t zero_point = (uint8_t)shape->input_zero_point;
    const thimble_row_span span = thimble_span_at(shape, x);
    const int32_t pitch = thimble_line(shape->input_line, shape->input_w, shape->input_c);
    for (int32_t row = shape->kernel_h; row > 0; row--, y += shape->dilation_h) {
        const int8_t *const line = y >= 0 && y < shape->input_h ? input + y * pitch : NULL;
        column = thimble_put_row_bytes(shape, &span, line, x, zero_point, column);
    }
}

/* The same of a window that lies in the image, and whose rows are runs of bytes. */
static void put_inside(const int8_t *from, int32_t rows, int32_t row_bytes, int32_t line, int8_t *column)
{
    for (; rows > 0; rows--, from += line) {
        column = thimble_copy_bytes(column, from, row_bytes);
    }
}

/* Pixels that follow each other, two a turn. */
static void convolve_pixels(const thimble_conv_shape *shape,
                            const thimble_requant *requant,
                            const int8_t *input,
                            const int32_t *parameters,
                            int8_t *columns,
                            int8_t *output)
{
    const int32_t depth = shape->depth, channels = shape->output_c;
    const int32_t quick = thimble_quick_lanes(parameters, depth, channels);
    int32_t left = shape->batches * shape->output_h * shape->output_w;
    for (; left > 0; left -= 2, input += 2 * depth, output += 2 * channels) {
        const int32_t more = left > 1;
        thimble_copy_bytes(columns, input, depth + more * depth);
        thimble_mat_mult_lanes_s8(parameters, columns, columns + more * depth, depth, channels, quick,
                                  requant, output, output + more * channels);
    }
}

void thimble_convolve_lanes_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output)
{
    const int32_t depth = shape->depth, row_bytes = shape->kernel_w * depth;
    const int32_t taps = shape->kernel_h * row_bytes;
    const int32_t channels = shape->output_c;
    const int32_t pixels = shape->output_h * shape->output_w;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, depth);
    const int32_t row = shape->output_w * channels;
    const int32_t gap = thimble_line(shape->output_line, row, 1) - row;
    const int32_t runs = shape->dilation_w == 1 || shape->kernel_w == 1;
    const int32_t last_x = runs ? shape->input_w - shape->kernel_w : -1;
    const int32_t last_y = shape->input_h - (shape->kernel_h - 1) * shape->dilation_h - 1;
    int8_t *const columns = scratch;
    const int32_t step = (taps + 3) & ~3;

    if (taps == depth && shape->stride_h == 1 && shape->stride_w == 1 &&
        pixels == shape->input_h * shape->input_w && !shape->input_line &&
        !shape->output_line) { /* no padding either */
        convolve_pixels(shape, requant, input, parameters, columns, output);
        return;
    }

    const int32_t quick = thimble_quick_lanes(parameters, taps, channels);
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        int8_t *first = NULL, *to = output;
        int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
        for (int32_t pixel = 0; pixel < pixels; pixel++, to += channels) {
            int8_t *const column = columns + (pixel & 1) * step;
            if (y >= 0 && y <= last_y && x >= 0 && x <= last_x) {
                const int8_t *const from = input + y * line + x * depth;
                put_inside(from, shape->kernel_h, row_bytes, shape->dilation_h * line, column);
            } else {
                put_window(shape, input, y, x, column);
            }
            if (pixel & 1) {
                thimble_mat_mult_lanes_s8(parameters, columns, column, taps, channels, quick, requant, first,
                                          to);
            } else if (pixel == pixels - 1) {
                thimble_mat_mult_lanes_s8(parameters, columns, columns, taps, channels, quick, requant, to,
                                          to);
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
        output += pixels * channels;
    }
}
