/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_requantize_s8.h"

/* Input pixels, less their zero point, that meet in one output pixel, and the tap through which each one
 * comes. */
typedef struct {
    int16_t *pixels;
    int32_t *taps;
    int32_t count;
} meeting;

/* In the order in which words of filters unpack: of each four values 0, 2, 1, 3. */
static void put_pixel(const thimble_conv_shape *shape, const int8_t *from, int16_t *to)
{
    static const int8_t place[4] = {0, 2, 1, 3};
    const int32_t padded = (shape->depth + 3) & ~3;
    for (int32_t i = 0; i < padded; i++) {
        const int32_t value = i < shape->depth ? from[i] - shape->input_zero_point : 0;
        to[(i & ~3) + place[i & 3]] = (int16_t)value;
    }
}

static void gather(const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, meeting *found)
{
    const int32_t padded = (shape->depth + 3) & ~3;
    int16_t *to = found->pixels;
    found->count = 0;
    for (int32_t row = (y + shape->pad_top) % shape->stride_h; row < shape->kernel_h;
         row += shape->stride_h) {
        const int32_t from_y = (y + shape->pad_top - row) / shape->stride_h;
        if (y + shape->pad_top < row || from_y >= shape->input_h) {
            continue;
        }
        for (int32_t column = (x + shape->pad_left) % shape->stride_w; column < shape->kernel_w;
             column += shape->stride_w) {
            const int32_t from_x = (x + shape->pad_left - column) / shape->stride_w;
            if (x + shape->pad_left < column || from_x >= shape->input_w) {
                continue;
            }
            put_pixel(shape, input + (from_y * shape->input_w + from_x) * shape->input_c, to);
            found->taps[found->count] = row * shape->kernel_w + column;
            found->count++;
            to += padded;
        }
    }
}

static int32_t dot(const int16_t *pixels, const int32_t *filter, int32_t words, int32_t sum)
{
    const thimble_pair *pair = (const thimble_pair *)(const void *)pixels;
    for (; words > 0; words--, pair += 2) {
        const uint32_t weights = (uint32_t)*filter++;
        sum = thimble_smlad(thimble_sxtb16(weights), pair[0], sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(weights), pair[1], sum);
    }
    return sum;
}

void thimble_transpose_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output)
{
    const int32_t words = (shape->depth + 3) / 4;
    const int32_t channel_words = 3 + shape->kernel_h * shape->kernel_w * words;
    const int32_t most = ((shape->kernel_h + shape->stride_h - 1) / shape->stride_h) *
                         ((shape->kernel_w + shape->stride_w - 1) / shape->stride_w);
    int32_t *const taps = scratch;
    meeting found = {(int16_t *)(void *)(taps + most), taps, 0};

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        for (int32_t y = 0; y < shape->output_h; y++) {
            for (int32_t x = 0; x < shape->output_w; x++) {
                gather(shape, input, y, x, &found);
                const int32_t *at = parameters;
                for (int32_t channel = 0; channel < shape->output_c; channel++, at += channel_words) {
                    int32_t sum = at[0];
                    for (int32_t i = 0; i < found.count; i++) {
                        sum = dot(found.pixels + 4 * i * words, at + 3 + taps[i] * words, words, sum);
                    }
                    *output++ = thimble_requantize_s8(sum, at[1], at[2], requant);
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
    }
}
