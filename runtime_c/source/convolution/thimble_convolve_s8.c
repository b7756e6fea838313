/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_taps.h"
#include "thimble_taps_f32.h"

/* What is left of one image for one group: pixels, of this row `left`; the next window's first pixel, and
 * where its output goes. `image` and `to` begin at the group's channels. */
typedef struct {
    const thimble_conv_shape *shape;
    const int8_t *image;
    int8_t *to, *staging;
    thimble_inside_range range;
    int32_t line, gap, words, summed;
    int32_t y, x, left, pixels;
} window_walk;

static int32_t next_windows(void *walk, uint32_t *columns, int8_t **outputs)
{
    window_walk *const at = walk;
    const thimble_conv_shape *const shape = at->shape;
    const int32_t at_once = shape->at_once, count = at->pixels < at_once ? at->pixels : at_once;
    const int32_t interleaved = count == 1 ? 1 : at_once;
    for (int32_t i = 0; i < count; i++) {
        uint32_t *const column = columns + 2 * i;
        const int32_t y = at->y, x = at->x;
        if (thimble_is_inside(&at->range, y, x)) {
            thimble_put_inside(shape, at->image + y * at->line + x * shape->input_c, at->line, at->words,
                               interleaved, column, at->staging);
        } else {
            thimble_put_window(shape, at->image, y, x, at->words, interleaved, column, at->staging);
        }
        if (at->summed) {
            thimble_sum_column_s8(shape->kernel_h * shape->kernel_w * shape->depth, interleaved, column);
        }
        outputs[i] = at->to;
        at->to += shape->output_c;
        at->x += shape->stride_w;
        if (--at->left == 0) {
            at->x = -shape->pad_left;
            at->y += shape->stride_h;
            at->to += at->gap;
            at->left = shape->output_w;
        }
    }
    at->pixels -= count;
    return count;
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
    const int32_t words = (int32_t)((uint32_t)(shape->kernel_h * shape->kernel_w * depth + 3) >> 2);
    const int32_t summed =
        shape->weight_zero_point ? (words + THIMBLE_SUMMED_TAPS - 1) / THIMBLE_SUMMED_TAPS : 0;
    const int32_t filter_words = words + summed;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t group_words = (channels + 1) / 2 * (2 * filter_words + 7);
    const int32_t row = shape->output_w * shape->output_c;

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
                                .y = -shape->pad_top,
                                .x = -shape->pad_left,
                                .left = shape->output_w,
                                .pixels = shape->output_h * shape->output_w};
            thimble_mat_mult_windows_s8(parameters + group * group_words, filter_words, channels, requant,
                                        columns, shape->at_once, next_windows, &walk);
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += shape->output_h * row;
    }
}
