/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_s8.h"
#include "thimble_units.h"

/* The window whose first tap lies on input row `top` and column `left`; the input's zero point where there is
 * no pixel. */
static void
gather(const thimble_conv_shape *shape, const int8_t *group, int32_t top, int32_t left, int8_t *column)
{
    const int32_t depth = shape->depth;
    const int32_t run = shape->kernel_w * depth;
    const int32_t dense = shape->dilation_w == 1 && shape->input_c == depth;
    const int32_t pitch = thimble_line(shape->input_line, shape->input_w, shape->input_c);
    const int32_t inside = left >= 0 && left + shape->kernel_w <= shape->input_w;

    for (int32_t row = 0; row < shape->kernel_h; row++, column += run) {
        const int32_t y = top + row * shape->dilation_h;
        const int8_t *line = group + y * pitch;
        if (y < 0 || y >= shape->input_h) {
            memset(column, shape->input_zero_point, (size_t)run);
        } else if (dense && inside) {
            memcpy(column, line + left * depth, (size_t)run);
        } else {
            int8_t *to = column;
            for (int32_t tap = 0; tap < shape->kernel_w; tap++, to += depth) {
                const int32_t x = left + tap * shape->dilation_w;
                if (x < 0 || x >= shape->input_w) {
                    memset(to, shape->input_zero_point, (size_t)depth);
                } else {
                    memcpy(to, line + x * shape->input_c, (size_t)depth);
                }
            }
        }
    }
}

/* All channels of one group at one pixel; returns what follows in the parameters. */
static const int32_t *put_group(const int8_t *column,
                                int32_t taps,
                                int32_t channels,
                                const thimble_requant *requant,
                                const int32_t *at,
                                int8_t *output)
{
    const int32_t offset = -8 * thimble_sum_s8(column, taps);
    for (int32_t left = channels; left > 0; left -= 4, at += 5) {
        int32_t sums[4];
        at = thimble_sum_units_s4(column, at, taps, offset, sums);
        uint32_t codes = (uint32_t)at[4];
        if (left >= 4 && (codes & 0x80808080U) == 0 && !thimble_narrow(requant)) {
            const int32_t twice = 2 * requant->output_offset + 1;
            for (int32_t i = 0; i < 4; i++, codes >>= 8) {
                const int32_t code = (int32_t)(codes & 0xFFU);
                const int32_t rounding = (int32_t)((uint32_t)twice << code);
                *output++ = (int8_t)thimble_requantize_fast(sums[i], at[i], code, rounding);
            }
            continue;
        }
        for (int32_t i = 0; i < 4 && i < left; i++, codes >>= 8) {
            *output++ = thimble_requantize_s8(sums[i], at[i], (int8_t)(uint8_t)codes, requant);
        }
    }
    return at;
}

void thimble_convolve_s4(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output)
{
    const int32_t groups = shape->input_c / shape->depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t taps = shape->kernel_h * shape->kernel_w * shape->depth;
    const int32_t row = shape->output_w * shape->output_c;
    const int32_t gap = thimble_line(shape->output_line, row, 1) - row;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t y = 0; y < shape->output_h; y++, output += gap) {
            for (int32_t x = 0; x < shape->output_w; x++) {
                const int32_t *at = parameters;
                for (int32_t group = 0; group < groups; group++, output += channels) {
                    gather(shape, input + group * shape->depth, y * shape->stride_h - shape->pad_top,
                           x * shape->stride_w - shape->pad_left, scratch);
                    at = put_group(scratch, taps, channels, requant, at, output);
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
