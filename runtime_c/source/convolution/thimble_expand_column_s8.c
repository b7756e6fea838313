/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_dsp.h"

void thimble_expand_column_s8(const int8_t *input, int32_t words, int32_t interleaved, uint32_t *column)
{
#if THIMBLE_ASM
    if (words > 0) {
        uint32_t a, b, c, d;
        __asm volatile("lsrs    %[n], %[n], #1            \n"
                       "bcc     1f                        \n"
                       "ldr     %[b], [%[from]], #4       \n"
                       "sxtb16  %[a], %[b]                \n"
                       "sxtb16  %[b], %[b], ror #8        \n"
                       "str     %[b], [%[to], #4]         \n"
                       "str     %[a], [%[to]]             \n"
                       "add     %[to], %[to], %[step]     \n"
                       "cbz     %[n], 2f                  \n"
                       "1:                                \n"
                       "ldr     %[b], [%[from]]           \n"
                       "ldr     %[d], [%[from], #4]       \n"
                       "sxtb16  %[a], %[b]                \n"
                       "sxtb16  %[b], %[b], ror #8        \n"
                       "str     %[b], [%[to], #4]         \n"
                       "str     %[a], [%[to]]             \n"
                       "add     %[to], %[to], %[step]     \n"
                       "sxtb16  %[c], %[d]                \n"
                       "sxtb16  %[d], %[d], ror #8        \n"
                       "str     %[d], [%[to], #4]         \n"
                       "str     %[c], [%[to]]             \n"
                       "add     %[to], %[to], %[step]     \n"
                       "add     %[from], %[from], #8      \n"
                       "subs    %[n], %[n], #1            \n"
                       "bne     1b                        \n"
                       "2:                                \n"
                       : [n] "+l"(words), [from] "+r"(input), [to] "+r"(column), [a] "=&r"(a), [b] "=&r"(b),
                         [c] "=&r"(c), [d] "=&r"(d)
                       : [step] "r"(8 * interleaved)
                       : "cc", "memory");
    }
#else
    for (; words > 0; words--, input += 4, column += 2 * interleaved) {
        const uint32_t word = thimble_read_word(input);
        column[0] = thimble_sxtb16(word);
        column[1] = thimble_sxtb16_ror8(word);
    }
#endif
}
