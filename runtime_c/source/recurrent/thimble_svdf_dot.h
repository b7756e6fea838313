/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers over time of both states share: sums that wrap. */
#ifndef THIMBLE_SVDF_DOT_H
#define THIMBLE_SVDF_DOT_H

#include "thimble_lanes.h"

/* The sum of a * (b - zero). */
static int32_t thimble_svdf_dot(const int8_t *a, const int8_t *b, int32_t size, int32_t zero)
{
#if THIMBLE_MVE && THIMBLE_ASM
    int32_t products = 0, all = 0;
    __asm volatile("wlstp.8       lr, %[size], 2f         \n"
                   "1:                                   \n"
                   "vldrb.8       q0, [%[a]], #16         \n"
                   "vaddva.s8     %[all], q0              \n"
                   "vldrb.8       q1, [%[b]], #16         \n"
                   "vmladava.s8   %[products], q0, q1     \n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [a] "+r"(a), [b] "+r"(b), [products] "+Te"(products), [all] "+Te"(all)
                   : [size] "r"(size)
                   : "q0", "q1", "memory", "lr");
    return thimble_add(products, thimble_multiply(-zero, all));
#else
    const uint32_t minus = (uint32_t)-zero & 0xFFFFU;
    const uint32_t offsets = minus | (minus << 16);
    int32_t sum = 0;
    int32_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const uint32_t x = thimble_read_word(a + i);
        const uint32_t y = thimble_read_word(b + i);
        const uint32_t even = thimble_sxtb16(x);
        const uint32_t odd = thimble_sxtb16_ror8(x);
        sum = thimble_smlad(even, thimble_sxtb16(y), sum);
        sum = thimble_smlad(odd, thimble_sxtb16_ror8(y), sum);
        sum = thimble_smlad(even, offsets, sum);
        sum = thimble_smlad(odd, offsets, sum);
    }
    for (; i < size; i++) {
        sum = thimble_add(sum, a[i] * (b[i] - zero));
    }
    return sum;
#endif
}

#endif
