/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_pool.h"
#include "thimble_saturate.h"
#include "thimble_sum_window.h"

/* sum / count, halves to even. */
static int32_t even_average(int32_t sum, int32_t count)
{
    const int32_t twice = 2 * sum + count;
    const int32_t rest = twice % (2 * count);
    const int32_t quotient = twice / (2 * count) - (rest < 0 ? 1 : 0);
    return rest == 0 && (quotient & 1) != 0 ? quotient - 1 : quotient;
}

static int32_t scaled_sum(int32_t sum, const thimble_reduce_sum_params *params)
{
    if (params->count > 0) {
        return even_average(sum, params->count);
    }
    if (params->once > 0) {
        const int64_t half = (int64_t)1 << (params->once - 1);
        return (int32_t)(((int64_t)sum * params->multiplier + half) >> params->once);
    }
    return thimble_scaled(sum, params->multiplier, params->shift);
}

void thimble_reduce_sum_s8(const thimble_reduce_sum_params *params, const int8_t *input, int8_t *output)
{
    const thimble_reduce_shape *shape = &params->shape;
    const ptrdiff_t row = (ptrdiff_t)shape->inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;
    const thimble_window window = {
        .rows = shape->first,
        .columns = shape->second,
        .row_stride = plane,
        .column_stride = shape->inner,
    };

    for (int32_t outer = 0; outer < shape->outer; outer++, input += plane * shape->first) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            const int8_t *corner = input + middle * row;
            for (int32_t channel = 0; channel < shape->inner; channel += 4) {
                const int32_t together = shape->inner - channel < 4 ? shape->inner - channel : 4;
                int32_t sums[4];
                thimble_sum_window_s8(&window, corner + channel, together, sums);
                for (int32_t i = 0; i < together; i++) {
                    const int32_t scaled = scaled_sum(sums[i] - params->input_sum, params);
                    *output++ = thimble_saturate_s8(thimble_moved(scaled, params->output_offset));
                }
            }
        }
    }
}
