#include "thimble_taps.h"

void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t depth = shape->depth;
    const int32_t taps = shape->kernel_h * shape->kernel_w * depth;
    const int32_t words = (taps + 3) / 4;
    const int32_t summed =
        shape->weight_zero_point ? (words + THIMBLE_SUMMED_TAPS - 1) / THIMBLE_SUMMED_TAPS : 0;
    const int32_t filter_words = words + summed;
    const int32_t groups = shape->input_c / depth;
    const int32_t channels = shape->output_c / groups;
    const int32_t pixels = shape->output_h * shape->output_w;
    const thimble_inside_range range = thimble_range_of(shape);
    const int32_t line = shape->input_w * shape->input_c;
    int8_t *const staging = (int8_t *)(columns + 4 * filter_words);

    for (int32_t batch = 0; batch < shape->batches; batch++) {
        const int32_t *at = parameters;
        for (int32_t group = 0; group < groups; group++) {
            const int32_t *next = at;
            int8_t *first = NULL;
            int32_t y = -shape->pad_top, x = -shape->pad_left, left = shape->output_w;
            for (int32_t pixel = 0; pixel < pixels; pixel++) {
                const int8_t *const image = input + group * depth;
                uint32_t *const column = columns + 2 * (pixel & 1);
                if (y >= 0 && y <= range.greatest_y && x >= 0 && x <= range.greatest_x) {
                    thimble_put_inside(shape, image + y * line + x * shape->input_c, words, column, staging);
                } else {
                    thimble_put_window(shape, image, y, x, words, column, staging);
                }
                if (summed) {
                    thimble_sum_column_s8(taps, column);
                }
                int8_t *const here = output + pixel * shape->output_c + group * channels;
                if (pixel & 1) {
                    next = thimble_mat_mult_columns_s8(at, columns, filter_words, channels, requant, first,
                                                       here);
                } else if (pixel == pixels - 1) {
                    next =
                        thimble_mat_mult_columns_s8(at, columns, filter_words, channels, requant, here, here);
                }
                first = here;
                x += shape->stride_w;
                if (--left == 0) {
                    x = -shape->pad_left;
                    y += shape->stride_h;
                    left = shape->output_w;
                }
            }
            at = next;
        }
        input += shape->input_h * shape->input_w * shape->input_c;
        output += pixels * shape->output_c;
    }
}
