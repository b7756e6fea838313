#include "thimble_conv.h"

/* One column being filled: straight into the interleaved column where every run is whole words, else into
 * bytes that are expanded at the end. */
typedef struct {
    uint32_t *column;
    int8_t *bytes;
    uint32_t zero_points;
} column_writer;

static void put_zero_points(column_writer *writer, int32_t count)
{
    if (writer->bytes) {
        memset(writer->bytes, (int)(writer->zero_points & 0xFFU), (size_t)count);
        writer->bytes += count;
        return;
    }
    const uint32_t pair = thimble_sxtb16(writer->zero_points);
    for (; count > 0; count -= 4) {
        writer->column[0] = pair;
        writer->column[1] = pair;
        writer->column += 4;
    }
}

static void put_run(column_writer *writer, const int8_t *input, int32_t count)
{
    if (writer->bytes) {
        memcpy(writer->bytes, input, (size_t)count);
        writer->bytes += count;
        return;
    }
    thimble_expand_column_s8(input, count / 4, writer->column);
    writer->column += count;
}

/* The taps that one output pixel sees, in the filters' order. */
static void
put_window(column_writer *writer, const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x)
{
    const int32_t depth = shape->depth;
    for (int32_t row = 0; row < shape->kernel_h; row++, y += shape->dilation_h) {
        if (y < 0 || y >= shape->input_h) {
            put_zero_points(writer, shape->kernel_w * depth);
            continue;
        }
        const int8_t *const line = input + y * shape->input_w * shape->input_c;
        if (shape->dilation_w == 1 && depth == shape->input_c) {
            const int32_t before = x < 0 ? (x + shape->kernel_w < 0 ? shape->kernel_w : -x) : 0;
            const int32_t over = x + shape->kernel_w - shape->input_w;
            const int32_t after = over <= 0 ? 0 : (over > shape->kernel_w ? shape->kernel_w : over);
            const int32_t inside = shape->kernel_w - before - after;
            if (inside == shape->kernel_w) {
                put_run(writer, line + x * depth, inside * depth);
                continue;
            }
            put_zero_points(writer, (inside > 0 ? before : shape->kernel_w) * depth);
            if (inside > 0) {
                put_run(writer, line + (x + before) * depth, inside * depth);
                put_zero_points(writer, after * depth);
            }
            continue;
        }
        for (int32_t column = 0, at = x; column < shape->kernel_w; column++, at += shape->dilation_w) {
            if (at < 0 || at >= shape->input_w) {
                put_zero_points(writer, depth);
            } else {
                put_run(writer, line + at * shape->input_c, depth);
            }
        }
    }
}

void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t depth = shape->depth;
    const int32_t words = (shape->kernel_h * shape->kernel_w * depth + 3) / 4;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t pixels = shape->output_h * shape->output_w;
    int8_t *const staging = depth % 4 ? (int8_t *)(columns + 4 * words) : NULL;
    const uint32_t zero_points = (uint8_t)shape->input_zero_point * 0x01010101U;

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t group = 0; group < groups; group++) {
            const int32_t *next = at;
            int8_t *first = NULL;
            int32_t y = 0, x = 0;
            for (int32_t pixel = 0; pixel < pixels; pixel++) {
                uint32_t *const column = columns + 2 * (pixel & 1);
                column_writer writer = {column, staging, zero_points};
                put_window(&writer, shape, input + group * depth, y * shape->stride_h - shape->pad_top,
                           x * shape->stride_w - shape->pad_left);
                if (staging) {
                    thimble_expand_column_s8(staging, words, column);
                }
                int8_t *const here = output + pixel * shape->output_c + group * channels;
                if (pixel & 1) {
                    next = thimble_mat_mult_columns_s8(at, columns, words, channels, requant, first, here);
                } else if (pixel == pixels - 1) {
                    next = thimble_mat_mult_columns_s8(at, columns, words, channels, requant, here, here);
                }
                first = here;
                if (++x == shape->output_w) {
                    x = 0;
                    y++;
                }
            }
            at = next;
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += pixels * shape->output_c;
    }
}
