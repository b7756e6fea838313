/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns_s4.h"

#if THIMBLE_ASM
/* Two taps of two columns and four channels: 16 products in 15 instructions, of four bytes each. r0 to r3:
 * sums of the first column's channels, r4 to r7 the second's; r8: the parameters; r9: the columns. `last` is
 * how the second column's word is addressed. */
#define HALF(first, last)                                                                                    \
    "ldr     r10, [r8], #4                     \n"                                                           \
    "ldr     r12, " first "                    \n"                                                           \
    "ldr     lr, " last "                      \n"                                                           \
    "sxtb16  r11, r10, ror #8                  \n"                                                           \
    "sxtb16  r10, r10                          \n"                                                           \
    "smlad   r3, r12, r11, r3                  \n"                                                           \
    "smlad   r7, lr, r11, r7                   \n"                                                           \
    "and     r11, r11, #0x000F000F             \n"                                                           \
    "smlad   r1, r12, r10, r1                  \n"                                                           \
    "smlad   r5, lr, r10, r5                   \n"                                                           \
    "and     r10, r10, #0x000F000F             \n"                                                           \
    "smlad   r2, r12, r11, r2                  \n"                                                           \
    "smlad   r6, lr, r11, r6                   \n"                                                           \
    "smlad   r0, r12, r10, r0                  \n"                                                           \
    "smlad   r4, lr, r10, r4                   \n"

/* Four taps, whose words begin at r9 + `e0`. */
#define STEP(e0, e1, o0, last)                                                                               \
    HALF("[r9, #" e0 "]", "[r9, #" e1 "]")                                                                   \
    HALF("[r9, #" o0 "]", last)
#define STEP_CODE 120

/* A turn of the loop: sixteen taps of two interleaved columns, r9 being 60 bytes beyond the beginning of the
 * turn. It may begin at any step, with r9 less by 16 for each that it leaves out. */
#define PAIR_TURN                                                                                            \
    STEP("-60", "-52", "-56", "[r9, #-48]")                                                                  \
    STEP("-44", "-36", "-40", "[r9, #-32]")                                                                  \
    STEP("-28", "-20", "-24", "[r9, #-16]")                                                                  \
    STEP("-12", "-4", "-8", "[r9], #64")

/* The same of two of four interleaved columns, which begin at the first or the third: 108 bytes, and 32. */
#define QUAD_TURN                                                                                            \
    STEP("-108", "-100", "-104", "[r9, #-96]")                                                               \
    STEP("-76", "-68", "-72", "[r9, #-64]")                                                                  \
    STEP("-44", "-36", "-40", "[r9, #-32]")                                                                  \
    STEP("-12", "-4", "-8", "[r9], #128")

/* How far behind the loop of two columns that of four is: after a load, a comparison, two branches. */
#define QUAD_ENTRY (4 * STEP_CODE + 16)

/* One channel of both columns: multiplier and rounding term, and how they are applied. */
#define ONCE(first, second, multiplier, rounding)                                                            \
    "ldr     r9, [r8, #" multiplier "]         \n"                                                           \
    "ldr     r12, [r8, #" rounding "]          \n" THIMBLE_ONCE_OF_TWO(first, second, "r9", "r12")
#define TWICE(first, second, multiplier, rounding)                                                           \
    "ldr     r9, [r8, #" multiplier "]         \n"                                                           \
    "ldr     r12, [r8, #" rounding "]          \n" THIMBLE_TWICE(first, "r9", "r12")                         \
        THIMBLE_TWICE(second, "r9", "r12")
#define NEXT_CODE "lsr     r11, r11, #8                      \n"
#endif

/* What the assembly keeps in memory, having no register left. `first` and `last`: where the columns are as
 * the loop addresses them, at its beginning and at its end. `entry`: how many bytes of code behind `add pc` a
 * loop is entered. `offsets`, `outputs`: of the two columns. */
typedef struct {
    const uint32_t *first, *last;
    int32_t entry;
    const int32_t *end;
    int32_t offsets[2];
    int8_t *outputs[2];
    int32_t *sums;
} pair_state;

THIMBLE_ASM_FUNCTION void thimble_mat_mult_windows_s4(const int32_t *parameters,
                                                      int32_t words,
                                                      int32_t channels,
                                                      const thimble_requant *requant,
                                                      uint32_t *columns,
                                                      int32_t at_once,
                                                      thimble_next_windows next,
                                                      void *walk)
{
    const int32_t block_words = 2 * words + 4 + THIMBLE_FOUR_SCALING;
    const int32_t *const end = parameters + (channels + 3) / 4 * block_words;
    const int32_t rest = ((channels - 1) & 3) + 1;
    int32_t sums[8], offsets[4];
    int8_t *outputs[4];
    pair_state state = {.end = end, .sums = sums};
#if THIMBLE_ASM
    const int32_t left_out = -words & 3, step = 2 * at_once;
    state.entry = (at_once == 2 ? 0 : QUAD_ENTRY) + left_out * STEP_CODE;
#endif
    for (;;) {
        const int32_t count = next(walk, columns, outputs);
        if (count <= 1) {
            if (count == 1) {
                thimble_mat_mult_column_s4(parameters, columns, words, channels, requant, outputs[0]);
            }
            return;
        }
        thimble_column_offsets_s4(columns, words, at_once, offsets);
        for (int32_t pair = 0; pair < count; pair += 2) {
            const uint32_t *const here = columns + 2 * pair;
            /* An odd last column is one of a pair, too, whose other one is written over. */
            state.outputs[0] = outputs[pair];
            state.outputs[1] = outputs[pair + 1 < count ? pair + 1 : pair];
            state.offsets[0] = offsets[pair];
            state.offsets[1] = offsets[pair + 1];
#if THIMBLE_ASM
            state.first = here + 3 + step * (3 - left_out);
            state.last = here + 3 + step * (3 + words);
#endif
            for (const int32_t *from = parameters; from != end;) {
#if THIMBLE_ASM
                register const int32_t *at __asm("r8") = from;
                register uint32_t slow __asm("r9");
                __asm volatile(
                    "1:                                        \n"
                    "ldr     r12, %[m_offset_0]                \n"
                    "ldr     lr, %[m_offset_1]                 \n"
                    "ldr     r3, [r8, #4]                      \n"
                    "ldr     r1, [r8], #8                      \n"
                    "ldr     r9, %[m_first]                    \n"
                    "ldr     r11, %[m_entry]                   \n"
                    "add     r2, r3, r12                       \n"
                    "add     r6, r3, lr                        \n"
                    "add     r0, r1, r12                       \n"
                    "add     r4, r1, lr                        \n"
                    "mov     r3, r2                            \n"
                    "mov     r7, r6                            \n"
                    "mov     r1, r0                            \n"
                    "mov     r5, r4                            \n"
                    ".p2align 2                                \n"
                    "add     pc, r11                           \n"
                    "nop                                       \n"
                    "5:                                        \n" PAIR_TURN
                    "ldr.w   r12, %[m_last]                    \n"
                    "cmp     r9, r12                           \n"
                    "bne.w   5b                                \n"
                    "b.w     9f                                \n"
                    "nop                                       \n"
                    "8:                                        \n" QUAD_TURN
                    "ldr     r12, %[m_last]                    \n"
                    "cmp     r9, r12                           \n"
                    "bne     8b                                \n"
                    "9:                                        \n"
                    "ldr     r9, [r8]                          \n"
                    "ldr     r10, [r8, #4]                     \n"
                    "ldr     r12, [r8, #44]                    \n"
                    "ldr     r11, [r8, #40]                    \n"
                    "sub     r1, r1, r0                        \n"
                    "sub     r5, r5, r4                        \n"
                    "sub     r3, r3, r2                        \n"
                    "sub     r7, r7, r6                        \n"
                    "add     r1, r9, r1, asr #4                \n"
                    "add     r5, r9, r5, asr #4                \n"
                    "add     r3, r10, r3, asr #4               \n"
                    "add     r7, r10, r7, asr #4               \n"
                    "add     r8, r8, #48                       \n"
                    "cmp     r12, #1                           \n"
                    "blt     6f                                \n"
                    "beq     4f                                \n" ONCE("r0", "r4", "-40", "-24")
                        NEXT_CODE ONCE("r1", "r5", "-36", "-20") NEXT_CODE ONCE("r2", "r6", "-32", "-16")
                            NEXT_CODE ONCE(
                                "r3", "r7", "-28",
                                "-12") "3:                                        \n"
                                       "ldr     r9, %[m_output_0]                 \n"
                                       "ldr     r10, %[m_output_1]                \n"
                                       "ldr     r12, %[m_end]                     \n"
                                       "bfi     r4, r5, #8, #8                    \n"
                                       "bfi     r0, r1, #8, #8                    \n"
                                       "bfi     r4, r6, #16, #8                   \n"
                                       "bfi     r0, r2, #16, #8                   \n"
                                       "bfi     r4, r7, #24, #8                   \n"
                                       "bfi     r0, r3, #24, #8                   \n"
                                       "str     r4, [r10], #4                     \n"
                                       "str     r0, [r9], #4                      \n"
                                       "str     r10, %[m_output_1]                \n"
                                       "str     r9, %[m_output_0]                 \n"
                                       "cmp     r8, r12                           \n"
                                       "bne     1b                                \n"
                                       "mov     r9, #0                            \n"
                                       "b       7f                                \n"
                                       "4:                                        \n" TWICE(
                                           "r0", "r4", "-40", "-24") NEXT_CODE TWICE("r1", "r5", "-36", "-20")
                                           NEXT_CODE TWICE("r2", "r6", "-32", "-16") NEXT_CODE TWICE(
                                               "r3", "r7", "-28",
                                               "-12") "b       3b                                \n"
                                                      "6:                                        \n"
                                                      "ldr     r9, %[m_sums]                     \n"
                                                      "stmia   r9, {r0-r7}                       \n"
                                                      "mov     r9, #1                            \n"
                                                      "7:                                        \n"
                    : "+r"(at),
                      "=r"(slow), [m_output_0] "+m"(state.outputs[0]), [m_output_1] "+m"(state.outputs[1])
                    : [m_first] "m"(state.first), [m_last] "m"(state.last), [m_entry] "m"(state.entry),
                      [m_end] "m"(state.end), [m_offset_0] "m"(state.offsets[0]),
                      [m_offset_1] "m"(state.offsets[1]), [m_sums] "m"(state.sums)
                    : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r10", "r11", "r12", "lr", "cc",
                      "memory");
                from = at;
                if (!slow) {
                    break;
                }
#else
                from = thimble_sum_block_s4(from, here, words, at_once, 2, state.offsets, sums) +
                       THIMBLE_FOUR_SCALING;
#endif
                const int32_t lanes = from == end ? rest : 4;
                for (int32_t column = 1; column >= 0; column--) {
                    thimble_put_block_s4(sums + 4 * column, from - THIMBLE_FOUR_SCALING, lanes, requant,
                                         state.outputs[column]);
                    state.outputs[column] += 4;
                }
            }
        }
    }
}
