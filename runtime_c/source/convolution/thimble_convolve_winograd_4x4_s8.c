/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_winograd.h"

#include <string.h>

/* Outputs of a tile at the image's end, which were computed apart: those that the image has. */
static void put(const int8_t *from, int8_t *to, int32_t line, int32_t rows, int32_t columns, int32_t channels)
{
    for (; rows > 0; rows--, from += 4 * channels, to += line) {
        (void)memcpy(to, from, (size_t)columns * (size_t)channels);
    }
}

void thimble_convolve_winograd_4x4_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output)
{
    enum { side = THIMBLE_WINOGRAD_4X4_SIDE };
    const int32_t channels = shape->input_c, outputs = shape->output_c;
    const int32_t input_line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t output_line = thimble_line(shape->output_line, shape->output_w, outputs);
    uint32_t *const taps = scratch;
    int32_t left = (shape->output_h + 3) / 4 * ((shape->output_w + 3) / 4);
    const int32_t most = thimble_winograd_together(left, shape->band);
    int8_t *const staging = (int8_t *)(taps + side * side * most * channels / 2);
    thimble_winograd_block_4x4 block;
    block.step = outputs;
    block.taps = taps;
    block.pairs = outputs / 2;
    block.low = (uint8_t)requant->activation_min * 0x01010101U;
    block.high = (uint8_t)requant->activation_max * 0x01010101U;
    block.parameters = parameters;

    int32_t x = 0, y = 0;
    for (int32_t tiles; left > 0; left -= tiles) {
        tiles = thimble_winograd_together(left, shape->band);
        block.turns = thimble_winograd_turns(channels, side * side, tiles);
        /* Behind the last tile it is taken again. */
        struct {
            int8_t *to;
            int32_t rows, columns;
        } ends[THIMBLE_WINOGRAD_TILES];
        for (int32_t tile = 0; tile < tiles; tile++) {
            const int32_t from_x = x - shape->pad_left, from_y = y - shape->pad_top;
            const int8_t *window = staging;
            int32_t line = side * channels;
            if (from_x < 0 || from_y < 0 || from_x + side > shape->input_w ||
                from_y + side > shape->input_h) {
                thimble_winograd_gather_s8(shape, input, from_y, from_x, side, staging);
            } else {
                window = input + from_y * input_line + from_x * channels;
                line = input_line;
            }
            thimble_winograd_tile_4x4_s8(window, line, channels, tiles, taps + tile);
            const int32_t rows = shape->output_h - y, columns = shape->output_w - x;
            const int32_t whole = rows >= 4 && columns >= 4;
            int8_t *const to = output + y * output_line + x * outputs;
            ends[tile].to = to;
            ends[tile].rows = whole ? 0 : rows < 4 ? rows : 4;
            ends[tile].columns = columns < 4 ? columns : 4;
            for (int32_t i = 2 * tile; i < 2 * tile + 2; i++) {
                block.to[i] = (whole ? to : staging + tile * 16 * outputs) + (i & 1);
                block.line[i] = whole ? output_line : 4 * outputs;
            }
            if (columns > 4) {
                x += 4;
            } else if (rows > 4) {
                x = 0;
                y += 4;
            } else {
                /* It was the last tile. */
            }
        }
        thimble_winograd_block_4x4_s8(&block);
        for (int32_t tile = 0; tile < tiles; tile++) {
            put(staging + tile * 16 * outputs, ends[tile].to, output_line, ends[tile].rows,
                ends[tile].columns, outputs);
        }
    }
}
