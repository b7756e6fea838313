/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise 3x3 windows, from image lines in scratch: pairs of neighbouring pixels as int16, one channel at a
 * time. */
#ifndef THIMBLE_DEPTHWISE_3X3_H
#define THIMBLE_DEPTHWISE_3X3_H

#include "thimble_clamp_image.h"
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_rows.h"
#include "thimble_requantize_s8.h"
#include "thimble_sum_3x3.h"

#define THIMBLE_LINES 3
/* Of THIMBLE_CODE_ONCE, as a shift code. The assembly knows it. */
#define THIMBLE_ONCE_SHIFT 1

typedef int16_t __attribute__((may_alias)) thimble_half;

/* A channel's taps: two words for each kernel row, of taps (0, 1) and (1, 2), and the first two rows again.
 * How its sums become int8. */
typedef struct {
    uint32_t taps[2 * (2 * THIMBLE_LINES - 1)];
    int32_t bias, multiplier, rounding, code;
} thimble_3x3_channel;

/* How outputs follow from sums. */
typedef enum {
    OUTPUT_ONCE, /* THIMBLE_CODE_ONCE */
    OUTPUT_ANY,
    OUTPUT_SLOW /* a shift code that the fast form cannot take */
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

/* Constants and taps of a channel; `parameters` as for thimble_depthwise_3x3_s8. */
static inline output_kind put_channel(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int32_t *parameters,
                                      thimble_3x3_channel *to)
{
    const uint32_t first = (uint32_t)parameters[2], second = (uint32_t)parameters[3];
    const uint32_t third = (uint32_t)parameters[4];
    const uint32_t zero =
        thimble_bottoms((uint32_t)shape->weight_zero_point, (uint32_t)shape->weight_zero_point);
    const int32_t code = (int8_t)(uint8_t)(second >> 8);
    uint32_t *const taps = to->taps;
    uint32_t a0 = thimble_sxtb16(first), a1 = thimble_sxtb16_ror8(first), a2 = thimble_sxtb16(second);
    uint32_t b0 = thimble_tops(a0, thimble_sxtb16_ror8(second));
    uint32_t b1 = thimble_tops(a1, thimble_sxtb16(third));
    uint32_t b2 = thimble_tops(a2, thimble_sxtb16_ror8(third));
    if (__builtin_expect(zero != 0, 0)) {
        a0 = thimble_ssub16(a0, zero);
        b0 = thimble_ssub16(b0, zero);
        a1 = thimble_ssub16(a1, zero);
        b1 = thimble_ssub16(b1, zero);
        a2 = thimble_ssub16(a2, zero);
        b2 = thimble_ssub16(b2, zero);
    }
    taps[0] = a0;
    taps[1] = b0;
    taps[2] = a1;
    taps[3] = b1;
    taps[4] = a2;
    taps[5] = b2;
    to->bias = parameters[0];
    to->multiplier = parameters[1];
    to->code = code;
    if (__builtin_expect(code == THIMBLE_CODE_ONCE, 1) != 0) {
        to->rounding = (int16_t)(uint16_t)third;
        return OUTPUT_ONCE;
    }
    to->rounding = thimble_rounding(requant, code & 31);
    return code < 0 ? OUTPUT_SLOW : OUTPUT_ANY;
}

#if !THIMBLE_DSP
#define THIMBLE_OUTPUTS_AT_ONCE 16

/* put_outputs where no channel is slow. */
static inline void put_outputs_by_sums(const thimble_conv_shape *shape,
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
    const int32_t stride = shape->stride_w;
    const int8_t code = (int8_t)channel->code;
    int32_t sums[THIMBLE_OUTPUTS_AT_ONCE];
    for (int32_t left = shape->output_w; left > 0; left -= THIMBLE_OUTPUTS_AT_ONCE) {
        const int32_t count = left < THIMBLE_OUTPUTS_AT_ONCE ? left : THIMBLE_OUTPUTS_AT_ONCE;
        thimble_row_scaling scaling = {&channel->bias, &channel->multiplier, &code,
                                       thimble_rounding(requant, 0)};
        thimble_sum_3x3_s16(first, pair, line, stride, taps, sums,
                            sums + (stride == 1 ? (count + 1) & ~1 : count));
        if (kind == OUTPUT_ANY) {
            thimble_requantize_rows_s8(sums, &scaling, 1, count, to, step);
        } else {
            for (int32_t i = 0; i < count; i++) {
                /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): thimble_sum_3x3_s16 wrote all sums. */
                to[i * step] = (int8_t)thimble_requantize_merged_fast(thimble_add(sums[i], channel->bias),
                                                                      channel->multiplier, THIMBLE_ONCE_SHIFT,
                                                                      channel->rounding);
            }
        }
        first += THIMBLE_OUTPUTS_AT_ONCE / 2 * stride * pair;
        to += count * step;
    }
}
#endif

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
#if !THIMBLE_DSP
    if (kind != OUTPUT_SLOW) {
        put_outputs_by_sums(shape, requant, channel, kind, taps, first, pair, line, step, to);
        return;
    }
#endif
    for (int32_t column = 0; column < shape->output_w; column++, to += step) {
        const int32_t second = column & 1 & shape->stride_w;
        int32_t sum = channel->bias;
        for (int32_t row = 0; row < THIMBLE_LINES; row++) {
            const uint32_t left = first[row * line], right = first[row * line + pair];
            const uint32_t a = taps[2 * row], b = taps[2 * row + 1];
            if (second != 0) {
                sum = thimble_smlad(right, b, thimble_smlatb(left, a, sum));
            } else {
                sum = thimble_smlabt(right, b, thimble_smlad(left, a, sum));
            }
        }
        if (shape->stride_w == 2 || second) {
            first += pair;
        }
        *to = (int8_t)(kind == OUTPUT_ONCE
                           ? thimble_requantize_merged_fast(sum, channel->multiplier, THIMBLE_ONCE_SHIFT,
                                                            channel->rounding)
                           : thimble_requantize_s8(sum, channel->multiplier, channel->code, requant));
    }
}

#if THIMBLE_ASM
/* Sums of four neighbouring outputs, or two, or one, from one line after the other. `W(i, j)`: the address of
 * pair i of line j; `next`: that of the last pair of the first line, which moves %[at] on. */
#define SUMS_4_STEP_1(a, b, sum0, sum1, sum2, sum3, w0, w1, w2)                                              \
    "ldr     %[x], " w0 "                      \n"                                                           \
    "ldr     %[y], " w1 "                      \n"                                                           \
    "smlad   %[s0], %[x], %[" a "], %[" sum0 "] \n"                                                          \
    "smlatb  %[s1], %[x], %[" a "], %[" sum1 "] \n"                                                          \
    "ldr     %[x], " w2 "                      \n"                                                           \
    "smlad   %[s2], %[y], %[" a "], %[" sum2 "] \n"                                                          \
    "smlatb  %[s3], %[y], %[" a "], %[" sum3 "] \n"                                                          \
    "smlabt  %[s0], %[y], %[" b "], %[s0]      \n"                                                           \
    "smlad   %[s1], %[y], %[" b "], %[s1]      \n"                                                           \
    "smlabt  %[s2], %[x], %[" b "], %[s2]      \n"                                                           \
    "smlad   %[s3], %[x], %[" b "], %[s3]      \n"

#define SUMS_4_STEP_2(a, b, sum0, sum1, sum2, sum3, w0, w1, w2, w3, w4)                                      \
    "ldr     %[x], " w0 "                      \n"                                                           \
    "ldr     %[y], " w1 "                      \n"                                                           \
    "smlad   %[s0], %[x], %[" a "], %[" sum0 "] \n"                                                          \
    "smlad   %[s1], %[y], %[" a "], %[" sum1 "] \n"                                                          \
    "smlabt  %[s0], %[y], %[" b "], %[s0]      \n"                                                           \
    "ldr     %[x], " w2 "                      \n"                                                           \
    "ldr     %[y], " w3 "                      \n"                                                           \
    "smlabt  %[s1], %[x], %[" b "], %[s1]      \n"                                                           \
    "smlad   %[s2], %[x], %[" a "], %[" sum2 "] \n"                                                          \
    "ldr     %[x], " w4 "                      \n"                                                           \
    "smlad   %[s3], %[y], %[" a "], %[" sum3 "] \n"                                                          \
    "smlabt  %[s2], %[y], %[" b "], %[s2]      \n"                                                           \
    "smlabt  %[s3], %[x], %[" b "], %[s3]      \n"

#define SUMS_2_STEP_1(a, b, sum0, sum1, w0, w1)                                                              \
    "ldr     %[x], " w0 "                      \n"                                                           \
    "ldr     %[y], " w1 "                      \n"                                                           \
    "smlad   %[s0], %[x], %[" a "], %[" sum0 "] \n"                                                          \
    "smlatb  %[s1], %[x], %[" a "], %[" sum1 "] \n"                                                          \
    "smlabt  %[s0], %[y], %[" b "], %[s0]      \n"                                                           \
    "smlad   %[s1], %[y], %[" b "], %[s1]      \n"

#define SUMS_2_STEP_2(a, b, sum0, sum1, w0, w1, w2)                                                          \
    "ldr     %[x], " w0 "                      \n"                                                           \
    "ldr     %[y], " w1 "                      \n"                                                           \
    "ldr     %[s2], " w2 "                     \n"                                                           \
    "smlad   %[s0], %[x], %[" a "], %[" sum0 "] \n"                                                          \
    "smlad   %[s1], %[y], %[" a "], %[" sum1 "] \n"                                                          \
    "smlabt  %[s0], %[y], %[" b "], %[s0]      \n"                                                           \
    "smlabt  %[s1], %[s2], %[" b "], %[s1]     \n"

#define SUM_1(a, b, w0, w1)                                                                                  \
    "ldr     %[x], " w0 "                      \n"                                                           \
    "ldr     %[y], " w1 "                      \n"                                                           \
    "smlad   %[s0], %[x], %[" a "], %[s0]      \n"                                                           \
    "smlabt  %[s0], %[y], %[" b "], %[s0]      \n"

#define FOUR_STEP_1(W, next)                                                                                 \
    "ldr     %[s3], %[bias]                    \n" SUMS_4_STEP_1("a1", "b1", "s3", "s3", "s3", "s3",         \
                                                                 W(0, 1), W(1, 1), W(2, 1))                  \
        SUMS_4_STEP_1("a2", "b2", "s0", "s1", "s2", "s3", W(0, 2), W(1, 2), W(2, 2))                         \
            SUMS_4_STEP_1("a0", "b0", "s0", "s1", "s2", "s3", W(0, 0), W(1, 0), next(2))

#define FOUR_STEP_2(W, next)                                                                                 \
    "ldr     %[s3], %[bias]                    \n" SUMS_4_STEP_2(                                            \
        "a1", "b1", "s3", "s3", "s3", "s3", W(0, 1), W(1, 1), W(2, 1), W(3, 1), W(4, 1))                     \
        SUMS_4_STEP_2("a2", "b2", "s0", "s1", "s2", "s3", W(0, 2), W(1, 2), W(2, 2), W(3, 2), W(4, 2))       \
            SUMS_4_STEP_2("a0", "b0", "s0", "s1", "s2", "s3", W(0, 0), W(1, 0), W(2, 0), W(3, 0), next(4))

#define TWO_STEP_1(W, next)                                                                                  \
    "ldr     %[s1], %[bias]                    \n" SUMS_2_STEP_1("a1", "b1", "s1", "s1", W(0, 1), W(1, 1))   \
        SUMS_2_STEP_1("a2", "b2", "s0", "s1", W(0, 2), W(1, 2))                                              \
            SUMS_2_STEP_1("a0", "b0", "s0", "s1", W(0, 0), next(1))

#define TWO_STEP_2(W, next)                                                                                  \
    "ldr     %[s1], %[bias]                    \n" SUMS_2_STEP_2("a1", "b1", "s1", "s1", W(0, 1), W(1, 1),   \
                                                                 W(2, 1))                                    \
        SUMS_2_STEP_2("a2", "b2", "s0", "s1", W(0, 2), W(1, 2), W(2, 2))                                     \
            SUMS_2_STEP_2("a0", "b0", "s0", "s1", W(0, 0), W(1, 0), next(2))

#define LAST_ONE(W)                                                                                          \
    "ldr     %[s0], %[bias]                    \n" SUM_1("a1", "b1", W(0, 1), W(1, 1))                       \
        SUM_1("a2", "b2", W(0, 2), W(1, 2)) SUM_1("a0", "b0", W(0, 0), W(1, 0))

/* thimble_requantize_merged_fast by THIMBLE_ONCE_SHIFT. */
#define SCALE_ONCE                                                                                           \
    "ldr     %[x], %[multiplier]               \n"                                                           \
    "ldr     %[y], %[rounding]                 \n"

#define SCALED_ONCE(s) "smmla   %[" s "], %[" s "], %[x], %[y] \n"
#define SHIFT_ONCE
#define SHIFTED_ONCE(s) "ssat    %[" s "], #8, %[" s "], asr #2 \n"

/* thimble_requantize_fast. */
#define SCALE_ANY "ldr     %[x], %[multiplier]               \n"

#define SCALED_ANY(s)                                                                                        \
    "ldr     %[y], %[rounding]                 \n"                                                           \
    "lsl     %[" s "], %[" s "], #1            \n"                                                           \
    "add     %[y], %[y], %[" s "], asr #31     \n"                                                           \
    "smmlar  %[" s "], %[" s "], %[x], %[y]    \n"

#define SHIFT_ANY "ldr     %[x], %[code]                     \n"

#define SHIFTED_ANY(s)                                                                                       \
    "asr     %[" s "], %[" s "], %[x]          \n"                                                           \
    "ssat    %[" s "], #8, %[" s "], asr #1    \n"

#define OUTPUTS_4(how)                                                                                       \
    SCALE_##how SCALED_##how("s0") SCALED_##how("s1") SCALED_##how("s2") SCALED_##how("s3")                  \
        SHIFT_##how SHIFTED_##how("s0") SHIFTED_##how("s1") SHIFTED_##how("s2") SHIFTED_##how("s3")

#define OUTPUTS_2(how)                                                                                       \
    SCALE_##how SCALED_##how("s0") SCALED_##how("s1") SHIFT_##how SHIFTED_##how("s0") SHIFTED_##how("s1")

#define OUTPUTS_1(how) SCALE_##how SCALED_##how("s0") SHIFT_##how SHIFTED_##how("s0")

/* A row of outputs: four at a time up to %[end], then the rest, whose number is in the highest two bits of
 * %[rest]. */
#define ROW_OF_OUTPUTS(four, two, one, how)                                                                  \
    "ldr     %[y], %[end]                      \n"                                                           \
    "cmp     %[at], %[y]                       \n"                                                           \
    "beq     3f                                \n"                                                           \
    ".balign 4                                 \n"                                                           \
    "2:                                        \n" four                                                      \
    OUTPUTS_4(how) "ldr     %[x], %[step]                     \n"                                            \
                   "ldr     %[y], %[end]                      \n"                                            \
                   "strb    %[s0], [%[to]]                    \n"                                            \
                   "strb    %[s1], [%[to], %[x]]              \n"                                            \
                   "add     %[to], %[to], %[x], lsl #1        \n"                                            \
                   "strb    %[s2], [%[to]]                    \n"                                            \
                   "strb    %[s3], [%[to], %[x]]              \n"                                            \
                   "add     %[to], %[to], %[x], lsl #1        \n"                                            \
                   "cmp     %[at], %[y]                       \n"                                            \
                   "bne     2b                                \n"                                            \
                   "3:                                        \n"                                            \
                   "ldr     %[x], %[rest]                     \n"                                            \
                   "lsls    %[x], %[x], #1                    \n" /* carry: two; negative: one more */       \
                   "bcc     4f                                \n" two                                        \
                   OUTPUTS_2(how) "ldr     %[x], %[step]                     \n"                             \
                                  "strb    %[s0], [%[to]]                    \n"                             \
                                  "strb    %[s1], [%[to], %[x]]              \n"                             \
                                  "add     %[to], %[to], %[x], lsl #1        \n"                             \
                                  "4:                                        \n"                             \
                                  "bpl     5f                                \n" one                         \
                                  OUTPUTS_1(how) "strb    %[s0], [%[to]]                    \n"              \
                                                 "5:                                        \n"
#endif

#endif
