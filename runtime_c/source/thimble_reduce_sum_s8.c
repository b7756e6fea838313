#include "thimble_pool.h"

#include "arm_nnsupportfunctions.h"

static int32_t rounded_once(int32_t sum, int32_t multiplier, int32_t shift)
{
    return (int32_t)(((int64_t)sum * multiplier + ((int64_t)1 << (shift - 1))) >> shift);
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
                    const int32_t sum = sums[i] - params->input_sum;
                    const int32_t scaled = params->once > 0
                                               ? rounded_once(sum, params->multiplier, params->once)
                                               : arm_nn_requantize(sum, params->multiplier, params->shift);
                    const int32_t value = scaled + params->output_offset;
                    *output++ = (int8_t)CLAMP(value, NN_Q7_MAX, NN_Q7_MIN);
                }
            }
        }
    }
}
