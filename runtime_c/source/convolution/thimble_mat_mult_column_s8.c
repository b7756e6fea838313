/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_requantize_s8.h"

void thimble_mat_mult_column_s8(const int32_t *parameters,
                                const uint32_t *column,
                                int32_t words,
                                int32_t channels,
                                const thimble_requant *requant,
                                int8_t *output)
{
    const int32_t *at = parameters;
    for (; channels > 0; channels -= 2, output += 2, at += 5) {
        int32_t sums[2];
        at = thimble_sum_block_s8(at, column, words, 1, sums);
        output[0] = thimble_requantize_lane_s8(sums[0], at, 0, requant);
        if (channels > 1) {
            output[1] = thimble_requantize_lane_s8(sums[1], at, 1, requant);
        }
    }
}
