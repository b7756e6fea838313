/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv3d.h"
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_taps_f32.h"

/* One tap: all channels of one input pixel to all sums. */
THIMBLE_EXACT_FLOAT static void
add_tap(const float *input, const float *filter, int32_t inputs, int32_t outputs, float *sums)
{
    for (int32_t i = 0; i < inputs; i++) {
        const float x = input[i];
        for (int32_t channel = 0; channel < outputs; channel++) {
            sums[channel] += x * *filter++;
        }
    }
}

/* The sums of one pixel, in its place of the output. */
THIMBLE_EXACT_FLOAT static void sum_pixel(const thimble_volume_f32 *v,
                                          const float *input,
                                          const float *filters,
                                          int32_t front,
                                          int32_t top,
                                          int32_t left,
                                          float *sums)
{
    int32_t plane, planes, first_row, rows, first_column, columns;
    thimble_taps(front, v->input_d, v->kernel_d, v->dilation_d, &plane, &planes);
    thimble_taps(top, v->input_h, v->kernel_h, v->dilation_h, &first_row, &rows);
    thimble_taps(left, v->input_w, v->kernel_w, v->dilation_w, &first_column, &columns);
    for (; plane < planes; plane++) {
        for (int32_t row = first_row; row < rows; row++) {
            const int32_t line = (front + plane * v->dilation_d) * v->input_h + top + row * v->dilation_h;
            for (int32_t column = first_column; column < columns; column++) {
                const int32_t pixel = line * v->input_w + left + column * v->dilation_w;
                const int32_t tap = (plane * v->kernel_h + row) * v->kernel_w + column;
                add_tap(input + pixel * v->input_c, filters + tap * v->input_c * v->output_c, v->input_c,
                        v->output_c, sums);
            }
        }
    }
}

THIMBLE_EXACT_FLOAT void thimble_convolve_3d_f32(const thimble_volume_f32 *volume,
                                                 const float *input,
                                                 const float *filters,
                                                 const float *bias,
                                                 float *output)
{
    const thimble_volume_f32 v = *volume;
    for (int32_t batch = 0; batch < v.batches; batch++) {
        for (int32_t pixel = 0; pixel < v.output_d * v.output_h * v.output_w; pixel++) {
            const int32_t line = pixel / v.output_w;
            for (int32_t channel = 0; channel < v.output_c; channel++) {
                output[channel] = 0.0f;
            }
            sum_pixel(&v, input, filters, line / v.output_h * v.stride_d - v.pad_front,
                      line % v.output_h * v.stride_h - v.pad_top,
                      pixel % v.output_w * v.stride_w - v.pad_left, output);
            for (int32_t channel = 0; channel < v.output_c; channel++) {
                const float sum = bias ? output[channel] + bias[channel] : output[channel];
                output[channel] = thimble_clamp_f32(sum, v.min, v.max);
            }
            output += v.output_c;
        }
        input += v.input_d * v.input_h * v.input_w * v.input_c;
    }
}
