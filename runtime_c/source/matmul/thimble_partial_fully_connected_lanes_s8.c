/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_sums.h"
#include "thimble_units.h"

void thimble_partial_fully_connected_lanes_s8(int32_t rows,
                                              int32_t depth,
                                              int32_t units,
                                              const int8_t *input,
                                              const int32_t *parameters,
                                              const int32_t *sums,
                                              int32_t *output)
{
    for (int32_t row = 0; row < rows; row++, input += depth) {
        const int32_t *at = parameters;
        for (int32_t left = units; left > 0; left -= 4) {
            int32_t block[4];
            at = thimble_sum_units_lanes_s8(input, at, depth, block);
            for (int32_t i = 0; i < left && i < 4; i++) {
                *output++ = thimble_add(block[i], sums ? *sums++ : 0);
            }
        }
    }
}
