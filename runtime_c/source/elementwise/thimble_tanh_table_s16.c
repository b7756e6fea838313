/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_logistic_table.h"
#include "thimble_wide.h"

/* tanh(x) = 2 logistic(2 x) - 1 */
void thimble_tanh_table_s16(const int16_t *input,
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
        const uint32_t value = thimble_logistic_between(table, magnitude, 8, 0xFFFFu);
        const int32_t above = (int32_t)value - (1 << 23);
        output[i] = (int16_t)((data >= 0 ? above + (1 << 7) : -above + (1 << 7) - 1) >> 8);
    }
}
