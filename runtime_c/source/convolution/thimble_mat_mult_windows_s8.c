/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns.h"
#include "thimble_requantize_s8.h"

#if THIMBLE_ASM
/* How far behind the loop of two columns those of three and four are: after a load, a comparison, two
 * branches. */
#define TRIO_ENTRY (4 * THIMBLE_PAIR_STEP_CODE + 16)
#define QUAD_ENTRY (TRIO_ENTRY + 4 * THIMBLE_TRIO_STEP_CODE + 12)

#define CLAMP(value)                                                                                         \
    "cmp     " value ", r11                    \n"                                                           \
    "it      lt                                \n"                                                           \
    "movlt   " value ", r11                    \n"                                                           \
    "cmp     " value ", r12                    \n"                                                           \
    "it      gt                                \n"                                                           \
    "movgt   " value ", r12                    \n"
#endif

/* What the assembly keeps in memory, having no register left. `first` and `last`: where the columns are as
 * the loop addresses them, at its beginning and at its end. `entry`: how many bytes of code behind `add pc` a
 * loop is entered. */
typedef struct {
    const uint32_t *first, *last;
    int32_t entry;
    const int32_t *end;
    int8_t *outputs[4];
    int32_t narrow, low, high;
    int32_t *sums;
} quad_state;

/* Outputs of a block of which a channel is missing or has no fast form; `at` is what follows its filters. */
static void put_block(const int32_t *sums,
                      int32_t count,
                      const int32_t *at,
                      int32_t second,
                      const thimble_requant *requant,
                      quad_state *state)
{
    for (int32_t column = 3; column >= 0; column--) {
        int8_t *const to = state->outputs[column];
        state->outputs[column] += 2;
        if (column >= count) {
            continue;
        }
        to[0] = thimble_requantize_lane_s8(sums[2 * column], at, 0, requant);
        if (second != 0) {
            to[1] = thimble_requantize_lane_s8(sums[2 * column + 1], at, 1, requant);
        }
    }
}

THIMBLE_ASM_FUNCTION void thimble_mat_mult_windows_s8(const int32_t *parameters,
                                                      int32_t words,
                                                      int32_t channels,
                                                      const thimble_requant *requant,
                                                      uint32_t *columns,
                                                      int32_t at_once,
                                                      thimble_next_windows next,
                                                      void *walk)
{
    const int32_t *const end = parameters + (channels + 1) / 2 * (2 * words + 7);
    int32_t sums[8];
    quad_state state = {.end = end,
                        .narrow = thimble_narrow(requant),
                        .low = requant->activation_min,
                        .high = requant->activation_max,
                        .sums = sums};
#if THIMBLE_ASM
    const int32_t left_out = -words & 3, step = 2 * at_once;
    const uint32_t *const from_end = columns + 4 * step - 1;
    state.first = at_once == 2 ? columns : from_end - step * left_out;
    state.last = (at_once == 2 ? columns : from_end) + step * words;
    state.entry = at_once == 2   ? left_out * THIMBLE_PAIR_STEP_CODE
                  : at_once == 3 ? TRIO_ENTRY + left_out * THIMBLE_TRIO_STEP_CODE
                                 : QUAD_ENTRY + left_out * THIMBLE_QUAD_STEP_CODE;
#endif
    for (;;) {
        const int32_t count = next(walk, columns, state.outputs);
        if (count <= 1) {
            if (count == 1) {
                thimble_mat_mult_column_s8(parameters, columns, words, channels, requant, state.outputs[0]);
            }
            return;
        }
        for (int32_t i = count; i < 4; i++) {
            state.outputs[i] = state.outputs[0];
        }
        for (const int32_t *from = parameters; from != end;) {
#if THIMBLE_ASM
            register const int32_t *at __asm("r8") = from;
            register uint32_t slow __asm("r9");
            /* clang-format off */
            __asm volatile(
                "1:                                 \n"
                "ldr     r1, [r8, #4]               \n"
                "ldr     r0, [r8], #8               \n"
                "ldr     r9, %[m_first]             \n"
                "ldr     lr, %[m_entry]             \n"
                "mov     r3, r1                     \n"
                "mov     r2, r0                     \n"
                "mov     r5, r1                     \n"
                "mov     r4, r0                     \n"
                "mov     r7, r1                     \n"
                "mov     r6, r0                     \n"
                ".p2align 2                         \n"
                "add     pc, lr                     \n"
                "nop                                \n"
                "5:                                 \n"
                THIMBLE_PAIR_TURN
                "ldr.w   r12, %[m_last]             \n"
                "cmp     r9, r12                    \n"
                "bne.w   5b                         \n"
                "b.w     9f                         \n"
                "nop                                \n"
                "8:                                 \n"
                THIMBLE_TRIO_TURN
                "ldr.w   r12, %[m_last]             \n"
                "cmp     r9, r12                    \n"
                "bne.w   8b                         \n"
                "b.n     9f                         \n"
                "2:                                 \n"
                THIMBLE_QUAD_TURN
                "ldr     r12, %[m_last]             \n"
                "cmp     r9, r12                    \n"
                "bne     2b                         \n"
                "9:                                 \n"
                "ldr     lr, [r8, #4]               \n"
                "ldr     r11, [r8, #8]              \n"
                "ldr     r12, [r8, #12]             \n"
                "ldr     r10, [r8, #16]             \n"
                "ldr     r9, [r8], #20              \n"
                "cmp     r11, #0x1000000            \n"
                "blt     4f                         \n"
                THIMBLE_ONCE("r0", "r2", "r4", "r6", "r9", "r12")
                "lsr     r11, r11, #16              \n"
                THIMBLE_ONCE("r1", "r3", "r5", "r7", "lr", "r10")
                "3:                                 \n"
                "ldr     r9, %[m_output_0]          \n"
                "ldr     r10, %[m_output_1]         \n"
                "ldr     r11, %[m_output_2]         \n"
                "ldr     r12, %[m_output_3]         \n"
                "bfi     r6, r7, #8, #8             \n"
                "bfi     r4, r5, #8, #8             \n"
                "bfi     r2, r3, #8, #8             \n"
                "bfi     r0, r1, #8, #8             \n"
                "strh    r6, [r12], #2              \n"
                "strh    r4, [r11], #2              \n"
                "strh    r2, [r10], #2              \n"
                "strh    r0, [r9], #2               \n"
                "str     r12, %[m_output_3]         \n"
                "str     r11, %[m_output_2]         \n"
                "str     r10, %[m_output_1]         \n"
                "str     r9, %[m_output_0]          \n"
                "ldr     r10, %[m_end]              \n"
                "cmp     r8, r10                    \n"
                "bne     1b                         \n"
                "mov     r9, #0                     \n"
                "b       7f                         \n"
                "4:                                 \n"
                "tst     r11, #0x80008000           \n"
                "bne     6f                         \n"
                THIMBLE_TWICE("r0", "r9", "r12")
                THIMBLE_TWICE("r2", "r9", "r12")
                THIMBLE_TWICE("r4", "r9", "r12")
                THIMBLE_TWICE("r6", "r9", "r12")
                "ldr     r12, [r8, #-4]             \n"
                "lsr     r11, r11, #16              \n"
                THIMBLE_TWICE("r1", "lr", "r12")
                THIMBLE_TWICE("r3", "lr", "r12")
                THIMBLE_TWICE("r5", "lr", "r12")
                THIMBLE_TWICE("r7", "lr", "r12")
                "17:                                \n"
                "ldr     r10, %[m_narrow]           \n"
                "cmp     r10, #0                    \n"
                "beq     3b                         \n"
                "ldr     r11, %[m_low]              \n"
                "ldr     r12, %[m_high]             \n"
                CLAMP("r0")
                CLAMP("r1")
                CLAMP("r2")
                CLAMP("r3")
                CLAMP("r4")
                CLAMP("r5")
                CLAMP("r6")
                CLAMP("r7")
                "b       3b                         \n"
                "6:                                 \n"
                "cmn     r11, #1                    \n"
                "bne     16f                        \n"
                THIMBLE_FLOAT_BLOCK
                "b       17b                        \n"
                "16:                                \n"
                "ldr     r9, %[m_sums]              \n"
                "stmia   r9, {r0-r7}                \n"
                "mov     r9, #1                     \n"
                "7:                                 \n"
                : "+r"(at),
                  "=r"(slow), [m_output_0] "+m"(state.outputs[0]), [m_output_1] "+m"(state.outputs[1]),
                  [m_output_2] "+m"(state.outputs[2]), [m_output_3] "+m"(state.outputs[3])
                : [m_first] "m"(state.first), [m_last] "m"(state.last), [m_entry] "m"(state.entry),
                  [m_end] "m"(state.end), [m_narrow] "m"(state.narrow), [m_low] "m"(state.low),
                  [m_high] "m"(state.high), [m_sums] "m"(state.sums)
                : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r10", "r11", "r12", "lr", "cc",
                  "memory" THIMBLE_FLOAT_CLOBBERS);
            /* clang-format on */
            from = at;
            if (!slow) {
                break;
            }
#else
            from = thimble_sum_block_s8(from, columns, words, at_once, sums) + 5;
#endif
            put_block(sums, at_once, from - 5, from != end || (channels & 1) == 0, requant, &state);
        }
    }
}
