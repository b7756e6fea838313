#include "thimble_pool.h"

#include "arm_nnsupportfunctions.h"

#include <stddef.h>

void thimble_reduce_sum_s8(const thimble_reduce_sum_params *params, const int8_t *input, int8_t *output)
{
    const thimble_reduce_shape *shape = &params->shape;
    const ptrdiff_t inner = shape->inner;
    const ptrdiff_t row = inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;

    for (int32_t outer = 0; outer < shape->outer; outer++) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            const int8_t *corner = input + middle * row;
            for (int32_t channel = 0; channel < shape->inner; channel++) {
                int32_t sum = -params->input_sum;
                for (int32_t first = 0; first < shape->first; first++) {
                    const int8_t *element = corner + channel + first * plane;
                    int32_t count = shape->second;
                    do {
                        sum += *element;
                        element += inner;
                    } while (--count > 0);
                }
                sum = arm_nn_requantize(sum, params->multiplier, params->shift) + params->output_offset;
                *output++ = (int8_t)CLAMP(sum, NN_Q7_MAX, NN_Q7_MIN);
            }
        }
        input += plane * shape->first;
    }
}
