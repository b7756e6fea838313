/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_hybrid.h"
#include "thimble_quantize_images.h"
#include "thimble_taps_f32.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT void thimble_depthwise_hybrid_s8(const thimble_window_f32 *window,
                                                     thimble_range range,
                                                     int32_t filters_zero_point,
                                                     const float *input,
                                                     const int8_t *filters,
                                                     const float *scales,
                                                     const float *bias,
                                                     void *scratch,
                                                     float *output)
{
    const thimble_window_f32 w = *window;
    const int32_t multiplier = w.output_c / w.input_c;
    const int32_t size = w.input_h * w.input_w * w.input_c;
    int8_t *const pixels = scratch;
    for (int32_t batch = 0; batch < w.batches; batch++) {
        float scale;
        const int32_t zero_point =
            thimble_quantize_image(range, input, w.batches, batch, size, pixels, &scale);
        for (int32_t pixel = 0; pixel < w.output_h * w.output_w; pixel++) {
            const int32_t top = pixel / w.output_w * w.stride_h - w.pad_top;
            const int32_t left = pixel % w.output_w * w.stride_w - w.pad_left;
            int32_t first_row, rows, first, columns;
            thimble_taps(top, w.input_h, w.kernel_h, w.dilation_h, &first_row, &rows);
            thimble_taps(left, w.input_w, w.kernel_w, w.dilation_w, &first, &columns);
            for (int32_t channel = 0; channel < w.output_c; channel++) {
                const int8_t *image = pixels + channel / multiplier;
                int32_t sum = 0;
                for (int32_t row = first_row; row < rows; row++) {
                    const int32_t y = top + row * w.dilation_h;
                    for (int32_t column = first; column < columns; column++) {
                        const int32_t x = left + column * w.dilation_w;
                        const int32_t pixel_value = image[(y * w.input_w + x) * w.input_c] - zero_point;
                        const int32_t tap = filters[(row * w.kernel_w + column) * w.output_c + channel];
                        sum = thimble_add(sum, pixel_value * (tap - filters_zero_point));
                    }
                }
                const float scaled = (float)sum * (scales[channel] * scale);
                const float value = bias != NULL ? scaled + bias[channel] : scaled;
                *output++ = thimble_clamp_f32(value, w.min, w.max);
            }
        }
    }
}
