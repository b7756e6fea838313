/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_norm.h"
#include "thimble_saturate.h"

static int32_t saturated(int64_t value)
{
    return (int32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
}

/*
 * 1 / sqrt(x) as a multiplier in Q0.31 and a left shift: TFLite's GetInvSqrtQuantizedMultiplierExp, five
 * Newton steps with 3 integer bits.
 */
static int32_t inverse_square_root(int32_t x, int32_t *shift)
{
    int32_t right = 11;

    *shift = 0;
    if (x <= 1) {
        return INT32_MAX;
    }
    while (x >= 1 << 29) {
        x /= 4;
        right++;
    }
    const int32_t pairs = ((int32_t)__builtin_clz((uint32_t)x) - 1) / 2 - 1;
    right -= pairs;
    x <<= 2 * pairs;
    const int32_t half = (x >> 2) + ((x >> 1) & 1);
    int32_t root = 1 << 28;
    for (int32_t i = 0; i < 5; i++) {
        const int32_t square = thimble_high_product(root, root);
        const int32_t cube = saturated((int64_t)thimble_high_product(square, root) * 64);
        const int64_t step = (int64_t)thimble_high_product(3 << 27, root) - thimble_high_product(half, cube);
        root = saturated(step * 8);
    }
    root = thimble_high_product(root, 1518500250); /* sqrt(2) / 2 */
    if (right < 0) {
        root = (int32_t)((uint32_t)root << -right);
        right = 0;
    }
    *shift = -right;
    return root;
}

void thimble_l2_normalization_s8(
    const int8_t *input, int8_t *output, int32_t rows, int32_t columns, int32_t zero_point)
{
    for (int32_t row = 0; row < rows; row++) {
        int32_t sum = 0;
        int32_t shift;
        for (int32_t i = 0; i < columns; i++) {
            const int32_t value = input[i] - zero_point;
            sum += value * value;
        }
        const int32_t multiplier = inverse_square_root(sum, &shift);
        for (int32_t i = 0; i < columns; i++) {
            const int32_t scaled = thimble_scaled(input[i] - zero_point, multiplier, shift + 7);
            output[i] = thimble_saturate_s8(scaled);
        }
        input += columns;
        output += columns;
    }
}
