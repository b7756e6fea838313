/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns.h"

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_block_s8(const int32_t *parameters,
                                                         const uint32_t *columns,
                                                         int32_t words,
                                                         thimble_block_sums *sums)
{
    const int32_t *at = parameters;
#if THIMBLE_ASM
    int32_t s00, s01, s10, s11;
    uint32_t w0, w1, t;
    __asm volatile(THIMBLE_SUM_COLUMNS
                   : [s00] "=&r"(s00), [s01] "=&r"(s01), [s10] "=&r"(s10), [s11] "=&r"(s11), [n] "+r"(words),
                     [at] "+r"(at), [columns] "+r"(columns), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t)
                   :
                   : "r4", "r5", "r6", "r8", "cc", "memory");
#else
    int32_t s00 = at[0], s01 = at[1], s10 = s00, s11 = s01;
    for (at += 2; words > 0; words--, at += 2, columns += 4) {
        const uint32_t w0 = (uint32_t)at[0], w1 = (uint32_t)at[1];
        const uint32_t w0_even = thimble_sxtb16(w0), w0_odd = thimble_sxtb16_ror8(w0);
        const uint32_t w1_even = thimble_sxtb16(w1), w1_odd = thimble_sxtb16_ror8(w1);
        s00 = thimble_smlad(columns[1], w0_odd, thimble_smlad(columns[0], w0_even, s00));
        s01 = thimble_smlad(columns[1], w1_odd, thimble_smlad(columns[0], w1_even, s01));
        s10 = thimble_smlad(columns[3], w0_odd, thimble_smlad(columns[2], w0_even, s10));
        s11 = thimble_smlad(columns[3], w1_odd, thimble_smlad(columns[2], w1_even, s11));
    }
#endif
    sums->s00 = s00;
    sums->s01 = s01;
    sums->s10 = s10;
    sums->s11 = s11;
    return at;
}
