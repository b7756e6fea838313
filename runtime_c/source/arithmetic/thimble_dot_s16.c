/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dot_s16.h"

/* Products of int16 and int8 whose sum stays inside int32. */
#define BLOCK 256

int64_t thimble_dot_s16(const int16_t *input, const int8_t *filter, int32_t depth)
{
    int64_t total = 0;
    while (depth > 0) {
        const int32_t count = depth < BLOCK ? depth : BLOCK;
        int32_t sum = 0;
        for (int32_t i = 0; i < count; i++) {
            sum += input[i] * filter[i];
        }
        total += sum;
        input += count;
        filter += count;
        depth -= count;
    }
    return total;
}
