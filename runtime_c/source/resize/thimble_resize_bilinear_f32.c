/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"
#include "thimble_neighbours.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT void
thimble_resize_bilinear_f32(const thimble_resize_float_params *params, const float *source, float *target)
{
    const int32_t channels = params->channels, half_pixel = params->half_pixel_centers;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const thimble_neighbours y = thimble_around(i, &params->rows, half_pixel, params->input_height);
            const float *const top = source + y.lower * row, *const bottom = source + y.upper * row;
            for (int32_t j = 0; j < params->output_width; j++) {
                const thimble_neighbours x =
                    thimble_around(j, &params->columns, half_pixel, params->input_width);
                const float *const top_left = top + (ptrdiff_t)x.lower * channels;
                const float *const top_right = top + (ptrdiff_t)x.upper * channels;
                const float *const bottom_left = bottom + (ptrdiff_t)x.lower * channels;
                const float *const bottom_right = bottom + (ptrdiff_t)x.upper * channels;
                for (int32_t c = 0; c < channels; c++) {
                    const float a = top_left[c] * y.near_lower * x.near_lower;
                    const float b = bottom_left[c] * y.near_upper * x.near_lower;
                    const float d = top_right[c] * y.near_lower * x.near_upper;
                    const float e = bottom_right[c] * y.near_upper * x.near_upper;
                    *target++ = a + b + d + e;
                }
            }
        }
        source += row * params->input_height;
    }
}
