/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_matmul.h"
#include "thimble_multiplier.h"
#include "thimble_saturate.h"

static int64_t dot(const thimble_matmul_shape *shape, const int16_t *x, const int16_t *column)
{
    int32_t left = shape->depth;
    int64_t sum = 0;
    if (shape->x.inner == 1) {
        for (; left >= 2; left -= 2, x += 2, column += 2) {
            sum = thimble_smlald(thimble_read_word(x), thimble_read_word(column), sum);
        }
    }
    for (; left > 0; left--, x += shape->x.inner) {
        sum += *x * *column++;
    }
    return sum;
}

static void multiply(
    const thimble_matmul_shape *shape, const int16_t *x, const int16_t *y, int16_t *column, int16_t *output)
{
    const int32_t multiplier = thimble_multiplier_s16(shape->multiplier);
    for (int32_t j = 0; j < shape->columns; j++, y += shape->y.outer) {
        const int16_t *row = x;
        int16_t *to = output + j;
        for (int32_t k = 0; k < shape->depth; k++) {
            column[k] = y[k * shape->y.inner];
        }
        for (int32_t i = 0; i < shape->rows; i++, row += shape->x.outer, to += shape->columns) {
            const int32_t scaled = thimble_scaled_s64(dot(shape, row, column), multiplier, shape->code);
            *to = (int16_t)thimble_clamp_s16(scaled, INT16_MIN, INT16_MAX);
        }
    }
}

void thimble_batch_matmul_s16(
    const thimble_matmul_shape *shape, const int16_t *x, const int16_t *y, void *scratch, int16_t *output)
{
    for (int32_t a = 0; a < shape->batch[0]; a++) {
        for (int32_t b = 0; b < shape->batch[1]; b++) {
            for (int32_t c = 0; c < shape->batch[2]; c++) {
                const int16_t *const left =
                    x + a * shape->x.batch[0] + b * shape->x.batch[1] + c * shape->x.batch[2];
                const int16_t *const right =
                    y + a * shape->y.batch[0] + b * shape->y.batch[1] + c * shape->y.batch[2];
                multiply(shape, left, right, scratch, output);
                output += shape->rows * shape->columns;
            }
        }
    }
}
