/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT void
thimble_resize_linear_f32(const thimble_resize_linear_f32_params *params, const float *source, float *target)
{
    const int32_t channels = params->channels;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const float *const top = source + params->rows[2 * i] * row;
            const float *const bottom = source + params->rows[2 * i + 1] * row;
            const float *const down = params->row_weights + (ptrdiff_t)2 * i;
            for (int32_t j = 0; j < params->output_width; j++) {
                const ptrdiff_t left = (ptrdiff_t)params->columns[2 * j] * channels;
                const ptrdiff_t right = (ptrdiff_t)params->columns[2 * j + 1] * channels;
                const float *const across = params->column_weights + (ptrdiff_t)2 * j;
                const float top_left = across[0] * down[0], top_right = across[1] * down[0];
                const float bottom_left = across[0] * down[1], bottom_right = across[1] * down[1];
                for (int32_t c = 0; c < channels; c++) {
                    float value = top_left * top[left + c];
                    value += top_right * top[right + c];
                    value += bottom_left * bottom[left + c];
                    value += bottom_right * bottom[right + c];
                    *target++ = value;
                }
            }
        }
        source += row * params->input_height;
    }
}
