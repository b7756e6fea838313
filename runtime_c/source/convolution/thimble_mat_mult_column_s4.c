/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"

void thimble_mat_mult_column_s4(const int32_t *parameters,
                                const uint32_t *column,
                                int32_t words,
                                int32_t channels,
                                const thimble_requant *requant,
                                int8_t *output)
{
    int32_t offset;
    thimble_column_offsets_s4(column, words, 1, &offset);
    for (; channels > 0; channels -= 4, output += 4) {
        int32_t sums[4];
        const int32_t *const scaling = thimble_sum_block_s4(parameters, column, words, 1, 1, &offset, sums);
        thimble_put_block_s4(sums, scaling, channels < 4 ? channels : 4, requant, output);
        parameters = scaling + THIMBLE_FOUR_SCALING;
    }
}
