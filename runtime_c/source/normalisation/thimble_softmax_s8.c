/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_softmax.h"
#include "thimble_softmax_row.h"

/* Where the sum reaches 512, every quotient is below half a unit and rounds to 0. */
void thimble_softmax_s8(const int8_t *input,
                        int8_t *output,
                        int32_t rows,
                        int32_t columns,
                        const int32_t *exponentials,
                        int32_t entries)
{
    for (int32_t done = 0; done < rows; done++) {
        const thimble_softmax_row row = {exponentials, entries, thimble_softmax_max(input, columns)};
        const uint64_t sum = thimble_softmax_sum(&row, input, columns);
        const int32_t negligible = sum >= (uint64_t)1 << 28;
        int32_t headroom = 0;
        const int32_t reciprocal = negligible ? 0 : thimble_softmax_reciprocal((uint32_t)sum, &headroom);
        for (int32_t i = 0; i < columns; i++) {
            const int32_t quotient =
                negligible ? 0 : thimble_softmax_quotient(&row, input[i], reciprocal, headroom, 8);
            output[i] = (int8_t)(quotient + INT8_MIN);
        }
        input += columns;
        output += columns;
    }
}
