#include "thimble_conv.h"

/* Copies one channel of an image row into a padded row of int16; rows outside the image are zero points. */
static void
put_row(const thimble_conv_shape *shape, const int8_t *channel, int32_t y, int16_t *row, int32_t length)
{
    const int16_t zero_point = (int16_t)shape->input_zero_point;
    const int32_t step = shape->input_c;
    int32_t inside = 0, i = 0;
    if (y >= 0 && y < shape->input_h) {
        inside = shape->input_w < length - shape->pad_left ? shape->input_w : length - shape->pad_left;
    }
    for (const int32_t left = inside > 0 ? shape->pad_left : length; i < left; i++) {
        *row++ = zero_point;
    }
    if (inside > 0) {
        const int8_t *from = channel + y * shape->input_w * step;
        i += inside;
        for (; inside >= 4; inside -= 4) {
            const int8_t a = from[0], b = from[step], c = from[2 * step];
            from += 2 * step;
            const int8_t d = from[step];
            from += 2 * step;
            row[0] = a;
            row[1] = b;
            row[2] = c;
            row[3] = d;
            row += 4;
        }
        for (; inside > 0; inside--, from += step) {
            *row++ = *from;
        }
    }
    for (; i < length; i++) {
        *row++ = zero_point;
    }
}

/* One channel's requantisation, and where its outputs go: `step` bytes apart. */
typedef struct {
    const thimble_requant *requant;
    int32_t bias, multiplier, shift, rounding;
    int8_t *output;
    int32_t step, count;
} output_row;

static inline void put_output(const output_row *out, int8_t *at, int32_t sum)
{
    if (out->requant->form == THIMBLE_REQUANT_FAST) {
        *at = (int8_t)thimble_requantize_fast(sum, out->multiplier, out->shift, out->rounding);
    } else {
        *at = thimble_requantize_s8(sum, out->multiplier, out->shift, out->requant);
    }
}

/* One output row of an undilated 3x3 kernel, stride 1 or 2: two outputs at a time from words of two pixels.
 * Taps of a kernel row come as the pairs (0, 1) and (1, 2). */
static inline void
row_3x3(const output_row *out, const thimble_pair *const rows[3], const thimble_pair *taps, int32_t stride)
{
    const thimble_pair *r0 = rows[0], *r1 = rows[1], *r2 = rows[2];
    const thimble_pair a0 = taps[0], b0 = taps[1], a1 = taps[2], b1 = taps[3], a2 = taps[4], b2 = taps[5];
    int8_t *at = out->output;
    for (int32_t left = out->count; left > 0; left -= 2, at += 2 * out->step) {
        int32_t s0 = out->bias, s1 = s0;
        if (stride == 1) {
            s0 = thimble_smlabt(r0[1], b0, thimble_smlad(r0[0], a0, s0));
            s1 = thimble_smlatb(r0[0], a0, thimble_smlad(r0[1], b0, s1));
            s0 = thimble_smlabt(r1[1], b1, thimble_smlad(r1[0], a1, s0));
            s1 = thimble_smlatb(r1[0], a1, thimble_smlad(r1[1], b1, s1));
            s0 = thimble_smlabt(r2[1], b2, thimble_smlad(r2[0], a2, s0));
            s1 = thimble_smlatb(r2[0], a2, thimble_smlad(r2[1], b2, s1));
        } else {
            s0 = thimble_smlabt(r0[1], b0, thimble_smlad(r0[0], a0, s0));
            s1 = thimble_smlabt(r0[2], b0, thimble_smlad(r0[1], a0, s1));
            s0 = thimble_smlabt(r1[1], b1, thimble_smlad(r1[0], a1, s0));
            s1 = thimble_smlabt(r1[2], b1, thimble_smlad(r1[1], a1, s1));
            s0 = thimble_smlabt(r2[1], b2, thimble_smlad(r2[0], a2, s0));
            s1 = thimble_smlabt(r2[2], b2, thimble_smlad(r2[1], a2, s1));
        }
        r0 += stride;
        r1 += stride;
        r2 += stride;
        put_output(out, at, s0);
        if (left > 1) {
            put_output(out, at + out->step, s1);
        }
    }
}

/* One output row of any kernel: two outputs at a time; taps in rows of `pairs` words, or int16 by int16 where
 * dilated. */
static void row_any(const output_row *out,
                    const thimble_conv_shape *shape,
                    const int16_t *lines,
                    int32_t first,
                    int32_t row_stride,
                    const int16_t *taps)
{
    const int32_t pairs = (shape->kernel_w + 1) / 2;
    const int32_t extent = (shape->kernel_h - 1) * shape->dilation_h + 1;
    int8_t *at = out->output;
    for (int32_t left = out->count; left > 0; left -= 2, at += 2 * out->step) {
        const int32_t second = left > 1 ? shape->stride_w : 0;
        const int16_t *tap = taps;
        int32_t s0 = out->bias, s1 = s0;
        int32_t line = first;
        for (int32_t row = 0; row < shape->kernel_h; row++) {
            const int16_t *x = lines + line * row_stride;
            line += shape->dilation_h;
            line -= line >= extent ? extent : 0;
            if (shape->dilation_w == 1) {
                for (int32_t pair = pairs; pair > 0; pair--, x += 2, tap += 2) {
                    const uint32_t weights = *(const thimble_pair *)(const void *)tap;
                    s0 = thimble_smlad(thimble_read_word(x), weights, s0);
                    s1 = thimble_smlad(thimble_read_word(x + second), weights, s1);
                }
            } else {
                for (int32_t column = 0; column < shape->kernel_w; column++, x += shape->dilation_w) {
                    const int32_t weight = tap[column];
                    s0 = thimble_add(s0, x[0] * weight);
                    s1 = thimble_add(s1, x[second] * weight);
                }
                tap += 2 * pairs;
            }
        }
        lines += shape->stride_w + second;
        put_output(out, at, s0);
        if (left > 1) {
            put_output(out, at + out->step, s1);
        }
    }
}

/* Sign-extends a channel's taps: each kernel row padded with 0 to whole words, or as the pairs that row_3x3
 * takes. */
static void put_taps(const thimble_conv_shape *shape, const int8_t *filter, int16_t *taps, int32_t as_pairs)
{
    for (int32_t row = 0; row < shape->kernel_h; row++, filter += shape->kernel_w) {
        if (as_pairs) {
            taps[0] = filter[0];
            taps[1] = filter[1];
            taps[2] = filter[1];
            taps[3] = filter[2];
            taps += 4;
            continue;
        }
        for (int32_t column = 0; column < shape->kernel_w; column++) {
            *taps++ = filter[column];
        }
        if (shape->kernel_w & 1) {
            *taps++ = 0;
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
    const int32_t extent = (shape->kernel_h - 1) * shape->dilation_h + 1;
    const int32_t row_stride = thimble_depthwise_row_stride(shape);
    int16_t *const lines = scratch;
    int16_t *const taps = lines + extent * row_stride;
    const int32_t is_3x3 = shape->kernel_h == 3 && shape->kernel_w == 3 && shape->dilation_h == 1 &&
                           shape->dilation_w == 1 && shape->stride_w <= 2;
    const int32_t words = 2 + (1 + shape->kernel_h * shape->kernel_w + 3) / 4;
    const int32_t multiplier = shape->output_c / shape->input_c;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < shape->output_c; channel++, at += words) {
            const int8_t *const bytes = (const int8_t *)(at + 2);
            const int32_t shift = bytes[0];
            output_row out = {requant,
                              at[0],
                              at[1],
                              shift,
                              thimble_rounding(requant, shift > 0 ? shift : 0),
                              output + channel,
                              shape->output_c,
                              shape->output_w};
            put_taps(shape, bytes + 1, taps, is_3x3);
            /* Padded row p lies in line p % extent; `first` is the line of the window's top row. */
            int32_t filled = 0, first = 0, fill = 0;
            for (int32_t y = 0; y < shape->output_h; y++) {
                const int32_t top = y * shape->stride_h;
                for (; filled < top + extent; filled++) {
                    if (filled >= top) {
                        put_row(shape, input + channel / multiplier, filled - shape->pad_top,
                                lines + fill * row_stride, row_stride);
                    }
                    fill = fill + 1 == extent ? 0 : fill + 1;
                }
                if (is_3x3) {
                    const int32_t second = first == 2 ? 0 : first + 1, third = second == 2 ? 0 : second + 1;
                    const thimble_pair *const pairs = scratch;
                    const int32_t pair_stride = row_stride / 2;
                    const thimble_pair *const rows[3] = {pairs + first * pair_stride,
                                                         pairs + second * pair_stride,
                                                         pairs + third * pair_stride};
                    const thimble_pair *const tap_pairs = pairs + 3 * pair_stride;
                    if (shape->stride_w == 1) {
                        row_3x3(&out, rows, tap_pairs, 1);
                    } else {
                        row_3x3(&out, rows, tap_pairs, 2);
                    }
                } else {
                    row_any(&out, shape, lines, first, row_stride, taps);
                }
                out.output += shape->output_w * shape->output_c;
                first = (first + shape->stride_h) % extent;
            }
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += shape->output_h * shape->output_w * shape->output_c;
    }
}
