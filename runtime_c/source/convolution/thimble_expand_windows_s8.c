/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_dsp.h"

#if THIMBLE_ASM
/* Four bytes of one pixel, in `word`, to `at` and the word after it. */
#define PUT(word, at, next)                                                                                  \
    "sxtb16  %[odd], " word ", ror #8          \n"                                                           \
    "sxtb16  " word ", " word "                \n"                                                           \
    "str     %[odd], [%[to], #" next "]        \n"                                                           \
    "str     " word ", " at "                  \n"
#endif

THIMBLE_ASM_FUNCTION void
thimble_expand_windows_s8(const int8_t *input, int32_t step, int32_t words, int32_t count, uint32_t *columns)
{
#if THIMBLE_ASM
    if (count == 4 && words > 0) {
        const int8_t *second = input + step, *third = second + step, *fourth = third + step;
        uint32_t a, b, c, d, odd;
        __asm volatile("1:                                \n"
                       "ldr     %[a], [%[first]], #4      \n"
                       "ldr     %[b], [%[second]], #4     \n"
                       "ldr     %[c], [%[third]], #4      \n"
                       "ldr     %[d], [%[fourth]], #4     \n" PUT("%[d]", "[%[to], #24]", "28")
                           PUT("%[c]", "[%[to], #16]", "20") PUT("%[b]", "[%[to], #8]", "12")
                               PUT("%[a]", "[%[to]], #32", "4") "subs    %[n], %[n], #1            \n"
                                                                "bne     1b                        \n"
                       : [n] "+r"(words), [first] "+r"(input), [second] "+r"(second), [third] "+r"(third),
                         [fourth] "+r"(fourth), [to] "+r"(columns), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
                         [d] "=&r"(d), [odd] "=&r"(odd)
                       :
                       : "cc", "memory");
        return;
    }
#endif
    for (int32_t i = 0; i < count; i++, input += step) {
        thimble_expand_column_s8(input, words, count, columns + 2 * i);
    }
}
