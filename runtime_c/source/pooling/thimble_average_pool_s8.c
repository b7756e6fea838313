/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_pool.h"
#include "thimble_sum_window.h"

/* Rounded to the nearest, halves away from zero. */
static int32_t average(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

void thimble_average_pool_s8(const thimble_pool_params *params,
                             int32_t lift,
                             const int8_t *input,
                             int8_t *output)
{
    const int32_t channels = params->channels;
    const ptrdiff_t pixel = channels;
    thimble_window window = {.row_stride = pixel * params->input_w, .column_stride = pixel};

    for (int32_t batch = 0; batch < params->batches; batch++, input += window.row_stride * params->input_h) {
        for (int32_t row = 0; row < params->output_h; row++) {
            const int32_t y = row * params->stride_h - params->pad_top;
            const int32_t top = y < 0 ? 0 : y;
            const int32_t end = y + params->kernel_h;
            window.rows = (end < params->input_h ? end : params->input_h) - top;
            for (int32_t column = 0; column < params->output_w; column++) {
                const int32_t x = column * params->stride_w - params->pad_left;
                const int32_t left = x < 0 ? 0 : x;
                const int32_t right = x + params->kernel_w;
                window.columns = (right < params->input_w ? right : params->input_w) - left;
                const int8_t *corner = input + top * window.row_stride + left * pixel;
                const int32_t count = window.rows * window.columns;
                for (int32_t channel = 0; channel < channels; channel += 4) {
                    const int32_t together = channels - channel < 4 ? channels - channel : 4;
                    int32_t sums[4];
                    thimble_sum_window_s8(&window, corner + channel, together, sums);
                    for (int32_t i = 0; i < together; i++) {
                        int32_t value = average(sums[i] + lift * count, count) - lift;
                        value = value < params->min ? params->min : value;
                        value = value > params->max ? params->max : value;
                        *output++ = (int8_t)value;
                    }
                }
            }
        }
    }
}
