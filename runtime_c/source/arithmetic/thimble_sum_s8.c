/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lanes.h"
#include "thimble_units.h"

int32_t thimble_sum_s8(const int8_t *input, int32_t size)
{
    int32_t sum = 0;
#if THIMBLE_MVE
    __asm volatile("wlstp.8       lr, %[size], 2f     \n"
                   "1:                                \n"
                   "vldrb.8       q0, [%[input]], #16 \n"
                   "vaddva.s8     %[sum], q0          \n"
                   "letp          lr, 1b              \n"
                   "2:                                \n"
                   : [sum] "+Te"(sum), [input] "+r"(input)
                   : [size] "r"(size)
                   : "q0", "memory", "lr");
#else
    const uint32_t ones = 0x00010001U;
    for (; size >= 4; size -= 4, input += 4) {
        const uint32_t x = thimble_read_word(input);
        sum = thimble_smlad(thimble_sxtb16(x), ones, sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(x), ones, sum);
    }
    for (; size > 0; size--) {
        sum += *input++;
    }
#endif
    return sum;
}
