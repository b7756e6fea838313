/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of convolutions, in assembly: four or two interleaved columns, or one, times two channels.
 *
 * r0 to r7: sums, two for each column; r8: the parameters; r9: the columns. r10 to r12 and lr: what was
 * loaded. Loads follow each other where they can, as each but the first then takes one cycle. */
#ifndef THIMBLE_COLUMN_STEPS_H
#define THIMBLE_COLUMN_STEPS_H

#include "thimble_dsp.h"

#if THIMBLE_ASM
/* Four taps of four columns: 32 products in 120 bytes of code. r9 is 124 bytes beyond the beginning of the
 * loop's turn; `last` is how the last word is addressed. A core that issues two instructions at a time wants
 * loads between the products, the others want them side by side. */
#if THIMBLE_DUAL_ISSUE
#define THIMBLE_QUAD_STEP(e0, e1, e2, e3, o0, o1, o2, last)                                                  \
    "ldr     r10, [r8], #4              \n"                                                                  \
    "ldr     lr, [r9, #" e1 "]\n"                                                                            \
    "sxtb16  r11, r10                   \n"                                                                  \
    "ldr     r12, [r9, #" e0 "]\n"                                                                           \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "ldr     r12, [r9, #" e2 "]\n"                                                                           \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "smlad   r4, r12, r11, r4           \n"                                                                  \
    "ldr     lr, [r9, #" e3 "]\n"                                                                            \
    "smlad   r5, r12, r10, r5           \n"                                                                  \
    "smlad   r7, lr, r10, r7            \n"                                                                  \
    "ldr     r10, [r8], #4              \n"                                                                  \
    "ldr     r12, [r9, #" o0 "]\n"                                                                           \
    "smlad   r6, lr, r11, r6            \n"                                                                  \
    "sxtb16  r11, r10                   \n"                                                                  \
    "ldr     lr, [r9, #" o1 "]\n"                                                                            \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "ldr     r12, [r9, #" o2 "]\n"                                                                           \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r5, r12, r10, r5           \n"                                                                  \
    "ldr     lr, " last "\n"                                                                                 \
    "smlad   r4, r12, r11, r4           \n"                                                                  \
    "smlad   r6, lr, r11, r6            \n"                                                                  \
    "smlad   r7, lr, r10, r7            \n"
#else
#define THIMBLE_QUAD_STEP(e0, e1, e2, e3, o0, o1, o2, last)                                                  \
    "ldr     r10, [r8], #4              \n"                                                                  \
    "ldr     r12, [r9, #" e0 "]\n"                                                                           \
    "ldr     lr, [r9, #" e1 "]\n"                                                                            \
    "sxtb16  r11, r10                   \n"                                                                  \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "ldr     r12, [r9, #" e2 "]\n"                                                                           \
    "ldr     lr, [r9, #" e3 "]\n"                                                                            \
    "smlad   r4, r12, r11, r4           \n"                                                                  \
    "smlad   r5, r12, r10, r5           \n"                                                                  \
    "smlad   r6, lr, r11, r6            \n"                                                                  \
    "smlad   r7, lr, r10, r7            \n"                                                                  \
    "ldr     r10, [r8], #4              \n"                                                                  \
    "ldr     r12, [r9, #" o0 "]\n"                                                                           \
    "ldr     lr, [r9, #" o1 "]\n"                                                                            \
    "sxtb16  r11, r10                   \n"                                                                  \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "ldr     r12, [r9, #" o2 "]\n"                                                                           \
    "ldr     lr, " last "\n"                                                                                 \
    "smlad   r4, r12, r11, r4           \n"                                                                  \
    "smlad   r5, r12, r10, r5           \n"                                                                  \
    "smlad   r6, lr, r11, r6            \n"                                                                  \
    "smlad   r7, lr, r10, r7            \n"
#endif

/* A turn of the loop: sixteen taps. It may begin at any step, with r9 less by 32 for each that it leaves out.
 */
#define THIMBLE_QUAD_TURN                                                                                    \
    THIMBLE_QUAD_STEP("-124", "-116", "-108", "-100", "-120", "-112", "-104", "[r9, #-96]")                  \
    THIMBLE_QUAD_STEP("-92", "-84", "-76", "-68", "-88", "-80", "-72", "[r9, #-64]")                         \
    THIMBLE_QUAD_STEP("-60", "-52", "-44", "-36", "-56", "-48", "-40", "[r9, #-32]")                         \
    THIMBLE_QUAD_STEP("-28", "-20", "-12", "-4", "-24", "-16", "-8", "[r9], #128")
#define THIMBLE_QUAD_STEP_CODE 120

/* Four taps of three columns: 24 products in 96 bytes of code. */
#if THIMBLE_DUAL_ISSUE
#define THIMBLE_TRIO_STEP(e0, e1, e2, o0, o1, last)                                                          \
    "ldr     r10, [r8], #4              \n"                                                                  \
    "ldr     lr, [r9, #" e1 "]\n"                                                                            \
    "sxtb16  r11, r10                   \n"                                                                  \
    "ldr     r12, [r9, #" e0 "]\n"                                                                           \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "ldr     r6, [r9, #" e2 "]\n"                                                                            \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "ldr     r7, [r8], #4               \n"                                                                  \
    "ldr     r12, [r9, #" o0 "]\n"                                                                           \
    "smlad   r4, r6, r11, r4            \n"                                                                  \
    "sxtb16  r11, r7                    \n"                                                                  \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "ldr     lr, [r9, #" o1 "]\n"                                                                            \
    "smlad   r5, r6, r10, r5            \n"                                                                  \
    "sxtb16  r7, r7, ror #8             \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r3, lr, r7, r3             \n"                                                                  \
    "ldr     r6, " last "\n"                                                                                 \
    "smlad   r1, r12, r7, r1            \n"                                                                  \
    "smlad   r4, r6, r11, r4            \n"                                                                  \
    "smlad   r5, r6, r7, r5             \n"
#else
#define THIMBLE_TRIO_STEP(e0, e1, e2, o0, o1, last)                                                          \
    "ldr     r7, [r8, #4]               \n"                                                                  \
    "ldr     r10, [r8], #8              \n"                                                                  \
    "ldr     r12, [r9, #" e0 "]\n"                                                                           \
    "ldr     lr, [r9, #" e1 "]\n"                                                                            \
    "ldr     r6, [r9, #" e2 "]\n"                                                                            \
    "sxtb16  r11, r10                   \n"                                                                  \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r3, lr, r10, r3            \n"                                                                  \
    "smlad   r4, r6, r11, r4            \n"                                                                  \
    "smlad   r5, r6, r10, r5            \n"                                                                  \
    "ldr     r12, [r9, #" o0 "]\n"                                                                           \
    "ldr     lr, [r9, #" o1 "]\n"                                                                            \
    "ldr     r6, " last "\n"                                                                                 \
    "sxtb16  r11, r7                    \n"                                                                  \
    "sxtb16  r7, r7, ror #8             \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "smlad   r1, r12, r7, r1            \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"                                                                  \
    "smlad   r3, lr, r7, r3             \n"                                                                  \
    "smlad   r4, r6, r11, r4            \n"                                                                  \
    "smlad   r5, r6, r7, r5             \n"
#endif

/* As THIMBLE_QUAD_TURN; r9 is 92 bytes beyond the beginning of the turn, less by 24 for each step left out.
 */
#define THIMBLE_TRIO_TURN                                                                                    \
    THIMBLE_TRIO_STEP("-92", "-84", "-76", "-88", "-80", "[r9, #-72]")                                       \
    THIMBLE_TRIO_STEP("-68", "-60", "-52", "-64", "-56", "[r9, #-48]")                                       \
    THIMBLE_TRIO_STEP("-44", "-36", "-28", "-40", "-32", "[r9, #-24]")                                       \
    THIMBLE_TRIO_STEP("-20", "-12", "-4", "-16", "-8", "[r9], #96")
#define THIMBLE_TRIO_STEP_CODE 96

/* Four taps of two columns: 16 products in 72 bytes of code. */
#if THIMBLE_DUAL_ISSUE
#define THIMBLE_PAIR_STEP                                                                                    \
    "ldr     r12, [r9, #4]              \n"                                                                  \
    "ldr     lr, [r9, #8]               \n"                                                                  \
    "ldr     r10, [r8, #4]              \n"                                                                  \
    "ldr     r6, [r9, #12]              \n"                                                                  \
    "sxtb16  r11, r10                   \n"                                                                  \
    "smlad   r2, r6, r11, r2            \n"                                                                  \
    "ldr     r5, [r9], #16              \n"                                                                  \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "ldr     r4, [r8], #8               \n"                                                                  \
    "smlad   r3, r6, r10, r3            \n"                                                                  \
    "sxtb16  r11, r4                    \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "sxtb16  r4, r4, ror #8             \n"                                                                  \
    "smlad   r0, r5, r11, r0            \n"                                                                  \
    "smlad   r3, lr, r4, r3             \n"                                                                  \
    "smlad   r1, r5, r4, r1             \n"                                                                  \
    "smlad   r2, lr, r11, r2            \n"
#else
#define THIMBLE_PAIR_STEP                                                                                    \
    "ldr     r10, [r8, #4]                     \n"                                                           \
    "ldr     r4, [r8], #8                      \n"                                                           \
    "ldr     r12, [r9, #4]                     \n"                                                           \
    "ldr     lr, [r9, #8]                      \n"                                                           \
    "ldr     r6, [r9, #12]                     \n"                                                           \
    "ldr     r5, [r9], #16                     \n"                                                           \
    "sxtb16  r11, r10                          \n"                                                           \
    "sxtb16  r10, r10, ror #8                  \n"                                                           \
    "smlad   r0, r12, r11, r0                  \n"                                                           \
    "smlad   r1, r12, r10, r1                  \n"                                                           \
    "smlad   r2, r6, r11, r2                   \n"                                                           \
    "smlad   r3, r6, r10, r3                   \n"                                                           \
    "sxtb16  r11, r4                           \n"                                                           \
    "sxtb16  r4, r4, ror #8                    \n"                                                           \
    "smlad   r0, r5, r11, r0                   \n"                                                           \
    "smlad   r1, r5, r4, r1                    \n"                                                           \
    "smlad   r2, lr, r11, r2                   \n"                                                           \
    "smlad   r3, lr, r4, r3                    \n"
#endif

#define THIMBLE_PAIR_TURN THIMBLE_PAIR_STEP THIMBLE_PAIR_STEP THIMBLE_PAIR_STEP THIMBLE_PAIR_STEP
#define THIMBLE_PAIR_STEP_CODE 72

/* Four taps of one column. */
#if THIMBLE_DUAL_ISSUE
#define THIMBLE_LONE_STEP                                                                                    \
    "ldr     r12, [r9, #4]              \n"                                                                  \
    "ldr     r10, [r8, #4]              \n"                                                                  \
    "ldr     r4, [r8], #8               \n"                                                                  \
    "sxtb16  r11, r10                   \n"                                                                  \
    "ldr     r5, [r9], #8               \n"                                                                  \
    "sxtb16  r10, r10, ror #8           \n"                                                                  \
    "smlad   r0, r12, r11, r0           \n"                                                                  \
    "sxtb16  r11, r4                    \n"                                                                  \
    "smlad   r1, r12, r10, r1           \n"                                                                  \
    "sxtb16  r4, r4, ror #8             \n"                                                                  \
    "smlad   r0, r5, r11, r0            \n"                                                                  \
    "smlad   r1, r5, r4, r1             \n"
#else
#define THIMBLE_LONE_STEP                                                                                    \
    "ldr     r10, [r8, #4]                     \n"                                                           \
    "ldr     r4, [r8], #8                      \n"                                                           \
    "ldr     r12, [r9, #4]                     \n"                                                           \
    "ldr     r5, [r9], #8                      \n"                                                           \
    "sxtb16  r11, r10                          \n"                                                           \
    "sxtb16  r10, r10, ror #8                  \n"                                                           \
    "smlad   r0, r12, r11, r0                  \n"                                                           \
    "smlad   r1, r12, r10, r1                  \n"                                                           \
    "sxtb16  r11, r4                           \n"                                                           \
    "sxtb16  r4, r4, ror #8                    \n"                                                           \
    "smlad   r0, r5, r11, r0                   \n"                                                           \
    "smlad   r1, r5, r4, r1                    \n"
#endif

/* `step` n times, r7 being n > 0: an odd one first. */
#define THIMBLE_STEPS(step)                                                                                  \
    "lsrs    r7, r7, #1                        \n"                                                           \
    "bcc     2f                                \n"                                                           \
    "add     r7, r7, #1                        \n"                                                           \
    "b       3f                                \n"                                                           \
    ".p2align 2                                \n"                                                           \
    "2:                                        \n" step "3:                                        \n" step  \
    "subs    r7, r7, #1                        \n"                                                           \
    "bne     2b                                \n"

/* thimble_requantize_fast of a sum in place: multiplier, rounding, and the code in the low byte of r11. */
#define THIMBLE_TWICE(sum, multiplier, rounding)                                                             \
    "lsl     " sum ", " sum ", #1                                \n"                                         \
    "smmlar  r10, " sum ", " multiplier ", " rounding "          \n"                                         \
    "add     r10, r10, " sum ", asr #31                          \n"                                         \
    "asr     r10, r10, r11                                       \n"                                         \
    "ssat    " sum ", #8, r10, asr #1                            \n"

/* thimble_requantize_merged_fast, of two sums. */
#define THIMBLE_ONCE_OF_TWO(a, b, multiplier, rounding)                                                      \
    "smmla   " a ", " a ", " multiplier ", " rounding "          \n"                                         \
    "smmla   " b ", " b ", " multiplier ", " rounding "          \n"                                         \
    "asr     " a ", " a ", r11                                   \n"                                         \
    "asr     " b ", " b ", r11                                   \n"                                         \
    "ssat    " a ", #8, " a ", asr #1                            \n"                                         \
    "ssat    " b ", #8, " b ", asr #1                            \n"

/* The same of four sums. */
#define THIMBLE_ONCE(a, b, c, d, multiplier, rounding)                                                       \
    "smmla   " a ", " a ", " multiplier ", " rounding "          \n"                                         \
    "smmla   " b ", " b ", " multiplier ", " rounding "          \n"                                         \
    "smmla   " c ", " c ", " multiplier ", " rounding "          \n"                                         \
    "smmla   " d ", " d ", " multiplier ", " rounding "          \n"                                         \
    "asr     " a ", " a ", r11                                   \n"                                         \
    "asr     " b ", " b ", r11                                   \n"                                         \
    "asr     " c ", " c ", r11                                   \n"                                         \
    "asr     " d ", " d ", r11                                   \n"                                         \
    "ssat    " a ", #8, " a ", asr #1                            \n"                                         \
    "ssat    " b ", #8, " b ", asr #1                            \n"                                         \
    "ssat    " c ", #8, " c ", asr #1                            \n"                                         \
    "ssat    " d ", #8, " d ", asr #1                            \n"

/* ONNX Runtime's rounding of the sums of four columns (THIMBLE_SHIFT_FLOAT): factors of the two channels in
 * r9 and lr, the output's offset in r12. Without an FPU it is left to C, at label 16. */
#if THIMBLE_FPU
/* clang-format off */
#define THIMBLE_FLOAT_EACH(instruction, even, odd)                                                           \
    instruction " s0, s0" even "               \n"                                                           \
    instruction " s1, s1" odd "                \n"                                                           \
    instruction " s2, s2" even "               \n"                                                           \
    instruction " s3, s3" odd "                \n"                                                           \
    instruction " s4, s4" even "               \n"                                                           \
    instruction " s5, s5" odd "                \n"                                                           \
    instruction " s6, s6" even "               \n"                                                           \
    instruction " s7, s7" odd "                \n"
#define THIMBLE_FLOAT_BYTE(sum)                                                                              \
    "qadd    " sum ", " sum ", r12             \n"                                                           \
    "ssat    " sum ", #8, " sum "              \n"
#define THIMBLE_FLOAT_BLOCK                                                                                  \
    "vmov    s8, s9, r9, lr                    \n"                                                           \
    "vmov    s0, s1, r0, r1                    \n"                                                           \
    "vmov    s2, s3, r2, r3                    \n"                                                           \
    "vmov    s4, s5, r4, r5                    \n"                                                           \
    "vmov    s6, s7, r6, r7                    \n"                                                           \
    THIMBLE_FLOAT_EACH("vcvt.f32.s32", "", "")                                                               \
    THIMBLE_FLOAT_EACH("vmul.f32", ", s8", ", s9")                                                           \
    THIMBLE_FLOAT_EACH("vcvtr.s32.f32", "", "") /* FPSCR's rounding: to nearest, even */                     \
    "vmov    r0, r1, s0, s1                    \n"                                                           \
    "vmov    r2, r3, s2, s3                    \n"                                                           \
    "vmov    r4, r5, s4, s5                    \n"                                                           \
    "vmov    r6, r7, s6, s7                    \n"                                                           \
    THIMBLE_FLOAT_BYTE("r0")                                                                                 \
    THIMBLE_FLOAT_BYTE("r1")                                                                                 \
    THIMBLE_FLOAT_BYTE("r2")                                                                                 \
    THIMBLE_FLOAT_BYTE("r3")                                                                                 \
    THIMBLE_FLOAT_BYTE("r4")                                                                                 \
    THIMBLE_FLOAT_BYTE("r5")                                                                                 \
    THIMBLE_FLOAT_BYTE("r6")                                                                                 \
    THIMBLE_FLOAT_BYTE("r7")
/* clang-format on */
#define THIMBLE_FLOAT_CLOBBERS , "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"
#else
#define THIMBLE_FLOAT_BLOCK "b       16f                               \n"
#define THIMBLE_FLOAT_CLOBBERS
#endif
#endif

#endif
