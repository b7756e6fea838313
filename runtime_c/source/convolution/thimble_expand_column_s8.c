/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_dsp.h"

void thimble_expand_column_s8(const int8_t *input, int32_t words, uint32_t *column)
{
#if THIMBLE_ASM
    if (words > 0) {
        uint32_t even, odd;
        __asm volatile(
            "lsrs    %[n], %[n], #1            \n"
            "bcc     1f                        \n"
            "add     %[n], %[n], #1            \n"
            "b       2f                        \n"
            "1:                                \n"
            "ldr     %[odd], [%[from]], #4     \n"
            "sxtb16  %[even], %[odd]           \n"
            "sxtb16  %[odd], %[odd], ror #8    \n"
            "strd    %[even], %[odd], [%[to]], #16 \n"
            "2:                                \n"
            "ldr     %[odd], [%[from]], #4     \n"
            "sxtb16  %[even], %[odd]           \n"
            "sxtb16  %[odd], %[odd], ror #8    \n"
            "strd    %[even], %[odd], [%[to]], #16 \n"
            "subs    %[n], %[n], #1            \n"
            "bne     1b                        \n"
            : [n] "+r"(words), [from] "+r"(input), [to] "+r"(column), [even] "=&r"(even), [odd] "=&r"(odd)
            :
            : "cc", "memory");
    }
#else
    for (; words > 0; words--, input += 4, column += 4) {
        const uint32_t word = thimble_read_word(input);
        column[0] = thimble_sxtb16(word);
        column[1] = thimble_sxtb16_ror8(word);
    }
#endif
}
