/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_depthwise_3x3.h"

/* Lines lie in scratch pair by pair: a word of each of three lines, which take turns. */

/* What the assembly reads from the stack. */
typedef struct {
    thimble_3x3_channel channel;
    int32_t step;            /* bytes between outputs */
    const thimble_pair *end; /* of the pairs that give four outputs, in the first line */
    int32_t rest;            /* outputs that follow, in the highest two bits */
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
    if ((count & 2) != 0) {
        *to = thimble_bottoms((uint32_t)from[0], (uint32_t)from[step]);
        from += 2 * step;
        to += THIMBLE_LINES;
    }
    if ((count & 1) != 0) {
        *(thimble_half *)to = *from;
    }
}

#if THIMBLE_ASM
#define TURN_WORD(i, j) "[%[at], #12 * " #i " + 4 * " #j "]"
#define NEXT_TURN(i) "[%[at], #12 * " #i "]!"

#define ROW(how, apart)                                                                                      \
    __asm volatile("ldr     %[a0], [%[b2]]                    \n"                                            \
                   "ldr     %[b0], [%[b2], #4]                \n"                                            \
                   "ldr     %[a1], [%[b2], #8]                \n"                                            \
                   "ldr     %[b1], [%[b2], #12]               \n"                                            \
                   "ldr     %[a2], [%[b2], #16]               \n"                                            \
                   "ldr     %[b2], [%[b2], #20]               \n" ROW_OF_OUTPUTS(                            \
                       FOUR_STEP_##apart(TURN_WORD, NEXT_TURN), TWO_STEP_##apart(TURN_WORD, NEXT_TURN),      \
                       LAST_ONE(TURN_WORD), how)                                                             \
                   : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [x] "=&r"(x0),          \
                     [y] "=&r"(y0), [at] "+r"(at), [to] "+r"(to), [a0] "=&r"(a0), [b0] "=&r"(b0),            \
                     [a1] "=&r"(a1), [b1] "=&r"(b1), [a2] "=&r"(a2), [b2] "+r"(b2)                           \
                   : [bias] "m"(state.channel.bias), [multiplier] "m"(state.channel.multiplier),             \
                     [rounding] "m"(state.channel.rounding), [code] "m"(state.channel.code),                 \
                     [step] "m"(state.step), [end] "m"(state.end), [rest] "m"(state.rest)                    \
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
    const int32_t odd = shape->pad_left & 1;
    const int32_t pairs = (columns + 1) / 2 * stride + 1, room = 2 * pairs - shape->pad_left;
    const int32_t inside = room < 0 ? 0 : room < shape->input_w ? room : shape->input_w;
    const uint32_t blank =
        thimble_bottoms((uint32_t)shape->input_zero_point, (uint32_t)shape->input_zero_point);
    const walk_steps steps = steps_of(shape);
    thimble_pair *const lines = scratch, *const lines_end = lines + THIMBLE_LINES * pairs;
    thimble_pair *const first = lines + shape->pad_left / 2 * THIMBLE_LINES;
    int8_t *const image_out = output;
    row_state state;

    state.step = steps.output_x;
    state.end = lines + (columns & ~3) / 2 * THIMBLE_LINES * stride;
    state.rest = (int32_t)((uint32_t)columns << 30);
    for (thimble_pair *to = lines; to < lines_end; to++) {
        *to = blank;
    }
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *from = parameters;
        for (int32_t channel = 0; channel < channels; channel++, from += 5) {
            const int8_t *const image = input + channel / filters;
            const output_kind kind = put_channel(shape, requant, from, &state.channel);
            int8_t *row_to = output + channel;
            /* The first row of a window, the line in which it is, and the row that the next line will be. */
            int32_t top = -shape->pad_top, turn = 0, y = top;
            /* cppcheck-suppress [overlappingWriteFunction]: 16 bytes, to 24 bytes behind them. */
            (void)memcpy(state.channel.taps + 2 * THIMBLE_LINES, state.channel.taps, 4 * sizeof(uint32_t));
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
                    const thimble_pair *at = lines;
                    int8_t *to = row_to;
                    int32_t s0, s1, s2, s3;
                    uint32_t x0, y0, a0, b0, a1, b1, a2, b2 = (uint32_t)taps;
                    if (stride == 1) {
                        if (kind == OUTPUT_ONCE) {
                            ROW(ONCE, 1);
                        } else {
                            ROW(ANY, 1);
                        }
                    } else if (kind == OUTPUT_ONCE) {
                        ROW(ONCE, 2);
                    } else {
                        ROW(ANY, 2);
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
    thimble_clamp_image_s8(shape, requant, image_out);
}
