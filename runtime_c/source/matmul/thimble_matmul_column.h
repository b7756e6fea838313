/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of matrix products: one column of y as int16, and rows of x times it. */
#ifndef THIMBLE_MATMUL_COLUMN_H
#define THIMBLE_MATMUL_COLUMN_H

#include "thimble_dsp.h"
#include "thimble_matmul.h"

static uint32_t thimble_matmul_gather(const int8_t *at, int32_t step)
{
    const uint32_t low = (uint8_t)at[0] | ((uint32_t)(uint8_t)at[step] << 8);
    const uint32_t high = (uint8_t)at[2 * step] | ((uint32_t)(uint8_t)at[3 * step] << 8);

    return low | (high << 16);
}

/* The `left` first of four values, and `fill` in the place of the others. */
static uint32_t thimble_matmul_rest(const int8_t *at, int32_t step, int32_t left, uint32_t fill)
{
    uint32_t word = 0;

    for (int32_t k = 0; k < 4; k++) {
        const uint32_t value = k < left ? (uint8_t)at[k * step] : fill & 0xFFU;
        word |= value << (8 * k);
    }
    return word;
}

static int32_t thimble_matmul_put_word(uint32_t word, uint32_t zero_points, thimble_pair *to, int32_t sum)
{
    const uint32_t ones = 0x00010001U;

    to[0] = thimble_ssub16(thimble_sxtb16(word), zero_points);
    to[1] = thimble_ssub16(thimble_sxtb16_ror8(word), zero_points);
    return thimble_smlad(to[1], ones, thimble_smlad(to[0], ones, sum));
}

/* A column of y, less its zero point, in the order in which words of x unpack: of each four values 0, 2,
 * 1, 3. Returns its sum. */
static int32_t thimble_matmul_put_column(const thimble_matmul_shape *shape, const int8_t *y, int16_t *column)
{
    const uint32_t low = (uint32_t)shape->y.zero_point & 0xFFFFU;
    const uint32_t zero_points = low | (low << 16);
    const int32_t step = shape->y.inner;
    thimble_pair *to = (thimble_pair *)(void *)column;
    int32_t left = shape->depth;
    int32_t sum = 0;

    if (step == 1) {
        for (; left >= 4; left -= 4, y += 4, to += 2) {
            sum = thimble_matmul_put_word(thimble_read_word(y), zero_points, to, sum);
        }
    } else {
        for (; left >= 4; left -= 4, y += 4 * step, to += 2) {
            sum = thimble_matmul_put_word(thimble_matmul_gather(y, step), zero_points, to, sum);
        }
    }
    if (left > 0) {
        sum = thimble_matmul_put_word(thimble_matmul_rest(y, step, left, low), zero_points, to, sum);
    }
    return sum;
}

static int32_t thimble_matmul_add_word(uint32_t word, const thimble_pair *pair, int32_t sum)
{
    return thimble_smlad(thimble_sxtb16_ror8(word), pair[1],
                         thimble_smlad(thimble_sxtb16(word), pair[0], sum));
}

/* One row of x times a column. */
static int32_t
thimble_matmul_dot(const thimble_matmul_shape *shape, const int8_t *x, const int16_t *column, int32_t sum)
{
    const thimble_pair *pair = (const thimble_pair *)(const void *)column;
    const thimble_pair *const end = pair + (shape->depth >> 2) * 2;
    const int32_t step = shape->x.inner;
    const int32_t left = shape->depth & 3;

    if (step == 1) {
        for (; pair < end; pair += 2, x += 4) {
            sum = thimble_matmul_add_word(thimble_read_word(x), pair, sum);
        }
    } else {
        for (; pair < end; pair += 2, x += 4 * step) {
            sum = thimble_matmul_add_word(thimble_matmul_gather(x, step), pair, sum);
        }
    }
    return left > 0 ? thimble_matmul_add_word(thimble_matmul_rest(x, step, left, 0), pair, sum) : sum;
}

/* Two rows of x, one behind the other in memory element by element, times a column. */
static void thimble_matmul_dot_twice(const thimble_matmul_shape *shape,
                                     const int8_t *x,
                                     const int16_t *column,
                                     int32_t sums[2])
{
    const thimble_pair *pair = (const thimble_pair *)(const void *)column;
    const int8_t *other = x + shape->x.outer;
    const int8_t *const end = x + (shape->depth & ~3);
    const int32_t left = shape->depth & 3;
    int32_t first = sums[0];
    int32_t second = sums[1];

    for (; x < end; x += 4, other += 4, pair += 2) {
        const uint32_t one = thimble_read_word(x);
        const uint32_t two = thimble_read_word(other);
        const uint32_t even = pair[0];
        const uint32_t odd = pair[1];
        first = thimble_smlad(thimble_sxtb16(one), even, first);
        second = thimble_smlad(thimble_sxtb16(two), even, second);
        first = thimble_smlad(thimble_sxtb16_ror8(one), odd, first);
        second = thimble_smlad(thimble_sxtb16_ror8(two), odd, second);
    }
    if (left > 0) {
        first = thimble_matmul_add_word(thimble_matmul_rest(x, 1, left, 0), pair, first);
        second = thimble_matmul_add_word(thimble_matmul_rest(other, 1, left, 0), pair, second);
    }
    sums[0] = first;
    sums[1] = second;
}

#endif
