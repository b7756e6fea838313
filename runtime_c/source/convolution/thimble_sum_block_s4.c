/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"
#include "thimble_fours.h"

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_block_s4(const int32_t *parameters,
                                                         const uint32_t *columns,
                                                         int32_t words,
                                                         int32_t interleaved,
                                                         int32_t count,
                                                         const int32_t *offsets,
                                                         int32_t *sums)
{
    const int32_t *at = parameters + 2;
    for (int32_t i = 0; i < count; i++) {
        sums[4 * i] = sums[4 * i + 1] = thimble_add(parameters[0], offsets[i]);
        sums[4 * i + 2] = sums[4 * i + 3] = thimble_add(parameters[1], offsets[i]);
    }
#if THIMBLE_ASM
    if (interleaved == 1 && words > 0) {
        int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
        uint32_t w0, w1, t0, t1, u;
        __asm volatile("1:                                \n"
                       "ldr     %[w1], [%[at], #4]        \n"
                       "ldr     %[w0], [%[at]], #8        \n"
                       "ldr     %[t1], [%[column], #4]    \n"
                       "ldr     %[t0], [%[column]], #8    \n" THIMBLE_FOURS("%[w0]", "%[t0]")
                           THIMBLE_FOURS("%[w1]", "%[t1]") "subs    %[n], %[n], #1            \n"
                                                           "bne     1b                        \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(words),
                         [at] "+r"(at), [column] "+r"(columns), [w0] "=&r"(w0), [w1] "=&r"(w1),
                         [t0] "=&r"(t0), [t1] "=&r"(t1), [u] "=&r"(u)
                       :
                       : "cc", "memory");
        sums[0] = s0;
        sums[1] = s1;
        sums[2] = s2;
        sums[3] = s3;
    }
#endif
    for (; words > 0; words--, at += 2, columns += 2 * interleaved) {
        for (int32_t i = 0; i < count; i++) {
            thimble_add_fours((uint32_t)at[0], columns[2 * i], sums + 4 * i);
            thimble_add_fours((uint32_t)at[1], columns[2 * i + 1], sums + 4 * i);
        }
    }
    for (int32_t i = 0; i < 4 * count; i += 4) {
        sums[i + 1] = thimble_part_fours(sums[i + 1], sums[i], at[0]);
        sums[i + 3] = thimble_part_fours(sums[i + 3], sums[i + 2], at[1]);
    }
    return at + 2;
}
