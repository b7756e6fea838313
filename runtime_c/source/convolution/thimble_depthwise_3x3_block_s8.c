/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_channel_block.h"

#if THIMBLE_ASM
/* Taps begin at byte 64; 24 bytes for each column. */
#define COLUMN(taps)                                                                                         \
    "ldr     %[x], [%[at]]                     \n"                                                           \
    "ldr     %[y], [%[at], %[line]]            \n" THIMBLE_BLOCK_PAIR(                                       \
        "[%[w], #64 + " taps "]", "[%[w], #68 + " taps "]",                                                  \
        "[%[w], #72 + " taps                                                                                 \
        "]") "ldr     %[x], [%[at], %[line], lsl #1]    \n" THIMBLE_BLOCK_SINGLE("[%[w], #80 + " taps "]")
#endif

THIMBLE_ASM_FUNCTION void thimble_depthwise_3x3_block_s8(const thimble_block_window *window,
                                                         int32_t step,
                                                         int32_t count,
                                                         const int8_t *input,
                                                         const thimble_channel_block *block,
                                                         int8_t *output)
{
#if THIMBLE_ASM
    const int32_t line = window->line, pixel = window->pixel, back = step - 2 * pixel;
    const int8_t *const end = output + 4 * count;
    int32_t s0, s1, s2, s3;
    uint32_t x, y, t, u, v;
    __asm volatile("1:                                        \n"
                   "ldrd    %[s0], %[s2], [%[w]]              \n"
                   "ldrd    %[s1], %[s3], [%[w], #8]          \n" COLUMN(
                       "0") "add     %[at], %[at], %[pixel]           "
                            " \n" COLUMN("24") "add     %[at], %[at], "
                                               "%[pixel]            "
                                               "\n" COLUMN("48") "ldr     "
                                                                 "%[t], "
                                                                 "%[back]     "
                                                                 "            "
                                                                 "    \n"
                                                                 "add     "
                                                                 "%[at], "
                                                                 "%[at], %[t] "
                                                                 "            "
                                                                 "   "
                                                                 "\n" THIMBLE_BLOCK_OUTPUTS "ldr     "
                                                                 "%[t], "
                                                                 "%[end]      "
                                                                 "            "
                                                                 "    \n"
                                                                 "str     "
                                                                 "%[s0], "
                                                                 "[%[to]], #4 "
                                                                 "            "
                                                                 "   \n"
                                                                 "cmp     "
                                                                 "%[to], %[t] "
                                                                 "            "
                                                                 "          \n"
                                                                 "bne     1b  "
                                                                 "            "
                                                                 "            "
                                                                 "      \n"
                   : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [at] "+r"(input),
                     [to] "+r"(output), [x] "=&r"(x), [y] "=&r"(y), [t] "=&r"(t), [u] "=&r"(u), [v] "=&r"(v)
                   : [line] "r"(line), [pixel] "r"(pixel), [w] "r"(block), [back] "m"(back), [end] "m"(end)
                   : "cc", "memory");
#else
    thimble_depthwise_block(window, step, count, input, block, output);
#endif
}
