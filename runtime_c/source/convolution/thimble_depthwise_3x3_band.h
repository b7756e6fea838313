/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise 3x3 windows over narrow images: lines of THIMBLE_NARROW_LINE or THIMBLE_WIDE_LINE bytes, as many
 * as `band` rows of outputs need, so that loads find all three by constant offsets. Those of THIMBLE_FOURS
 * channels are made at once, of THIMBLE_FOURS_LINE or THIMBLE_WIDE_FOURS_LINE bytes, if `at_once` says so:
 * first a line of each channel, then the next. */
#ifndef THIMBLE_DEPTHWISE_3X3_BAND_H
#define THIMBLE_DEPTHWISE_3X3_BAND_H

#include "thimble_depthwise_3x3.h"

#define THIMBLE_NARROW_LINE 32
#define THIMBLE_WIDE_LINE 64
#define THIMBLE_FOURS 4
#define THIMBLE_FOURS_LINE 64
#define THIMBLE_WIDE_FOURS_LINE 128

/* Where rows of outputs end and the next begin. The assembly reads it from the stack. */
typedef struct {
    thimble_3x3_channel channel;
    int32_t step;            /* bytes between outputs */
    const thimble_pair *end; /* of the pairs that give four outputs, in the first line of the first row */
    int32_t next;            /* bytes from one row's lines to the next row's */
    const thimble_pair *last;
    int32_t rest;                     /* outputs that follow, in the highest two bits */
    int32_t over_pairs, over_outputs; /* bytes from a row's end to the beginning of the next */
} band_state;

/* `rows` image rows of one channel, `count` pixels each, to lines. */
static inline void put_lines(const int8_t *from,
                             const walk_steps *steps,
                             int32_t count,
                             int32_t rows,
                             thimble_half *to,
                             int32_t line_bytes)
{
    const int32_t one = steps->input_x, over = steps->input_y - count * one;
    if (rows <= 0 || count <= 0) {
        return;
    }
#if THIMBLE_ASM
    const int32_t fours = count >> 2, rest = count << 30, over_to = line_bytes - 2 * count;
    int32_t a, b, c, d, n;
    __asm volatile("1:                                \n"
                   "ldr     %[n], %[fours]            \n"
                   "cmp     %[n], #0                  \n"
                   "beq     3f                        \n"
                   ".balign 4                         \n"
                   "2:                                \n"
                   "ldrsb   %[a], [%[from]]           \n"
                   "ldrsb   %[b], [%[from], %[one]]   \n"
                   "ldrsb   %[c], [%[from], %[one], lsl #1] \n"
                   "ldrsb   %[d], [%[from], %[three]] \n"
                   "add     %[from], %[from], %[one], lsl #2 \n"
                   "strh    %[b], [%[to], #2]         \n"
                   "strh    %[c], [%[to], #4]         \n"
                   "strh    %[d], [%[to], #6]         \n"
                   "strh    %[a], [%[to]], #8         \n"
                   "subs    %[n], %[n], #1            \n"
                   "bne     2b                        \n"
                   "3:                                \n"
                   "ldr     %[n], %[rest]             \n"
                   "ldr     %[d], %[over_to]          \n"
                   "lsls    %[n], %[n], #1            \n" /* carry: two more; negative: one more */
                   "bcc     4f                        \n"
                   "ldrsb   %[a], [%[from]]           \n"
                   "ldrsb   %[b], [%[from], %[one]]   \n"
                   "add     %[from], %[from], %[one], lsl #1 \n"
                   "strh    %[a], [%[to]], #2         \n"
                   "strh    %[b], [%[to]], #2         \n"
                   "4:                                \n"
                   "bpl     5f                        \n"
                   "ldrsb   %[a], [%[from]]           \n"
                   "add     %[from], %[from], %[one]  \n"
                   "strh    %[a], [%[to]], #2         \n"
                   "5:                                \n"
                   "ldr     %[a], %[over]             \n"
                   "add     %[to], %[to], %[d]        \n"
                   "subs    %[rows], %[rows], #1      \n"
                   "add     %[from], %[from], %[a]    \n"
                   "bne     1b                        \n"
                   : [from] "+r"(from), [to] "+r"(to), [rows] "+r"(rows), [a] "=&r"(a), [b] "=&r"(b),
                     [c] "=&r"(c), [d] "=&r"(d), [n] "=&r"(n)
                   : [one] "r"(one), [three] "r"(3 * one), [fours] "m"(fours), [rest] "m"(rest),
                     [over] "m"(over), [over_to] "m"(over_to)
                   : "cc", "memory");
#else
    for (; rows > 0; rows--, from += over, to += line_bytes / 2 - count) {
        for (int32_t left = count; left > 0; left--, from += one) {
            *to++ = *from;
        }
    }
#endif
}

#if THIMBLE_ASM
#define NARROW_WORD(i, j) "[%[at], #4 * " #i " + 32 * " #j "]"
#define WIDE_WORD(i, j) "[%[at], #4 * " #i " + 64 * " #j "]"
#define FOURS_WORD(i, j) "[%[at], #4 * " #i " + 256 * " #j "]"
#define WIDE_FOURS_WORD(i, j) "[%[at], #4 * " #i " + 512 * " #j "]"
#define NEXT_WORD(i) "[%[at], #4 * " #i "]!"

/* Rows of outputs; %[at] is in the first line of each. */
#define BAND_ROWS(W, how, apart)                                                                             \
    __asm volatile(                                                                                          \
        "ldr     %[a0], [%[b2]]                    \n"                                                       \
        "ldr     %[b0], [%[b2], #4]                \n"                                                       \
        "ldr     %[a1], [%[b2], #8]                \n"                                                       \
        "ldr     %[b1], [%[b2], #12]               \n"                                                       \
        "ldr     %[a2], [%[b2], #16]               \n"                                                       \
        "ldr     %[b2], [%[b2], #20]               \n"                                                       \
        "1:                                        \n" ROW_OF_OUTPUTS(                                       \
            FOUR_STEP_##apart(W, NEXT_WORD), TWO_STEP_##apart(W, NEXT_WORD), LAST_ONE(W),                    \
            how) "ldr     %[x], %[over_pairs]               \n"                                              \
                 "ldr     %[y], %[over_outputs]             \n"                                              \
                 "ldr     %[s0], %[next]                    \n"                                              \
                 "ldr     %[s1], %[end]                     \n"                                              \
                 "ldr     %[s2], %[last]                    \n"                                              \
                 "add     %[at], %[at], %[x]                \n"                                              \
                 "add     %[s1], %[s1], %[s0]               \n"                                              \
                 "add     %[to], %[to], %[y]                \n"                                              \
                 "str     %[s1], %[end]                     \n"                                              \
                 "cmp     %[s1], %[s2]                      \n"                                              \
                 "bne     1b                                \n"                                              \
        : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [x] "=&r"(x), [y] "=&r"(y),        \
          [at] "+r"(at), [to] "+r"(row_to), [a0] "=&r"(a0), [b0] "=&r"(b0), [a1] "=&r"(a1), [b1] "=&r"(b1),  \
          [a2] "=&r"(a2), [b2] "+r"(b2), [end] "+m"(state.end)                                               \
        : [bias] "m"(state.channel.bias), [multiplier] "m"(state.channel.multiplier),                        \
          [rounding] "m"(state.channel.rounding), [code] "m"(state.channel.code), [step] "m"(state.step),    \
          [next] "m"(state.next), [last] "m"(state.last), [rest] "m"(state.rest),                            \
          [over_pairs] "m"(state.over_pairs), [over_outputs] "m"(state.over_outputs)                         \
        : "cc", "memory")

#define BAND_LINES(how, apart)                                                                               \
    if (pitch == THIMBLE_FOURS * THIMBLE_FOURS_LINE / 4) {                                                   \
        BAND_ROWS(FOURS_WORD, how, apart);                                                                   \
    } else if (pitch == THIMBLE_FOURS * THIMBLE_WIDE_FOURS_LINE / 4) {                                       \
        BAND_ROWS(WIDE_FOURS_WORD, how, apart);                                                              \
    } else if (pitch == THIMBLE_NARROW_LINE / 4) {                                                           \
        BAND_ROWS(NARROW_WORD, how, apart);                                                                  \
    } else {                                                                                                 \
        BAND_ROWS(WIDE_WORD, how, apart);                                                                    \
    }
#endif

/* One pixel of four channels, to a line of each. */
static inline void put_pixel_of_fours(const int8_t *from, thimble_half *to, const int32_t line)
{
    const uint32_t word = thimble_read_word(from);
    const uint32_t even = thimble_sxtb16(word), odd = thimble_sxtb16_ror8(word);
    to[0] = (int16_t)(uint16_t)even;
    to[line] = (int16_t)(uint16_t)odd;
    to[2 * line] = (int16_t)(uint16_t)(even >> 16);
    to[3 * line] = (int16_t)(uint16_t)(odd >> 16);
}

/* The same of four channels: four lines of `line` int16 for each image row. `odd`: whether the
 * first pixel is the second of its pair. */
static inline void put_fours(const int8_t *from,
                             const walk_steps *steps,
                             int32_t count,
                             int32_t rows,
                             thimble_half *to,
                             int32_t odd,
                             const int32_t line)
{
    const int32_t one = steps->input_x, over = steps->input_y - count * one;
    const int32_t first = odd && count > 0 ? 1 : 0, pairs = (count - first) >> 1;
    const int32_t over_to = THIMBLE_FOURS * line - 2 * pairs - first;
    const int32_t last = (count - first) & 1;
    for (; rows > 0; rows--, from += over, to += over_to) {
        if (first != 0) {
            put_pixel_of_fours(from, to, line);
            from += one;
            to++;
        }
        for (int32_t left = pairs; left > 0; left--, from += 2 * one, to += 2) {
            const uint32_t a = thimble_read_word(from), b = thimble_read_word(from + one);
            const uint32_t low = thimble_bottoms(a, b), high = thimble_tops(a, b);
            thimble_pair *const pair = (thimble_pair *)(void *)to;
            pair[0] = thimble_sxtb16(low);
            pair[line / 2] = thimble_sxtb16_ror8(low);
            pair[line] = thimble_sxtb16(high);
            pair[3 * line / 2] = thimble_sxtb16_ror8(high);
        }
        if (last != 0) {
            put_pixel_of_fours(from, to, line);
            from += one;
        }
    }
}

/* Lines that stay for the next band are moved to the top. */
static inline void keep_lines(thimble_pair *to, const thimble_pair *from, int32_t words)
{
    for (; words > 0; words -= 4, to += 4, from += 4) {
        const uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
    }
}

static inline void put_blank(thimble_pair *to, int32_t words, uint32_t blank)
{
    for (; words > 0; words -= 4, to += 4) {
        to[0] = blank;
        to[1] = blank;
        to[2] = blank;
        to[3] = blank;
    }
}

/* The lines of a band: the first rows of its windows are `above` rows before the image, `seen` rows of
 * `wanted` end in it; `had` are left from the band before. `inside`: image rows that are to be read, from
 * `from` bytes in the image to `to` words in scratch. */
typedef struct {
    int32_t rows, had, above, seen, wanted;
    int32_t inside, from, to;
} band_lines;

static inline band_lines
lines_of(const thimble_conv_shape *shape, int32_t row, int32_t input_y, int32_t pitch)
{
    const int32_t left = shape->output_h - row, rows = left < shape->band ? left : shape->band;
    const int32_t kept = shape->stride_h < THIMBLE_LINES ? THIMBLE_LINES - shape->stride_h : 0;
    const int32_t had = row > 0 ? kept : 0;
    const int32_t top = row * shape->stride_h - shape->pad_top + had;
    const int32_t wanted = (rows - 1) * shape->stride_h + THIMBLE_LINES - had;
    const int32_t above = top < 0 ? (-top < wanted ? -top : wanted) : 0;
    const int32_t below = shape->input_h - top;
    const int32_t seen = below < wanted ? below : wanted;
    const band_lines lines = {
        rows, had, above, seen, wanted, seen - above, (top + above) * input_y, (had + above) * pitch};
    return lines;
}

/* Makes the lines of the band from output row `row` on complete but for the rows that are in the image. */
static __attribute__((noinline)) band_lines begin_band(const thimble_conv_shape *shape,
                                                       int32_t row,
                                                       int32_t input_y,
                                                       thimble_pair *lines,
                                                       int32_t line,
                                                       uint32_t blank)
{
    const band_lines here = lines_of(shape, row, input_y, line);
    thimble_pair *const first = lines + here.had * line;
    if (here.had > 0) {
        keep_lines(lines, lines + shape->band * shape->stride_h * line, here.had * line);
    }
    put_blank(first, here.above * line, blank);
    if (here.seen < here.wanted) {
        const int32_t begin = here.seen > here.above ? here.seen : here.above;
        put_blank(first + begin * line, (here.wanted - begin) * line, blank);
    }
    return here;
}

/* Rows of outputs of a channel that is not rounded once. */
static THIMBLE_ASM_FUNCTION void put_other_rows(const thimble_conv_shape *shape,
                                                const thimble_requant *requant,
                                                const band_state *given,
                                                output_kind kind,
                                                const thimble_pair *lines,
                                                int32_t pitch,
                                                int32_t rows,
                                                int32_t over,
                                                int8_t *to,
                                                const int32_t stride)
{
    const thimble_pair *at = lines;
#if THIMBLE_ASM
    if (kind != OUTPUT_SLOW) {
        band_state state = *given;
        int8_t *row_to = to;
        int32_t s0, s1, s2, s3;
        uint32_t x, y, a0, b0, a1, b1, a2, b2 = (uint32_t)state.channel.taps;
        if (stride == 1) {
            BAND_LINES(ANY, 1)
        } else {
            BAND_LINES(ANY, 2)
        }
        return;
    }
#else
    (void)stride;
#endif
    for (; rows > 0; rows--, at += pitch * shape->stride_h, to += over) {
        put_outputs(shape, requant, &given->channel, kind, given->channel.taps, at, 1, pitch, given->step,
                    to);
    }
}

/* `stride`: shape->stride_w, a constant where this is inlined. */
static inline THIMBLE_ASM_INLINE void thimble_depthwise_3x3_band(const thimble_conv_shape *shape,
                                                                 const thimble_requant *requant,
                                                                 const int8_t *input,
                                                                 const int32_t *parameters,
                                                                 void *scratch,
                                                                 int8_t *output,
                                                                 const int32_t stride)
{
    const int32_t columns = shape->output_w, height = shape->output_h, band = shape->band;
    const int32_t channels = shape->output_c, filters = channels / shape->input_c;
    const int32_t pad_left = shape->pad_left, pairs = (columns + 1) / 2 * stride + 1,
                  room = 2 * pairs - pad_left;
    const int32_t inside = room < 0 ? 0 : room < shape->input_w ? room : shape->input_w;
    const int32_t line = pairs * 4 <= THIMBLE_NARROW_LINE ? THIMBLE_NARROW_LINE / 4 : THIMBLE_WIDE_LINE / 4;
    const int32_t together = shape->at_once ? THIMBLE_FOURS : 1;
    const int32_t fours = pairs * 4 <= THIMBLE_FOURS_LINE ? THIMBLE_FOURS_LINE : THIMBLE_WIDE_FOURS_LINE;
    const int32_t apart = shape->at_once ? fours / 4 : 0, pitch = apart ? THIMBLE_FOURS * apart : line;
    const int32_t most = (band - 1) * shape->stride_h + THIMBLE_LINES, bands = height > band;
    int8_t *const image_out = output;
    const uint32_t blank =
        thimble_bottoms((uint32_t)shape->input_zero_point, (uint32_t)shape->input_zero_point);
    const walk_steps steps = steps_of(shape);
    thimble_pair *const lines = scratch;
    band_lines here = lines_of(shape, 0, steps.input_y, pitch);
    band_state state;

    state.step = steps.output_x;
    state.rest = (int32_t)((uint32_t)columns << 30);
    state.next = 4 * pitch * shape->stride_h;
    state.over_pairs = state.next - 4 * (columns / 2 * stride);
    state.over_outputs = steps.output_y - (columns & ~1) * steps.output_x;
    put_blank(lines, most * pitch, blank);
    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *from = parameters;
        const int8_t *image = input;
        int32_t filter = 0;
        for (int32_t channel = 0; channel < channels; channel += together, from += 5 * together) {
            for (int32_t row = 0; row < height; row += band) {
                if (__builtin_expect(bands, 0) != 0) {
                    here = begin_band(shape, row, steps.input_y, lines, pitch, blank);
                }
                const int8_t *const read = image + here.from;
                thimble_half *const put = (thimble_half *)(lines + here.to) + pad_left;
                int8_t *to = output + channel + row * steps.output_y;
                if (apart == THIMBLE_FOURS_LINE / 4) {
                    put_fours(read, &steps, inside, here.inside, put, pad_left & 1, THIMBLE_FOURS_LINE / 2);
                } else if (apart != 0) {
                    put_fours(read, &steps, inside, here.inside, put, pad_left & 1,
                              THIMBLE_WIDE_FOURS_LINE / 2);
                } else {
                    put_lines(read, &steps, inside, here.inside, put, 4 * pitch);
                }
                for (int32_t i = 0; i < together; i++, to++) {
                    const thimble_pair *at = lines + i * apart;
                    const output_kind kind = put_channel(shape, requant, from + 5 * i, &state.channel);
                    state.end = at + (columns & ~3) / 2 * stride;
                    state.last = state.end + here.rows * state.next / 4;
#if THIMBLE_ASM
                    if (__builtin_expect(kind == OUTPUT_ONCE, 1)) {
                        int8_t *row_to = to;
                        int32_t s0, s1, s2, s3;
                        uint32_t x, y, a0, b0, a1, b1, a2, b2 = (uint32_t)state.channel.taps;
                        if (stride == 1) {
                            BAND_LINES(ONCE, 1)
                        } else {
                            BAND_LINES(ONCE, 2)
                        }
                        continue;
                    }
#endif
                    put_other_rows(shape, requant, &state, kind, at, pitch, here.rows, steps.output_y, to,
                                   stride);
                }
            }
            filter += together;
            if (filter >= filters) {
                filter = 0;
                image += together;
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += height * columns * channels;
    }
    thimble_clamp_image_s8(shape, requant, image_out);
}

#endif
