/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_sum_3x3.h"

#if defined(__ARM_ARCH_6M__) && defined(__GNUC__) && !defined(__clang__)
/* r0: pairs, r8 and r9: two sums, r10: bytes from row to row, r11: bytes back to the next window, r12: where
 * sums go, lr: their end. The taps are on the stack as words, since each product overwrites a factor. */
#define PROLOGUE(pair)                                                                                       \
    ".syntax unified\n\t"                                                                                    \
    "push {r4, r5, r6, r7, lr}\n\t"                                                                          \
    "mov r4, r8\n\t"                                                                                         \
    "mov r5, r9\n\t"                                                                                         \
    "mov r6, r10\n\t"                                                                                        \
    "mov r7, r11\n\t"                                                                                        \
    "push {r4, r5, r6, r7}\n\t"                                                                              \
    "ldr r4, [sp, #36]\n\t"                                                                                  \
    "mov lr, r4\n\t"                                                                                         \
    "mov r12, r3\n\t"                                                                                        \
    "lsls r1, r1, #2\n\t"                                                                                    \
    "mov r10, r1\n\t"                                                                                        \
    "lsls r1, r1, #1\n\t"                                                                                    \
    "movs r3, #" pair "\n\t"                                                                                 \
    "subs r3, r3, r1\n\t"                                                                                    \
    "mov r11, r3\n\t" PUSH("16", "20") PUSH("8", "12") PUSH("0", "4")

#define PUSH(first, second)                                                                                  \
    "ldr r7, [r2, #" first "]\n\t"                                                                           \
    "ldr r6, [r2, #" second "]\n\t"                                                                          \
    "sxth r4, r7\n\t"                                                                                        \
    "asrs r5, r7, #16\n\t"                                                                                   \
    "asrs r6, r6, #16\n\t"                                                                                   \
    "push {r4, r5, r6}\n\t"

#define EPILOGUE                                                                                             \
    "cmp r1, lr\n\t"                                                                                         \
    "bne 1b\n\t"                                                                                             \
    "add sp, #36\n\t"                                                                                        \
    "pop {r4, r5, r6, r7}\n\t"                                                                               \
    "mov r8, r4\n\t"                                                                                         \
    "mov r9, r5\n\t"                                                                                         \
    "mov r10, r6\n\t"                                                                                        \
    "mov r11, r7\n\t"                                                                                        \
    "pop {r4, r5, r6, r7, pc}\n\t"

#define TWO(pair, put, tap_0, tap_1, tap_2)                                                                  \
    "ldr r1, [r0]\n\t"                                                                                       \
    "ldr r3, [r0, #" pair "]\n\t"                                                                            \
    "asrs r2, r1, #16\n\t"                                                                                   \
    "sxth r1, r1\n\t"                                                                                        \
    "asrs r4, r3, #16\n\t"                                                                                   \
    "sxth r3, r3\n\t"                                                                                        \
    "ldr r5, [sp, #" tap_0 "]\n\t"                                                                           \
    "muls r1, r5\n\t" put " r8, r1\n\t"                                                                      \
    "muls r5, r2\n\t" put " r9, r5\n\t"                                                                      \
    "ldr r6, [sp, #" tap_1 "]\n\t"                                                                           \
    "muls r2, r6\n\t"                                                                                        \
    "add r8, r2\n\t"                                                                                         \
    "muls r6, r3\n\t"                                                                                        \
    "add r9, r6\n\t"                                                                                         \
    "ldr r7, [sp, #" tap_2 "]\n\t"                                                                           \
    "muls r3, r7\n\t"                                                                                        \
    "add r8, r3\n\t"                                                                                         \
    "muls r4, r7\n\t"                                                                                        \
    "add r9, r4\n\t"

/* r4: the sum. */
#define ONE(pair, put, tap_0, tap_1, tap_2)                                                                  \
    "ldr r1, [r0]\n\t"                                                                                       \
    "ldr r3, [r0, #" pair "]\n\t"                                                                            \
    "asrs r2, r1, #16\n\t"                                                                                   \
    "sxth r1, r1\n\t"                                                                                        \
    "sxth r3, r3\n\t"                                                                                        \
    "ldr r5, [sp, #" tap_0 "]\n\t"                                                                           \
    "muls r1, r5\n\t" put " r4, r1\n\t"                                                                      \
    "ldr r6, [sp, #" tap_1 "]\n\t"                                                                           \
    "muls r2, r6\n\t"                                                                                        \
    "adds r4, r4, r2\n\t"                                                                                    \
    "ldr r7, [sp, #" tap_2 "]\n\t"                                                                           \
    "muls r3, r7\n\t"                                                                                        \
    "adds r4, r4, r3\n\t"

#define SUMS(name, pair, sums)                                                                               \
    __attribute__((naked, noinline)) static void name(const thimble_pair *first, int32_t line,               \
                                                      const uint32_t *taps, int32_t *to, const int32_t *end) \
    {                                                                                                        \
        __asm volatile(PROLOGUE(pair) "1:\n\t" sums EPILOGUE);                                               \
    }

#define SUMS_OF_TWO(pair)                                                                                    \
    TWO(pair, "mov", "0", "4", "8")                                                                          \
    "add r0, r10\n\t" TWO(pair, "add", "12", "16", "20") "add r0, r10\n\t" TWO(pair, "add", "24", "28",      \
                                                                               "32") "add r0, r11\n\t"       \
                                                                                     "mov r1, r12\n\t"       \
                                                                                     "mov r2, r8\n\t"        \
                                                                                     "mov r3, r9\n\t"        \
                                                                                     "stm r1!, {r2, r3}\n\t" \
                                                                                     "mov r12, r1\n\t"

#define SUMS_OF_ONE(pair)                                                                                    \
    ONE(pair, "movs", "0", "4", "8")                                                                         \
    "add r0, r10\n\t" ONE(pair, "add", "12", "16", "20") "add r0, r10\n\t" ONE(pair, "add", "24", "28",      \
                                                                               "32") "add r0, r11\n\t"       \
                                                                                     "mov r1, r12\n\t"       \
                                                                                     "stm r1!, {r4}\n\t"     \
                                                                                     "mov r12, r1\n\t"

SUMS(sum_lines, "4", SUMS_OF_TWO("4"))
SUMS(sum_lines_step_2, "4", SUMS_OF_ONE("4"))
SUMS(sum_turns, "12", SUMS_OF_TWO("12"))
SUMS(sum_turns_step_2, "12", SUMS_OF_ONE("12"))

void thimble_sum_3x3_s16(const thimble_pair *first,
                         int32_t pair,
                         int32_t line,
                         int32_t stride,
                         const uint32_t *taps,
                         int32_t *sums,
                         const int32_t *end)
{
    if (pair == 1) {
        (stride == 1 ? sum_lines : sum_lines_step_2)(first, line, taps, sums, end);
    } else {
        (stride == 1 ? sum_turns : sum_turns_step_2)(first, line, taps, sums, end);
    }
}
#else
void thimble_sum_3x3_s16(const thimble_pair *first,
                         int32_t pair,
                         int32_t line,
                         int32_t stride,
                         const uint32_t *taps,
                         int32_t *sums,
                         const int32_t *end)
{
    for (; sums != end; first += pair) {
        int32_t s = 0, t = 0;
        for (int32_t row = 0; row < 3; row++) {
            const uint32_t left = first[row * line], right = first[row * line + pair];
            const int32_t a = thimble_bottom(taps[2 * row]), b = thimble_top(taps[2 * row]),
                          c = thimble_top(taps[2 * row + 1]);
            s += thimble_bottom(left) * a + thimble_top(left) * b + thimble_bottom(right) * c;
            t += thimble_top(left) * a + thimble_bottom(right) * b + thimble_top(right) * c;
        }
        *sums++ = s;
        if (stride == 1) {
            *sums++ = t;
        }
    }
}
#endif
