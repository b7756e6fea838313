/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_wide.h"

#define HALF 32768u

void thimble_logistic_table_s16(const int16_t *input,
                                int16_t *output,
                                int32_t size,
                                int32_t multiplier,
                                int32_t shift,
                                const int16_t *table)
{
    const int32_t rounding = shift > 0 ? 1 << (shift - 1) : 0;
    for (int32_t i = 0; i < size; i++) {
        const int32_t data = (input[i] * multiplier + rounding) >> shift;
        const uint32_t magnitude = (uint32_t)(data < 0 ? -data : data);
        const uint32_t place = magnitude >> 9;
        uint32_t value = 0x7FFFu << 10;
        if (place < 255u) {
            const uint32_t low = (uint32_t)table[place] + HALF;
            const uint32_t high = (uint32_t)table[place + 1u] + HALF;
            value = (low << 9) + (magnitude & 0x1FFu) * (high - low);
        }
        value = data >= 0 ? value + (1u << 9) : (1u << 25) - value + (1u << 9) - 1u;
        output[i] = (int16_t)(value >> 10);
    }
}
