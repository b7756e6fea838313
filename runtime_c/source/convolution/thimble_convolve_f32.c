/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_taps_f32.h"

/* Sums of four filters, `step` elements apart, each in the order of the inputs. */
THIMBLE_EXACT_FLOAT static void
four_sums(const float *input, const float *filters, int32_t step, int32_t size, float *sums)
{
    const float *a = filters;
    const float *b = a + step;
    const float *c = b + step;
    const float *d = c + step;
    float s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (int32_t i = 0; i < size; i++) {
        const float x = *input++;
        s0 += x * *a++;
        s1 += x * *b++;
        s2 += x * *c++;
        s3 += x * *d++;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

THIMBLE_EXACT_FLOAT static float one_sum(const float *input, const float *filter, int32_t size, float sum)
{
    for (int32_t i = 0; i < size; i++) {
        sum += *input++ * *filter++;
    }
    return sum;
}

/* Up to four channels of one pixel. */
THIMBLE_EXACT_FLOAT static void some_channels(const thimble_window_f32 *w,
                                              const float *image,
                                              const float *filters,
                                              int32_t top,
                                              int32_t left,
                                              int32_t count,
                                              float *sums)
{
    const int32_t step = w->kernel_h * w->kernel_w * w->depth;
    int32_t row, rows, first, columns;
    thimble_taps(top, w->input_h, w->kernel_h, w->dilation_h, &row, &rows);
    thimble_taps(left, w->input_w, w->kernel_w, w->dilation_w, &first, &columns);
    const int32_t whole = w->depth == w->input_c && w->dilation_w == 1 && columns > first;
    for (; row < rows; row++) {
        const float *line = image + (top + row * w->dilation_h) * w->input_w * w->input_c;
        for (int32_t column = first; column < columns; column++) {
            const float *input = line + (left + column * w->dilation_w) * w->input_c;
            const float *filter = filters + (row * w->kernel_w + column) * w->depth;
            const int32_t size = whole ? (columns - first) * w->depth : w->depth;
            if (count == 4) {
                four_sums(input, filter, step, size, sums);
            } else {
                for (int32_t i = 0; i < count; i++) {
                    sums[i] = one_sum(input, filter + i * step, size, sums[i]);
                }
            }
            column = whole ? columns : column;
        }
    }
}

THIMBLE_EXACT_FLOAT void thimble_convolve_f32(const thimble_window_f32 *window,
                                              const float *input,
                                              const float *filters,
                                              const float *bias,
                                              float *output)
{
    const thimble_window_f32 w = *window;
    const int32_t group = w.output_c / (w.input_c / w.depth);
    for (int32_t batch = 0; batch < w.batches; batch++, input += w.input_h * w.input_w * w.input_c) {
        for (int32_t pixel = 0; pixel < w.output_h * w.output_w; pixel++) {
            const int32_t top = pixel / w.output_w * w.stride_h - w.pad_top;
            const int32_t left = pixel % w.output_w * w.stride_w - w.pad_left;
            int32_t count;
            for (int32_t channel = 0; channel < w.output_c; channel += count) {
                const int32_t rest = group - channel % group;
                const float *image = input + channel / group * w.depth;
                const float *filter = filters + channel * w.kernel_h * w.kernel_w * w.depth;
                float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                count = rest < 4 ? rest : 4;
                some_channels(&w, image, filter, top, left, count, sums);
                for (int32_t i = 0; i < count; i++) {
                    const float sum = bias ? sums[i] + bias[channel + i] : sums[i];
                    *output++ = thimble_clamp_f32(sum, w.min, w.max);
                }
            }
        }
    }
}
