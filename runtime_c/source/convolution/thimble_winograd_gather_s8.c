/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_line.h"
#include "thimble_winograd.h"

#include <string.h>

static int32_t within(int32_t value, int32_t most)
{
    return value < 0 ? 0 : value < most ? value : most;
}

void thimble_winograd_gather_s8(
    const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, int32_t side, int8_t *to)
{
    const int32_t channels = shape->input_c;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t before = within(-x, side) * channels;
    const int32_t after = within(x + side - shape->input_w, side) * channels;
    const int32_t width = side * channels, inside = width - before - after;
    const int8_t *from = input + within(x, shape->input_w) * channels;
    for (int32_t row = y; row < y + side; row++, to += width) {
        if (row < 0 || row >= shape->input_h || inside <= 0) {
            (void)memset(to, shape->input_zero_point, (size_t)width);
            continue;
        }
        (void)memcpy(to + before, from + row * line, (size_t)inside);
        if (before != 0) {
            (void)memset(to, shape->input_zero_point, (size_t)before);
        }
        if (after != 0) {
            (void)memset(to + width - after, shape->input_zero_point, (size_t)after);
        }
    }
}
