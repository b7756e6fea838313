/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_columns.h"
#include "thimble_lane_windows.h"
#include "thimble_requantize_lanes.h"

/* Rows (or columns) of a kernel that meet in an output: every `stride`th from `first` on; one, of zeros,
 * where there is none. */
static int32_t met(int32_t kernel, int32_t first, int32_t stride)
{
    return first < kernel ? (kernel - first + stride - 1) / stride : 1;
}

/* Words of the parameters of so many taps. */
static int32_t words_of(int32_t taps, int32_t channels)
{
    const int32_t fours = (channels + 3) / 4;
    return fours * (((taps + THIMBLE_LANES - 1) & -THIMBLE_LANES) + THIMBLE_LANE_SCALING);
}

/* Every stride_w'th output of a row from `x` on: windows of an ordinary convolution. */
static void put_outputs(const thimble_conv_shape *shape,
                        const thimble_conv_shape *window,
                        const thimble_requant *requant,
                        const int8_t *input,
                        const int32_t *parameters,
                        int8_t *columns,
                        int32_t top,
                        int32_t x,
                        int8_t *row)
{
    const int32_t step = shape->stride_w, channels = shape->output_c;
    const int32_t taps = window->kernel_h * window->kernel_w * shape->depth;
    const int32_t quick = thimble_quick_lanes(parameters, taps, channels);
    int32_t left = (x + shape->pad_left) / step - (window->kernel_w - 1);
    for (; x < shape->output_w; x += 2 * step, left += 2) {
        int8_t *const to = row + x * channels;
        thimble_put_edge(window, input, top, left, columns);
        if (x + step < shape->output_w) {
            int8_t *const second = columns + ((taps + 3) & ~3);
            thimble_put_edge(window, input, top, left + 1, second);
            thimble_mat_mult_lanes_s8(parameters, columns, second, taps, channels, quick, requant, to,
                                      to + step * channels);
        } else {
            thimble_mat_mult_lanes_s8(parameters, columns, columns, taps, channels, quick, requant, to, to);
        }
    }
}

void thimble_transpose_conv_lanes_s8(const thimble_conv_shape *shape,
                                     const thimble_requant *requant,
                                     const int8_t *input,
                                     const int32_t *parameters,
                                     void *scratch,
                                     int8_t *output)
{
    const int32_t channels = shape->output_c, row = shape->output_w * channels;
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t y = 0; y < shape->output_h; y++, output += row) {
            const int32_t *at = parameters;
            for (int32_t down = 0; down < shape->stride_h; down++) {
                thimble_conv_shape window = *shape;
                window.kernel_h = met(shape->kernel_h, down, shape->stride_h);
                const int32_t here = (y + shape->pad_top) % shape->stride_h == down;
                const int32_t top = (y + shape->pad_top) / shape->stride_h - (window.kernel_h - 1);
                for (int32_t across = 0; across < shape->stride_w; across++) {
                    window.kernel_w = met(shape->kernel_w, across, shape->stride_w);
                    if (here != 0) {
                        const int32_t before = across - shape->pad_left % shape->stride_w;
                        const int32_t x = before < 0 ? before + shape->stride_w : before;
                        put_outputs(shape, &window, requant, input, at, scratch, top, x, output);
                    }
                    at += words_of(window.kernel_h * window.kernel_w * shape->depth, channels);
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
