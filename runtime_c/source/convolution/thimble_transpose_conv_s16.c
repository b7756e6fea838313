/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dot_s16.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

/* Sum of one filter over the input pixels that meet in output pixel (y, x). */
static int64_t
pixel_sum(const thimble_conv_shape *shape, const int16_t *input, const int8_t *filter, int32_t y, int32_t x)
{
    int64_t sum = 0;
    y += shape->pad_top;
    x += shape->pad_left;
    for (int32_t row = y % shape->stride_h; row < shape->kernel_h && row <= y; row += shape->stride_h) {
        const int32_t from_y = (y - row) / shape->stride_h;
        if (from_y >= shape->input_h) {
            continue;
        }
        for (int32_t column = x % shape->stride_w; column < shape->kernel_w && column <= x;
             column += shape->stride_w) {
            const int32_t from_x = (x - column) / shape->stride_w;
            if (from_x < shape->input_w) {
                const int32_t pixel = from_y * shape->input_w + from_x;
                const int32_t tap = row * shape->kernel_w + column;
                sum +=
                    thimble_dot_s16(input + pixel * shape->depth, filter + tap * shape->depth, shape->depth);
            }
        }
    }
    return sum;
}

void thimble_transpose_conv_s16(const thimble_conv_shape *shape,
                                const thimble_conv_s16_scaling *scaling,
                                const int16_t *input,
                                const int8_t *filters,
                                int16_t *output)
{
    const int32_t taps = shape->kernel_h * shape->kernel_w * shape->depth;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t y = 0; y < shape->output_h; y++) {
            for (int32_t x = 0; x < shape->output_w; x++) {
                for (int32_t channel = 0; channel < shape->output_c; channel++) {
                    const int64_t sum = pixel_sum(shape, input, filters + channel * taps, y, x);
                    const int32_t scaled = thimble_scaled_s64(
                        sum + scaling->bias[channel], thimble_multiplier_s16(scaling->multiplier[channel]),
                        scaling->shift[channel]);
                    *output++ = (int16_t)thimble_clamp_s16(scaled, scaling->min, scaling->max);
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
