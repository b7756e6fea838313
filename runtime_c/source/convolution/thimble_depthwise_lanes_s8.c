/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_lanes.h"

/* Outputs of a row that are computed together. */
#define TOGETHER 4

/* Rows of the image, of four channels and with its padding, as many as a window has: row y of the padded
 * image is row y % kernel_h of the ring. */
typedef struct {
    int8_t *rows;
    int32_t row_bytes, columns;
} row_ring;

#if THIMBLE_MVE
/* A tap of four outputs, `a`, `b` and `c` bytes behind the first one's next pixel. Loads, products and sums
 * take turns, so that each is under way while the next one starts; the last product waits in q3. */
#define TAP(x, a, b, c)                                                                                      \
    "vldrb.s32     q0, [%[tap]], #4            \n"                                                           \
    "vadd.i32      q7, q7, q3                  \n"                                                           \
    "vldrb.s32     q1, [%[" x "]], #4          \n"                                                           \
    "vmul.i32      q2, q1, q0                  \n"                                                           \
    "vldrb.s32     q1, [%[" x "], #" a "]      \n"                                                           \
    "vmul.i32      q3, q1, q0                  \n"                                                           \
    "vadd.i32      q4, q4, q2                  \n"                                                           \
    "vldrb.s32     q1, [%[" x "], #" b "]      \n"                                                           \
    "vmul.i32      q2, q1, q0                  \n"                                                           \
    "vadd.i32      q5, q5, q3                  \n"                                                           \
    "vldrb.s32     q1, [%[" x "], #" c "]      \n"                                                           \
    "vmul.i32      q3, q1, q0                  \n"                                                           \
    "vadd.i32      q6, q6, q2                  \n"

/* Sums of four outputs of 3x3 windows, whose next pixels lie so many bytes behind the first. */
#define SUM_3X3(a, b, c)                                                                                     \
    __asm volatile("vldrw.u32     q4, [%[bias]]               \n"                                            \
                   "vmov          q5, q4                      \n"                                            \
                   "vmov          q6, q4                      \n"                                            \
                   "vmov          q7, q4                      \n"                                            \
                   "vmov.i32      q3, #0                      \n" TAP("x0", a, b, c) TAP("x0", a, b, c)      \
                       TAP("x0", a, b, c) TAP("x1", a, b, c) TAP("x1", a, b, c) TAP("x1", a, b, c)           \
                           TAP("x2", a, b, c) TAP("x2", a, b, c)                                             \
                               TAP("x2", a, b, c) "vadd.i32      q7, q7, q3                  \n"             \
                                                  "vstrw.32      q4, [%[sums]]               \n"             \
                                                  "vstrw.32      q5, [%[sums], #16]          \n"             \
                                                  "vstrw.32      q6, [%[sums], #32]          \n"             \
                                                  "vstrw.32      q7, [%[sums], #48]          \n"             \
                   : [tap] "+r"(tap), [x0] "+r"(x0), [x1] "+r"(x1), [x2] "+r"(x2)                            \
                   : [bias] "r"(parameters), [sums] "r"(sums)                                                \
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory")

/* sum_outputs of 3x3 windows, one or two columns apart. */
static inline void sum_3x3(
    const row_ring *ring, int32_t first, int32_t at, int32_t stride, const int32_t *parameters, int32_t *sums)
{
    const int8_t *tap = (const int8_t *)(parameters + 9);
    const int8_t *const rows = ring->rows + at;
    const int8_t *x0 = rows + first * ring->row_bytes;
    const int8_t *x1 = rows + (first + 1 < 3 ? first + 1 : first - 2) * ring->row_bytes;
    const int8_t *x2 = rows + (first + 2 < 3 ? first + 2 : first - 1) * ring->row_bytes;
    if (stride == 1) {
        SUM_3X3("0", "4", "8");
    } else {
        SUM_3X3("4", "12", "20");
    }
}
#endif

/* Sums of TOGETHER neighbouring outputs. `first`: the ring's row for the window's first; `at`: bytes to the
 * first window's first column. */
static inline void sum_outputs(const row_ring *ring,
                               int32_t first,
                               int32_t at,
                               int32_t kernel_h,
                               int32_t kernel_w,
                               int32_t stride,
                               const int32_t *parameters,
                               int32_t *sums)
{
    const int8_t *tap = (const int8_t *)(parameters + 9);
#if THIMBLE_MVE
    int32x4_t s0 = vldrwq_s32(parameters), s1 = s0, s2 = s0, s3 = s0;
#else
    for (int32_t i = 0; i < 4 * TOGETHER; i++) {
        sums[i] = parameters[i & 3];
    }
#endif
    for (int32_t i = 0; i < kernel_h; i++) {
        const int8_t *x = ring->rows + first * ring->row_bytes + at;
        first = first + 1 < kernel_h ? first + 1 : 0;
        for (int32_t j = 0; j < kernel_w; j++, tap += 4, x += 4) {
#if THIMBLE_MVE
            const int32x4_t weights = vldrbq_s32(tap);
            const int32x4_t p0 = vmulq_s32(vldrbq_s32(x), weights);
            const int32x4_t p1 = vmulq_s32(vldrbq_s32(x + 4 * stride), weights);
            s0 = vaddq_s32(s0, p0);
            const int32x4_t p2 = vmulq_s32(vldrbq_s32(x + 8 * stride), weights);
            s1 = vaddq_s32(s1, p1);
            const int32x4_t p3 = vmulq_s32(vldrbq_s32(x + 12 * stride), weights);
            s2 = vaddq_s32(s2, p2);
            s3 = vaddq_s32(s3, p3);
#else
            for (int32_t k = 0; k < 4 * TOGETHER; k++) {
                sums[k] = thimble_add(sums[k], x[4 * stride * (k >> 2) + (k & 3)] * tap[k & 3]);
            }
#endif
        }
    }
#if THIMBLE_MVE
    vstrwq_s32(sums, s0);
    vstrwq_s32(sums + 4, s1);
    vstrwq_s32(sums + 8, s2);
    vstrwq_s32(sums + 12, s3);
#endif
}

/* Row y of the image into the ring, zero points where it has no pixels. `line`: the row's first pixel. */
static void
put_ring_row(const thimble_conv_shape *shape, const row_ring *ring, const int8_t *line, int32_t y, int8_t *to)
{
    const uint32_t zero_points = (uint8_t)shape->input_zero_point * 0x01010101U;
    const int32_t channels = shape->input_c;
    int32_t before = shape->pad_left < ring->columns ? shape->pad_left : ring->columns;
    int32_t inside = ring->columns - before < shape->input_w ? ring->columns - before : shape->input_w;
    if (y < 0 || y >= shape->input_h) {
        before = ring->columns;
        inside = 0;
    }
    int32_t after = ring->columns - before - inside;
    for (; before > 0; before--, to += 4) {
        memcpy(to, &zero_points, 4);
    }
    for (; inside > 0; inside--, to += 4, line += channels) {
        memcpy(to, line, 4);
    }
    for (; after > 0; after--, to += 4) {
        memcpy(to, &zero_points, 4);
    }
}

/* A row of outputs of four channels; at least TOGETHER of them. */
static inline void put_row(const row_ring *ring,
                           int32_t first,
                           int32_t kernel_h,
                           int32_t kernel_w,
                           int32_t stride,
                           int32_t columns,
                           const int32_t *parameters,
                           const thimble_lane_ending *ending,
                           int8_t *output)
{
    for (int32_t column = 0; column < columns; column += TOGETHER) {
        int32_t sums[4 * TOGETHER];
        if (column + TOGETHER > columns) { /* some of them once more */
            column = columns - TOGETHER;
        }
        int8_t *const to = output + 4 * column;
#if THIMBLE_MVE
        if (kernel_h == 3 && kernel_w == 3 && stride <= 2) {
            sum_3x3(ring, first, 4 * stride * column, stride, parameters, sums);
        } else {
            sum_outputs(ring, first, 4 * stride * column, kernel_h, kernel_w, stride, parameters, sums);
        }
#else
        sum_outputs(ring, first, 4 * stride * column, kernel_h, kernel_w, stride, parameters, sums);
#endif
        thimble_put_lanes(sums, parameters + 4, 4, ending, to, to + 4);
        thimble_put_lanes(sums + 8, parameters + 4, 4, ending, to + 8, to + 12);
    }
}

void thimble_depthwise_lanes_s8(const thimble_conv_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output)
{
    const int32_t channels = shape->input_c, stride = shape->stride_w;
    const int32_t kernel_h = shape->kernel_h, kernel_w = shape->kernel_w;
    const int32_t columns = shape->output_w > TOGETHER ? shape->output_w : TOGETHER;
    const int32_t seen = (columns - 1) * stride + kernel_w;
    const int32_t line = thimble_line(shape->input_line, shape->input_w, channels);
    const int32_t output_line = thimble_line(shape->output_line, shape->output_w, channels);
    const thimble_lane_ending ending = thimble_ending_of(requant);
    const row_ring ring = {scratch, 4 * seen, seen};
    int8_t *const waiting = ring.rows + kernel_h * ring.row_bytes;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel += 4) {
            const int8_t *const image = input + channel;
            int8_t *to = output + channel;
            int32_t held = 0, oldest = 0, next = 0;
            for (int32_t row = 0; row < shape->output_h; row++) {
                const int32_t top = row * shape->stride_h;
                for (next = next > top ? next : top; next < top + kernel_h; next++) {
                    const int32_t y = next - shape->pad_top;
                    put_ring_row(shape, &ring, image + y * line, y,
                                 ring.rows + next % kernel_h * ring.row_bytes);
                }
                int32_t place = oldest + held;
                place = place < shape->band ? place : place - shape->band;
                int8_t *const result = waiting + 4 * place * columns;
                const int32_t first = top % kernel_h;
                put_row(&ring, first, kernel_h, kernel_w, stride, columns, at, &ending, result);
                held++;
                int32_t leave = row == shape->output_h - 1 ? held : held == shape->band;
                for (; leave > 0; leave--, held--, to += output_line) {
                    const int8_t *from = waiting + 4 * oldest * columns;
                    int8_t *pixel = to;
                    for (int32_t left = shape->output_w; left > 0; left--, from += 4, pixel += channels) {
                        memcpy(pixel, from, 4);
                    }
                    oldest = oldest + 1 < shape->band ? oldest + 1 : 0;
                }
            }
            at += 9 + kernel_h * kernel_w;
        }
        input += shape->input_h * shape->input_w * channels;
        output += shape->output_h * shape->output_w * channels;
    }
}
