/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_matmul_column.h"
#include "thimble_requantize_s8.h"

void thimble_fully_connected_computed_s8(const thimble_matmul_shape *shape,
                                         int32_t low,
                                         const thimble_requant *requant,
                                         const int8_t *input,
                                         const int8_t *filters,
                                         const int32_t *bias,
                                         void *scratch,
                                         int8_t *output)
{
    const int32_t multiplier = shape->multiplier;
    const int32_t code = shape->code;
    int16_t *const filter = scratch;

    for (int32_t unit = 0; unit < shape->columns; unit++, filters += shape->y.outer) {
        const int32_t taps = thimble_matmul_put_column(shape, filters, filter);
        const int32_t offset =
            thimble_add(bias != NULL ? bias[unit] : 0, thimble_multiply(-shape->x.zero_point, taps));
        const int8_t *row = input;
        int8_t *to = output + unit;
        int32_t left = shape->rows;

        for (; left >= 2; left -= 2, row += 2 * shape->x.outer, to += 2 * shape->columns) {
            int32_t sums[2] = {offset, offset};
            thimble_matmul_dot_twice(shape, row, filter, sums);
            to[0] = thimble_requantize_once_s8(sums[0], multiplier, low, code, requant);
            to[shape->columns] = thimble_requantize_once_s8(sums[1], multiplier, low, code, requant);
        }
        if (left > 0) {
            const int32_t sum = thimble_matmul_dot(shape, row, filter, offset);
            *to = thimble_requantize_once_s8(sum, multiplier, low, code, requant);
        }
    }
}
