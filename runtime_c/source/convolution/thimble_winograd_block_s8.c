/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_winograd_steps.h"

#if THIMBLE_WINOGRAD_ASM
/* The stack holds the block (96 bytes) and, below it, P16 to P1: 24 bytes each. */
/* clang-format off */
THIMBLE_ASM_FUNCTION void thimble_winograd_block_s8(const thimble_winograd_block *block)
{
    register const thimble_winograd_block *from __asm("r0") = block;
    __asm volatile(
        THIMBLE_WINOGRAD_ENTER
        "1:                                        \n"
        THIMBLE_WINOGRAD_SUMS
        "mov     r9, sp                            \n"
        "3:                                        \n"
        "ldmia   r6!, {r11, r12, lr}               \n"
        "str     r6, [sp, #476]                    \n"
        "ldrb    r10, [sp, #458]                   \n"

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
        "add     r0, r0, r3                        \n"
        "asr     r0, r0, #1                        \n"
        "asr     r6, r6, #1                        \n"
        "asr     r2, r2, #1                        \n"
        "asr     r8, r8, #1                        \n"
        "cmp     lr, #255                          \n"
        "bhi     6f                                \n"
        THIMBLE_WINOGRAD_REQUANTIZE("r0", "r6", "r1", "r3")
        THIMBLE_WINOGRAD_REQUANTIZE("r2", "r8", "r1", "r3")
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
        "ldrb    r1, [sp, #458]                    \n"
        "add     r1, r0, r1, lsl #3                \n"
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
        "tst     lr, #0x200                        \n"
        "beq     8f                                \n"
        THIMBLE_WINOGRAD_FLOAT("r0", "r6", "r2", "r8")
        "tst     lr, #0x100                        \n"
        "beq     5b                                \n"
        "b       9f                                \n"
        "8:                                        \n"
        THIMBLE_WINOGRAD_REQUANTIZE("r0", "r6", "r1", "r3")
        THIMBLE_WINOGRAD_REQUANTIZE("r2", "r8", "r1", "r3")
        "9:                                        \n"
        "ldr     r1, [sp, #468]                    \n"
        "ldr     r3, [sp, #472]                    \n"
        THIMBLE_WINOGRAD_CLAMP("r0", "r1", "r3", "r4")
        THIMBLE_WINOGRAD_CLAMP("r2", "r1", "r3", "r4")
        THIMBLE_WINOGRAD_CLAMP("r6", "r1", "r3", "r4")
        THIMBLE_WINOGRAD_CLAMP("r8", "r1", "r3", "r4")
        "ldr     r4, [r9, #384]                    \n"
        "b       5b                                \n"
        "7:                                        \n"
        : "+r"(from)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1",
          "s2", "s3", "s4", "cc", "memory");
}
/* clang-format on */
#else
static int8_t requantized(int32_t sum, const int32_t *scaling, const thimble_winograd_block *block)
{
    return thimble_winograd_requantized(sum >> 1, scaling, block->low, block->high);
}

void thimble_winograd_block_s8(const thimble_winograd_block *block)
{
    enum { positions = THIMBLE_WINOGRAD_POSITIONS };
    const int32_t tiles = (int32_t)(block->turns >> 16 & 255);
    const int32_t words = thimble_winograd_words(block->turns);
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
