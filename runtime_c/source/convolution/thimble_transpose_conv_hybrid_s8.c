/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_hybrid.h"

#include <stddef.h>

/* The sum of what reaches output (y, x) of a channel, each product scaled by itself, in the order of input
 * pixels and their channels. */
THIMBLE_EXACT_FLOAT static float sum_at(const thimble_window_f32 *w,
                                        const int8_t *pixels,
                                        int32_t zero_point,
                                        float scale,
                                        const int8_t *filter,
                                        float filter_scale,
                                        int32_t y,
                                        int32_t x)
{
    float sum = 0.0f;
    for (int32_t row = 0; row < w->input_h; row++) {
        const int32_t ky = y + w->pad_top - row * w->stride_h;
        for (int32_t column = 0; ky >= 0 && ky < w->kernel_h && column < w->input_w; column++) {
            const int32_t kx = x + w->pad_left - column * w->stride_w;
            if (kx < 0 || kx >= w->kernel_w) {
                continue;
            }
            const int8_t *from = pixels + (row * w->input_w + column) * w->input_c;
            const int8_t *taps = filter + (ky * w->kernel_w + kx) * w->input_c;
            for (int32_t channel = 0; channel < w->input_c; channel++) {
                const int32_t product = (from[channel] - zero_point) * taps[channel];
                sum += (float)product * filter_scale * scale;
            }
        }
    }
    return sum;
}

THIMBLE_EXACT_FLOAT void thimble_transpose_conv_hybrid_s8(const thimble_window_f32 *window,
                                                          const float *input,
                                                          const int8_t *filters,
                                                          const float *scales,
                                                          const float *bias,
                                                          void *scratch,
                                                          float *output)
{
    const thimble_window_f32 w = *window;
    const int32_t size = w.input_h * w.input_w * w.input_c;
    const int32_t step = w.kernel_h * w.kernel_w * w.input_c;
    int8_t *const pixels = scratch;
    for (int32_t batch = 0; batch < w.batches; batch++, input += size) {
        float scale;
        const int32_t zero_point = thimble_quantize_range_f32(input, size, 1, pixels, &scale);
        for (int32_t pixel = 0; pixel < w.output_h * w.output_w; pixel++) {
            for (int32_t channel = 0; channel < w.output_c; channel++) {
                const float sum = sum_at(&w, pixels, zero_point, scale, filters + channel * step,
                                         scales[channel], pixel / w.output_w, pixel % w.output_w);
                const float value = bias != NULL ? sum + bias[channel] : sum;
                *output++ = thimble_clamp_f32(value, w.min, w.max);
            }
        }
    }
}
