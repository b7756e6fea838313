/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"
#include "thimble_winograd.h"

#if THIMBLE_ASM
/* Two channels of three tiles and two filters: taps in r0 to r2, filters in r3 and r4. `taps`, `filters`: of
 * the five loads the last ones, which may move r5 and r6 on. */
#define STEP(tap_0, tap_1, filter_0, tap_2, filter_1)                                                        \
    "ldr     r0, [r5, #" tap_0 "]              \n"                                                           \
    "ldr     r1, [r5, #" tap_1 "]              \n"                                                           \
    "ldr     r3, [r6, #" filter_0 "]           \n"                                                           \
    "ldr     r2, [r5, #" tap_2 "               \n"                                                           \
    "ldr     r4, [r6, #" filter_1 "            \n"                                                           \
    "smlad   r7, r0, r3, r7                    \n"                                                           \
    "smlad   r8, r0, r4, r8                    \n"                                                           \
    "smlad   r9, r1, r3, r9                    \n"                                                           \
    "smlad   r10, r1, r4, r10                  \n"                                                           \
    "smlad   r11, r2, r3, r11                  \n"                                                           \
    "smlad   r12, r2, r4, r12                  \n"

/* thimble_requantize_fast of two sums that come four times as large. */
#define REQUANTIZE(a, b)                                                                                     \
    "asr     " a ", " a ", #1                  \n"                                                           \
    "asr     " b ", " b ", #1                  \n"                                                           \
    "smmlar  r1, " a ", r11, r12               \n"                                                           \
    "smmlar  r3, " b ", r11, r12               \n"                                                           \
    "add     r1, r1, " a ", asr #31            \n"                                                           \
    "add     r3, r3, " b ", asr #31            \n"                                                           \
    "asr     r1, r1, lr                        \n"                                                           \
    "asr     r3, r3, lr                        \n"                                                           \
    "ssat    " a ", #8, r1, asr #1             \n"                                                           \
    "ssat    " b ", #8, r3, asr #1             \n"

/* Within r1 and r3, by bytes; r4 is lost. */
#define CLAMP(value)                                                                                         \
    "ssub8   r4, " value ", r1                 \n"                                                           \
    "sel     " value ", " value ", r1          \n"                                                           \
    "ssub8   r4, r3, " value "                 \n"                                                           \
    "sel     " value ", " value ", r3          \n"

/* The stack holds the block (104 bytes) and, below it, P16 to P1: 24 bytes each. */
THIMBLE_ASM_FUNCTION void thimble_winograd_block_s8(const thimble_winograd_block *block)
{
    register const thimble_winograd_block *from __asm("r0") = block;
    __asm volatile(
        "sub     sp, sp, #96                       \n"
        "mov     r1, sp                            \n"
        "ldmia   r0!, {r2-r12, lr}                 \n"
        "stmia   r1!, {r2-r12, lr}                 \n"
        "ldmia   r0!, {r2-r12, lr}                 \n"
        "stmia   r1!, {r2-r12, lr}                 \n"

        "1:                                        \n"
        "ldr     r6, [sp, #92]                     \n"
        "ldr     r5, [sp, #76]                     \n"
        "ldr     lr, [sp, #72]                     \n"
        "ldr     r7, [r6]                          \n"
        "ldr     r8, [r6, #4]                      \n"
        "sub     r5, r5, #4                        \n"
        "add     r6, r6, #4                        \n"
        "mov     r9, r7                            \n"
        "mov     r10, r8                           \n"
        "mov     r11, r7                           \n"
        "mov     r12, r8                           \n"

        ".p2align 2                                \n"
        "2:                                        \n" /* r5 and r6 point four bytes lower */
        STEP("4", "8", "4", "12]", "8]") STEP("16", "20", "12", "24]", "16]") STEP("28", "32", "20", "36]",
                                                                                   "24]")
            STEP("40", "44", "28", "48]!",
                 "32]!") "subs    lr, lr, #0x1000000                \n"
                         "bcs     2b                                \n"
                         "stmdb   sp!, {r7-r12}                     \n"
                         "bfi     lr, lr, #24, #8                   \n"
                         "sub     lr, lr, #0x100                    \n"
                         "tst     lr, #0xff00                       \n"
                         "bne     2b                                \n"

                         "add     r6, r6, #4                        \n"
                         "mov     r9, sp                            \n"
                         "3:                                        \n"
                         "ldmia   r6!, {r11, r12, lr}               \n"
                         "str     r6, [sp, #476]                    \n"
                         "mov     r10, #3                           \n"

                         ".p2align 2                                \n"
                         "4:                                        \n"
                         "ldr     r0, [r9, #360]                    \n"
                         "ldr     r1, [r9, #336]                    \n"
                         "ldr     r2, [r9, #312]                    \n"
                         "ldr     r3, [r9, #288]                    \n"
                         "ldr     r4, [r9, #264]                    \n"
                         "ldr     r5, [r9, #240]                    \n"
                         "ldr     r6, [r9, #216]                    \n"
                         "ldr     r7, [r9, #192]                    \n"
                         "ldr     r8, [r9, #168]                    \n" /* P9 is output (0,0) */
                         "rsb     r0, r1, r0, lsl #1                \n"
                         "rsb     r3, r2, r3, lsl #1                \n"
                         "rsb     r6, r5, r6, lsl #1                \n"
                         "rsb     r2, r5, r2, lsl #1                \n"
                         "sub     r3, r3, r4                        \n"
                         "sub     r6, r6, r7                        \n"
                         "sub     r2, r2, r8                        \n"
                         "add     r6, r6, r0                        \n"
                         "sub     r0, r0, r3                        \n"
                         "add     r6, r6, r3                        \n"
                         "ldr     r1, [r9, #144]                    \n"
                         "ldr     r3, [r9, #120]                    \n"
                         "ldr     r4, [r9, #96]                     \n"
                         "ldr     r5, [r9, #72]                     \n"
                         "ldr     r7, [r9, #48]                     \n"
                         "sub     r0, r0, r8                        \n"
                         "add     r0, r0, r1, lsl #1                \n"
                         "sub     r0, r0, r3                        \n"
                         "add     r0, r0, r5, lsl #1                \n"
                         "sub     r0, r0, r4                        \n"
                         "sub     r0, r0, r7                        \n"
                         "add     r2, r2, r4                        \n"
                         "sub     r6, r6, r4                        \n"
                         "ldr     r1, [r9, #24]                     \n"
                         "ldr     r3, [r9]                          \n"
                         "ldr     r4, [r9, #384]                    \n"
                         "ldr     r5, [r9, #408]                    \n"
                         "ldr     r7, [r9, #432]                    \n"
                         "add     r6, r6, r1                        \n"
                         "sub     r0, r0, r1                        \n"
                         "add     r0, r0, r3                        \n" REQUANTIZE("r0", "r6") REQUANTIZE(
                             "r2", "r8") "cmp     lr, #255                          \n"
                                         "bhi     6f                                \n"
                                         "5:                                        \n"
                                         "strb    r0, [r5, r7]                      \n"
                                         "strb    r6, [r5], #2                      \n"
                                         "strb    r2, [r4, r7]                      \n"
                                         "strb    r8, [r4], #2                      \n"
                                         "str     r5, [r9, #408]                    \n"
                                         "str     r4, [r9, #384]                    \n"
                                         "add     r9, r9, #8                        \n"
                                         "subs    r10, r10, #1                      \n"
                                         "bne     4b                                \n"

                                         "mov     r0, sp                            \n"
                                         "add     r1, r0, #24                       \n"
                                         "cmp     r9, r1                            \n"
                                         "ittt    eq                                \n"
                                         "ldreq   r6, [sp, #476]                    \n"
                                         "addeq   r9, r0, #4                        \n"
                                         "beq     3b                                \n"
                                         "add     sp, sp, #384                      \n"
                                         "ldr     r0, [sp, #80]                     \n"
                                         "subs    r0, r0, #1                        \n"
                                         "str     r0, [sp, #80]                     \n"
                                         "bne     1b                                \n"
                                         "add     sp, sp, #96                       \n"
                                         "b       7f                                \n"

                                         "6:                                        \n"
                                         "ldr     r1, [sp, #468]                    \n"
                                         "ldr     r3, [sp, #472]                    \n" CLAMP("r0")
                                             CLAMP("r2") CLAMP("r6")
                                                 CLAMP("r8") "ldr     r4, [r9, #384]                    \n"
                                                             "b       5b                                \n"
                                                             "7:                                        \n"
        : "+r"(from)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
}
#else
static int8_t requantized(int32_t sum, const int32_t *scaling, const thimble_winograd_block *block)
{
    const int32_t code = scaling[2] & 255;
    const int32_t value = thimble_requantize_doubled(sum >> 1, scaling[0], code, scaling[1]);
    const int32_t low = (int8_t)(uint8_t)block->low, high = (int8_t)(uint8_t)block->high;
    return (int8_t)(scaling[2] > 255 ? thimble_clamp_sum(value, low, high) : value);
}

void thimble_winograd_block_s8(const thimble_winograd_block *block)
{
    enum { positions = THIMBLE_WINOGRAD_POSITIONS, tiles = THIMBLE_WINOGRAD_TILES };
    const int32_t words = 4 * (int32_t)((block->turns & 255) + 1);
    const int32_t *at = block->parameters;
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t *const scaling = at + 2 + 2 * positions * words;
        for (int32_t i = 0; i < 2 * tiles; i++) {
            const int32_t channel = i & 1;
            const uint32_t *tap = block->taps + (i >> 1);
            const int32_t *filter = at + 2 + channel;
            uint32_t p[1 + positions];
            int32_t sum = at[channel];
            for (int32_t position = 1; position <= positions; position++) {
                for (int32_t word = 0; word < words; word++, tap += tiles, filter += 2) {
                    sum = thimble_smlad(*tap, (uint32_t)*filter, sum);
                }
                p[position] = (uint32_t)sum;
            }
            const uint32_t c0 = 2 * p[7] - p[6] - p[8], c1 = 2 * p[1] - p[2], c2 = 2 * p[4] - p[3] - p[5];
            const uint32_t c3 = 2 * p[10] - p[9] - p[11];
            const uint32_t y01 = 2 * p[3] - p[6] + p[12] - p[9], y10 = c1 + c2 + c0 + p[15] - p[12];
            const uint32_t y11 = c1 - c2 + c3 + 2 * p[13] - p[12] - p[14] + p[16] - p[15];
            const int32_t *const own = scaling + 3 * channel;
            int8_t *const upper = block->upper[i] + 2 * pair, *const lower = block->lower[i] + 2 * pair;
            lower[block->step[i]] = requantized((int32_t)y11, own, block);
            lower[0] = requantized((int32_t)y10, own, block);
            upper[block->step[i]] = requantized((int32_t)y01, own, block);
            upper[0] = requantized((int32_t)p[9], own, block);
        }
        at = scaling + 6;
    }
}
#endif
