/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

/* Linear interpolation; 7 bits lie between the entries. */
static int32_t looked_up(const int16_t table[513], int32_t value)
{
    const int16_t *entry = table + 256 + (value >> 7);
    return entry[0] + (((entry[1] - entry[0]) * (value & 0x7F) + 64) >> 7);
}

void thimble_softmax_s16(const int16_t *input,
                         int16_t *output,
                         int32_t rows,
                         int32_t columns,
                         int32_t multiplier,
                         int32_t shift,
                         const int16_t exponentials[513],
                         const int16_t reciprocals[513])
{
    for (int32_t row = 0; row < rows; row++) {
        int32_t max = input[0];
        uint32_t sum = 0;
        for (int32_t i = 1; i < columns; i++) {
            max = input[i] > max ? input[i] : max;
        }
        for (int32_t i = 0; i < columns; i++) {
            const int32_t scaled =
                thimble_moved(thimble_scaled(input[i] - max, multiplier, shift), INT16_MAX);
            const int32_t power = looked_up(exponentials, thimble_clamp_s16(scaled, INT16_MIN, INT16_MAX));
            output[i] = (int16_t)power;
            sum += (uint32_t)power;
        }
        /* The sum as 1 + x, x from 0 to 1; rounding may reach 1. */
        const int32_t headroom = (int32_t)__builtin_clz(sum);
        const int32_t place = (int32_t)(((sum << (headroom - 1)) + (1u << 13)) >> 14) - 98304;
        const int32_t reciprocal = looked_up(reciprocals, thimble_clamp_s16(place, INT16_MIN, INT16_MAX));
        for (int32_t i = 0; i < columns; i++) {
            const int32_t quotient = (output[i] * reciprocal) >> (30 - headroom);
            output[i] = (int16_t)thimble_clamp_s16((quotient + 1) >> 1, 0, INT16_MAX);
        }
        input += columns;
        output += columns;
    }
}
