/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_channel_block.h"
#include "thimble_clamp_image.h"
#include "thimble_conv.h"
#include "thimble_line.h"

/* Neighbouring outputs of a line that are computed together where their windows leave the image. */
#define EDGE_OUTPUTS 4

/* Constants and taps of four channels; returns the parameters of the next four. `slow`: a sum may need
 * thimble_requantize_s8. */
static const int32_t *put_channels(const thimble_conv_shape *shape,
                                   const int32_t *parameters,
                                   thimble_channel_block *block,
                                   int32_t *slow)
{
    const int32_t codes = parameters[8], columns = shape->kernel_w;
    const int32_t *at = parameters + 13;
    uint32_t *to = block->taps;
    *slow = ((uint32_t)codes & 0x80808080U) != 0;
    for (int32_t i = 0; i < 4; i++) {
        const int32_t code = (int8_t)(uint8_t)((uint32_t)codes >> (8 * i));
        block->biases[(i & 1) * 2 + (i >> 1)] = parameters[i];
        block->channels[i].multiplier = parameters[4 + i];
        block->channels[i].code = code;
        block->channels[i].rounding = parameters[9 + i];
    }
    for (int32_t column = 0; column < columns; column++) {
        const int32_t *from = at + column;
        int32_t row = shape->kernel_h;
        for (; row > 1; row -= 2, from += 2 * columns, to += 4) {
            const uint32_t upper = (uint32_t)from[0], lower = (uint32_t)from[columns];
            const uint32_t a = thimble_sxtb16(upper), b = thimble_sxtb16(lower);
            const uint32_t c = thimble_sxtb16_ror8(upper), d = thimble_sxtb16_ror8(lower);
            to[0] = thimble_bottoms(a, b);
            to[1] = thimble_tops(a, b);
            to[2] = thimble_bottoms(c, d);
            to[3] = thimble_tops(c, d);
        }
        if (row > 0) {
            *to++ = thimble_sxtb16((uint32_t)*from);
            *to++ = thimble_sxtb16_ror8((uint32_t)*from);
        }
    }
    return at + shape->kernel_h * columns;
}

/* Four channels of `columns` columns, from x on, of the kernel_h rows that a window at row y sees: column by
 * column, zero points where that is not in the image. */
static void gather(const thimble_conv_shape *shape,
                   const int8_t *image,
                   int32_t line,
                   int32_t y,
                   int32_t x,
                   int32_t columns,
                   uint32_t *window)
{
    const uint32_t zero_points = (uint8_t)shape->input_zero_point * 0x01010101U;
    const int32_t rows = shape->kernel_h, channels = shape->input_c;
    const int32_t over = x + columns - shape->input_w;
    int32_t before = x < 0 ? -x : 0, inside = columns - (over > 0 ? over : 0) - before;
    if (inside < 0) {
        before = columns;
        inside = 0;
    }
    const int32_t after = columns - before - inside;
    for (int32_t row = rows; row > 0; row--, window++, y += shape->dilation_h) {
        uint32_t *to = window;
        int32_t left = columns;
        if (y >= 0 && y < shape->input_h) {
            const int8_t *at = image + y * line + (x + before) * channels;
            for (left = before; left > 0; left--, to += rows) {
                *to = zero_points;
            }
            for (left = inside; left > 0; left--, to += rows, at += channels) {
                *to = thimble_read_word(at);
            }
            left = after;
        }
        for (; left > 0; left--, to += rows) {
            *to = zero_points;
        }
    }
}

/* The kernels for one kind of window. */
typedef enum {
    WINDOW_ANY,
    WINDOW_3X3,
    WINDOW_ODD /* one, three, five or seven rows */
} window_kind;

/* `count` outputs of windows `step` bytes apart; returns what follows them. */
static int8_t *put_run(window_kind kind,
                       const thimble_requant *requant,
                       const thimble_block_window *window,
                       int32_t step,
                       int32_t count,
                       const int8_t *input,
                       const thimble_channel_block *block,
                       int8_t *to)
{
    if (kind == WINDOW_3X3) {
        thimble_depthwise_3x3_block_s8(window, step, count, input, block, to);
        return to + 4 * count;
    }
    if (kind == WINDOW_ODD) {
        thimble_depthwise_odd_block_s8(window, step, count, input, block, to);
        return to + 4 * count;
    }
    for (; count > 0; count--, input += step) {
        int32_t sums[4];
        thimble_sum_channels_s8(window, input, block, sums);
        for (int32_t i = 0; i < 4; i++) {
            const int32_t multiplier = block->channels[i].multiplier, code = block->channels[i].code;
            *to++ = (int8_t)(code >= 0 ? thimble_requantize_fast(sums[i], multiplier, code,
                                                                 block->channels[i].rounding)
                                       : thimble_requantize_s8(sums[i], multiplier, code, requant));
        }
    }
    return to;
}

/* Four channels of a row of outputs, from the scratch where they wait. */
static void put_row(const int8_t *from, int32_t columns, int32_t channels, int8_t *to)
{
    for (; columns > 0; columns--, from += 4, to += channels) {
        (void)memcpy(to, from, 4);
    }
}

void thimble_depthwise_conv_blocks_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output)
{
    const int32_t channels = shape->input_c, columns = shape->output_w, stride = shape->stride_w;
    const int32_t taps = shape->kernel_h * shape->kernel_w;
    thimble_channel_block *const block = scratch;
    uint32_t *const edge = block->taps + 2 * taps;
    const int32_t extent_h = (shape->kernel_h - 1) * shape->dilation_h + 1;
    const int32_t extent_w = (shape->kernel_w - 1) * shape->dilation_w + 1;
    const int32_t together = columns < EDGE_OUTPUTS ? columns : EDGE_OUTPUTS;
    int8_t *const image_out = output;
    int8_t *const waiting = (int8_t *)(edge + shape->kernel_h * ((together - 1) * stride + extent_w));
    const int32_t line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t output_line = thimble_line(shape->output_line, columns, channels);
    const thimble_block_window inside = {shape->dilation_h * line, shape->dilation_w * channels,
                                         shape->kernel_h, shape->kernel_w};
    const thimble_block_window gathered = {4, 4 * shape->dilation_w * shape->kernel_h, shape->kernel_h,
                                           shape->kernel_w};
    const window_kind fast = shape->kernel_h == 3 && shape->kernel_w == 3    ? WINDOW_3X3
                             : shape->kernel_h <= 7 && (shape->kernel_h & 1) ? WINDOW_ODD
                                                                             : WINDOW_ANY;
    const int32_t room = shape->input_w - extent_w + shape->pad_left;
    int32_t first = (shape->pad_left + stride - 1) / stride;
    int32_t end = room < 0 ? 0 : room / stride + 1;
    end = end < columns ? end : columns;
    first = first < end ? first : end;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel += 4) {
            const int8_t *const image = input + channel;
            int8_t *to = output + channel;
            int32_t slow, held = 0, oldest = 0;
            at = put_channels(shape, at, block, &slow);
            const window_kind kind = slow ? WINDOW_ANY : fast;
            for (int32_t row = 0; row < shape->output_h; row++) {
                const int32_t y = row * shape->stride_h - shape->pad_top;
                const int32_t whole = y >= 0 && y + extent_h <= shape->input_h && first < end;
                int32_t place = oldest + held;
                place = place < shape->band ? place : place - shape->band;
                int8_t *result = waiting + 4 * place * columns;
                for (int32_t column = 0; column < columns;) {
                    const int32_t x = column * stride - shape->pad_left;
                    if (whole && column == first) {
                        result = put_run(kind, requant, &inside, stride * channels, end - first,
                                         image + y * line + x * channels, block, result);
                        column = end;
                        continue;
                    }
                    const int32_t stop = whole && column < first ? first : columns;
                    const int32_t count = stop - column < together ? stop - column : together;
                    gather(shape, image, line, y, x, (count - 1) * stride + extent_w, edge);
                    result = put_run(kind, requant, &gathered, 4 * stride * shape->kernel_h, count,
                                     (const int8_t *)edge, block, result);
                    column += count;
                }
                held++;
                int32_t leave = row == shape->output_h - 1 ? held : held == shape->band;
                for (; leave > 0; leave--, held--, to += output_line) {
                    put_row(waiting + 4 * oldest * columns, columns, channels, to);
                    oldest = oldest + 1 < shape->band ? oldest + 1 : 0;
                }
            }
        }
        input += shape->input_h * shape->input_w * channels;
        output += shape->output_h * columns * channels;
    }
    thimble_clamp_image_s8(shape, requant, image_out);
}
