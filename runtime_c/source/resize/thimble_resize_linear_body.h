/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESIZE_LINEAR of ELEMENT by PARAMS: the mean of four neighbours, weighed. REAL(x) is the number that an
 * element stands for, STORED(value) the element that stands for a number.
 */
#include "thimble_exact_float.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT void RESIZE_LINEAR(const PARAMS *params, const ELEMENT *source, ELEMENT *target)
{
    const int32_t channels = params->channels;
    const ptrdiff_t row = (ptrdiff_t)channels * params->input_width;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t i = 0; i < params->output_height; i++) {
            const ELEMENT *const top = source + params->rows[2 * i] * row;
            const ELEMENT *const bottom = source + params->rows[2 * i + 1] * row;
            const float *const down = params->row_weights + (ptrdiff_t)2 * i;
            for (int32_t j = 0; j < params->output_width; j++) {
                const ptrdiff_t left = (ptrdiff_t)params->columns[2 * j] * channels;
                const ptrdiff_t right = (ptrdiff_t)params->columns[2 * j + 1] * channels;
                const float *const across = params->column_weights + (ptrdiff_t)2 * j;
                const float top_left = across[0] * down[0], top_right = across[1] * down[0];
                const float bottom_left = across[0] * down[1], bottom_right = across[1] * down[1];
                for (int32_t c = 0; c < channels; c++) {
                    float value = top_left * REAL(top[left + c]);
                    value += top_right * REAL(top[right + c]);
                    value += bottom_left * REAL(bottom[left + c]);
                    value += bottom_right * REAL(bottom[right + c]);
                    *target++ = STORED(value);
                }
            }
        }
        source += row * params->input_height;
    }
}
