/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_conv.h"
#include "thimble_line.h"
#include "thimble_packed.h"
#include "thimble_requantize_rows.h"
#include "thimble_requantize_s8.h"

#define PIXELS 4

/* Where the window of an output pixel begins. */
typedef struct {
    int32_t y, x;
} window_start;

/* A line of an image, and the window's first column in it. `line` is null outside of the image. */
typedef struct {
    const int8_t *line;
    int32_t x;
} window_row;

static window_row
row_at(const thimble_conv_shape *shape, const int8_t *input, int32_t pitch, window_start at, int32_t row)
{
    const int32_t y = at.y + row * shape->dilation_h;
    const window_row found = {y >= 0 && y < shape->input_h ? input + y * pitch : NULL, at.x};
    return found;
}

static int32_t is_run(const thimble_conv_shape *shape, window_row row)
{
    return row.line && row.x >= 0 && row.x + shape->kernel_w <= shape->input_w;
}

static const int8_t *
tap_at(const thimble_conv_shape *shape, window_row row, int32_t column, const int8_t *zero_points)
{
    const int32_t x = row.x + column * shape->dilation_w;
    return row.line && x >= 0 && x < shape->input_w ? row.line + x * shape->input_c : zero_points;
}

/* The windows of two pixels; zero points where they leave the image. */
static void put_two(const thimble_conv_shape *shape,
                    const int8_t *input,
                    int32_t pitch,
                    const window_start *starts,
                    const int8_t *zero_points,
                    uint32_t *to)
{
    const int32_t depth = shape->depth, contiguous = shape->dilation_w == 1 || shape->kernel_w == 1;
    for (int32_t row = 0; row < shape->kernel_h; row++) {
        const window_row a = row_at(shape, input, pitch, starts[0], row);
        const window_row b = row_at(shape, input, pitch, starts[1], row);
        if (contiguous && is_run(shape, a) && is_run(shape, b)) {
            to = thimble_pack_pixels_s8(a.line + a.x * depth, b.line + b.x * depth, shape->kernel_w * depth,
                                        to);
            continue;
        }
        for (int32_t column = 0; column < shape->kernel_w; column++) {
            to = thimble_pack_pixels_s8(tap_at(shape, a, column, zero_points),
                                        tap_at(shape, b, column, zero_points), depth, to);
        }
    }
}

/* Four pixels of at most four channels, channel by channel. */
static void requantize(const int32_t *parameters,
                       const uint32_t *sums,
                       int32_t channels,
                       const thimble_requant *requant,
                       int8_t *bytes)
{
    const uint32_t codes = (uint32_t)parameters[8];
    if ((codes & 0x80808080U) == 0) {
        thimble_row_scaling scaling = {parameters, parameters + 4, (const int8_t *)(parameters + 8),
                                       thimble_rounding(requant, 0)};
        thimble_requantize_rows_s8((const int32_t *)sums, &scaling, channels, PIXELS, bytes, 1);
        if (thimble_narrow(requant) != 0) {
            for (int32_t i = 0; i < PIXELS * channels; i++) {
                bytes[i] =
                    (int8_t)thimble_clamp_sum(bytes[i], requant->activation_min, requant->activation_max);
            }
        }
        return;
    }
    for (int32_t i = 0; i < PIXELS * channels; i++) {
        const int32_t channel = i / PIXELS, code = (int8_t)(uint8_t)(codes >> (8 * channel));
        const int32_t sum = thimble_add((int32_t)sums[i], parameters[channel]);
        bytes[i] = thimble_requantize_s8(sum, parameters[4 + channel], code, requant);
    }
}

/* At most four channels of a pixel; `bytes` has them PIXELS apart. */
static inline void put_channels(const int8_t *bytes, int32_t channels, int8_t *to)
{
    if (channels == 4) {
        to[0] = bytes[0];
        to[1] = bytes[PIXELS];
        to[2] = bytes[2 * PIXELS];
        to[3] = bytes[3 * PIXELS];
        return;
    }
    for (; channels > 0; channels--, bytes += PIXELS) {
        *to++ = *bytes;
    }
}

void thimble_convolve_packed_s8(const thimble_conv_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t depth = shape->depth, taps = shape->kernel_h * shape->kernel_w * depth;
    uint32_t *const end = columns + 2 * taps;
    int8_t *const zero_points = (int8_t *)end;
    const int32_t pixels = shape->output_h * shape->output_w, channels = shape->output_c;
    const int32_t pitch = thimble_line(shape->input_line, shape->input_w, depth);
    const int32_t row_bytes = thimble_line(shape->output_line, shape->output_w, channels);
    (void)memset(zero_points, (uint8_t)shape->input_zero_point, (size_t)depth);

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        int32_t y = 0, x = 0;
        for (int32_t left = pixels; left > 0; left -= PIXELS) {
            const int32_t count = left < PIXELS ? left : PIXELS;
            window_start starts[PIXELS];
            int8_t *outputs[PIXELS];
            /* Behind the last pixel its window again, which is computed in vain. */
            window_start start = {0, 0};
            for (int32_t i = 0; i < PIXELS; i++) {
                if (i < count) {
                    start.y = y * shape->stride_h - shape->pad_top;
                    start.x = x * shape->stride_w - shape->pad_left;
                    outputs[i] = output + y * row_bytes + x * channels;
                    if (++x == shape->output_w) {
                        x = 0;
                        y++;
                    }
                }
                starts[i] = start;
            }
            put_two(shape, input, pitch, starts, zero_points, columns);
            put_two(shape, input, pitch, starts + 2, zero_points, columns + 1);
            const int32_t *at = parameters;
            for (int32_t channel = 0; channel < channels; channel += 4) {
                const int32_t four = channels - channel < 4 ? channels - channel : 4;
                uint32_t sums[4 * PIXELS];
                const int32_t *const next = thimble_sum_packed_s8(columns, end, at + 9, sums);
                int8_t bytes[4 * PIXELS];
                requantize(at, sums, four, requant, bytes);
                at = next;
                for (int32_t pixel = 0; pixel < count; pixel++) {
                    put_channels(bytes + pixel, four, outputs[pixel] + channel);
                }
            }
        }
        input += shape->input_h * shape->input_w * depth;
        output += pixels * channels;
    }
}
