/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_winograd.h"

void thimble_convolve_winograd_s8(const thimble_conv_shape *shape,
                                  const thimble_requant *requant,
                                  const int8_t *input,
                                  const int32_t *parameters,
                                  void *scratch,
                                  int8_t *output)
{
    const int32_t channels = shape->input_c, outputs = shape->output_c;
    const int32_t input_line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t output_line = thimble_line(shape->output_line, shape->output_w, outputs);
    const int32_t last_x = shape->output_w - 1, last_y = shape->output_h - 1;
    uint32_t *const taps = scratch;
    int32_t left = (shape->output_h + 1) / 2 * ((shape->output_w + 1) / 2);
    const int32_t most = thimble_winograd_together(left, shape->band);
    int8_t *const staging = (int8_t *)(taps + THIMBLE_WINOGRAD_POSITIONS * most * channels / 2);
    thimble_winograd_block block;
    block.taps = taps;
    block.pairs = outputs / 2;
    block.low = (uint8_t)requant->activation_min * 0x01010101U;
    block.high = (uint8_t)requant->activation_max * 0x01010101U;
    block.parameters = parameters;

    int32_t x = 0, y = 0;
    for (int32_t tiles; left > 0; left -= tiles) {
        tiles = thimble_winograd_together(left, shape->band);
        block.turns = thimble_winograd_turns(channels, THIMBLE_WINOGRAD_POSITIONS, tiles);
        /* Behind the last tile it is taken again. */
        for (int32_t tile = 0; tile < tiles; tile++) {
            const int32_t from_x = x - shape->pad_left, from_y = y - shape->pad_top;
            const int8_t *window = staging;
            int32_t line = 4 * channels;
            if (from_x < 0 || from_y < 0 || from_x + 4 > shape->input_w || from_y + 4 > shape->input_h) {
                thimble_winograd_gather_s8(shape, input, from_y, from_x, 4, staging);
            } else {
                window = input + from_y * input_line + from_x * channels;
                line = input_line;
            }
            thimble_winograd_tile_s8(window, line, channels, tiles, taps + tile);
            int8_t *const to = output + y * output_line + x * outputs;
            for (int32_t i = 2 * tile; i < 2 * tile + 2; i++) {
                block.upper[i] = to + (i & 1);
                block.lower[i] = block.upper[i] + (y < last_y ? output_line : 0);
                block.step[i] = x < last_x ? outputs : 0;
            }
            if (x + 2 <= last_x) {
                x += 2;
            } else if (y + 2 <= last_y) {
                x = 0;
                y += 2;
            } else {
                /* It was the last tile. */
            }
        }
        thimble_winograd_block_s8(&block);
    }
}
