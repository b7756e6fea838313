/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_hybrid_windows.h"

void thimble_rows_hybrid_s8(const thimble_window_f32 *window,
                            const thimble_hybrid_params *params,
                            const int8_t *input,
                            int32_t zero_point,
                            const int32_t *parameters,
                            const int32_t *taps,
                            const float *scales,
                            const float *bias,
                            float *output)
{
    const thimble_hybrid_image image = {input, 1.0f, zero_point};
    for (int32_t row = 0; row < window->input_w; row++, input += window->depth, output += window->output_c) {
        (void)thimble_hybrid_put(window, params, &image, thimble_sum_units_s8, input, parameters, taps,
                                 scales, bias, 0, window->output_c, output);
    }
}
