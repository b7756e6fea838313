/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_walks.h"

#include <stddef.h>

/* What is left: rows, of this one `left` pixels; where it and the next pixel begin. */
typedef struct {
    const thimble_inside_shape *shape;
    thimble_multiply_pixel multiply_pixel;
    const thimble_requant *requant;
    const int32_t *parameters;
    const int8_t *line, *from;
    int8_t *row, *to;
    int32_t rows, left;
} inside_walk;

/* One window as one of several interleaved columns of int16. */
static void
put_column(const thimble_inside_shape *shape, const int8_t *from, int32_t interleaved, uint32_t *column)
{
    for (int32_t row = shape->kernel_h; row > 0; row--) {
        thimble_expand_column_s8(from, shape->row_words, interleaved, column);
        from += shape->row_step;
        column += 2 * interleaved * shape->row_words;
    }
}

/* As many windows of one line as there are columns. */
static void put_columns(const thimble_inside_shape *shape, const int8_t *from, uint32_t *columns)
{
    for (int32_t row = shape->kernel_h; row > 0; row--) {
        thimble_expand_windows_s8(from, shape->pixel_step, shape->row_words, shape->at_once, columns);
        from += shape->row_step;
        columns += 2 * shape->at_once * shape->row_words;
    }
}

static int32_t next_windows(void *walk, uint32_t *columns, int8_t **outputs)
{
    inside_walk *const at = walk;
    const thimble_inside_shape *const shape = at->shape;
    const int32_t channels = shape->output_c;
    const int32_t at_once = shape->at_once;
    if (at->left > at_once && at->rows > 0) {
        put_columns(shape, at->from, columns);
        int8_t *to = at->to;
        for (int32_t i = 0; i < at_once; i++, to += channels) {
            outputs[i] = to;
        }
        at->to = to;
        at->from += at_once * shape->pixel_step;
        at->left -= at_once;
        return at_once;
    }
    int32_t count = 0;
    for (; count < at_once && at->rows > 0; count++) {
        if (count == 0 && at->rows == 1 && at->left == 1) {
            at->rows = 0;
            if (at->multiply_pixel != NULL) {
                at->multiply_pixel(shape, at->requant, at->from, at->parameters, at->to);
                return 0;
            }
            put_column(shape, at->from, 1, columns);
            outputs[0] = at->to;
            return 1;
        }
        put_column(shape, at->from, at_once, columns + 2 * count);
        outputs[count] = at->to;
        at->from += shape->pixel_step;
        at->to += channels;
        if (--at->left == 0) {
            at->rows--;
            at->left = shape->output_w;
            at->from = at->line += shape->line_step;
            at->to = at->row += shape->output_step;
        }
    }
    return count;
}

void thimble_walk_inside(const thimble_inside_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output,
                         thimble_multiply_windows multiply,
                         thimble_multiply_pixel multiply_pixel)
{
    inside_walk walk = {.shape = shape,
                        .multiply_pixel = multiply_pixel,
                        .requant = requant,
                        .parameters = parameters,
                        .line = input,
                        .from = input,
                        .row = output,
                        .to = output,
                        .rows = shape->output_w > 0 ? shape->output_h : 0,
                        .left = shape->output_w};
    multiply(parameters, shape->kernel_h * shape->row_words, shape->output_c, requant, scratch,
             shape->at_once, next_windows, &walk);
}
