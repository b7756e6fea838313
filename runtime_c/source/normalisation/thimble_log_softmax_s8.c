/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_softmax.h"
#include "thimble_softmax_row.h"

static int32_t saturated(int64_t value)
{
    return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* Leading zeros of a positive number but the sign's. */
static int32_t headroom_of(int32_t value)
{
    int32_t headroom = 0;
    while (headroom < 31 && (((uint32_t)value << headroom) & 0x40000000u) == 0) {
        headroom++;
    }
    return headroom;
}

/* ln of Q12.19, at least 1, as Q5.26 (gemmlowp `log_x_for_x_greater_than_or_equal_to_1_impl`). */
static int32_t logarithm(int32_t sum)
{
    const int32_t root_half = 1518500250;
    const int32_t fourth_root_half = 1805811301;
    const int32_t quarter = 1 << 23;
    const int32_t first_headroom = headroom_of(sum);
    const int32_t normal = (int32_t)((uint32_t)sum << first_headroom);
    const int32_t first = saturated((int64_t)thimble_softmax_high_mul(normal, root_half) * 2);
    const int32_t second_headroom = headroom_of(thimble_softmax_high_mul(sum, root_half));
    const int32_t second = saturated((int64_t)sum << second_headroom);
    const int32_t power_1 = (11 - first_headroom) * (1 << 25) + quarter;
    const int32_t power_2 = (12 - second_headroom) * (1 << 25) - quarter;
    const int32_t power = power_1 > power_2 ? power_1 : power_2;
    const int32_t r = first < second ? first : second;
    const int32_t p = (int32_t)(((int64_t)r + fourth_root_half + 1) >> 1);
    const int32_t q = (r - fourth_root_half) * 2;
    const int32_t square = thimble_softmax_high_mul(q, q);
    const int32_t cube = thimble_softmax_high_mul(q, square);
    const int32_t numerator = thimble_softmax_high_mul(q, r) + thimble_softmax_high_mul(cube, 117049297);
    const int32_t inner = 1057819769 + q + thimble_softmax_high_mul(127690142, square);
    const int32_t denominator = thimble_softmax_high_mul(p, inner) + thimble_softmax_high_mul(638450708, q);
    int32_t none;
    const int32_t inverse = thimble_softmax_reciprocal((uint32_t)denominator + 0x80000000u, &none);
    const int32_t scaled = (numerator + 32 - (numerator < 0 ? 1 : 0)) >> 6;
    const int32_t whole = thimble_softmax_high_mul(power, 1488522236);
    return saturated(((int64_t)whole + thimble_softmax_high_mul(scaled, inverse)) * 2);
}

void thimble_log_softmax_s8(const int8_t *input,
                            int8_t *output,
                            int32_t rows,
                            int32_t columns,
                            const thimble_log_softmax_params *params)
{
    for (int32_t done = 0; done < rows; done++) {
        const thimble_softmax_row row = {params->exponentials, params->entries,
                                         thimble_softmax_max(input, columns)};
        const int32_t log = logarithm((int32_t)thimble_softmax_sum(&row, input, columns));
        const int32_t reach =
            thimble_scaled(log + INT32_MIN, params->reverse_multiplier, params->reverse_shift);
        const int32_t least = reach > params->least - 1 ? reach : params->least - 1;
        for (int32_t i = 0; i < columns; i++) {
            const int32_t difference = input[i] - row.max;
            int32_t value = INT8_MIN;
            if (difference > least) {
                const int32_t fine = thimble_scaled(difference, params->multiplier, params->shift) - log;
                value = ((fine + (1 << 21) - (fine < 0 ? 1 : 0)) >> 22) + 127;
                value = value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : value;
            }
            output[i] = (int8_t)value;
        }
        input += columns;
        output += columns;
    }
}
