/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FULLY_CONNECTED: SUM_UNITS sums a row with four units, each from the OFFSET of the row, and is told where
 * the next four begin.
 */
#include "thimble_matmul.h"
#include "thimble_units.h"

void FULLY_CONNECTED(int32_t rows,
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
        const int32_t offset = OFFSET(input, depth);
        (void)offset;
        for (int32_t left = units; left > 0; left -= 4) {
            int32_t sums[4];
            at = SUM_UNITS(input, at, depth, offset, sums);
            output = thimble_put_units_s8(sums, common ? common : at, left < 4 ? left : 4, requant, output);
            at += common ? 0 : 9;
        }
        input += depth;
    }
}
