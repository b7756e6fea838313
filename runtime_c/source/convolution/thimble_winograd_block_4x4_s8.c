/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_winograd_steps.h"

enum { SIDE = THIMBLE_WINOGRAD_4X4_SIDE };

/* Times 9 it is 1 modulo 2^32: what is known to be a multiple of 9 is divided by it. */
#define NINTH 0x38E38E39U

#if THIMBLE_WINOGRAD_ASM
/* clang-format off */

/* A row of sums, P1 to P6 at r7 + 120 + at downwards, times A; before: P6 of the row before, of which nothing
 * is left then; last: this row's. */
#define ROW(at, before, last)                                                                                \
    "ldr     r0, [r7, #120 + " at "]           \n"                                                           \
    "ldr     r1, [r7, #96 + " at "]            \n"                                                           \
    "ldr     r2, [r7, #72 + " at "]            \n"                                                           \
    "ldr     r3, [r7, #48 + " at "]            \n"                                                           \
    "ldr     r4, [r7, #24 + " at "]            \n"                                                           \
    "ldr     " last ", [r7, #" at "]           \n"                                                           \
    "rsb     r0, r1, r0, lsl #1                \n"                                                           \
    "rsb     r2, r1, r2, lsl #1                \n"                                                           \
    "sub     r0, r0, " before "                \n"                                                           \
    "sub     r2, r2, r3                        \n"                                                           \
    "sub     r3, r3, r1                        \n"                                                           \
    "sub     r1, r1, " before "                \n"                                                           \
    "sub     " before ", r4, " before "        \n"                                                           \
    "add     r1, r1, r3, lsl #2                \n"                                                           \
    "sub     r4, " last ", r4                  \n"                                                           \
    "add     r3, r0, r2, lsl #1                \n"                                                           \
    "add     r0, r0, r2, lsl #3                \n"                                                           \
    "add     r0, r0, r4, lsl #1                \n"                                                           \
    "str     " before ", [r7, #120 + " at "]   \n"                                                           \
    "str     r3, [r7, #96 + " at "]            \n"                                                           \
    "str     r1, [r7, #72 + " at "]            \n"                                                           \
    "str     r0, [r7, #48 + " at "]            \n"

/* The stack holds the block (96 bytes) and, below it, P36 to P1: 24 bytes each. Rows of sums make room for
 * the outputs of these rows. In lr beside the shift and what is said of it there: columns from bit 16. */
THIMBLE_ASM_FUNCTION void thimble_winograd_block_4x4_s8(const thimble_winograd_block_4x4 *block)
{
    register const thimble_winograd_block_4x4 *from __asm("r0") = block;
    __asm volatile(
        THIMBLE_WINOGRAD_ENTER
        "1:                                        \n"
        THIMBLE_WINOGRAD_SUMS
        "mov     r8, sp                            \n"
        "movw    r10, #0x8E39                      \n"
        "movt    r10, #0x38E3                      \n"
        "3:                                        \n"
        "ldmia   r6!, {r11, r12, lr}               \n"
        "str     r6, [sp, #956]                    \n"

        "4:                                        \n"
        "ldr     r9, [r8, #864]                    \n"
        "ldr     r1, [r8, #888]                    \n"
        "add     r0, r9, #2                        \n"
        "str     r0, [r8, #864]                    \n"
        "str     r1, [sp, #920]                    \n"
        "add     r7, r8, #576                      \n"
        "mov     r6, #0                            \n"

        /* Six rows, two at a time; r6: P6 of the row before. */
        ".p2align 2                                \n"
        "5:                                        \n"
        ROW("144", "r6", "r5")
        ROW("0", "r5", "r6")
        "sub     r7, r7, #288                       \n"
        "cmp     r7, r8                             \n"
        "bhs     5b                                 \n"

        /* Four columns. */
        "orr     lr, lr, #0x30000                  \n"
        ".p2align 2                                \n"
        "6:                                        \n"
        "ldr     r0, [r8, #840]                    \n"
        "ldr     r1, [r8, #696]                    \n"
        "ldr     r2, [r8, #552]                    \n"
        "ldr     r3, [r8, #408]                    \n"
        "ldr     r4, [r8, #264]                    \n"
        "ldr     r5, [r8, #120]                    \n"
        "add     r6, r0, r1                        \n"
        "sub     r0, r0, r1                        \n"
        "add     r7, r2, r3                        \n"
        "sub     r2, r2, r3                        \n"
        "add     r4, r4, r6                        \n"
        "add     r6, r6, r7, lsl #2                \n"
        "add     r4, r4, r7                        \n"
        "add     r1, r0, r2, lsl #1                \n"
        "add     r0, r0, r2, lsl #3                \n"
        "add     r0, r0, r5, lsl #1                \n"
        "mul     r4, r4, r10                       \n"
        "mul     r1, r1, r10                       \n"
        "mul     r6, r6, r10                       \n"
        "mul     r0, r0, r10                       \n"
        "asr     r4, r4, #5                        \n"
        "asr     r1, r1, #5                        \n"
        "asr     r6, r6, #5                        \n"
        "asr     r0, r0, #5                        \n"
        "tst     lr, #0x300                        \n"
        "bne     9f                                \n"
        THIMBLE_WINOGRAD_REQUANTIZE("r4", "r1", "r2", "r3")
        THIMBLE_WINOGRAD_REQUANTIZE("r6", "r0", "r2", "r3")
        "7:                                        \n"
        "ldr     r5, [sp, #920]                    \n"
        "ldr     r7, [sp, #912]                    \n"
        "strb    r4, [r9]                          \n"
        "strb    r1, [r9, r5]                      \n"
        "add     r2, r9, r5                        \n"
        "strb    r6, [r9, r5, lsl #1]              \n"
        "strb    r0, [r2, r5, lsl #1]              \n"
        "add     r9, r9, r7                        \n"
        "sub     r8, r8, #24                       \n"
        "subs    lr, lr, #0x10000                  \n"
        "bpl     6b                                \n"

        "bfc     lr, #16, #16                      \n"
        "mov     r0, sp                            \n"
        "add     r8, r8, #104                      \n"
        "ldrb    r1, [sp, #938]                    \n"
        "add     r1, r0, r1, lsl #3                \n"
        "cmp     r8, r1                            \n"
        "blo     4b                                \n"
        "ittt    eq                                \n"
        "ldreq   r6, [sp, #956]                    \n"
        "addeq   r8, r0, #4                        \n"
        "beq     3b                                \n"
        "add     sp, sp, #864                      \n"
        "ldr     r0, [sp, #80]                     \n"
        "subs    r0, r0, #1                        \n"
        "str     r0, [sp, #80]                     \n"
        "bne     1b                                \n"
        "add     sp, sp, #96                       \n"
        "b       8f                                \n"

        "9:                                        \n"
        "tst     lr, #0x200                        \n"
        "beq     10f                               \n"
        THIMBLE_WINOGRAD_FLOAT("r4", "r1", "r6", "r0")
        "tst     lr, #0x100                        \n"
        "beq     7b                                \n"
        "b       11f                               \n"
        "10:                                       \n"
        THIMBLE_WINOGRAD_REQUANTIZE("r4", "r1", "r2", "r3")
        THIMBLE_WINOGRAD_REQUANTIZE("r6", "r0", "r2", "r3")
        "11:                                       \n"
        "ldr     r2, [sp, #948]                    \n"
        "ldr     r3, [sp, #952]                    \n"
        THIMBLE_WINOGRAD_CLAMP("r4", "r2", "r3", "r5")
        THIMBLE_WINOGRAD_CLAMP("r1", "r2", "r3", "r5")
        THIMBLE_WINOGRAD_CLAMP("r6", "r2", "r3", "r5")
        THIMBLE_WINOGRAD_CLAMP("r0", "r2", "r3", "r5")
        "b       7b                                \n"
        "8:                                        \n"
        : "+r"(from)
        :
        : "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "lr", "s0", "s1",
          "s2", "s3", "s4", "cc", "memory");
}
/* clang-format on */
#else
static int8_t requantized(uint32_t sum, const int32_t *scaling, const thimble_winograd_block_4x4 *block)
{
    const int32_t doubled = (int32_t)(sum * NINTH) >> 5;
    return thimble_winograd_requantized(doubled, scaling, block->low, block->high);
}

/* What m = (m1, m2, m3, m4, m0, m5) comes to. */
static void outputs(uint32_t *y, const uint32_t *m)
{
    const uint32_t s1 = m[0] + m[1], d1 = m[0] - m[1], s2 = m[2] + m[3], d2 = m[2] - m[3];
    y[0] = m[4] + s1 + s2;
    y[1] = d1 + 2 * d2;
    y[2] = s1 + 4 * s2;
    y[3] = d1 + 8 * d2 + 2 * m[5];
}

void thimble_winograd_block_4x4_s8(const thimble_winograd_block_4x4 *block)
{
    enum { positions = SIDE * SIDE };
    const int32_t tiles = (int32_t)(block->turns >> 16 & 255);
    const int32_t words = thimble_winograd_words(block->turns);
    const int32_t *at = block->parameters;
    for (int32_t pair = 0; pair < block->pairs; pair++) {
        const int32_t *const scaling = at + 2 + 2 * positions * words;
        for (int32_t i = 0; i < 2 * tiles; i++) {
            const int32_t channel = i & 1;
            const uint32_t *tap = block->taps + (i >> 1);
            const int32_t *filter = at + 2 + channel;
            const int32_t *const own = scaling + 3 * channel;
            uint32_t across[SIDE][4];
            int32_t sum = at[channel];
            uint32_t before = 0;
            for (int32_t row = 0; row < SIDE; row++) {
                uint32_t m[SIDE];
                for (int32_t column = 0; column < SIDE; column++) {
                    for (int32_t word = 0; word < words; word++, tap += tiles, filter += 2) {
                        sum = thimble_smlad(*tap, (uint32_t)*filter, sum);
                    }
                    m[column] = (uint32_t)sum - before;
                    before = (uint32_t)sum;
                }
                outputs(across[row], m);
            }
            for (int32_t x = 0; x < 4; x++) {
                uint32_t m[SIDE], y[4];
                for (int32_t row = 0; row < SIDE; row++) {
                    m[row] = across[row][x];
                }
                outputs(y, m);
                for (int32_t row = 0; row < 4; row++) {
                    block->to[i][2 * pair + row * block->line[i] + x * block->step] =
                        requantized(y[row], own, block);
                }
            }
        }
        at = scaling + 6;
    }
}
#endif
