/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_line.h"
#include "thimble_winograd.h"

#include <string.h>

void thimble_winograd_gather_s8(
    const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, int32_t side, int8_t *to)
{
    const int32_t channels = shape->input_c;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, channels);
    for (int32_t row = y; row < y + side; row++) {
        for (int32_t column = x; column < x + side; column++, to += channels) {
            if (row < 0 || row >= shape->input_h || column < 0 || column >= shape->input_w) {
                memset(to, shape->input_zero_point, (size_t)channels);
            } else {
                memcpy(to, input + row * line + column * channels, (size_t)channels);
            }
        }
    }
}
