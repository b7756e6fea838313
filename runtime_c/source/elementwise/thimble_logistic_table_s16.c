/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_logistic_table.h"
#include "thimble_wide.h"

void thimble_logistic_table_s16(const int16_t *input,
                                int16_t *output,
                                int32_t size,
                                int32_t multiplier,
                                int32_t shift,
                                const int16_t *table)
{
    const int32_t rounding = shift > 0 ? 1 << (shift - 1) : 0;
    for (int32_t i = 0; i < size; i++) {
        const int32_t data = thimble_logistic_place(input[i], multiplier, rounding) >> shift;
        const uint32_t magnitude = data < 0 ? 0u - (uint32_t)data : (uint32_t)data;
        uint32_t value = thimble_logistic_between(table, magnitude, 9, 0xFFFEu);
        value = data >= 0 ? value + (1u << 9) : (1u << 25) - value + (1u << 9) - 1u;
        output[i] = (int16_t)(value >> 10);
    }
}
