/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns.h"
#include "thimble_requantize_s8.h"

#if THIMBLE_ASM
#define CLAMP(value)                                                                                         \
    "cmp     " value ", r4                     \n"                                                           \
    "it      lt                                \n"                                                           \
    "movlt   " value ", r4                     \n"                                                           \
    "cmp     " value ", r5                     \n"                                                           \
    "it      gt                                \n"                                                           \
    "movgt   " value ", r5                     \n"
#endif

/* A code of either channel that has no fast form. */
#define SIGNS ((int32_t)0x80008000)

/* What the assembly keeps in memory, having no register left. */
typedef struct {
    const uint32_t *columns;
    int32_t words;
    int8_t *output_0, *output_1;
    int32_t rounding;
    int32_t narrow, low, high;
} block_state;

/* A block of which a channel is missing or has no fast form; returns the next block. */
static const int32_t *
any_block(const int32_t *at, int32_t channels, const thimble_requant *requant, block_state *state)
{
    thimble_block_sums sums;
    at = thimble_sum_block_s8(at, state->columns, state->words, &sums);
    const int32_t code_0 = thimble_bottom((uint32_t)at[2]), code_1 = thimble_top((uint32_t)at[2]);
    int8_t *const to_0 = state->output_0, *const to_1 = state->output_1;
    to_1[0] = thimble_requantize_s8(sums.s10, at[0], code_0, requant);
    to_0[0] = thimble_requantize_s8(sums.s00, at[0], code_0, requant);
    if (channels > 1) {
        to_1[1] = thimble_requantize_s8(sums.s11, at[1], code_1, requant);
        to_0[1] = thimble_requantize_s8(sums.s01, at[1], code_1, requant);
    }
    state->output_0 += 2;
    state->output_1 += 2;
    return at + 3;
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_mat_mult_columns_s8(const int32_t *parameters,
                                                                const uint32_t *columns,
                                                                int32_t words,
                                                                int32_t channels,
                                                                const thimble_requant *requant,
                                                                int8_t *output_0,
                                                                int8_t *output_1)
{
    const int32_t *at = parameters;
    block_state state = {columns,
                         words,
                         output_0,
                         output_1,
                         thimble_rounding(requant, 0),
                         thimble_narrow(requant),
                         requant->activation_min,
                         requant->activation_max};

    for (; channels > 0; channels -= 2) {
#if THIMBLE_ASM
        if ((at[2 * words + 4] & SIGNS) == 0 && channels > 1) {
            int32_t s00, s01, s10, s11, n;
            const uint32_t *column;
            uint32_t w0, w1, t;
            __asm volatile(
                "ldr     %[columns], %[m_columns]          \n"
                "ldr     %[n], %[m_words]                  \n" THIMBLE_SUM_COLUMNS
                "ldmia   %[at]!, {r4, r5, r6}              \n"
                "ldr     %[w0], %[m_rounding]              \n"
                "sxth    r8, r6                            \n"
                "asr     r6, r6, #16                       \n"
                "lsl     %[w1], %[w0], r6                  \n"
                "lsl     %[w0], %[w0], r8                  \n" THIMBLE_REQUANTIZE(
                    "%[s00]", "r4", "%[w0]", "r8") THIMBLE_REQUANTIZE("%[s10]", "r4", "%[w0]", "r8")
                    THIMBLE_REQUANTIZE("%[s01]", "r5", "%[w1]", "r6") THIMBLE_REQUANTIZE(
                        "%[s11]", "r5", "%[w1]",
                        "r6") "ldr     %[t], %[m_narrow]                 \n"
                              "cmp     %[t], #0                          \n"
                              "beq     3f                                \n"
                              "ldr     r4, %[m_low]                      \n"
                              "ldr     r5, %[m_high]                     \n" CLAMP("%[s00]") CLAMP("%[s01]")
                                  CLAMP("%[s10]")
                                      CLAMP("%[s11]") "3:                                        \n"
                                                      "ldr     %[w0], %[m_output_0]              \n"
                                                      "ldr     %[w1], %[m_output_1]              \n"
                                                      "strb    %[s10], [%[w1]], #1               \n"
                                                      "strb    %[s11], [%[w1]], #1               \n"
                                                      "strb    %[s00], [%[w0]], #1               \n"
                                                      "strb    %[s01], [%[w0]], #1               \n"
                                                      "str     %[w0], %[m_output_0]              \n"
                                                      "str     %[w1], %[m_output_1]              \n"
                : [s00] "=&r"(s00), [s01] "=&r"(s01), [s10] "=&r"(s10), [s11] "=&r"(s11), [n] "=&r"(n),
                  [at] "+r"(at), [columns] "=&r"(column), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t),
                  [m_output_0] "+m"(state.output_0), [m_output_1] "+m"(state.output_1)
                : [m_columns] "m"(state.columns), [m_words] "m"(state.words),
                  [m_rounding] "m"(state.rounding), [m_narrow] "m"(state.narrow), [m_low] "m"(state.low),
                  [m_high] "m"(state.high)
                : "r4", "r5", "r6", "r8", "cc", "memory");
            continue;
        }
#endif
        at = any_block(at, channels, requant, &state);
    }
    return at;
}
