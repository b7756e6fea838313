#include "thimble_data.h"

#include <stddef.h>
#include <string.h>

void thimble_resize_nearest(const thimble_resize_params *params, const void *source, void *target)
{
    const ptrdiff_t pixel = params->pixel_bytes;
    const ptrdiff_t input_row = pixel * params->input_width;
    const size_t output_row = (size_t)pixel * (size_t)params->output_width;
    const int8_t *image = (const int8_t *)source;
    int8_t *to = (int8_t *)target;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        int32_t previous = -1;
        int32_t y = params->rows.start;
        for (int32_t i = 0; i < params->output_height; i++, y += params->rows.step) {
            const int32_t row = y >> THIMBLE_NEAREST_BITS;
            if (row == previous) {
                (void)memcpy(to, to - output_row, output_row);
                to += output_row;
                continue;
            }
            previous = row;
            const int8_t *from = image + row * input_row;
            int32_t x = params->columns.start;
            for (int32_t j = 0; j < params->output_width; j++, x += params->columns.step) {
                (void)memcpy(to, from + (x >> THIMBLE_NEAREST_BITS) * pixel, (size_t)pixel);
                to += pixel;
            }
        }
        image += input_row * params->input_height;
    }
}
