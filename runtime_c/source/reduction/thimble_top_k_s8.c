/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_choice.h"

void thimble_top_k_s8(
    const int8_t *input, int32_t rows, int32_t columns, int32_t k, int8_t *values, int32_t *indices)
{
    for (int32_t row = 0; row < rows; row++, input += columns) {
        int32_t value = INT8_MAX + 1;
        int32_t index = 0;
        for (int32_t rank = 0; rank < k; rank++) {
            /* The largest that comes after the last one: below it, or equal and further on. */
            int32_t best = INT8_MIN - 1;
            int32_t found = 0;
            for (int32_t i = 0; i < columns; i++) {
                const int32_t after = input[i] < value || (input[i] == value && i > index);
                if (after && input[i] > best) {
                    best = input[i];
                    found = i;
                }
            }
            value = best;
            index = found;
            *values++ = (int8_t)value;
            *indices++ = index;
        }
    }
}
