/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"
#include "thimble_saturate.h"

static inline int32_t product(int32_t a, int32_t b, const thimble_mul_params *p)
{
    const int32_t exact = (a * p->factor_1 + p->offset_1) * (b + p->offset_2);
    const int32_t scaled = (int32_t)(((int64_t)exact * p->multiplier + (int64_t)0x80000000) >> 32);
    return (scaled + ((scaled >> 31) & p->round_away) + p->bias) >> p->shift;
}

static void mul_full_range(
    const int8_t *a, const int8_t *b, int8_t *output, int32_t size, const thimble_mul_params *params)
{
    const thimble_mul_params p = *params;
    for (; size >= 2; size -= 2) {
        output[0] = thimble_saturate_s8(product(a[0], b[0], &p));
        output[1] = thimble_saturate_s8(product(a[1], b[1], &p));
        a += 2;
        b += 2;
        output += 2;
    }
    if (size > 0) {
        *output = thimble_saturate_s8(product(*a, *b, &p));
    }
}

/*
 * Multiplication as TFLite's `reference_integer_ops::Mul`: the product of two int8 operands less
 * their zero points, a rounded doubling high multiply, and a shift that rounds halves away from
 * zero, folded into constants.
 */
void thimble_mul_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_mul_params *params)
{
    const thimble_mul_params p = *params;
    if (step_1 == 1 && step_2 == 1 && p.min == INT8_MIN && p.max == INT8_MAX) {
        mul_full_range(input_1, input_2, output, size, params);
        return;
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp(product(*input_1, *input_2, &p), p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}
