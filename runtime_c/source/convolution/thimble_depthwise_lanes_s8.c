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

/* Sums of TOGETHER neighbouring outputs. `first`: the ring's row for the window's first; `at`: bytes to the
 * first window's first column. */
static inline void sum_outputs(const row_ring *ring,
                               int32_t first,
                               int32_t at,
                               int32_t kernel_h,
                               int32_t kernel_w,
                               int32_t stride,
                               const int8_t *tap,
                               int32_t *sums)
{
#if THIMBLE_MVE
    int32x4_t s0 = vdupq_n_s32(0), s1 = s0, s2 = s0, s3 = s0;
#else
    (void)memset(sums, 0, 4 * TOGETHER * sizeof(int32_t));
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
        (void)memcpy(to, &zero_points, 4);
    }
    for (; inside > 0; inside--, to += 4, line += channels) {
        (void)memcpy(to, line, 4);
    }
    for (; after > 0; after--, to += 4) {
        (void)memcpy(to, &zero_points, 4);
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
                           const thimble_requant *requant,
                           int8_t *output)
{
    for (int32_t column = 0; column < columns; column += TOGETHER) {
        int32_t sums[4 * TOGETHER + 4];
        if (column + TOGETHER > columns) { /* some of them once more */
            column = columns - TOGETHER;
        }
        int8_t *const to = output + 4 * column;
        const int8_t *const taps = (const int8_t *)(parameters + THIMBLE_LANE_SCALING);
        sum_outputs(ring, first, 4 * stride * column, kernel_h, kernel_w, stride, taps, sums);
        thimble_put_lanes(sums, NULL, TOGETHER, parameters, requant, to, NULL);
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
                put_row(&ring, first, kernel_h, kernel_w, stride, columns, at, requant, result);
                held++;
                int32_t leave = row == shape->output_h - 1 ? held : held == shape->band;
                for (; leave > 0; leave--, held--, to += output_line) {
                    const int8_t *from = waiting + 4 * oldest * columns;
                    int8_t *pixel = to;
                    for (int32_t left = shape->output_w; left > 0; left--, from += 4, pixel += channels) {
                        (void)memcpy(pixel, from, 4);
                    }
                    oldest = oldest + 1 < shape->band ? oldest + 1 : 0;
                }
            }
            at += THIMBLE_LANE_SCALING + kernel_h * kernel_w;
        }
        input += shape->input_h * shape->input_w * channels;
        output += shape->output_h * shape->output_w * channels;
    }
}
