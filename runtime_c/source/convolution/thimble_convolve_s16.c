/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dot_s16.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

/* Sum of one filter over the window whose first tap lies on input row `top` and column `left`. */
static int64_t window_sum(
    const thimble_conv_shape *shape, const int16_t *group, const int8_t *filter, int32_t top, int32_t left)
{
    int64_t sum = 0;
    for (int32_t row = 0; row < shape->kernel_h; row++) {
        const int32_t y = top + row * shape->dilation_h;
        if (y < 0 || y >= shape->input_h) {
            continue;
        }
        for (int32_t column = 0; column < shape->kernel_w; column++) {
            const int32_t x = left + column * shape->dilation_w;
            if (x >= 0 && x < shape->input_w) {
                const int32_t pixel = y * shape->input_w + x;
                const int32_t tap = row * shape->kernel_w + column;
                sum += thimble_dot_s16(group + pixel * shape->input_c, filter + tap * shape->depth,
                                       shape->depth);
            }
        }
    }
    return sum;
}

void thimble_convolve_s16(const thimble_conv_shape *shape,
                          const thimble_conv_s16_scaling *scaling,
                          const int16_t *input,
                          const int8_t *filters,
                          int16_t *output)
{
    const int32_t group_channels = shape->output_c / (shape->input_c / shape->depth);
    const int32_t taps = shape->kernel_h * shape->kernel_w * shape->depth;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t y = 0; y < shape->output_h; y++) {
            for (int32_t x = 0; x < shape->output_w; x++) {
                const int32_t top = y * shape->stride_h - shape->pad_top;
                const int32_t left = x * shape->stride_w - shape->pad_left;
                for (int32_t channel = 0; channel < shape->output_c; channel++) {
                    const int16_t *group = input + channel / group_channels * shape->depth;
                    const int8_t *filter = filters + channel * taps;
                    const int64_t sum = window_sum(shape, group, filter, top, left) + scaling->bias[channel];
                    const int32_t scaled = thimble_scaled_s64(
                        sum, thimble_multiplier_s16(scaling->multiplier[channel]), scaling->shift[channel]);
                    *output++ = (int16_t)thimble_clamp_s16(scaled, scaling->min, scaling->max);
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
