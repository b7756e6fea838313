/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_units.h"

int32_t thimble_sum_s8(const int8_t *input, int32_t size)
{
    const uint32_t ones = 0x00010001U;
    int32_t sum = 0;
    for (; size >= 4; size -= 4, input += 4) {
        const uint32_t x = thimble_read_word(input);
        sum = thimble_smlad(thimble_sxtb16(x), ones, sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(x), ones, sum);
    }
    for (; size > 0; size--) {
        sum += *input++;
    }
    return sum;
}
