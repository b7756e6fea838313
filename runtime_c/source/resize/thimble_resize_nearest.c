/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_bytes.h"
#include "thimble_data.h"

#include <stddef.h>
#include <string.h>

static inline void put_pixel(int8_t *to, const int8_t *from, int32_t bytes)
{
#if THIMBLE_MVE
    (void)thimble_copy_bytes(to, from, bytes);
#else
    (void)memcpy(to, from, (size_t)bytes);
#endif
}

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
                put_pixel(to, from + params->columns[j] * pixel, params->pixel_bytes);
            }
        }
    }
}
