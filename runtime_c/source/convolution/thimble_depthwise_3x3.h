/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise 3x3 windows, from image lines in scratch: pairs of neighbouring pixels as int16, one channel at a
 * time. */
#ifndef THIMBLE_DEPTHWISE_3X3_H
#define THIMBLE_DEPTHWISE_3X3_H

#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_s8.h"

#define THIMBLE_LINES 3

typedef int16_t __attribute__((may_alias)) thimble_half;

/* A channel's taps, twice their value but for slow channels: two words for each kernel row, of taps (0, 1)
 * and (1, 2), and the first two rows again. How its sums become int8. */
typedef struct {
    uint32_t taps[2 * (2 * THIMBLE_LINES - 1)];
    int32_t bias, multiplier, rounding, code;
} thimble_3x3_channel;

/* How outputs follow from sums. */
typedef enum {
    OUTPUT_RECTIFIED, /* negative sums end as -128 */
    OUTPUT_ANY,
    OUTPUT_SLOW /* a shift code that the fast form cannot take, or a narrow activation; taps are not doubled
                 */
} output_kind;

/* Bytes between pixels, and between lines, along the walk. */
typedef struct {
    int32_t input_x, input_y, output_x, output_y;
} walk_steps;

static inline walk_steps steps_of(const thimble_conv_shape *shape)
{
    const int32_t across = shape->transposed;
    const int32_t input =
        thimble_line(shape->input_line, across ? shape->input_h : shape->input_w, shape->input_c);
    const int32_t output =
        thimble_line(shape->output_line, across ? shape->output_h : shape->output_w, shape->output_c);
    const walk_steps along = {shape->input_c, input, shape->output_c, output};
    const walk_steps turned = {input, shape->input_c, output, shape->output_c};
    return across ? turned : along;
}

/* How outputs follow from sums where shift codes are >= 0. */
static inline output_kind kind_of(const thimble_requant *requant)
{
    return thimble_narrow(requant)          ? OUTPUT_SLOW
           : requant->output_offset == -128 ? OUTPUT_RECTIFIED
                                            : OUTPUT_ANY;
}

/* Constants and taps of a channel; `parameters` as for thimble_depthwise_conv_s8. `offset`: the output's zero
 * point. */
static inline output_kind put_channel(const int32_t *parameters,
                                      output_kind kind,
                                      int32_t offset,
                                      int32_t weight_zero_point,
                                      thimble_3x3_channel *to)
{
    const int8_t *const bytes = (const int8_t *)(parameters + 2);
    const int32_t code = bytes[0];
    const output_kind found = code < 0 ? OUTPUT_SLOW : kind;
    const int32_t scale = found == OUTPUT_SLOW ? 1 : 2;
    uint32_t *const taps = to->taps;
    for (int32_t row = 0; row < THIMBLE_LINES; row++) {
        const int8_t *const from = bytes + 1 + 3 * row;
        const uint32_t a = (uint32_t)(scale * (from[0] - weight_zero_point));
        const uint32_t b = (uint32_t)(scale * (from[1] - weight_zero_point));
        const uint32_t c = (uint32_t)(scale * (from[2] - weight_zero_point));
        taps[2 * row] = thimble_bottoms(a, b);
        taps[2 * row + 1] = thimble_bottoms(b, c);
    }
    to->bias = (int32_t)((uint32_t)parameters[0] * (uint32_t)scale);
    to->multiplier = parameters[1];
    to->code = code;
    to->rounding = (int32_t)((uint32_t)(2 * offset + 1) << (code & 31));
    return found;
}

/* A row of outputs in C. `first`: the pairs of the window's first line; words from pair to pair and from line
 * to line; `taps`: those of the first line. */
static inline void put_outputs(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const thimble_3x3_channel *channel,
                               output_kind kind,
                               const uint32_t *taps,
                               const thimble_pair *first,
                               int32_t pair,
                               int32_t line,
                               int32_t step,
                               int8_t *to)
{
    for (int32_t column = 0; column < shape->output_w; column++, to += step) {
        const int32_t second = column & 1 & shape->stride_w;
        int32_t sum = channel->bias;
        for (int32_t row = 0; row < THIMBLE_LINES; row++) {
            const uint32_t left = first[row * line], right = first[row * line + pair];
            const uint32_t a = taps[2 * row], b = taps[2 * row + 1];
            if (second) {
                sum = thimble_smlad(right, b, thimble_smlatb(left, a, sum));
            } else {
                sum = thimble_smlabt(right, b, thimble_smlad(left, a, sum));
            }
        }
        if (shape->stride_w == 2 || second) {
            first += pair;
        }
        *to = kind == OUTPUT_SLOW ? thimble_requantize_s8(sum, channel->multiplier, channel->code, requant)
                                  : (int8_t)thimble_requantize_doubled(sum, channel->multiplier,
                                                                       channel->code, channel->rounding);
    }
}

#if THIMBLE_ASM
/* thimble_requantize_doubled of s and t up to the last shift, by z; without the addend for negative sums
 * where these end as -128. */
#define THIMBLE_3X3_RECTIFIED                                                                                \
    "ldr     %[x], %[multiplier]               \n"                                                           \
    "ldr     %[y], %[rounding]                 \n"                                                           \
    "ldr     %[z], %[code]                     \n"                                                           \
    "smmlar  %[s], %[s], %[x], %[y]            \n"                                                           \
    "smmlar  %[t], %[t], %[x], %[y]            \n"

#define THIMBLE_3X3_ANY                                                                                      \
    "ldr     %[x], %[multiplier]               \n"                                                           \
    "ldr     %[y], %[rounding]                 \n"                                                           \
    "smmlar  %[z], %[s], %[x], %[y]            \n"                                                           \
    "add     %[s], %[z], %[s], asr #31         \n"                                                           \
    "smmlar  %[z], %[t], %[x], %[y]            \n"                                                           \
    "add     %[t], %[z], %[t], asr #31         \n"                                                           \
    "ldr     %[z], %[code]                     \n"
#endif

#endif
