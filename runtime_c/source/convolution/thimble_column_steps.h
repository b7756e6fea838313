/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loop of convolutions, in assembly: two interleaved columns and two channels at a time. */
#ifndef THIMBLE_COLUMN_STEPS_H
#define THIMBLE_COLUMN_STEPS_H

#include "thimble_dsp.h"

#if THIMBLE_ASM
/* Four taps of two columns and two channels: 16 products in 14 instructions. */
#define THIMBLE_COLUMNS_STEP                                                                                 \
    "ldmia   %[columns]!, {r4, r5, r6, r8}     \n"                                                           \
    "ldrd    %[w0], %[w1], [%[at]], #8         \n"                                                           \
    "sxtb16  %[t], %[w0]                       \n"                                                           \
    "sxtb16  %[w0], %[w0], ror #8              \n"                                                           \
    "smlad   %[s00], r4, %[t], %[s00]          \n"                                                           \
    "smlad   %[s10], r6, %[t], %[s10]          \n"                                                           \
    "smlad   %[s00], r5, %[w0], %[s00]         \n"                                                           \
    "smlad   %[s10], r8, %[w0], %[s10]         \n"                                                           \
    "sxtb16  %[t], %[w1]                       \n"                                                           \
    "sxtb16  %[w1], %[w1], ror #8              \n"                                                           \
    "smlad   %[s01], r4, %[t], %[s01]          \n"                                                           \
    "smlad   %[s11], r6, %[t], %[s11]          \n"                                                           \
    "smlad   %[s01], r5, %[w1], %[s01]         \n"                                                           \
    "smlad   %[s11], r8, %[w1], %[s11]         \n"

/* Four taps of column 0 and two channels. */
#define THIMBLE_COLUMN_STEP                                                                                  \
    "ldrd    r4, r5, [%[columns]], #16         \n"                                                           \
    "ldrd    %[w0], %[w1], [%[at]], #8         \n"                                                           \
    "sxtb16  %[t], %[w0]                       \n"                                                           \
    "sxtb16  %[w0], %[w0], ror #8              \n"                                                           \
    "smlad   %[s00], r4, %[t], %[s00]          \n"                                                           \
    "smlad   %[s00], r5, %[w0], %[s00]         \n"                                                           \
    "sxtb16  %[t], %[w1]                       \n"                                                           \
    "sxtb16  %[w1], %[w1], ror #8              \n"                                                           \
    "smlad   %[s01], r4, %[t], %[s01]          \n"                                                           \
    "smlad   %[s01], r5, %[w1], %[s01]         \n"

/* Biases, then all taps, an odd step first; of column 0 alone. */
#define THIMBLE_SUM_COLUMN                                                                                   \
    "ldrd    %[s00], %[s01], [%[at]], #8       \n"                                                           \
    "lsrs    %[n], %[n], #1                    \n"                                                           \
    "bcc     1f                                \n"                                                           \
    "add     %[n], %[n], #1                    \n"                                                           \
    "b       2f                                \n"                                                           \
    "1:                                        \n" THIMBLE_COLUMN_STEP                                       \
    "2:                                        \n" THIMBLE_COLUMN_STEP                                       \
    "subs    %[n], %[n], #1                    \n"                                                           \
    "bne     1b                                \n"

/* The same of both columns. */
#define THIMBLE_SUM_COLUMNS                                                                                  \
    "ldrd    %[s00], %[s01], [%[at]], #8       \n"                                                           \
    "lsrs    %[n], %[n], #1                    \n"                                                           \
    "mov     %[s10], %[s00]                    \n"                                                           \
    "mov     %[s11], %[s01]                    \n"                                                           \
    "bcc     1f                                \n"                                                           \
    "add     %[n], %[n], #1                    \n"                                                           \
    "b       2f                                \n"                                                           \
    "1:                                        \n" THIMBLE_COLUMNS_STEP                                      \
    "2:                                        \n" THIMBLE_COLUMNS_STEP                                      \
    "subs    %[n], %[n], #1                    \n"                                                           \
    "bne     1b                                \n"

/* thimble_requantize_fast in place. */
#define THIMBLE_REQUANTIZE(sum, multiplier, rounding, code)                                                  \
    "lsl     " sum ", " sum ", #1                                   \n"                                      \
    "smmlar  %[t], " sum ", " multiplier ", " rounding "            \n"                                      \
    "add     %[t], %[t], " sum ", asr #31                           \n"                                      \
    "asr     %[t], %[t], " code "                                   \n"                                      \
    "ssat    " sum ", #8, %[t], asr #1                              \n"
#endif

#endif
