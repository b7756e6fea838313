/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_conv.h"

void thimble_convolve_1x1_s8(int32_t pixels,
                             int32_t depth,
                             int32_t channels,
                             const thimble_requant *requant,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             int8_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t words = depth / 4;
    for (; pixels > 1; pixels -= 2) {
        thimble_expand_column_s8(input, words, columns);
        thimble_expand_column_s8(input + depth, words, columns + 2);
        (void)thimble_mat_mult_columns_s8(parameters, columns, words, channels, requant, output,
                                          output + channels);
        input += 2 * depth;
        output += 2 * channels;
    }
    if (pixels > 0) {
        thimble_expand_column_s8(input, words, columns);
        (void)thimble_mat_mult_column_s8(parameters, columns, words, channels, requant, output);
    }
}
