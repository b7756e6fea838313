/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_taps_f32.h"

THIMBLE_EXACT_FLOAT void
thimble_l2_pool_f32(const thimble_window_f32 *window, const float *input, float *output)
{
    const thimble_window_f32 w = *window;
    for (int32_t batch = 0; batch < w.batches; batch++) {
        const float *image = input + batch * w.input_h * w.input_w * w.input_c;
        for (int32_t pixel = 0; pixel < w.output_h * w.output_w; pixel++) {
            const int32_t top = pixel / w.output_w * w.stride_h - w.pad_top;
            const int32_t left = pixel % w.output_w * w.stride_w - w.pad_left;
            int32_t first_row, rows, first, columns;
            thimble_taps(top, w.input_h, w.kernel_h, 1, &first_row, &rows);
            thimble_taps(left, w.input_w, w.kernel_w, 1, &first, &columns);
            for (int32_t channel = 0; channel < w.input_c; channel++) {
                float found = 0.0f;
                for (int32_t y = top + first_row; y < top + rows; y++) {
                    for (int32_t x = left + first; x < left + columns; x++) {
                        const float value = image[(y * w.input_w + x) * w.input_c + channel];
                        found += value * value;
                    }
                }
                found = thimble_sqrt_f32(found / (float)((rows - first_row) * (columns - first)));
                *output++ = thimble_clamp_f32(found, w.min, w.max);
            }
        }
    }
}
