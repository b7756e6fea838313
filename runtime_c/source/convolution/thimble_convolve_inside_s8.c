/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_lone_pixel.h"

#include <stddef.h>

/* One window as a column of int16. */
static void put_column(const thimble_inside_shape *shape, const int8_t *from, uint32_t *column)
{
    for (int32_t row = shape->kernel_h; row > 0; row--) {
        thimble_expand_column_s8(from, shape->row_words, column);
        from += shape->row_step;
        column += 4 * shape->row_words;
    }
}

void thimble_convolve_inside_s8(const thimble_inside_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t words = shape->kernel_h * shape->row_words, channels = shape->output_c;
    const int8_t *line = input, *from = input;
    int8_t *to = output, *first = NULL;
    for (int32_t rows = shape->output_h; rows > 0; rows--) {
        for (int32_t left = shape->output_w; left > 0; left--, from += shape->pixel_step, to += channels) {
            if (first) {
                put_column(shape, from, columns + 2);
                (void)thimble_mat_mult_columns_s8(parameters, columns, words, channels, requant, first, to);
                first = NULL;
            } else if (left > 1 || rows > 1) {
                put_column(shape, from, columns);
                first = to;
            } else if (channels <= THIMBLE_LONE_CHANNELS) {
                thimble_convolve_pixel_s8(shape, requant, from, parameters, to);
            } else {
                put_column(shape, from, columns);
                (void)thimble_mat_mult_column_s8(parameters, columns, words, channels, requant, to);
            }
        }
        line += shape->line_step;
        from = line;
        output += shape->output_step;
        to = output;
    }
}
