/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"

#include <stddef.h>
#include <string.h>

void thimble_resize_nearest(const thimble_resize_nearest_params *params, const void *source, void *target)
{
    const ptrdiff_t pixel = params->pixel_bytes;
    const ptrdiff_t input_row = pixel * params->input_width;
    const size_t output_row = (size_t)pixel * (size_t)params->output_width;
    const int8_t *image = (const int8_t *)source;
    int8_t *to = (int8_t *)target;

    for (int32_t batch = 0; batch < params->batches; batch++, image += input_row * params->input_height) {
        for (int32_t i = 0; i < params->output_height; i++) {
            if (i > 0 && params->rows[i] == params->rows[i - 1]) {
                (void)memcpy(to, to - output_row, output_row);
                to += output_row;
                continue;
            }
            const int8_t *from = image + params->rows[i] * input_row;
            for (int32_t j = 0; j < params->output_width; j++, to += pixel) {
                (void)memcpy(to, from + params->columns[j] * pixel, (size_t)pixel);
            }
        }
    }
}
