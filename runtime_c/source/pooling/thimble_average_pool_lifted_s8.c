/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_pool.h"

/* Rounded to the nearest, halves away from zero. */
static int32_t average(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

arm_cmsis_nn_status thimble_average_pool_lifted_s8(int32_t lift,
                                                   const cmsis_nn_pool_params *pool_params,
                                                   const cmsis_nn_dims *input_dims,
                                                   const int8_t *src,
                                                   const cmsis_nn_dims *filter_dims,
                                                   const cmsis_nn_dims *output_dims,
                                                   int8_t *dst)
{
    const int32_t channels = input_dims->c;
    const ptrdiff_t pixel = channels;
    thimble_window window = {.row_stride = pixel * input_dims->w, .column_stride = pixel};

    for (int32_t batch = 0; batch < input_dims->n; batch++, src += window.row_stride * input_dims->h) {
        for (int32_t row = 0; row < output_dims->h; row++) {
            const int32_t y = row * pool_params->stride.h - pool_params->padding.h;
            const int32_t top = y < 0 ? 0 : y;
            const int32_t bottom = y + filter_dims->h < input_dims->h ? y + filter_dims->h : input_dims->h;
            window.rows = bottom - top;
            for (int32_t column = 0; column < output_dims->w; column++) {
                const int32_t x = column * pool_params->stride.w - pool_params->padding.w;
                const int32_t left = x < 0 ? 0 : x;
                const int32_t right = x + filter_dims->w < input_dims->w ? x + filter_dims->w : input_dims->w;
                window.columns = right - left;
                const int8_t *corner = src + top * window.row_stride + left * pixel;
                const int32_t count = window.rows * window.columns;
                for (int32_t channel = 0; channel < channels; channel += 4) {
                    const int32_t together = channels - channel < 4 ? channels - channel : 4;
                    int32_t sums[4];
                    thimble_sum_window_s8(&window, corner + channel, together, sums);
                    for (int32_t i = 0; i < together; i++) {
                        int32_t value = average(sums[i] + lift * count, count) - lift;
                        value = value < pool_params->activation.min ? pool_params->activation.min : value;
                        value = value > pool_params->activation.max ? pool_params->activation.max : value;
                        *dst++ = (int8_t)value;
                    }
                }
            }
        }
    }
    return ARM_CMSIS_NN_SUCCESS;
}
