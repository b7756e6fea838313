#include "thimble_matmul.h"

/* A column of y, less its zero point, in the order in which words of x unpack: of each four values 0, 2,
 * 1, 3. Returns its sum. */
static int32_t put_column(const thimble_matmul_shape *shape, const int8_t *y, int16_t *column)
{
    static const int8_t place[4] = {0, 2, 1, 3};
    const int32_t padded = (shape->depth + 3) & ~3;
    int32_t sum = 0;
    for (int32_t k = 0; k < padded; k++) {
        int32_t value = 0;
        if (k < shape->depth) {
            value = *y - shape->y.zero_point;
            y += shape->y.inner;
        }
        sum += value;
        column[(k & ~3) + place[k & 3]] = (int16_t)value;
    }
    return sum;
}

static uint32_t read_word(const thimble_matmul_shape *shape, const int8_t *x, int32_t left)
{
    if (shape->x.inner == 1 && left >= 4) {
        return thimble_read_word(x);
    }
    uint32_t word = 0;
    for (int32_t k = 0; k < left && k < 4; k++) {
        word |= (uint32_t)(uint8_t)x[k * shape->x.inner] << (8 * k);
    }
    return word;
}

static int32_t dot(const thimble_matmul_shape *shape, const int8_t *x, const int16_t *column, int32_t sum)
{
    const thimble_pair *pair = (const thimble_pair *)(const void *)column;
    for (int32_t left = shape->depth; left > 0; left -= 4, pair += 2, x += 4 * shape->x.inner) {
        const uint32_t word = read_word(shape, x, left);
        sum = thimble_smlad(thimble_sxtb16(word), pair[0], sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(word), pair[1], sum);
    }
    return sum;
}

static void multiply(const thimble_matmul_shape *shape,
                     const thimble_requant *requant,
                     const int8_t *x,
                     const int8_t *y,
                     int16_t *column,
                     int8_t *output)
{
    for (int32_t j = 0; j < shape->columns; j++, y += shape->y.outer) {
        const int32_t offset = -shape->x.zero_point * put_column(shape, y, column);
        const int8_t *row = x;
        int8_t *to = output + j;
        for (int32_t i = 0; i < shape->rows; i++, row += shape->x.outer, to += shape->columns) {
            const int32_t sum = dot(shape, row, column, offset);
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
