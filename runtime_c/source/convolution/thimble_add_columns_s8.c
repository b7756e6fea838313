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
        int32_t block[4];
        parameters = thimble_sum_block_s8(parameters, columns, words, 2, block);
        if (sums_0 != NULL) {
            /* All are read before any is written: the columns may be one. */
            block[0] = thimble_add(block[0], sums_0[channel]);
            block[2] = thimble_add(block[2], sums_1[channel]);
            if (second != 0) {
                block[1] = thimble_add(block[1], sums_0[channel + 1]);
                block[3] = thimble_add(block[3], sums_1[channel + 1]);
            }
        }
        output_1[channel] = block[2];
        output_0[channel] = block[0];
        if (second != 0) {
            output_1[channel + 1] = block[3];
            output_0[channel + 1] = block[1];
        }
    }
}
