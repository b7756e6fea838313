/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_matmul_column.h"
#include "thimble_requantize_s8.h"

static void multiply(const thimble_matmul_shape *shape,
                     const thimble_requant *requant,
                     const int8_t *x,
                     const int8_t *y,
                     int16_t *column,
                     int8_t *output)
{
    for (int32_t j = 0; j < shape->columns; j++, y += shape->y.outer) {
        const int32_t taps = thimble_matmul_put_column(shape, y, column);
        const int32_t offset = thimble_multiply(-shape->x.zero_point, taps);
        const int8_t *row = x;
        int8_t *to = output + j;
        int32_t left = shape->rows;

        if (shape->x.inner == 1) {
            for (; left >= 2; left -= 2, row += 2 * shape->x.outer, to += 2 * shape->columns) {
                int32_t sums[2] = {offset, offset};
                thimble_matmul_dot_twice(shape, row, column, sums);
                to[0] = thimble_requantize_s8(sums[0], shape->multiplier, shape->code, requant);
                to[shape->columns] = thimble_requantize_s8(sums[1], shape->multiplier, shape->code, requant);
            }
        }
        for (; left > 0; left--, row += shape->x.outer, to += shape->columns) {
            const int32_t sum = thimble_matmul_dot(shape, row, column, offset);
            *to = thimble_requantize_s8(sum, shape->multiplier, shape->code, requant);
        }
    }
}

void thimble_batch_matmul_s8(const thimble_matmul_shape *shape,
                             const thimble_requant *requant,
                             const int8_t *x,
                             const int8_t *y,
                             void *scratch,
                             int8_t *output)
{
    for (int32_t a = 0; a < shape->batch[0]; a++) {
        for (int32_t b = 0; b < shape->batch[1]; b++) {
            for (int32_t c = 0; c < shape->batch[2]; c++) {
                const int8_t *const left =
                    x + a * shape->x.batch[0] + b * shape->x.batch[1] + c * shape->x.batch[2];
                const int8_t *const right =
                    y + a * shape->y.batch[0] + b * shape->y.batch[1] + c * shape->y.batch[2];
                multiply(shape, requant, left, right, scratch, output);
                output += shape->rows * shape->columns;
            }
        }
    }
}
