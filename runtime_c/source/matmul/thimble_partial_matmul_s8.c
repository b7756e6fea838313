/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_matmul_column.h"
#include "thimble_sums.h"

static void multiply(const thimble_matmul_shape *shape,
                     const int8_t *x,
                     const int8_t *y,
                     int16_t *column,
                     const int32_t *sums,
                     int32_t *output)
{
    for (int32_t j = 0; j < shape->columns; j++, y += shape->y.outer) {
        const int32_t taps = thimble_matmul_put_column(shape, y, column);
        const int32_t offset = thimble_multiply(-shape->x.zero_point, taps);
        const int8_t *row = x;
        int32_t i = 0;

        if (shape->x.inner == 1) {
            for (; i + 2 <= shape->rows; i += 2, row += 2 * shape->x.outer) {
                const int32_t at = i * shape->columns + j;
                const int32_t next = at + shape->columns;
                int32_t both[2] = {offset, offset};
                thimble_matmul_dot_twice(shape, row, column, both);
                output[at] = thimble_add(both[0], sums ? sums[at] : 0);
                output[next] = thimble_add(both[1], sums ? sums[next] : 0);
            }
        }
        for (; i < shape->rows; i++, row += shape->x.outer) {
            const int32_t at = i * shape->columns + j;
            const int32_t sum = thimble_matmul_dot(shape, row, column, offset);
            output[at] = thimble_add(sum, sums ? sums[at] : 0);
        }
    }
}

void thimble_partial_matmul_s8(const thimble_matmul_shape *shape,
                               const int8_t *x,
                               const int8_t *y,
                               void *scratch,
                               const int32_t *sums,
                               int32_t *output)
{
    const int32_t elements = shape->rows * shape->columns;
    for (int32_t a = 0; a < shape->batch[0]; a++) {
        for (int32_t b = 0; b < shape->batch[1]; b++) {
            for (int32_t c = 0; c < shape->batch[2]; c++) {
                const int8_t *const left =
                    x + a * shape->x.batch[0] + b * shape->x.batch[1] + c * shape->x.batch[2];
                const int8_t *const right =
                    y + a * shape->y.batch[0] + b * shape->y.batch[1] + c * shape->y.batch[2];
                multiply(shape, left, right, scratch, sums, output);
                output += elements;
                sums = sums ? sums + elements : NULL;
            }
        }
    }
}
