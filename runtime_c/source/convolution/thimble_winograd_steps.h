/* SPDX-License-Identifier: Apache-2.0 */
/* What both forms of Winograd's convolution share: the assembly, or the ending in C. */
#ifndef THIMBLE_WINOGRAD_STEPS_H
#define THIMBLE_WINOGRAD_STEPS_H

#include "thimble_requantize_s8.h"
#include "thimble_winograd.h"

#if THIMBLE_WINOGRAD_ASM
/* clang-format off */

/* Two input channels of three tiles and two filters: r5 points to the tiles' words, r6 to the filters', which
 * lie in another memory. The last load of each may move the pointer on. */
#define THIMBLE_WINOGRAD_PRODUCTS(tap_0, tap_1, tap_2, filter_0, filter_1)                                   \
    "ldr     r0, [r5, #" tap_0 "]              \n"                                                           \
    "ldr     r1, [r5, #" tap_1 "]              \n"                                                           \
    "ldr     r2, [r5, #" tap_2 "               \n"                                                           \
    "ldr     r3, [r6, #" filter_0 "]           \n"                                                           \
    "ldr     r4, [r6, #" filter_1 "            \n"                                                           \
    "smlad   r7, r0, r3, r7                    \n"                                                           \
    "smlad   r8, r0, r4, r8                    \n"                                                           \
    "smlad   r9, r1, r3, r9                    \n"                                                           \
    "smlad   r10, r1, r4, r10                  \n"                                                           \
    "smlad   r11, r2, r3, r11                  \n"                                                           \
    "smlad   r12, r2, r4, r12                  \n"

/* The same of two tiles. */
#define THIMBLE_WINOGRAD_TWO_PRODUCTS(tap_0, tap_1, filter_0, filter_1)                                      \
    "ldr     r0, [r5, #" tap_0 "]              \n"                                                           \
    "ldr     r1, [r5, #" tap_1 "               \n"                                                           \
    "ldr     r3, [r6, #" filter_0 "]           \n"                                                           \
    "ldr     r4, [r6, #" filter_1 "            \n"                                                           \
    "smlad   r7, r0, r3, r7                    \n"                                                           \
    "smlad   r8, r0, r4, r8                    \n"                                                           \
    "smlad   r9, r1, r3, r9                    \n"                                                           \
    "smlad   r10, r1, r4, r10                  \n"

/* After a turn: back to `again` for more of them, or at the end of a position, unless it is the last. */
#define THIMBLE_WINOGRAD_NEXT(again)                                                                         \
    "subs    lr, lr, #0x1000000                \n"                                                           \
    "bcs     " again "                         \n"                                                           \
    "sub     lr, lr, #0x100                    \n"                                                           \
    "stmdb   sp!, {r7-r12}                     \n"                                                           \
    "bfi     lr, lr, #24, #8                   \n"                                                           \
    "tst     lr, #0x3f00                       \n"                                                           \
    "bne     " again "                         \n"

/* Copies the 96 bytes at r0 to the stack. */
#define THIMBLE_WINOGRAD_ENTER                                                                               \
    "sub     sp, sp, #96                       \n"                                                           \
    "mov     r1, sp                            \n"                                                           \
    "ldmia   r0!, {r2-r12, lr}                 \n"                                                           \
    "stmia   r1!, {r2-r12, lr}                 \n"                                                           \
    "ldmia   r0!, {r2-r12, lr}                 \n"                                                           \
    "stmia   r1!, {r2-r12, lr}                 \n"

/* Pushes the sums of all positions, 24 bytes each: of tile 0 and the first filter, tile 0 and the second, tile
 * 1 and so on; of two tiles eight of the bytes are not used. r6 then points to the scaling. Within it r5 and r6
 * point four bytes lower. */
#define THIMBLE_WINOGRAD_SUMS                                                                                \
    "ldr     r6, [sp, #92]                     \n"                                                           \
    "ldr     r5, [sp, #76]                     \n"                                                           \
    "ldr     lr, [sp, #72]                     \n"                                                           \
    "ldr     r7, [r6]                          \n"                                                           \
    "ldr     r8, [r6, #4]                      \n"                                                           \
    "sub     r5, r5, #4                        \n"                                                           \
    "add     r6, r6, #4                        \n"                                                           \
    "mov     r9, r7                            \n"                                                           \
    "mov     r10, r8                           \n"                                                           \
    "mov     r11, r7                           \n"                                                           \
    "mov     r12, r8                           \n"                                                           \
    "tst     lr, #0x10000                      \n"                                                           \
    "beq     22f                               \n"                                                           \
    "tst     lr, #0x4000                       \n"                                                           \
    "bne     24f                               \n"                                                           \
    ".p2align 2                                \n"                                                           \
    "21:                                       \n"                                                           \
    THIMBLE_WINOGRAD_PRODUCTS("4", "8", "12]", "4", "8]")                                                    \
    THIMBLE_WINOGRAD_PRODUCTS("16", "20", "24]", "12", "16]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("28", "32", "36]", "20", "24]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("40", "44", "48]!", "28", "32]!")                                              \
    THIMBLE_WINOGRAD_NEXT("21b")                                                                             \
    "b       23f                               \n"                                                           \
    ".p2align 2                                \n"                                                           \
    "22:                                       \n"                                                           \
    THIMBLE_WINOGRAD_TWO_PRODUCTS("4", "8]", "4", "8]")                                                      \
    THIMBLE_WINOGRAD_TWO_PRODUCTS("12", "16]", "12", "16]")                                                  \
    THIMBLE_WINOGRAD_TWO_PRODUCTS("20", "24]", "20", "24]")                                                  \
    THIMBLE_WINOGRAD_TWO_PRODUCTS("28", "32]!", "28", "32]!")                                                \
    THIMBLE_WINOGRAD_NEXT("22b")                                                                             \
    "b       23f                               \n"                                                           \
    ".p2align 2                                \n"                                                           \
    "24:                                       \n"                                                           \
    THIMBLE_WINOGRAD_PRODUCTS("4", "8", "12]", "4", "8]")                                                    \
    THIMBLE_WINOGRAD_PRODUCTS("16", "20", "24]", "12", "16]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("28", "32", "36]", "20", "24]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("40", "44", "48]", "28", "32]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("52", "56", "60]", "36", "40]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("64", "68", "72]", "44", "48]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("76", "80", "84]", "52", "56]")                                                \
    THIMBLE_WINOGRAD_PRODUCTS("88", "92", "96]!", "60", "64]!")                                              \
    THIMBLE_WINOGRAD_NEXT("24b")                                                                             \
    "23:                                       \n"                                                           \
    "add     r6, r6, #4                        \n"

/* thimble_requantize_doubled of a and b, with u and v for the way: multiplier in r11, rounding in r12, shift in
 * lr. */
#define THIMBLE_WINOGRAD_REQUANTIZE(a, b, u, v)                                                              \
    "smmlar  " u ", " a ", r11, r12            \n"                                                           \
    "smmlar  " v ", " b ", r11, r12            \n"                                                           \
    "add     " u ", " u ", " a ", asr #31      \n"                                                           \
    "add     " v ", " v ", " b ", asr #31      \n"                                                           \
    "asr     " u ", " u ", lr                  \n"                                                           \
    "asr     " v ", " v ", lr                  \n"                                                           \
    "ssat    " a ", #8, " u ", asr #1          \n"                                                           \
    "ssat    " b ", #8, " v ", asr #1          \n"

/* ONNX Runtime's rounding of four sums that are twice as large: half the factor in r11, the output's offset in
 * r12. */
#define THIMBLE_WINOGRAD_FLOAT(a, b, c, d)                                                                   \
    "vmov    s4, r11                           \n"                                                           \
    "vmov    s0, s1, " a ", " b "              \n"                                                           \
    "vmov    s2, s3, " c ", " d "              \n"                                                           \
    "vcvt.f32.s32 s0, s0                       \n"                                                           \
    "vcvt.f32.s32 s1, s1                       \n"                                                           \
    "vcvt.f32.s32 s2, s2                       \n"                                                           \
    "vcvt.f32.s32 s3, s3                       \n"                                                           \
    "vmul.f32 s0, s0, s4                       \n"                                                           \
    "vmul.f32 s1, s1, s4                       \n"                                                           \
    "vmul.f32 s2, s2, s4                       \n"                                                           \
    "vmul.f32 s3, s3, s4                       \n"                                                           \
    "vcvtr.s32.f32 s0, s0                      \n" /* FPSCR's rounding: to nearest, even */                  \
    "vcvtr.s32.f32 s1, s1                      \n"                                                           \
    "vcvtr.s32.f32 s2, s2                      \n"                                                           \
    "vcvtr.s32.f32 s3, s3                      \n"                                                           \
    "vmov    " a ", " b ", s0, s1              \n"                                                           \
    "vmov    " c ", " d ", s2, s3              \n"                                                           \
    "qadd    " a ", " a ", r12                 \n"                                                           \
    "qadd    " b ", " b ", r12                 \n"                                                           \
    "qadd    " c ", " c ", r12                 \n"                                                           \
    "qadd    " d ", " d ", r12                 \n"                                                           \
    "ssat    " a ", #8, " a "                  \n"                                                           \
    "ssat    " b ", #8, " b "                  \n"                                                           \
    "ssat    " c ", #8, " c "                  \n"                                                           \
    "ssat    " d ", #8, " d "                  \n"

/* Within low and high, by bytes; t is lost. */
#define THIMBLE_WINOGRAD_CLAMP(value, low, high, t)                                                          \
    "ssub8   " t ", " value ", " low "         \n"                                                           \
    "sel     " value ", " value ", " low "     \n"                                                           \
    "ssub8   " t ", " high ", " value "        \n"                                                           \
    "sel     " value ", " value ", " high "    \n"

/* clang-format on */
#else
/* An output from twice its sum; the activation's range in every byte. */
static inline int8_t
thimble_winograd_requantized(int32_t doubled, const int32_t *scaling, uint32_t low, uint32_t high)
{
    const thimble_requant ends = {scaling[1], (int8_t)(uint8_t)low, (int8_t)(uint8_t)high};
    if ((scaling[2] & THIMBLE_WINOGRAD_FLOAT_FACTOR) != 0) {
        return thimble_requantize_s8(doubled, scaling[0], THIMBLE_SHIFT_FLOAT, &ends);
    }
    const int32_t value = thimble_requantize_doubled(doubled, scaling[0], scaling[2] & 255, scaling[1]);
    if ((scaling[2] & THIMBLE_WINOGRAD_NARROW) != 0) {
        return (int8_t)thimble_clamp_sum(value, ends.activation_min, ends.activation_max);
    }
    return (int8_t)value;
}
#endif

#endif
