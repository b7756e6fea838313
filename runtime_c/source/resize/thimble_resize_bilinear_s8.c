/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"

#include <stddef.h>

#define ONE (1 << THIMBLE_BILINEAR_BITS)

/* Two neighbours of a place on a line, and what the second weighs in parts of ONE. */
typedef struct {
    int32_t lower;
    int32_t upper;
    int32_t weight;
} neighbours;

static neighbours around(int32_t place, int32_t size)
{
    neighbours found;

    found.lower = place < 0 ? 0 : place >> THIMBLE_BILINEAR_BITS;
    found.lower = found.lower < size ? found.lower : size - 1;
    found.upper = place < 0 ? 0 : (place + ONE - 1) >> THIMBLE_BILINEAR_BITS;
    found.upper = found.upper < size ? found.upper : size - 1;
    found.weight = place - found.lower * ONE;
    return found;
}

void thimble_resize_bilinear_s8(const thimble_resize_bilinear_params *params,
                                const int8_t *source,
                                int8_t *target)
{
    const int32_t channels = params->channels;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        int32_t place_y = params->rows.start;
        for (int32_t i = 0; i < params->output_height; i++, place_y += params->rows.step) {
            const neighbours y = around(place_y, params->input_height);
            const int8_t *top = source + y.lower * row;
            const int8_t *bottom = source + y.upper * row;
            int32_t place_x = params->columns.start;
            for (int32_t j = 0; j < params->output_width; j++, place_x += params->columns.step) {
                const neighbours x = around(place_x, params->input_width);
                const ptrdiff_t left = (ptrdiff_t)x.lower * channels;
                const ptrdiff_t right = (ptrdiff_t)x.upper * channels;
                const int32_t top_left = (ONE - y.weight) * (ONE - x.weight);
                const int32_t top_right = (ONE - y.weight) * x.weight;
                const int32_t bottom_left = y.weight * (ONE - x.weight);
                const int32_t bottom_right = y.weight * x.weight;
                for (int32_t c = 0; c < channels; c++) {
                    const int32_t sum = top[left + c] * top_left + top[right + c] * top_right +
                                        bottom[left + c] * bottom_left + bottom[right + c] * bottom_right;
                    const int32_t half = sum > 0 ? ONE * ONE / 2 : -(ONE * ONE / 2);
                    *target++ = (int8_t)((sum + half) / (ONE * ONE));
                }
            }
        }
        source += row * params->input_height;
    }
}
