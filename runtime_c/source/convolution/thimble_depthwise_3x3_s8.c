/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_depthwise_3x3.h"

/* Lines lie in scratch pair by pair: a word of each of three lines, which take turns. */

/* What the assembly reads from the stack. */
typedef struct {
    thimble_3x3_channel channel;
    int32_t step; /* bytes between outputs */
    const thimble_pair *end;
} row_state;

/* One channel of an image row; `odd`: the first pixel is the second of its pair. */
static inline void put_line(const int8_t *from, int32_t step, int32_t count, int32_t odd, thimble_pair *to)
{
    if (odd && count > 0) {
        ((thimble_half *)to)[1] = *from;
        from += step;
        to += THIMBLE_LINES;
        count--;
    }
    int32_t fours = count >> 2;
#if THIMBLE_ASM
    if (fours > 0) {
        int32_t a, b, c, d;
        __asm volatile("1:                               \n"
                       "ldrsb   %[a], [%[from]]          \n"
                       "ldrsb   %[b], [%[from], %[one]]  \n"
                       "ldrsb   %[c], [%[from], %[one], lsl #1] \n"
                       "ldrsb   %[d], [%[from], %[three]] \n"
                       "add     %[from], %[from], %[one], lsl #2 \n"
                       "pkhbt   %[a], %[a], %[b], lsl #16 \n"
                       "pkhbt   %[c], %[c], %[d], lsl #16 \n"
                       "str     %[c], [%[to], #12]       \n"
                       "str     %[a], [%[to]], #24       \n"
                       "subs    %[n], %[n], #1           \n"
                       "bne     1b                       \n"
                       : [from] "+r"(from), [to] "+r"(to), [n] "+r"(fours), [a] "=&r"(a), [b] "=&r"(b),
                         [c] "=&r"(c), [d] "=&r"(d)
                       : [one] "r"(step), [three] "r"(3 * step)
                       : "cc", "memory");
    }
#else
    for (; fours > 0; fours--, from += 4 * step, to += 2 * THIMBLE_LINES) {
        to[0] = thimble_bottoms((uint32_t)from[0], (uint32_t)from[step]);
        to[THIMBLE_LINES] = thimble_bottoms((uint32_t)from[2 * step], (uint32_t)from[3 * step]);
    }
#endif
    if (count & 2) {
        *to = thimble_bottoms((uint32_t)from[0], (uint32_t)from[step]);
        from += 2 * step;
        to += THIMBLE_LINES;
    }
    if (count & 1) {
        *(thimble_half *)to = *from;
    }
}

#if THIMBLE_ASM
/* Words of the first line are 8 bytes before `at`, of the second 4. Two neighbouring outputs, s and t. */
#define STRIDE_1                                                                                             \
    "ldr     %[x], [%[at], #-8]                \n"                                                           \
    "ldr     %[y], [%[at], #4]                 \n"                                                           \
    "ldr     %[z], [%[at], #-4]                \n"                                                           \
    "ldr     %[t], [%[at], #8]                 \n"                                                           \
    "smlad   %[s], %[x], %[a0], %[bias]        \n"                                                           \
    "smlatb  %[x], %[x], %[a0], %[bias]        \n"                                                           \
    "smlabt  %[s], %[y], %[b0], %[s]           \n"                                                           \
    "smlad   %[x], %[y], %[b0], %[x]           \n"                                                           \
    "smlad   %[s], %[z], %[a1], %[s]           \n"                                                           \
    "smlatb  %[x], %[z], %[a1], %[x]           \n"                                                           \
    "smlabt  %[s], %[t], %[b1], %[s]           \n"                                                           \
    "smlad   %[t], %[t], %[b1], %[x]           \n"                                                           \
    "ldr     %[y], [%[at], #12]                \n"                                                           \
    "ldr     %[x], [%[at]], #12                \n"                                                           \
    "smlad   %[s], %[x], %[a2], %[s]           \n"                                                           \
    "smlatb  %[t], %[x], %[a2], %[t]           \n"                                                           \
    "smlabt  %[s], %[y], %[b2], %[s]           \n"                                                           \
    "smlad   %[t], %[y], %[b2], %[t]           \n"

#define STRIDE_2_LINE(x, y, z, a, b, s, t)                                                                   \
    "ldr     %[z], " z "                       \n"                                                           \
    "ldr     %[y], " y "                       \n"                                                           \
    "ldr     %[x], " x "                       \n"                                                           \
    "smlad   %[s], %[x], " a ", " s "          \n"                                                           \
    "smlad   %[t], %[y], " a ", " t "          \n"                                                           \
    "smlabt  %[s], %[y], " b ", %[s]           \n"                                                           \
    "smlabt  %[t], %[z], " b ", %[t]           \n"

#define STRIDE_2                                                                                             \
    STRIDE_2_LINE("[%[at], #-8]", "[%[at], #4]", "[%[at], #16]", "%[a0]", "%[b0]", "%[bias]", "%[bias]")     \
    STRIDE_2_LINE("[%[at], #-4]", "[%[at], #8]", "[%[at], #20]", "%[a1]", "%[b1]", "%[s]", "%[t]")           \
    STRIDE_2_LINE("[%[at]], #24", "[%[at], #12]", "[%[at], #24]", "%[a2]", "%[b2]", "%[s]", "%[t]")

/* A row of outputs. t is stored before s, so that with a step of 0 s remains: a lone last output. */
#define ROW(sums, scale)                                                                                     \
    __asm volatile("ldr     %[a0], [%[b2]]                    \n"                                            \
                   "ldr     %[b0], [%[b2], #4]                \n"                                            \
                   "ldr     %[a1], [%[b2], #8]                \n"                                            \
                   "ldr     %[b1], [%[b2], #12]               \n"                                            \
                   "ldr     %[a2], [%[b2], #16]               \n"                                            \
                   "ldr     %[b2], [%[b2], #20]               \n"                                            \
                   "ldr     %[bias], %[m_bias]                \n"                                            \
                   ".balign 4                                 \n"                                            \
                   "1:                                        \n" sums scale                                 \
                   "asr     %[s], %[s], %[z]                  \n"                                            \
                   "asr     %[t], %[t], %[z]                  \n"                                            \
                   "ssat    %[s], #8, %[s], asr #1            \n"                                            \
                   "ssat    %[t], #8, %[t], asr #1            \n"                                            \
                   "ldr     %[x], %[step]                     \n"                                            \
                   "ldr     %[y], %[end]                      \n"                                            \
                   "strb    %[t], [%[to], %[x]]               \n"                                            \
                   "strb    %[s], [%[to]]                     \n"                                            \
                   "add     %[to], %[to], %[x], lsl #1        \n"                                            \
                   "cmp     %[at], %[y]                       \n"                                            \
                   "bne     1b                                \n"                                            \
                   : [s] "=&r"(s), [t] "=&r"(t), [x] "=&r"(x), [y] "=&r"(y0), [z] "=&r"(z), [at] "+r"(at),   \
                     [to] "+r"(to), [a0] "=&r"(a0), [b0] "=&r"(b0), [a1] "=&r"(a1), [b1] "=&r"(b1),          \
                     [a2] "=&r"(a2), [b2] "+r"(b2), [bias] "=&r"(bias)                                       \
                   : [m_bias] "m"(state.channel.bias), [multiplier] "m"(state.channel.multiplier),           \
                     [rounding] "m"(state.channel.rounding), [code] "m"(state.channel.code),                 \
                     [step] "m"(state.step), [end] "m"(state.end)                                            \
                   : "cc", "memory")
#endif

THIMBLE_ASM_FUNCTION void thimble_depthwise_3x3_s8(const thimble_conv_shape *shape,
                                                   const thimble_requant *requant,
                                                   const int8_t *input,
                                                   const int32_t *parameters,
                                                   void *scratch,
                                                   int8_t *output)
{
    const int32_t columns = shape->output_w, height = shape->output_h, stride = shape->stride_w;
    const int32_t channels = shape->output_c, filters = channels / shape->input_c;
    const int32_t input_h = shape->input_h, stride_h = shape->stride_h,
                  stride_turn = stride_h % THIMBLE_LINES;
    const int32_t odd = shape->pad_left & 1, offset = requant->output_offset, zero = shape->weight_zero_point;
    const int32_t pairs = (columns + 1) / 2 * stride + 1, room = 2 * pairs - shape->pad_left;
    const int32_t inside = room < 0 ? 0 : room < shape->input_w ? room : shape->input_w;
    const uint32_t blank =
        thimble_bottoms((uint32_t)shape->input_zero_point, (uint32_t)shape->input_zero_point);
    const walk_steps steps = steps_of(shape);
    const output_kind usual = kind_of(requant);
    thimble_pair *const lines = scratch, *const lines_end = lines + THIMBLE_LINES * pairs;
    thimble_pair *const first = lines + shape->pad_left / 2 * THIMBLE_LINES;
    row_state state;

    for (thimble_pair *to = lines; to < lines_end; to++) {
        *to = blank;
    }
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *from = parameters;
        for (int32_t channel = 0; channel < channels; channel++, from += 5) {
            const int8_t *const image = input + channel / filters;
            const output_kind kind = put_channel(from, usual, offset, zero, &state.channel);
            int8_t *row_to = output + channel;
            /* The first row of a window, the line in which it is, and the row that the next line will be. */
            int32_t top = -shape->pad_top, turn = 0, y = top;
            memcpy(state.channel.taps + 2 * THIMBLE_LINES, state.channel.taps, 4 * sizeof(uint32_t));
            for (int32_t row = 0; row < height; row++, row_to += steps.output_y, top += stride_h) {
                int32_t slot = turn + y - top;
                if (y < top) {
                    y = top;
                    slot = turn;
                }
                for (; y < top + THIMBLE_LINES; y++, slot++) {
                    slot = slot < THIMBLE_LINES ? slot : slot - THIMBLE_LINES;
                    if (y < 0 || y >= input_h) {
                        for (thimble_pair *to = lines + slot; to < lines_end; to += THIMBLE_LINES) {
                            *to = blank;
                        }
                    } else {
                        put_line(image + y * steps.input_y, steps.input_x, inside, odd, first + slot);
                    }
                }
                const uint32_t *const taps = state.channel.taps + (turn ? 2 * (THIMBLE_LINES - turn) : 0);
                turn += stride_turn;
                turn = turn < THIMBLE_LINES ? turn : turn - THIMBLE_LINES;
#if THIMBLE_ASM
                if (kind != OUTPUT_SLOW) {
                    const thimble_pair *at = lines + 2;
                    int8_t *to = row_to;
                    int32_t twos = columns / 2, left = columns;
                    state.step = steps.output_x;
                    for (; left > 0; left -= 2 * twos, twos = 1) {
                        int32_t s, t, bias;
                        uint32_t x, y0, z, a0, b0, a1, b1, a2, b2 = (uint32_t)taps;
                        if (left == 1) {
                            twos = 1;
                            state.step = 0;
                        }
                        state.end = at + twos * THIMBLE_LINES * stride;
                        if (stride == 1) {
                            if (kind == OUTPUT_RECTIFIED) {
                                ROW(STRIDE_1, THIMBLE_3X3_RECTIFIED);
                            } else {
                                ROW(STRIDE_1, THIMBLE_3X3_ANY);
                            }
                        } else if (kind == OUTPUT_RECTIFIED) {
                            ROW(STRIDE_2, THIMBLE_3X3_RECTIFIED);
                        } else {
                            ROW(STRIDE_2, THIMBLE_3X3_ANY);
                        }
                    }
                    continue;
                }
#endif
                put_outputs(shape, requant, &state.channel, kind, taps, lines, THIMBLE_LINES, 1,
                            steps.output_x, row_to);
            }
        }
        input += input_h * shape->input_w * shape->input_c;
        output += height * columns * channels;
    }
}
