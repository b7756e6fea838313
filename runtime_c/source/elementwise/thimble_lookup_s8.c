/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"

/* Any function of one 8-bit operand, by a table that the compiler filled. */
void thimble_lookup_s8(const int8_t *input, int8_t *output, int32_t size, const int8_t table[256])
{
    for (; size >= 4; size -= 4) {
        output[0] = table[(uint8_t)input[0]];
        output[1] = table[(uint8_t)input[1]];
        output[2] = table[(uint8_t)input[2]];
        output[3] = table[(uint8_t)input[3]];
        input += 4;
        output += 4;
    }
    for (; size > 0; size--) {
        *output++ = table[(uint8_t)*input++];
    }
}
