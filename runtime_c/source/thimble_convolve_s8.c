#include "thimble_conv.h"

/* Taps of one kernel row that fall left of the image, into it and right of it. `contiguous`: neighbouring
 * taps read neighbouring bytes. */
typedef struct {
    int32_t before, inside, after;
    int32_t contiguous;
} row_span;

static row_span span_at(const thimble_conv_shape *shape, int32_t x)
{
    const int32_t step = shape->dilation_w, last = x + (shape->kernel_w - 1) * step;
    row_span span = {0, 0, 0, step == 1 && shape->depth == shape->input_c};
    if (x < 0) {
        span.before = step == 1 ? -x : (step - 1 - x) / step;
    }
    if (last >= shape->input_w) {
        const int32_t over = last - shape->input_w + 1;
        span.after = step == 1 ? over : (over + step - 1) / step;
    }
    span.before = span.before < shape->kernel_w ? span.before : shape->kernel_w;
    span.after = span.after < shape->kernel_w - span.before ? span.after : shape->kernel_w - span.before;
    span.inside = shape->kernel_w - span.before - span.after;
    return span;
}

static int8_t *fill_bytes(int8_t *to, int32_t count, uint32_t zero_points)
{
    for (; count > 0; count--) {
        *to++ = (int8_t)(uint8_t)zero_points;
    }
    return to;
}

static int8_t *copy_bytes(int8_t *to, const int8_t *from, int32_t count)
{
    for (; count >= 4; count -= 4, from += 4, to += 4) {
        memcpy(to, from, 4);
    }
    for (; count > 0; count--) {
        *to++ = *from++;
    }
    return to;
}

/* One kernel row as bytes; `line` is null for a row outside the image, else its first pixel. */
static int8_t *put_row_bytes(const thimble_conv_shape *shape,
                             const row_span *span,
                             const int8_t *line,
                             int32_t x,
                             uint32_t zero_points,
                             int8_t *to)
{
    const int32_t depth = shape->depth, step = shape->dilation_w;
    if (!line) {
        return fill_bytes(to, shape->kernel_w * depth, zero_points);
    }
    to = fill_bytes(to, span->before * depth, zero_points);
    const int8_t *from = line + (x + span->before * step) * shape->input_c;
    if (span->contiguous) {
        to = copy_bytes(to, from, span->inside * depth);
    } else {
        for (int32_t tap = 0; tap < span->inside; tap++, from += step * shape->input_c) {
            to = copy_bytes(to, from, depth);
        }
    }
    return fill_bytes(to, span->after * depth, zero_points);
}

static uint32_t *fill_words(uint32_t *column, int32_t count, uint32_t zero_points)
{
    const uint32_t pair = thimble_sxtb16(zero_points);
    for (; count > 0; count -= 4, column += 4) {
        column[0] = pair;
        column[1] = pair;
    }
    return column;
}

/* One kernel row, of whole words for each pixel, straight into the interleaved column. */
static uint32_t *put_row_words(const thimble_conv_shape *shape,
                               const row_span *span,
                               const int8_t *line,
                               int32_t x,
                               uint32_t zero_points,
                               uint32_t *column)
{
    const int32_t depth = shape->depth, step = shape->dilation_w;
    if (!line) {
        return fill_words(column, shape->kernel_w * depth, zero_points);
    }
    column = fill_words(column, span->before * depth, zero_points);
    const int8_t *from = line + (x + span->before * step) * shape->input_c;
    if (span->contiguous) {
        thimble_expand_column_s8(from, span->inside * depth / 4, column);
        column += span->inside * depth;
    } else {
        for (int32_t tap = 0; tap < span->inside; tap++, from += step * shape->input_c, column += depth) {
            thimble_expand_column_s8(from, depth / 4, column);
        }
    }
    return fill_words(column, span->after * depth, zero_points);
}

/* A window wholly inside the image whose kernel rows are runs of bytes. Copies go by words: what a row has
 * too much the next one overwrites. */
static void put_inside(
    const thimble_conv_shape *shape, const int8_t *from, int32_t words, uint32_t *column, int8_t *staging)
{
    const int32_t row_bytes = shape->kernel_w * shape->depth;
    const int32_t line = shape->dilation_h * shape->input_w * shape->input_c;
    if ((row_bytes & 3) == 0) {
        for (int32_t row = shape->kernel_h; row > 0; row--, from += line, column += row_bytes) {
            thimble_expand_column_s8(from, row_bytes >> 2, column);
        }
        return;
    }
    int8_t *to = staging;
    for (int32_t row = shape->kernel_h; row > 0; row--, from += line, to += row_bytes) {
        for (int32_t i = 0; i < row_bytes; i += 4) {
            memcpy(to + i, from + i, 4);
        }
    }
    thimble_expand_column_s8(staging, words, column);
}

/* The taps that one output pixel sees, in the filters' order. Pixels that are not whole words go through
 * `staging`: row by row where kernel rows are, else all together. */
static void put_window(const thimble_conv_shape *shape,
                       const int8_t *input,
                       int32_t y,
                       int32_t x,
                       int32_t words,
                       uint32_t *column,
                       int8_t *staging)
{
    const uint32_t zero_points = (uint8_t)shape->input_zero_point * 0x01010101U;
    const row_span span = span_at(shape, x);
    const int32_t row_bytes = shape->kernel_w * shape->depth;
    int8_t *to = staging;
    for (int32_t row = 0; row < shape->kernel_h; row++, y += shape->dilation_h) {
        const int32_t exists = y >= 0 && y < shape->input_h;
        const int8_t *const line = exists ? input + y * shape->input_w * shape->input_c : NULL;
        if (row_bytes & 3) {
            to = put_row_bytes(shape, &span, line, x, zero_points, to);
        } else if ((shape->depth & 3) == 0) {
            column = put_row_words(shape, &span, line, x, zero_points, column);
        } else {
            (void)put_row_bytes(shape, &span, line, x, zero_points, staging);
            thimble_expand_column_s8(staging, row_bytes / 4, column);
            column += row_bytes;
        }
    }
    if (row_bytes & 3) {
        thimble_expand_column_s8(staging, words, column);
    }
}

/* The greatest coordinates at which put_inside may be used; -1: nowhere. */
typedef struct {
    int32_t greatest_x, greatest_y;
} inside_range;

static inside_range range_of(const thimble_conv_shape *shape)
{
    const int32_t contiguous =
        shape->kernel_w == 1 || (shape->dilation_w == 1 && shape->depth == shape->input_c);
    inside_range range = {shape->input_w - shape->kernel_w,
                          shape->input_h - (shape->kernel_h - 1) * shape->dilation_h - 1};
    if (!contiguous || shape->input_w * shape->input_c < 4) {
        range.greatest_x = -1;
    } else if ((shape->kernel_w * shape->depth) & 3) {
        /* Up to three bytes more are read: they must not be the last line's. */
        range.greatest_y -= 1;
    }
    return range;
}

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
    const int32_t words = (taps + 3) / 4;
    const int32_t summed =
        shape->weight_zero_point ? (words + THIMBLE_SUMMED_TAPS - 1) / THIMBLE_SUMMED_TAPS : 0;
    const int32_t filter_words = words + summed;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t pixels = shape->output_h * shape->output_w;
    const inside_range range = range_of(shape);
    const int32_t line = shape->input_w * shape->input_c;
    int8_t *const staging = (int8_t *)(columns + 4 * filter_words);

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t group = 0; group < groups; group++) {
            const int32_t *next = at;
            int8_t *first = NULL;
            int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
            for (int32_t pixel = 0; pixel < pixels; pixel++) {
                const int8_t *const image = input + group * depth;
                uint32_t *const column = columns + 2 * (pixel & 1);
                if (y >= 0 && y <= range.greatest_y && x >= 0 && x <= range.greatest_x) {
                    put_inside(shape, image + y * line + x * shape->input_c, words, column, staging);
                } else {
                    put_window(shape, image, y, x, words, column, staging);
                }
                if (summed) {
                    thimble_sum_column_s8(taps, column);
                }
                int8_t *const here = output + pixel * shape->output_c + group * channels;
                if (pixel & 1) {
                    next = thimble_mat_mult_columns_s8(at, columns, filter_words, channels, requant, first,
                                                       here);
                } else if (pixel == pixels - 1) {
                    next =
                        thimble_mat_mult_columns_s8(at, columns, filter_words, channels, requant, here, here);
                }
                first = here;
                x += shape->stride_w;
                if (--left == 0) {
                    x = -shape->pad_left;
                    y += shape->stride_h;
                    left = shape->output_w;
                }
            }
            at = next;
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += pixels * shape->output_c;
    }
}
