/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_dsp.h"

void thimble_sum_column_s8(int32_t taps, int32_t interleaved, uint32_t *column)
{
    const uint32_t low = 0x0000FFFFU, ones = 0x00010001U;
    const int32_t step = 2 * interleaved;
    int32_t words = (taps + 3) / 4;
    uint32_t *lanes = column + step * words;

    if ((taps & 3) != 0) {
        /* Bytes 0 and 2, then 1 and 3; what follows the last tap is not one. */
        uint32_t *const last = lanes - step;
        last[0] &= (taps & 3) == 3 ? 0xFFFFFFFFU : low;
        last[1] &= (taps & 3) == 1 ? 0U : low;
    }
    for (; words > 0; lanes += step) {
        int32_t sums[4];
        for (int32_t lane = 0; lane < 4; lane++) {
            int32_t count = words < THIMBLE_SUMMED_TAPS / 4 ? words : THIMBLE_SUMMED_TAPS / 4;
            int32_t sum = 0;
            words -= count;
            for (; count > 0; count--, column += step) {
                sum = thimble_smlad(column[1], ones, thimble_smlad(column[0], ones, sum));
            }
            sums[lane] = -sum;
        }
        lanes[0] = ((uint32_t)sums[0] & low) | ((uint32_t)sums[1] << 16);
        lanes[1] = ((uint32_t)sums[2] & low) | ((uint32_t)sums[3] << 16);
    }
}
