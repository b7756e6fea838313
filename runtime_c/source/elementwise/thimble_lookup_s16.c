/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_wide.h"

void thimble_lookup_s16(const int16_t *input, int16_t *output, int32_t size, const int16_t table[513])
{
    for (int32_t i = 0; i < size; i++) {
        const int16_t *entry = table + 256 + (input[i] >> 7);
        /* The slope wraps as LiteRT's does. */
        const int32_t slope = (int16_t)(uint16_t)(entry[1] - entry[0]);
        output[i] = (int16_t)(entry[0] + ((slope * (input[i] & 0x7F) + 64) >> 7));
    }
}
