/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_taps.h"
#include "thimble_taps_f32.h"
#include "thimble_walks.h"

/* What is left of one image for one group: pixels, of this row `left`; the next window's first pixel, and
 * where its output goes. `image` and `to` begin at the group's channels. */
typedef struct {
    const thimble_conv_shape *shape;
    const int8_t *image;
    int8_t *to, *staging;
    thimble_inside_range range;
    int32_t line, gap, words, summed;
    int32_t in_bytes;  /* rows are no whole words, and nothing is summed */
    int32_t word_rows; /* rows are one word each, of several pixels */
    int32_t y, x, left, pixels;
} window_walk;

static inline void put_word(int8_t *to, uint32_t word)
{
    (void)memcpy(to, &word, 4);
}

/* Rows of a window by words, one behind the other: what a row has too much the next one overwrites. */
static inline void
put_rows(int8_t *to, const int8_t *from, int32_t row_bytes, int32_t rows, int32_t line_step)
{
    if (row_bytes > 8 && row_bytes < 12) {
        for (; rows > 0; rows--, from += line_step, to += row_bytes) {
            const uint32_t a = thimble_read_word(from), b = thimble_read_word(from + 4);
            const uint32_t c = thimble_read_word(from + 8);
            put_word(to, a);
            put_word(to + 4, b);
            put_word(to + 8, c);
        }
        return;
    }
    for (; rows > 0; rows--, from += line_step, to += row_bytes) {
        for (int32_t i = 0; i < row_bytes; i += 4) {
            put_word(to + i, thimble_read_word(from + i));
        }
    }
}

/* Windows inside the image, one beside the other, whose rows are runs of bytes that are no whole words. They
 * are put together in `staging`, four one behind the other. */
static __attribute__((noinline)) void
put_windows(const window_walk *at, const int8_t *from, int32_t count, uint32_t *columns)
{
    const thimble_conv_shape *const shape = at->shape;
    const int32_t row_bytes = shape->kernel_w * shape->depth, rows = shape->kernel_h, words = at->words;
    const int32_t pixel_step = shape->stride_w * shape->input_c, line_step = shape->dilation_h * at->line;
    int8_t *const staging = at->staging;
    if (count == 4) {
        for (int32_t i = 0; i < 4; i++) {
            put_rows(staging + i * 4 * words, from + i * pixel_step, row_bytes, rows, line_step);
        }
        thimble_expand_windows_s8(staging, 4 * words, words, 4, columns);
        return;
    }
    for (int32_t i = 0; i < count; i++) {
        put_rows(staging, from + i * pixel_step, row_bytes, rows, line_step);
        thimble_expand_column_s8(staging, words, count, columns + 2 * i);
    }
}

/* So many pixels further in a row, or to the next row. */
static inline void step(window_walk *at, int32_t pixels)
{
    const thimble_conv_shape *const shape = at->shape;
    at->pixels -= pixels;
    at->to += pixels * shape->output_c;
    at->x += pixels * shape->stride_w;
    at->left -= pixels;
    if (at->left == 0) {
        at->x = -shape->pad_left;
        at->y += shape->stride_h;
        at->to += at->gap;
        at->left = shape->output_w;
    }
}

/* A window each of whose rows is one word, not of one pixel, anywhere in the image. Of a row that begins left
 * of the image the first word inside is shifted. One that ends right of it is read byte by byte: what lies
 * before a window may have been overwritten. */
static __attribute__((noinline)) void
put_word_rows(const window_walk *at, int32_t interleaved, uint32_t *column)
{
    const thimble_conv_shape *const shape = at->shape;
    const uint32_t padding = (uint8_t)shape->input_zero_point * 0x01010101U;
    const int32_t first = at->x * shape->input_c, last = shape->input_w * shape->input_c - 4;
    const int32_t before = first < 0 ? -first : 0, after = first > last ? first - last : 0;
    const int8_t *const line = at->image + (before ? 0 : first);
    const int32_t seen = before < 4 && after < 4;
    for (int32_t row = shape->kernel_h, y = at->y; row > 0; row--, y += shape->dilation_h) {
        uint32_t word = padding;
        if (seen && y >= 0 && y < shape->input_h) {
            const int8_t *const from = line + y * at->line;
            if (after != 0) {
                word = padding << (32 - 8 * after);
                for (int32_t i = 0; i < 4 - after; i++) {
                    word |= (uint32_t)(uint8_t)from[i] << 8 * i;
                }
            } else {
                word = thimble_read_word(from);
                word = before ? word << 8 * before | padding >> (32 - 8 * before) : word;
            }
        }
        column[0] = thimble_sxtb16(word);
        column[1] = thimble_sxtb16_ror8(word);
        column += 2 * interleaved;
    }
}

/* Windows that are not put together with their neighbours. */
static __attribute__((noinline)) int32_t put_each(window_walk *at, uint32_t *columns, int8_t **outputs)
{
    const thimble_conv_shape *const shape = at->shape;
    const int32_t at_once = shape->at_once, count = at->pixels < at_once ? at->pixels : at_once;
    const int32_t interleaved = count == 1 ? 1 : at_once;
    for (int32_t i = 0; i < count; i++) {
        uint32_t *const column = columns + 2 * i;
        const int32_t y = at->y, x = at->x;
        if (at->word_rows != 0) {
            put_word_rows(at, interleaved, column);
        } else if (thimble_is_inside(&at->range, y, x) != 0) {
            thimble_put_inside(shape, at->image + y * at->line + x * shape->input_c, at->line, at->words,
                               interleaved, column, at->staging);
        } else {
            thimble_put_window(shape, at->image, y, x, at->words, interleaved, column, at->staging);
        }
        if (at->summed != 0) {
            thimble_sum_column_s8(shape->kernel_h * shape->kernel_w * shape->depth, interleaved, column);
        }
        outputs[i] = at->to;
        step(at, 1);
    }
    return count;
}

static int32_t next_windows(void *walk, uint32_t *columns, int8_t **outputs)
{
    window_walk *const at = walk;
    const thimble_conv_shape *const shape = at->shape;
    const int32_t at_once = shape->at_once, x = at->x, y = at->y;
    if (!at->in_bytes || at->left < at_once || !thimble_is_inside(&at->range, y, x) ||
        !thimble_is_inside(&at->range, y, x + (at_once - 1) * shape->stride_w)) {
        return put_each(at, columns, outputs);
    }
    put_windows(at, at->image + y * at->line + x * shape->input_c, at_once, columns);
    int8_t *to = at->to;
    for (int32_t i = 0; i < at_once; i++, to += shape->output_c) {
        outputs[i] = to;
    }
    step(at, at_once);
    return at_once;
}

void thimble_walk_windows(const thimble_conv_shape *shape,
                          const thimble_requant *requant,
                          const int8_t *input,
                          const int32_t *parameters,
                          void *scratch,
                          int8_t *output,
                          thimble_multiply_windows multiply,
                          int32_t lanes)
{
    uint32_t *const columns = scratch;
    const int32_t depth = shape->depth;
    const int32_t words = (int32_t)((uint32_t)(shape->kernel_h * shape->kernel_w * depth + 3) >> 2);
    const int32_t summed =
        shape->weight_zero_point ? (words + THIMBLE_SUMMED_TAPS - 1) / THIMBLE_SUMMED_TAPS : 0;
    const int32_t filter_words = words + summed;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t group_words = (channels + lanes - 1) / lanes * (2 * filter_words + 7 * lanes / 2);
    const int32_t row = shape->output_w * shape->output_c, row_bytes = shape->kernel_w * depth;
    const int32_t word_rows =
        row_bytes == 4 && depth < 4 && groups == 1 && shape->dilation_w == 1 && shape->input_w * depth >= 4;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t group = 0; group < groups; group++) {
            window_walk walk = {.shape = shape,
                                .image = input + group * depth,
                                .to = output + group * channels,
                                .staging = (int8_t *)(columns + 2 * shape->at_once * filter_words),
                                .range = thimble_range_of(shape),
                                .line = thimble_line(shape->input_line, shape->input_w, shape->input_c),
                                .gap = thimble_line(shape->output_line, row, 1) - row,
                                .words = words,
                                .summed = summed,
                                .in_bytes = (row_bytes & 3) != 0 && !summed,
                                .word_rows = word_rows,
                                .y = -shape->pad_top,
                                .x = -shape->pad_left,
                                .left = shape->output_w,
                                .pixels = shape->output_h * shape->output_w};
            multiply(parameters + group * group_words, filter_words, channels, requant, columns,
                     shape->at_once, next_windows, &walk);
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += shape->output_h * row;
    }
}
