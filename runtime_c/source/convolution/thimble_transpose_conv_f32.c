/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* The sum of what reaches output (y, x) of a channel, in the order of input pixels and their channels. */
THIMBLE_EXACT_FLOAT static float
sum_at(const thimble_window_f32 *w, const float *input, const float *filter, int32_t y, int32_t x)
{
    float sum = 0.0f;
    for (int32_t row = 0; row < w->input_h; row++) {
        const int32_t ky = y + w->pad_top - row * w->stride_h;
        for (int32_t column = 0; ky >= 0 && ky < w->kernel_h && column < w->input_w; column++) {
            const int32_t kx = x + w->pad_left - column * w->stride_w;
            if (kx < 0 || kx >= w->kernel_w) {
                continue;
            }
            const float *from = input + (row * w->input_w + column) * w->input_c;
            const float *taps = filter + (ky * w->kernel_w + kx) * w->input_c;
            for (int32_t channel = 0; channel < w->input_c; channel++) {
                sum += from[channel] * taps[channel];
            }
        }
    }
    return sum;
}

THIMBLE_EXACT_FLOAT void thimble_transpose_conv_f32(const thimble_window_f32 *window,
                                                    const float *input,
                                                    const float *filters,
                                                    const float *bias,
                                                    float *output)
{
    const thimble_window_f32 w = *window;
    const int32_t step = w.kernel_h * w.kernel_w * w.input_c;
    for (int32_t batch = 0; batch < w.batches; batch++, input += w.input_h * w.input_w * w.input_c) {
        for (int32_t pixel = 0; pixel < w.output_h * w.output_w; pixel++) {
            for (int32_t channel = 0; channel < w.output_c; channel++) {
                const float *filter = filters + channel * step;
                float sum = sum_at(&w, input, filter, pixel / w.output_w, pixel % w.output_w);
                sum = bias ? sum + bias[channel] : sum;
                *output++ = thimble_clamp_f32(sum, w.min, w.max);
            }
        }
    }
}
