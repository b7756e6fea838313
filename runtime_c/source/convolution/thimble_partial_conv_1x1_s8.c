/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns.h"
#include "thimble_sums.h"

#include <stddef.h>

void thimble_partial_conv_1x1_s8(int32_t pixels,
                                 int32_t depth,
                                 int32_t channels,
                                 const int8_t *input,
                                 const int32_t *parameters,
                                 void *scratch,
                                 const int32_t *sums,
                                 int32_t *output)
{
    uint32_t *const columns = scratch;
    const int32_t words = depth / 4;
    for (; pixels > 0; pixels -= 2) {
        const int32_t second = pixels > 1 ? 1 : 0;
        const int32_t *const next = sums ? sums + second * channels : NULL;
        thimble_expand_column_s8(input, words, 2, columns);
        thimble_expand_column_s8(input + second * depth, words, 2, columns + 2);
        thimble_add_columns_s8(parameters, columns, words, channels, sums, next, output,
                               output + second * channels);
        input += 2 * depth;
        output += 2 * channels;
        sums = sums ? sums + 2 * channels : NULL;
    }
}
