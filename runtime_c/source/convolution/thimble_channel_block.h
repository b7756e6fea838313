/* SPDX-License-Identifier: Apache-2.0 */
/* Four channels of a depthwise convolution at a time: products of two rows of the window at once, in assembly
 * where the core has the DSP extension. */
#ifndef THIMBLE_CHANNEL_BLOCK_H
#define THIMBLE_CHANNEL_BLOCK_H

#include "thimble_requantize_s8.h"

/* What a pixel of four channels is multiplied with, and how sums become int8; in scratch.
 *
 * `taps`: for each column of the window: for each two rows words of int16 (upper row, lower row) of channels
 * 0, 2, 1 and 3; for an odd last row, words of channels (0, 2) and (1, 3). */
typedef struct {
    int32_t biases[4]; /* of channels 0, 2, 1, 3 */
    struct {
        int32_t multiplier, code, rounding;
    } channels[4]; /* of channels 0, 1, 2, 3 */
    uint32_t taps[];
} thimble_channel_block;

/* Where a window lies: bytes from row to row and from column to column, its rows and columns. */
typedef struct {
    int32_t line, pixel;
    int32_t rows, columns;
} thimble_block_window;

/* Sums, with biases, of channels 0 to 3 under one window. */
void thimble_sum_channels_s8(const thimble_block_window *window,
                             const int8_t *input,
                             const thimble_channel_block *block,
                             int32_t *sums);

/* `count` outputs of a window that moves by `step` bytes; shift codes are all >= 0, and the
 * activation is int8's own range. Four bytes each to `output`, word aligned. The first is for 3x3, the second
 * for one, three, five or seven rows. */
void thimble_depthwise_3x3_block_s8(const thimble_block_window *window,
                                    int32_t step,
                                    int32_t count,
                                    const int8_t *input,
                                    const thimble_channel_block *block,
                                    int8_t *output);

void thimble_depthwise_odd_block_s8(const thimble_block_window *window,
                                    int32_t step,
                                    int32_t count,
                                    const int8_t *input,
                                    const thimble_channel_block *block,
                                    int8_t *output);

#if THIMBLE_ASM
/* A column of two rows: pixels in x and y, products added to s0 to s3. Taps of channels 0 and 2 come by one
 * load each, those of 1 and 3 by one of two words. */
#define THIMBLE_BLOCK_PAIR(w0, w2, w13)                                                                      \
    "sxtb16  %[t], %[x]                        \n"                                                           \
    "sxtb16  %[u], %[y]                        \n"                                                           \
    "pkhbt   %[v], %[t], %[u], lsl #16         \n"                                                           \
    "pkhtb   %[u], %[u], %[t], asr #16         \n"                                                           \
    "ldr     %[t], " w0 "                      \n"                                                           \
    "smlad   %[s0], %[v], %[t], %[s0]          \n"                                                           \
    "ldr     %[t], " w2 "                      \n"                                                           \
    "smlad   %[s2], %[u], %[t], %[s2]          \n"                                                           \
    "sxtb16  %[x], %[x], ror #8                \n"                                                           \
    "sxtb16  %[y], %[y], ror #8                \n"                                                           \
    "pkhbt   %[v], %[x], %[y], lsl #16         \n"                                                           \
    "pkhtb   %[y], %[y], %[x], asr #16         \n"                                                           \
    "ldrd    %[t], %[u], " w13 "               \n"                                                           \
    "smlad   %[s1], %[v], %[t], %[s1]          \n"                                                           \
    "smlad   %[s3], %[y], %[u], %[s3]          \n"

/* A column of one row: the pixel in x. */
#define THIMBLE_BLOCK_SINGLE(weights)                                                                        \
    "sxtb16  %[t], %[x]                        \n"                                                           \
    "sxtb16  %[x], %[x], ror #8                \n"                                                           \
    "ldrd    %[u], %[v], " weights "           \n"                                                           \
    "smlabb  %[s0], %[t], %[u], %[s0]          \n"                                                           \
    "smlatt  %[s2], %[t], %[u], %[s2]          \n"                                                           \
    "smlabb  %[s1], %[x], %[v], %[s1]          \n"                                                           \
    "smlatt  %[s3], %[x], %[v], %[s3]          \n"

/* thimble_requantize_fast in place, by the constants `at` bytes from their beginning. */
#define THIMBLE_BLOCK_REQUANTIZE(sum, at)                                                                    \
    "ldrd    %[x], %[y], [%[w], #" at "]       \n"                                                           \
    "ldr     %[t], [%[w], #" at " + 8]         \n"                                                           \
    "lsl     " sum ", " sum ", #1              \n"                                                           \
    "smmlar  %[t], " sum ", %[x], %[t]         \n"                                                           \
    "add     %[t], %[t], " sum ", asr #31      \n"                                                           \
    "asr     %[t], %[t], %[y]                  \n"                                                           \
    "ssat    " sum ", #8, %[t], asr #1         \n"

/* All four outputs, in one word, s0. */
#define THIMBLE_BLOCK_OUTPUTS                                                                                \
    THIMBLE_BLOCK_REQUANTIZE("%[s0]", "16")                                                                  \
    THIMBLE_BLOCK_REQUANTIZE("%[s1]", "28")                                                                  \
    THIMBLE_BLOCK_REQUANTIZE("%[s2]", "40")                                                                  \
    THIMBLE_BLOCK_REQUANTIZE("%[s3]", "52")                                                                  \
    "bfi     %[s2], %[s3], #8, #8              \n"                                                           \
    "bfi     %[s0], %[s1], #8, #8              \n"                                                           \
    "pkhbt   %[s0], %[s0], %[s2], lsl #16      \n"
#else
/* The same in C. */
static inline void thimble_depthwise_block(const thimble_block_window *window,
                                           int32_t step,
                                           int32_t count,
                                           const int8_t *input,
                                           const thimble_channel_block *block,
                                           int8_t *output)
{
    for (; count > 0; count--, input += step, output += 4) {
        int32_t sums[4];
        thimble_sum_channels_s8(window, input, block, sums);
        for (int32_t i = 0; i < 4; i++) {
            output[i] = (int8_t)thimble_requantize_fast(sums[i], block->channels[i].multiplier,
                                                        block->channels[i].code, block->channels[i].rounding);
        }
    }
}
#endif

#endif
