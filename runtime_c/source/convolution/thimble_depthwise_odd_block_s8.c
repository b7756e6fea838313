/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_channel_block.h"

#if THIMBLE_ASM
/* Two rows of a column, and on to the next two. */
#define TWO_ROWS                                                                                             \
    "ldr     %[x], [%[at]]                     \n"                                                           \
    "ldr     %[y], [%[at], %[line]]            \n"                                                           \
    "add     %[at], %[at], %[line], lsl #1     \n" THIMBLE_BLOCK_PAIR("[%[w]], #4", "[%[w]], #4",            \
                                                                      "[%[w]], #8")

/* What the assembly keeps in memory, having no register left. */
typedef struct {
    int32_t pairs, columns;
    const void *entry;
    int32_t next_output, taps_bytes;
    int8_t *to;
    const int8_t *end;
} odd_state;
#endif

THIMBLE_ASM_FUNCTION void thimble_depthwise_odd_block_s8(const thimble_block_window *window,
                                                         int32_t step,
                                                         int32_t count,
                                                         const int8_t *input,
                                                         const thimble_channel_block *block,
                                                         int8_t *output)
{
#if THIMBLE_ASM
    const int32_t line = window->line, pairs = window->rows / 2;
    const int32_t next_column = window->pixel - 2 * pairs * line;
    const int32_t taps_bytes = 8 * window->rows * window->columns;
    odd_state state = {
        pairs,  window->columns,   NULL, step - window->pixel * window->columns, 64 + taps_bytes,
        output, output + 4 * count};
    int32_t s0, s1, s2, s3, n;
    uint32_t x, y, t, u, v;
    __asm volatile(
        "ldr     %[x], %[m_pairs]                  \n"
        "adr     %[t], 10f                         \n"
        "cmp     %[x], #1                          \n"
        "blt     2f                                \n"
        "adr     %[t], 9f                          \n"
        "beq     2f                                \n"
        "adr     %[t], 8f                          \n"
        "cmp     %[x], #2                          \n"
        "beq     2f                                \n"
        "adr     %[t], 7f                          \n"
        "2:                                        \n"
        "str     %[t], %[m_entry]                  \n"
        "1:                                        \n"
        "ldrd    %[s0], %[s2], [%[w]]              \n"
        "ldrd    %[s1], %[s3], [%[w], #8]          \n"
        "ldr     %[n], %[m_columns]                \n"
        "add     %[w], %[w], #64                   \n"
        "6:                                        \n"
        "ldr     %[t], %[m_entry]                  \n"
        "mov     pc, %[t]                          \n"
        ".balign 4                                 \n"
        "7:                                        \n" TWO_ROWS ".balign 4                                 \n"
        "8:                                        \n" TWO_ROWS ".balign 4                                 \n"
        "9:                                        \n" TWO_ROWS ".balign 4                                 \n"
        "10:                                       \n"
        "ldr     %[x], [%[at]]                     \n"
        "add     %[at], %[at], %[column]           \n" THIMBLE_BLOCK_SINGLE(
            "[%[w]], #8") "subs    %[n], %[n], #1                    \n"
                          "bne     6b                                \n"
                          "ldr     %[n], %[m_taps]                   \n"
                          "ldr     %[t], %[m_next]                   \n"
                          "sub     %[w], %[w], %[n]                  \n"
                          "add     %[at], %[at], %[t]                \n" THIMBLE_BLOCK_OUTPUTS
                          "ldr     %[t], %[m_to]                     \n"
                          "ldr     %[x], %[m_end]                    \n"
                          "str     %[s0], [%[t]], #4                 \n"
                          "str     %[t], %[m_to]                     \n"
                          "cmp     %[t], %[x]                        \n"
                          "bne     1b                                \n"
        : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [at] "+r"(input), [w] "+r"(block),
          [n] "=&r"(n), [m_to] "+m"(state.to), [m_entry] "+m"(state.entry), [x] "=&r"(x), [y] "=&r"(y),
          [t] "=&r"(t), [u] "=&r"(u), [v] "=&r"(v)
        : [line] "r"(line), [column] "r"(next_column), [m_pairs] "m"(state.pairs),
          [m_columns] "m"(state.columns), [m_taps] "m"(state.taps_bytes), [m_next] "m"(state.next_output),
          [m_end] "m"(state.end)
        : "cc", "memory");
#else
    thimble_depthwise_block(window, step, count, input, block, output);
#endif
}
