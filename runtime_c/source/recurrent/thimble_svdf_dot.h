/* SPDX-License-Identifier: Apache-2.0 */
/* What the layers over time do with states of both types: sums that wrap, and the move by one place. */
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

/* Values move down by one place. */
static inline void thimble_move_down_s8(int8_t *state, int32_t count)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const int8_t *from = state + 1;
    __asm volatile("wlstp.8       lr, %[count], 2f        \n"
                   "1:                                   \n"
                   "vldrb.8       q0, [%[from]], #16      \n"
                   "vstrb.8       q0, [%[to]], #16        \n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [from] "+r"(from), [to] "+r"(state)
                   : [count] "r"(count)
                   : "q0", "memory", "lr");
#else
    (void)memmove(state, state + 1, (size_t)count);
#endif
}

static inline void thimble_move_down_s16(int16_t *state, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        state[i] = state[i + 1];
    }
}

/* thimble_svdf_dot of an int16 state, whose zero point is 0. */
static inline int32_t
thimble_svdf_dot_s16(const int16_t *weights, const int16_t *state, int32_t memory, int32_t zero)
{
    int32_t sum = 0;
    (void)zero;
    for (int32_t i = 0; i < memory; i++) {
        sum = thimble_add(sum, weights[i] * state[i]);
    }
    return sum;
}

#endif
