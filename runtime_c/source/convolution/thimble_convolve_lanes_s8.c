/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_columns.h"
#include "thimble_lane_windows.h"

typedef struct {
    const thimble_requant *requant;
    const int32_t *parameters;
    int32_t taps, channels, quick;
    int8_t *output;
} products;

static inline void
put_pair(const void *context, int8_t *column_0, int8_t *column_1, int32_t first, int32_t second)
{
    const products *const of = context;
    thimble_mat_mult_lanes_s8(of->parameters, column_0, column_1, of->taps, of->channels, of->quick,
                              of->requant, of->output + first, of->output + second);
}

/* Pixels that follow each other, two a turn. */
static void convolve_pixels(const thimble_conv_shape *shape,
                            const thimble_requant *requant,
                            const int8_t *input,
                            const int32_t *parameters,
                            int8_t *columns,
                            int8_t *output)
{
    const int32_t depth = shape->depth, channels = shape->output_c;
    const int32_t quick = thimble_quick_lanes(parameters, depth, channels);
    int32_t left = shape->batches * shape->output_h * shape->output_w;
    for (; left > 0; left -= 2, input += 2 * depth, output += 2 * channels) {
        const int32_t more = left > 1;
        thimble_copy_bytes(columns, input, depth + more * depth);
        thimble_mat_mult_lanes_s8(parameters, columns, columns + more * depth, depth, channels, quick,
                                  requant, output, output + more * channels);
    }
}

void thimble_convolve_lanes_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output)
{
    const int32_t depth = shape->depth, channels = shape->output_c;
    const int32_t taps = shape->kernel_h * shape->kernel_w * depth;

    if (taps == depth && shape->stride_h == 1 && shape->stride_w == 1 &&
        shape->output_h * shape->output_w == shape->input_h * shape->input_w && !shape->input_line &&
        !shape->output_line) { /* no padding either */
        convolve_pixels(shape, requant, input, parameters, scratch, output);
        return;
    }
    const products of = {requant, parameters, taps, channels, thimble_quick_lanes(parameters, taps, channels),
                         output};
    thimble_walk_pairs(shape, input, scratch, (taps + 3) & ~3, put_pair, &of);
}
