#include "thimble_float.h"

#include <stddef.h>

#define RAISE 128

/* Two neighbours of a place on a line, and what each weighs. */
typedef struct {
    int32_t lower, upper;
    float near_lower, near_upper;
} neighbours;

THIMBLE_EXACT_FLOAT static neighbours around(int32_t index, float scale, int32_t half_pixel, int32_t size)
{
    neighbours found;
    const float place = half_pixel ? ((float)index + 0.5f) * scale - 0.5f : (float)index * scale;
    int32_t floor = (int32_t)place;
    floor -= (float)floor > place;
    const int32_t ceiling = floor + ((float)floor < place);
    found.lower = floor > 0 ? floor : 0;
    found.upper = ceiling < size - 1 ? ceiling : size - 1;
    found.near_upper = place - (float)found.lower;
    found.near_lower = 1.0f - found.near_upper;
    return found;
}

THIMBLE_EXACT_FLOAT void thimble_resize_bilinear_legacy(const thimble_resize_float_params *params,
                                                        const int8_t *source,
                                                        int8_t *target)
{
    const int32_t channels = params->channels, half_pixel = params->half_pixel_centers;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const neighbours y = around(i, params->row_scale, half_pixel, params->input_height);
            const int8_t *const top = source + y.lower * row, *const bottom = source + y.upper * row;
            for (int32_t j = 0; j < params->output_width; j++) {
                const neighbours x = around(j, params->column_scale, half_pixel, params->input_width);
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
