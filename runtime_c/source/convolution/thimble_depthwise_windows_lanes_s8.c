/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_lanes.h"

/* Rows and columns of the image that a vector holds of one channel. The four bytes of a word are rows. */
#define SIDE 4
/* Output columns between two gatherings of image columns, at most. */
#define STRIP 16

/* Four image rows; NULL where the image has none. */
typedef struct {
    const int8_t *lines[SIDE];
} four_rows;

static inline const int8_t *
row_at(const thimble_conv_shape *shape, const int8_t *image, int32_t line, int32_t y)
{
    return y >= 0 && y < shape->input_h ? image + y * line : NULL;
}

#if THIMBLE_MVE && THIMBLE_ASM
#define SEEN(to, line, inside)                                                                               \
    "vmsr          p0, %[" inside "]              \n"                                                        \
    "vpst                                        \n"                                                         \
    "vldrwt.u32    " to ", [%[" line "], %q[at]]     \n"                                                     \
    "vpsel         " to ", " to ", %q[nothing]       \n"
#define STORED                                                                                               \
    "vst40.8       {q0, q1, q2, q3}, [%[to]]     \n"                                                         \
    "vst41.8       {q0, q1, q2, q3}, [%[to]]     \n"                                                         \
    "vst42.8       {q0, q1, q2, q3}, [%[to]]     \n"                                                         \
    "vst43.8       {q0, q1, q2, q3}, [%[to]]!    \n"
#endif

/* Image columns x on of four channels: a word for each channel. Zero points where the image has none.
 * `columns` is a multiple of SIDE. */
static inline void
put_columns(const thimble_conv_shape *shape, const four_rows *rows, int32_t x, int32_t columns, int8_t *to)
{
    const int32_t channels = shape->input_c, width = shape->input_w;
#if THIMBLE_MVE && THIMBLE_ASM
    const int8_t *const a = rows->lines[0], *const b = rows->lines[1];
    const int8_t *const c = rows->lines[2], *const d = rows->lines[3];
    const uint32x4_t lanes = vidupq_n_u32(0, 1);
    const uint8x16_t nothing = vdupq_n_u8((uint8_t)shape->input_zero_point);
    const int32_t all = a && b && c && d;
    uint32x4_t at = vmulq_n_u32(vaddq_n_u32(lanes, (uint32_t)x), (uint32_t)channels);
    while (columns > 0) {
        const int32_t inside = width - x < columns ? (width - x) / SIDE : columns / SIDE;
        if (all && x >= 0 && inside > 0) {
            __asm volatile("dls           lr, %[turns]                 \n"
                           "1:                                         \n"
                           "vldrw.u32     q0, [%[a], %q[at]]           \n"
                           "vldrw.u32     q1, [%[b], %q[at]]           \n"
                           "vldrw.u32     q2, [%[c], %q[at]]           \n"
                           "vldrw.u32     q3, [%[d], %q[at]]           \n"
                           "vadd.i32      %q[at], %q[at], %[step]      \n" STORED
                           "le            lr, 1b                       \n"
                           : [to] "+r"(to), [at] "+w"(at)
                           : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d), [turns] "r"(inside),
                             [step] "r"(SIDE * channels)
                           : "q0", "q1", "q2", "q3", "memory", "lr");
            x += SIDE * inside;
            columns -= SIDE * inside;
        } else {
            const uint32x4_t places = vaddq_n_u32(lanes, (uint32_t)x);
            const uint32_t seen = vcmphiq_u32(vdupq_n_u32((uint32_t)width), places);
            const uint32_t in_a = a ? seen : 0, in_b = b ? seen : 0, in_c = c ? seen : 0, in_d = d ? seen : 0;
            __asm volatile(
                SEEN("q0", "a", "in_a") SEEN("q1", "b", "in_b") SEEN("q2", "c", "in_c")
                    SEEN("q3", "d", "in_d") STORED
                : [to] "+r"(to)
                : [a] "r"(a), [b] "r"(b), [c] "r"(c), [d] "r"(d), [in_a] "r"(in_a), [in_b] "r"(in_b),
                  [in_c] "r"(in_c), [in_d] "r"(in_d), [at] "w"(at), [nothing] "w"(nothing)
                : "q0", "q1", "q2", "q3", "memory");
            at = vaddq_n_u32(at, (uint32_t)(SIDE * channels));
            x += SIDE;
            columns -= SIDE;
        }
    }
#else
    for (; columns > 0; columns--, x++, to += 4 * SIDE) {
        for (int32_t i = 0; i < 4 * SIDE; i++) {
            const int8_t *const line = rows->lines[i % SIDE];
            to[i] = (int8_t)shape->input_zero_point;
            if (line && x >= 0 && x < width) {
                to[i] = line[x * channels + i / SIDE];
            }
        }
    }
#endif
}

/* Sums of two channels' windows, `step` bytes apart, at the first two of each four of `sums`; the same of the
 * row below, whose windows lie `down` image rows below, in `below`, unless that is NULL. `taps` bytes of a
 * filter follow each other. */
#if THIMBLE_MVE && THIMBLE_ASM
THIMBLE_ASM_FUNCTION static void sum_windows(const int8_t *windows,
                                             int32_t step,
                                             int32_t outputs,
                                             const int8_t *filters,
                                             int32_t taps,
                                             int32_t down,
                                             int32_t *sums,
                                             int32_t *below)
{
    const mve_pred16_t inside = vctp8q((uint32_t)taps);
    const uint32x4_t columns = vshlq_n_u32(vidupq_n_u32(0, 8), 1); /* 4 * SIDE from one to the next */
    const uint32x4_t next = vaddq_n_u32(columns, SIDE);
    const int32x4_t one = vreinterpretq_s32_s8(vldrbq_z_s8(filters, inside));
    const int32x4_t two = vreinterpretq_s32_s8(vldrbq_z_s8(filters + taps, inside));
    int32_t a0, a1, b0, b1;
    int32x4_t x0, x1;
    /* Loads, products and stores take turns; a turn stores the sums of the one before. */
    if (below) {
        const int32x4_t under_one = vshlq_r_s32(one, 8 * down), under_two = vshlq_r_s32(two, 8 * down);
        __asm volatile("vldrw.u32     %q[x0], [%[at], %q[columns]]\n"
                       "vldrw.u32     %q[x1], [%[at], %q[next]]   \n"
                       "add           %[at], %[at], %[step]       \n"
                       "vmladav.s8    %[a0], %q[x0], %q[one]      \n"
                       "vmladav.s8    %[b0], %q[x0], %q[under_one]\n"
                       "vmladav.s8    %[a1], %q[x1], %q[two]      \n"
                       "wls           lr, %[more], 2f             \n"
                       "1:                                        \n"
                       "vldrw.u32     %q[x0], [%[at], %q[columns]]\n"
                       "vmladav.s8    %[b1], %q[x1], %q[under_two]\n"
                       "strd          %[a0], %[a1], [%[sums]], #16\n"
                       "vldrw.u32     %q[x1], [%[at], %q[next]]   \n"
                       "vmladav.s8    %[a0], %q[x0], %q[one]      \n"
                       "strd          %[b0], %[b1], [%[below]], #16\n"
                       "vmladav.s8    %[b0], %q[x0], %q[under_one]\n"
                       "add           %[at], %[at], %[step]       \n"
                       "vmladav.s8    %[a1], %q[x1], %q[two]      \n"
                       "le            lr, 1b                      \n"
                       "2:                                        \n"
                       "vmladav.s8    %[b1], %q[x1], %q[under_two]\n"
                       "strd          %[a0], %[a1], [%[sums]]     \n"
                       "strd          %[b0], %[b1], [%[below]]    \n"
                       : [a0] "=&Te"(a0), [a1] "=&Te"(a1), [b0] "=&Te"(b0), [b1] "=&Te"(b1), [x0] "=&w"(x0),
                         [x1] "=&w"(x1), [at] "+r"(windows), [sums] "+r"(sums), [below] "+r"(below)
                       : [columns] "w"(columns), [next] "w"(next), [one] "w"(one), [two] "w"(two),
                         [under_one] "w"(under_one), [under_two] "w"(under_two), [step] "r"(step),
                         [more] "r"(outputs - 1)
                       : "memory", "lr");
        return;
    }
    __asm volatile("vldrw.u32     %q[x0], [%[at], %q[columns]]\n"
                   "vldrw.u32     %q[x1], [%[at], %q[next]]   \n"
                   "add           %[at], %[at], %[step]       \n"
                   "vmladav.s8    %[a0], %q[x0], %q[one]      \n"
                   "wls           lr, %[more], 2f             \n"
                   "1:                                        \n"
                   "vldrw.u32     %q[x0], [%[at], %q[columns]]\n"
                   "vmladav.s8    %[a1], %q[x1], %q[two]      \n"
                   "vldrw.u32     %q[x1], [%[at], %q[next]]   \n"
                   "add           %[at], %[at], %[step]       \n"
                   "strd          %[a0], %[a1], [%[sums]], #16\n"
                   "vmladav.s8    %[a0], %q[x0], %q[one]      \n"
                   "le            lr, 1b                      \n"
                   "2:                                        \n"
                   "vmladav.s8    %[a1], %q[x1], %q[two]      \n"
                   "strd          %[a0], %[a1], [%[sums]]     \n"
                   : [a0] "=&Te"(a0), [a1] "=&Te"(a1), [x0] "=&w"(x0), [x1] "=&w"(x1), [at] "+r"(windows),
                     [sums] "+r"(sums)
                   : [columns] "w"(columns), [next] "w"(next), [one] "w"(one), [two] "w"(two),
                     [step] "r"(step), [more] "r"(outputs - 1)
                   : "memory", "lr");
}
#else
static void sum_windows(const int8_t *windows,
                        int32_t step,
                        int32_t outputs,
                        const int8_t *filters,
                        int32_t taps,
                        int32_t down,
                        int32_t *sums,
                        int32_t *below)
{
    for (; outputs > 0; outputs--, windows += step, sums += 4) {
        for (int32_t channel = 0; channel < 2; channel++) {
            int32_t upper = 0, lower = 0;
            for (int32_t tap = 0; tap < taps; tap++) {
                const int8_t *const word = windows + 4 * SIDE * (tap / SIDE) + SIDE * channel;
                const int32_t weight = filters[taps * channel + tap], row = tap % SIDE;
                upper += word[row] * weight;
                lower += row + down < SIDE ? word[row + down] * weight : 0;
            }
            sums[channel] = upper;
            if (below != NULL) {
                below[channel] = lower;
            }
        }
        below = below ? below + 4 : NULL;
    }
}
#endif

/* `count` pixels of four channels, `channels` bytes apart. */
static inline void put_pixels(const int8_t *from, int32_t count, int32_t channels, int8_t *to)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const uint32x4_t steps = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)channels);
    __asm volatile("wlstp.32      lr, %[count], 2f        \n"
                   "1:                                   \n"
                   "vldrw.u32     q0, [%[from]], #16      \n"
                   "vstrw.32      q0, [%[to], %q[steps]]  \n"
                   "add           %[to], %[to], %[pixels] \n"
                   "letp          lr, 1b                  \n"
                   "2:                                   \n"
                   : [from] "+r"(from), [to] "+r"(to)
                   : [count] "r"(count), [pixels] "r"(4 * channels), [steps] "w"(steps)
                   : "q0", "memory", "lr");
#else
    for (; count > 0; count--, from += 4, to += channels) {
        (void)memcpy(to, from, 4);
    }
#endif
}

/* One row of outputs of four channels, or two: the second one to `below`. */
THIMBLE_ASM_INLINE static inline void put_rows(const thimble_conv_shape *shape,
                                               const thimble_requant *requant,
                                               const four_rows *rows,
                                               const int32_t *parameters,
                                               int8_t *columns,
                                               int8_t *output,
                                               int8_t *below)
{
    const int8_t *const filters = (const int8_t *)(parameters + THIMBLE_LANE_SCALING);
    const int32_t stride = shape->stride_w, taps = SIDE * shape->kernel_w;
    for (int32_t column = 0; column < shape->output_w; column += STRIP) {
        const int32_t left = shape->output_w - column, outputs = left < STRIP ? left : STRIP;
        const int32_t seen = (outputs - 1) * stride + SIDE;
        int32_t sums[8 * STRIP + 4];
        int32_t *const second = below ? sums + 4 * STRIP : NULL;
        put_columns(shape, rows, column * stride - shape->pad_left, (seen + SIDE - 1) & ~(SIDE - 1), columns);
        for (int32_t channel = 0; channel < 4; channel += 2) {
            sum_windows(columns + SIDE * channel, 4 * SIDE * stride, outputs, filters + taps * channel, taps,
                        shape->stride_h, sums + channel, second ? second + channel : NULL);
        }
        thimble_put_lanes(sums, second, outputs, parameters, requant, output + 4 * column,
                          below + 4 * column);
    }
}

void thimble_depthwise_windows_lanes_s8(const thimble_conv_shape *shape,
                                        const thimble_requant *requant,
                                        const int8_t *input,
                                        const int32_t *parameters,
                                        void *scratch,
                                        int8_t *output)
{
    const int32_t channels = shape->input_c, row_bytes = 4 * shape->output_w;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t output_line = thimble_line(shape->output_line, shape->output_w, channels);
    const int32_t at_once = shape->kernel_h + shape->stride_h <= SIDE ? 2 : 1,
                  places = shape->band + at_once - 1;
    const int32_t strip = shape->output_w < STRIP ? shape->output_w : STRIP;
    const int32_t seen = (strip - 1) * shape->stride_w + SIDE;
    int8_t *const columns = scratch;
    int8_t *const waiting = columns + 4 * SIDE * ((seen + SIDE - 1) & ~(SIDE - 1));

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel += 4) {
            const int8_t *const image = input + channel;
            int8_t *to = output + channel;
            int32_t held = 0, oldest = 0;
            for (int32_t row = 0; row < shape->output_h; row += at_once) {
                const int32_t two = at_once == 2 && row + 1 < shape->output_h;
                const int32_t y = row * shape->stride_h - shape->pad_top;
                const four_rows rows = {{row_at(shape, image, line, y), row_at(shape, image, line, y + 1),
                                         row_at(shape, image, line, y + 2),
                                         row_at(shape, image, line, y + 3)}};
                const int32_t place = oldest + held < places ? oldest + held : oldest + held - places;
                int8_t *const result = waiting + place * row_bytes;
                int8_t *const below = place + 1 < places ? result + row_bytes : waiting;
                put_rows(shape, requant, &rows, at, columns, result, two ? below : NULL);
                held += 1 + two;
                const int32_t kept = row + at_once < shape->output_h ? shape->band - 1 : 0;
                for (; held > kept; held--, to += output_line) {
                    put_pixels(waiting + oldest * row_bytes, shape->output_w, channels, to);
                    oldest = oldest + 1 < places ? oldest + 1 : 0;
                }
            }
            at += THIMBLE_LANE_SCALING + SIDE * shape->kernel_w;
        }
        input += shape->input_h * shape->input_w * channels;
        output += shape->output_h * shape->output_w * channels;
    }
}
