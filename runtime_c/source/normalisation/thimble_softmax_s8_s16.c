/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_softmax.h"
#include "thimble_softmax_row.h"

void thimble_softmax_s8_s16(const int8_t *input,
                            int16_t *output,
                            int32_t rows,
                            int32_t columns,
                            const int32_t *exponentials,
                            int32_t entries)
{
    for (int32_t done = 0; done < rows; done++) {
        const thimble_softmax_row row = {exponentials, entries, thimble_softmax_max(input, columns)};
        int32_t headroom;
        const uint32_t sum = (uint32_t)thimble_softmax_sum(&row, input, columns);
        const int32_t reciprocal = thimble_softmax_reciprocal(sum, &headroom);
        for (int32_t i = 0; i < columns; i++) {
            const int32_t quotient = thimble_softmax_quotient(&row, input[i], reciprocal, headroom, 16);
            output[i] = (int16_t)(quotient + INT16_MIN);
        }
        input += columns;
        output += columns;
    }
}
