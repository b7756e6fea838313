/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns.h"

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_block_s8(
    const int32_t *parameters, const uint32_t *columns, int32_t words, int32_t count, int32_t *sums)
{
#if THIMBLE_ASM
    if (count == 2) {
        register const int32_t *at __asm("r8") = parameters;
        register const uint32_t *column __asm("r9") = columns;
        register int32_t left __asm("r7") = words;
        register int32_t s0 __asm("r0"), s1 __asm("r1"), s2 __asm("r2"), s3 __asm("r3");
        __asm volatile("ldr     r1, [r8, #4]                      \n"
                       "ldr     r0, [r8], #8                      \n"
                       "mov     r3, r1                            \n"
                       "mov     r2, r0                            \n" THIMBLE_STEPS(THIMBLE_PAIR_STEP)
                       : "=r"(s0), "=r"(s1), "=r"(s2), "=r"(s3), "+r"(left), "+r"(at), "+r"(column)
                       :
                       : "r4", "r5", "r6", "r10", "r11", "r12", "lr", "cc", "memory");
        sums[0] = s0;
        sums[1] = s1;
        sums[2] = s2;
        sums[3] = s3;
        return at;
    }
    if (count == 1) {
        register const int32_t *at __asm("r8") = parameters;
        register const uint32_t *column __asm("r9") = columns;
        register int32_t left __asm("r7") = words;
        register int32_t s0 __asm("r0"), s1 __asm("r1");
        __asm volatile("ldr     r1, [r8, #4]                      \n"
                       "ldr     r0, [r8], #8                      \n" THIMBLE_STEPS(THIMBLE_LONE_STEP)
                       : "=r"(s0), "=r"(s1), "+r"(left), "+r"(at), "+r"(column)
                       :
                       : "r4", "r5", "r10", "r11", "r12", "cc", "memory");
        sums[0] = s0;
        sums[1] = s1;
        return at;
    }
#endif
    const int32_t *at = parameters + 2;
    for (int32_t i = 0; i < 2 * count; i++) {
        sums[i] = parameters[i & 1];
    }
    for (; words > 0; words--, at += 2) {
        const uint32_t even = (uint32_t)at[0], odd = (uint32_t)at[1];
        for (int32_t i = 0; i < 2 * count; i += 2, columns += 2) {
            sums[i] = thimble_smlad(columns[0], thimble_sxtb16(even), sums[i]);
            sums[i] = thimble_smlad(columns[1], thimble_sxtb16(odd), sums[i]);
            sums[i + 1] = thimble_smlad(columns[0], thimble_sxtb16_ror8(even), sums[i + 1]);
            sums[i + 1] = thimble_smlad(columns[1], thimble_sxtb16_ror8(odd), sums[i + 1]);
        }
    }
    return at;
}
