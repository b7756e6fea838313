/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_clamp_image.h"
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_requantize_rows.h"
#include "thimble_requantize_s8.h"

/* int16 values in one padded image line of the depthwise kernel: what the last outputs read (with stride 1
 * outputs come in fours), rounded up to even, and two more that word loads touch. */
static inline int32_t line_values(const thimble_conv_shape *shape)
{
    const int32_t outputs = shape->stride_w == 1 ? (shape->output_w + 3) & ~3 : shape->output_w;
    const int32_t seen = (outputs - 1) * shape->stride_w + (shape->kernel_w - 1) * shape->dilation_w + 1;
    return ((seen + 1) & ~1) + 2;
}

/* Padded image lines: pixels to the left, from the image, to the right; bytes between pixels and between
 * rows. */
typedef struct {
    int32_t before, inside, after;
    int32_t pixel_step, row_step;
    int32_t values;
    int16_t zero_point;
} line_layout;

static int16_t *put_zero_points(int16_t *to, int32_t count, int16_t zero_point)
{
    for (; count > 0; count--) {
        *to++ = zero_point;
    }
    return to;
}

/* One channel of an image row as a line of int16. */
static void put_line(const line_layout *layout, const int8_t *from, int16_t *to)
{
    const int32_t step = layout->pixel_step;
    int32_t count = layout->inside;
    to = put_zero_points(to, layout->before, layout->zero_point);
    for (; count >= 4; count -= 4, from += 2 * step, to += 4) {
        const int8_t a = from[0], b = from[step];
        from += 2 * step;
        const int8_t c = from[0], d = from[step];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
    }
    for (; count > 0; count--, from += step) {
        *to++ = *from;
    }
    (void)put_zero_points(to, layout->after, layout->zero_point);
}

/* Four sums, of neighbouring outputs with stride 1, of one kernel row. Each step takes two words of taps, for
 * the even and for the odd outputs, and one word of pixels more. */
THIMBLE_ASM_FUNCTION static const thimble_pair *
add_row(const thimble_pair *pixels, const thimble_pair *taps, int32_t steps, int32_t *sums)
{
    int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
    uint32_t left = *pixels++;
#if THIMBLE_ASM
    uint32_t right, even, odd;
    __asm volatile("1:                                    \n"
                   "ldrd   %[even], %[odd], [%[taps]], #8 \n"
                   "ldr    %[right], [%[pixels]], #4      \n"
                   "smlad  %[s0], %[left], %[even], %[s0] \n"
                   "smlad  %[s1], %[left], %[odd], %[s1]  \n"
                   "subs   %[n], %[n], #1                 \n"
                   "smlad  %[s2], %[right], %[even], %[s2] \n"
                   "smlad  %[s3], %[right], %[odd], %[s3] \n"
                   "mov    %[left], %[right]              \n"
                   "bne    1b                             \n"
                   : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [taps] "+r"(taps),
                     [pixels] "+r"(pixels), [left] "+r"(left), [n] "+r"(steps), [right] "=&r"(right),
                     [even] "=&r"(even), [odd] "=&r"(odd)
                   :
                   : "cc", "memory");
#else
    for (; steps > 0; steps--, taps += 2) {
        const uint32_t right = *pixels++;
        s0 = thimble_smlad(left, taps[0], s0);
        s1 = thimble_smlad(left, taps[1], s1);
        s2 = thimble_smlad(right, taps[0], s2);
        s3 = thimble_smlad(right, taps[1], s3);
        left = right;
    }
#endif
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return taps;
}

/* Sums of one output row of any kernel with stride 1 along undilated rows. */
static void sum_unit_stride(
    const thimble_conv_shape *shape, const int16_t *lines, int32_t line, const int16_t *taps, int32_t *sums)
{
    const int32_t steps = shape->kernel_w / 2 + 1;
    for (int32_t left = shape->output_w; left > 0; left -= 4, lines += 4) {
        const thimble_pair *tap = (const thimble_pair *)(const void *)taps;
        const int16_t *start = lines;
        int32_t four[4] = {0, 0, 0, 0};
        for (int32_t row = shape->kernel_h; row > 0; row--, start += shape->dilation_h * line) {
            tap = add_row((const thimble_pair *)(const void *)start, tap, steps, four);
        }
        for (int32_t i = 0; i < 4 && i < left; i++) {
            *sums++ = four[i];
        }
    }
}

/* Sums of one output row of any kernel, two at a time; taps come in rows of whole words. */
static void sum_any(
    const thimble_conv_shape *shape, const int16_t *lines, int32_t line, const int16_t *taps, int32_t *sums)
{
    const int32_t pairs = (shape->kernel_w + 1) / 2;
    for (int32_t left = shape->output_w; left > 0; left -= 2, sums += 2) {
        const int32_t second = left > 1 ? shape->stride_w : 0;
        const int16_t *tap = taps, *start = lines;
        int32_t s = 0, t = 0;
        for (int32_t row = shape->kernel_h; row > 0; row--, start += shape->dilation_h * line) {
            const int16_t *x = start;
            if (shape->dilation_w == 1) {
                for (int32_t pair = pairs; pair > 0; pair--, x += 2, tap += 2) {
                    const uint32_t weights = *(const thimble_pair *)(const void *)tap;
                    s = thimble_smlad(thimble_read_word(x), weights, s);
                    t = thimble_smlad(thimble_read_word(x + second), weights, t);
                }
            } else {
                for (int32_t column = 0; column < shape->kernel_w; column++, x += shape->dilation_w) {
                    s = thimble_add(s, x[0] * tap[column]);
                    t = thimble_add(t, x[second] * tap[column]);
                }
                tap += 2 * pairs;
            }
        }
        lines += shape->stride_w + second;
        sums[0] = s;
        sums[1] = t;
    }
}

/* Sums (without bias) to int8, `step` bytes apart. */
static void put_outputs(const int32_t *sums,
                        int32_t count,
                        const int32_t *parameters,
                        int32_t code,
                        const thimble_requant *requant,
                        int8_t *to,
                        int32_t step)
{
    const int32_t bias = parameters[0], multiplier = parameters[1];
#ifdef __ARM_ARCH_6M__
    if (code >= 0 && parameters[2] == thimble_rounding(requant, code)) {
        const int8_t shift = (int8_t)code;
        thimble_row_scaling scaling = {parameters, parameters + 1, &shift, thimble_rounding(requant, 0)};
        thimble_requantize_rows_s8(sums, &scaling, 1, count, to, step);
        return;
    }
#endif
    if (code >= 0) {
        const int32_t rounding = parameters[2], twice = bias * 2;
        for (; count >= 2; count -= 2, sums += 2, to += step) {
            const int32_t a = twice + sums[0] * 2, b = twice + sums[1] * 2;
            *to = (int8_t)thimble_requantize_doubled(a, multiplier, code, rounding);
            to += step;
            *to = (int8_t)thimble_requantize_doubled(b, multiplier, code, rounding);
        }
        if (count > 0) {
            *to = (int8_t)thimble_requantize_doubled(twice + sums[0] * 2, multiplier, code, rounding);
        }
        return;
    }
    for (; count > 0; count--, to += step) {
        *to = thimble_requantize_s8(thimble_add(*sums++, bias), multiplier, code, requant);
    }
}

/* How taps lie in scratch. */
typedef enum {
    TAPS_PLAIN, /* each kernel row padded with 0 to whole words */
    TAPS_UNIT   /* each kernel row in steps of two pairs: taps 2i and 2i + 1, then 2i - 1 and 2i */
} taps_layout;

static taps_layout layout_of(const thimble_conv_shape *shape)
{
    return shape->dilation_w == 1 && shape->stride_w == 1 ? TAPS_UNIT : TAPS_PLAIN;
}

/* A channel's taps less their zero point. */
static void put_taps(const thimble_conv_shape *shape, const int8_t *filter, int16_t *taps, taps_layout layout)
{
    const int32_t width = shape->kernel_w;
    const int16_t zero = (int16_t)shape->weight_zero_point;
    for (int32_t row = 0; row < shape->kernel_h; row++, filter += width) {
        if (layout == TAPS_UNIT) {
            for (int32_t i = 0; i <= width; i += 2, taps += 4) {
                const int16_t middle = (int16_t)(i < width ? filter[i] - zero : 0);
                taps[0] = middle;
                taps[1] = (int16_t)(i + 1 < width ? filter[i + 1] - zero : 0);
                taps[2] = (int16_t)(i > 0 ? filter[i - 1] - zero : 0);
                taps[3] = middle;
            }
        } else {
            for (int32_t i = 0; i < width; i++) {
                *taps++ = (int16_t)(filter[i] - zero);
            }
            if ((width & 1) != 0) {
                *taps++ = 0;
            }
        }
    }
}

/* The lines that output rows y to y + rows - 1 read. Those that the band above has left are moved to the top.
 */
static void put_band(const thimble_conv_shape *shape,
                     const line_layout *layout,
                     const int8_t *image,
                     int32_t y,
                     int32_t rows,
                     int32_t band_lines,
                     int16_t *lines)
{
    const int32_t advance = shape->band * shape->stride_h;
    const int32_t kept = y > 0 && band_lines > advance ? band_lines - advance : 0;
    const int32_t top = y * shape->stride_h - shape->pad_top;
    const int32_t wanted = band_lines - (shape->band - rows) * shape->stride_h;
    if (kept > 0) {
        (void)memmove(lines, lines + advance * layout->values,
                      (size_t)(kept * layout->values) * sizeof(*lines));
    }
    int16_t *to = lines + kept * layout->values;
    for (int32_t row = top + kept; row < top + wanted; row++, to += layout->values) {
        if (row < 0 || row >= shape->input_h) {
            (void)put_zero_points(to, layout->values, layout->zero_point);
        } else {
            put_line(layout, image + row * layout->row_step, to);
        }
    }
}

void thimble_depthwise_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output)
{
    const int32_t line = line_values(shape);
    const int32_t extent = (shape->kernel_h - 1) * shape->dilation_h + 1;
    const int32_t band_lines = (shape->band - 1) * shape->stride_h + extent;
    const taps_layout taps_as = layout_of(shape);
    const int32_t tap_pairs = shape->kernel_h * 2 * (shape->kernel_w / 2 + 1);
    int16_t *const lines = scratch;
    int16_t *const taps = lines + band_lines * line;
    int32_t *const sums = (int32_t *)scratch + band_lines * (line / 2) + tap_pairs;
    const int32_t words = 3 + (1 + shape->kernel_h * shape->kernel_w + 3) / 4;
    const int32_t multiplier = shape->output_c / shape->input_c;
    const int32_t input_line =
        thimble_line(shape->input_line, shape->transposed ? shape->input_h : shape->input_w, shape->input_c);
    const int32_t output_line = thimble_line(
        shape->output_line, shape->transposed ? shape->output_h : shape->output_w, shape->output_c);
    int8_t *const image_out = output;
    const int32_t output_x_step = shape->transposed ? output_line : shape->output_c;
    const int32_t output_y_step = shape->transposed ? shape->output_c : output_line;
    const int32_t room = line - shape->pad_left;
    const int32_t inside = room < 0 ? 0 : (room < shape->input_w ? room : shape->input_w);
    const int32_t before = room < 0 ? line : shape->pad_left;
    const line_layout layout = {before,
                                inside,
                                line - before - inside,
                                shape->transposed ? input_line : shape->input_c,
                                shape->transposed ? shape->input_c : input_line,
                                line,
                                (int16_t)shape->input_zero_point};

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < shape->output_c; channel++, at += words) {
            const int8_t *const bytes = (const int8_t *)(at + 3);
            const int8_t *const image = input + channel / multiplier;
            int8_t *to = output + channel;
            put_taps(shape, bytes + 1, taps, taps_as);
            for (int32_t y = 0; y < shape->output_h; y += shape->band) {
                const int32_t rows = shape->output_h - y < shape->band ? shape->output_h - y : shape->band;
                put_band(shape, &layout, image, y, rows, band_lines, lines);
                int32_t *sum = sums;
                const int16_t *from = lines;
                for (int32_t row = 0; row < rows;
                     row++, sum += shape->output_w, from += shape->stride_h * line) {
                    if (taps_as == TAPS_UNIT) {
                        sum_unit_stride(shape, from, line, taps, sum);
                    } else {
                        sum_any(shape, from, line, taps, sum);
                    }
                }
                if (shape->transposed || shape->output_line) {
                    for (int32_t row = 0; row < rows; row++, to += output_y_step) {
                        const int32_t *const row_sums = sums + row * shape->output_w;
                        put_outputs(row_sums, shape->output_w, at, bytes[0], requant, to, output_x_step);
                    }
                } else {
                    put_outputs(sums, rows * shape->output_w, at, bytes[0], requant, to, output_x_step);
                    to += rows * output_y_step;
                }
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += shape->output_h * shape->output_w * shape->output_c;
    }
    thimble_clamp_image_s8(shape, requant, image_out);
}
