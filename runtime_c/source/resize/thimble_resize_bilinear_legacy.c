/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_neighbours.h"

#include <stddef.h>

#define RAISE 128

THIMBLE_EXACT_FLOAT void thimble_resize_bilinear_legacy(const thimble_resize_float_params *params,
                                                        const int8_t *source,
                                                        int8_t *target)
{
    const int32_t channels = params->channels, half_pixel = params->half_pixel_centers;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const thimble_neighbours y = thimble_around(i, &params->rows, half_pixel, params->input_height);
            const int8_t *const top = source + y.lower * row, *const bottom = source + y.upper * row;
            for (int32_t j = 0; j < params->output_width; j++) {
                const thimble_neighbours x =
                    thimble_around(j, &params->columns, half_pixel, params->input_width);
                const int8_t *const top_left = top + (ptrdiff_t)x.lower * channels;
                const int8_t *const top_right = top + (ptrdiff_t)x.upper * channels;
                const int8_t *const bottom_left = bottom + (ptrdiff_t)x.lower * channels;
                const int8_t *const bottom_right = bottom + (ptrdiff_t)x.upper * channels;
                for (int32_t c = 0; c < channels; c++) {
                    const float a = (float)(top_left[c] + RAISE) * y.near_lower * x.near_lower;
                    const float b = (float)(bottom_left[c] + RAISE) * y.near_upper * x.near_lower;
                    const float d = (float)(top_right[c] + RAISE) * y.near_lower * x.near_upper;
                    const float e = (float)(bottom_right[c] + RAISE) * y.near_upper * x.near_upper;
                    const float value = a + b + d + e + 0.5f;
                    *target++ = (int8_t)((int32_t)value - RAISE);
                }
            }
        }
        source += row * params->input_height;
    }
}
