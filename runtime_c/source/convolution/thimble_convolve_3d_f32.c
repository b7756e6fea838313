/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_taps_f32.h"

/* Sums of four filters next to each other, each in the order of the inputs. */
THIMBLE_EXACT_FLOAT static void
four_sums(const float *input, const float *filters, int32_t step, int32_t size, float *sums)
{
    float s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    for (int32_t i = 0; i < size; i++, filters += step) {
        const float x = *input++;
        s0 += x * filters[0];
        s1 += x * filters[1];
        s2 += x * filters[2];
        s3 += x * filters[3];
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

THIMBLE_EXACT_FLOAT static float
one_sum(const float *input, const float *filters, int32_t step, int32_t size, float sum)
{
    for (int32_t i = 0; i < size; i++, filters += step) {
        sum += *input++ * *filters;
    }
    return sum;
}

/* Up to four channels of the voxel whose window begins at `origin`. */
THIMBLE_EXACT_FLOAT static void some_channels(const thimble_volume_f32 *w,
                                              const float *image,
                                              const float *filters,
                                              const int32_t *origin,
                                              int32_t count,
                                              float *sums)
{
    int32_t first[3], last[3];
    for (int32_t axis = 0; axis < 3; axis++) {
        thimble_taps(origin[axis], w->input[axis], w->kernel[axis], w->dilation[axis], &first[axis],
                     &last[axis]);
    }
    for (int32_t plane = first[0]; plane < last[0]; plane++) {
        for (int32_t row = first[1]; row < last[1]; row++) {
            const int32_t line =
                (origin[0] + plane * w->dilation[0]) * w->input[1] + origin[1] + row * w->dilation[1];
            for (int32_t column = first[2]; column < last[2]; column++) {
                const int32_t voxel = line * w->input[2] + origin[2] + column * w->dilation[2];
                const int32_t tap = (plane * w->kernel[1] + row) * w->kernel[2] + column;
                const float *from = image + voxel * w->input_c;
                const float *filter = filters + tap * w->input_c * w->output_c;
                if (count == 4) {
                    four_sums(from, filter, w->output_c, w->input_c, sums);
                } else {
                    for (int32_t i = 0; i < count; i++) {
                        sums[i] = one_sum(from, filter + i, w->output_c, w->input_c, sums[i]);
                    }
                }
            }
        }
    }
}

THIMBLE_EXACT_FLOAT void thimble_convolve_3d_f32(const thimble_volume_f32 *window,
                                                 const float *input,
                                                 const float *filters,
                                                 const float *bias,
                                                 float *output)
{
    const thimble_volume_f32 w = *window;
    const int32_t area = w.output[1] * w.output[2];
    for (int32_t batch = 0; batch < w.batches; batch++) {
        for (int32_t voxel = 0; voxel < w.output[0] * area; voxel++) {
            const int32_t origin[3] = {
                voxel / area * w.stride[0] - w.pad[0],
                voxel % area / w.output[2] * w.stride[1] - w.pad[1],
                voxel % w.output[2] * w.stride[2] - w.pad[2],
            };
            int32_t count;
            for (int32_t channel = 0; channel < w.output_c; channel += count) {
                float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                count = w.output_c - channel < 4 ? w.output_c - channel : 4;
                some_channels(&w, input, filters + channel, origin, count, sums);
                for (int32_t i = 0; i < count; i++) {
                    const float sum = sums[i] + (bias ? bias[channel + i] : 0.0f);
                    *output++ = thimble_clamp_f32(sum, w.min, w.max);
                }
            }
        }
        input += w.input[0] * w.input[1] * w.input[2] * w.input_c;
    }
}
