/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_taps.h"
#include "thimble_taps_f32.h"

void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t depth = shape->depth;
    const int32_t taps = shape->kernel_h * shape->kernel_w * depth;
    const int32_t words = (int32_t)((uint32_t)(taps + 3) >> 2);
    const int32_t summed =
        shape->weight_zero_point ? (words + THIMBLE_SUMMED_TAPS - 1) / THIMBLE_SUMMED_TAPS : 0;
    const int32_t filter_words = words + summed;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t pixels = shape->output_h * shape->output_w;
    const thimble_inside_range range = thimble_range_of(shape);
    const int32_t line = thimble_line(shape->input_line, shape->input_w, shape->input_c);
    const int32_t row = shape->output_w * shape->output_c;
    const int32_t gap = thimble_line(shape->output_line, row, 1) - row;
    int8_t *const staging = (int8_t *)(columns + 4 * filter_words);

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t group = 0; group < groups; group++) {
            const int32_t *next = at;
            int8_t *first = NULL, *to = output + group * channels;
            int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
            for (int32_t pixel = 0; pixel < pixels; pixel++) {
                const int8_t *const image = input + group * depth;
                uint32_t *const column = columns + 2 * (pixel & 1);
                if (thimble_is_inside(&range, y, x)) {
                    thimble_put_inside(shape, image + y * line + x * shape->input_c, line, words, column,
                                       staging);
                } else {
                    thimble_put_window(shape, image, y, x, words, column, staging);
                }
                if (summed) {
                    thimble_sum_column_s8(taps, column);
                }
                int8_t *const here = to + pixel * shape->output_c;
                if (pixel & 1) {
                    next = thimble_mat_mult_columns_s8(at, columns, filter_words, channels, requant, first,
                                                       here);
                } else if (pixel == pixels - 1) {
                    next = thimble_mat_mult_column_s8(at, columns, filter_words, channels, requant, here);
                }
                first = here;
                x += shape->stride_w;
                if (--left == 0) {
                    x = -shape->pad_left;
                    y += shape->stride_h;
                    to += gap;
                    left = shape->output_w;
                }
            }
            at = next;
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += pixels * shape->output_c;
    }
}
