/* Steps of matrix products: one column of y as int16, and rows of x times it. */
#ifndef THIMBLE_MATMUL_COLUMN_H
#define THIMBLE_MATMUL_COLUMN_H

#include "thimble_matmul.h"

/* A column of y, less its zero point, in the order in which words of x unpack: of each four values 0, 2,
 * 1, 3. Returns its sum. */
static int32_t thimble_matmul_put_column(const thimble_matmul_shape *shape, const int8_t *y, int16_t *column)
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

static uint32_t thimble_matmul_read_word(const thimble_matmul_shape *shape, const int8_t *x, int32_t left)
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

static int32_t
thimble_matmul_dot(const thimble_matmul_shape *shape, const int8_t *x, const int16_t *column, int32_t sum)
{
    const thimble_pair *pair = (const thimble_pair *)(const void *)column;
    for (int32_t left = shape->depth; left > 0; left -= 4, pair += 2, x += 4 * shape->x.inner) {
        const uint32_t word = thimble_matmul_read_word(shape, x, left);
        sum = thimble_smlad(thimble_sxtb16(word), pair[0], sum);
        sum = thimble_smlad(thimble_sxtb16_ror8(word), pair[1], sum);
    }
    return sum;
}

#endif
