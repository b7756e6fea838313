/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_sums.h"
#include "thimble_taps.h"
#include "thimble_taps_f32.h"

void thimble_partial_conv_s8(const thimble_conv_shape *shape,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             const int32_t *sums,
                             int32_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t words = (shape->kernel_h * shape->kernel_w * shape->depth + 3) / 4;
    const int32_t channels = shape->output_c, pixels = shape->output_h * shape->output_w;
    const int32_t line = shape->input_w * shape->input_c;
    const thimble_inside_range range = thimble_range_of(shape);
    int8_t *const staging = (int8_t *)(columns + 4 * words);

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
        int32_t first = 0;
        for (int32_t pixel = 0; pixel < pixels; pixel++) {
            uint32_t *const column = columns + 2 * (pixel & 1);
            if (thimble_is_inside(&range, y, x) != 0) {
                thimble_put_inside(shape, input + y * line + x * shape->input_c, line, words, 2, column,
                                   staging);
            } else {
                thimble_put_window(shape, input, y, x, words, 2, column, staging);
            }
            const int32_t here = pixel * channels;
            if ((pixel & 1) || pixel == pixels - 1) {
                first = (pixel & 1) ? first : here;
                thimble_add_columns_s8(parameters, columns, words, channels, sums ? sums + first : NULL,
                                       sums ? sums + here : NULL, output + first, output + here);
            }
            first = here;
            x += shape->stride_w;
            if (--left == 0) {
                x = -shape->pad_left;
                y += shape->stride_h;
                left = shape->output_w;
            }
        }
        input += shape->input_h * line;
        output += pixels * channels;
        sums = sums ? sums + pixels * channels : NULL;
    }
}
