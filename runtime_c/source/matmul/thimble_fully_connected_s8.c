/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_matmul.h"
#include "thimble_units.h"

void thimble_fully_connected_s8(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output)
{
    for (int32_t row = 0; row < rows; row++) {
        const int32_t *at = parameters;
        for (int32_t left = units; left > 0; left -= 4) {
            int32_t sums[4];
            at = thimble_sum_units_s8(input, at, depth, sums);
            output = thimble_put_units_s8(sums, common ? common : at, left < 4 ? left : 4, requant, output);
            at += common ? 0 : 9;
        }
        input += depth;
    }
}
