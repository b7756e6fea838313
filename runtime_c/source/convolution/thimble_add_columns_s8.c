/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_dsp.h"

void thimble_add_columns_s8(const int32_t *parameters,
                            const uint32_t *columns,
                            int32_t words,
                            int32_t channels,
                            const int32_t *sums_0,
                            const int32_t *sums_1,
                            int32_t *output_0,
                            int32_t *output_1)
{
    for (int32_t channel = 0; channel < channels; channel += 2) {
        const int32_t second = channel + 1 < channels;
        thimble_block_sums block;
        parameters = thimble_sum_block_s8(parameters, columns, words, &block);
        if (sums_0) {
            /* All are read before any is written: the columns may be one. */
            block.s00 = thimble_add(block.s00, sums_0[channel]);
            block.s10 = thimble_add(block.s10, sums_1[channel]);
            if (second) {
                block.s01 = thimble_add(block.s01, sums_0[channel + 1]);
                block.s11 = thimble_add(block.s11, sums_1[channel + 1]);
            }
        }
        output_1[channel] = block.s10;
        output_0[channel] = block.s00;
        if (second) {
            output_1[channel + 1] = block.s11;
            output_0[channel + 1] = block.s01;
        }
    }
}
