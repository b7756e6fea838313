/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_channel_block.h"

void thimble_sum_channels_s8(const thimble_block_window *window,
                             const int8_t *input,
                             const thimble_channel_block *block,
                             int32_t *sums)
{
    const uint32_t *taps = block->taps;
    int32_t s0 = block->biases[0], s2 = block->biases[1], s1 = block->biases[2], s3 = block->biases[3];
    for (int32_t column = window->columns; column > 0; column--, input += window->pixel) {
        const int8_t *at = input;
        int32_t row = window->rows;
        for (; row > 1; row -= 2, at += 2 * window->line, taps += 4) {
            const uint32_t upper = thimble_read_word(at), lower = thimble_read_word(at + window->line);
            const uint32_t a = thimble_sxtb16(upper), b = thimble_sxtb16(lower);
            const uint32_t c = thimble_sxtb16_ror8(upper), d = thimble_sxtb16_ror8(lower);
            s0 = thimble_smlad(thimble_bottoms(a, b), taps[0], s0);
            s2 = thimble_smlad(thimble_tops(a, b), taps[1], s2);
            s1 = thimble_smlad(thimble_bottoms(c, d), taps[2], s1);
            s3 = thimble_smlad(thimble_tops(c, d), taps[3], s3);
        }
        if (row > 0) {
            s0 = thimble_add(s0, at[0] * thimble_bottom(taps[0]));
            s2 = thimble_add(s2, at[2] * thimble_top(taps[0]));
            s1 = thimble_add(s1, at[1] * thimble_bottom(taps[1]));
            s3 = thimble_add(s3, at[3] * thimble_top(taps[1]));
            taps += 2;
        }
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}
