/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT static float dot(const float *weights, const float *values, int32_t count)
{
    float total = 0.0f;

    for (int32_t i = 0; i < count; i++) {
        total += weights[i] * values[i];
    }
    return total;
}

/* One step of one batch: all units are summed before the state changes. */
THIMBLE_EXACT_FLOAT static void step_f32(const thimble_sequence_rnn_f32_params *params,
                                         const float *input,
                                         const float *weights,
                                         const float *recurrent,
                                         const float *bias,
                                         float *hidden,
                                         float *output)
{
    const int32_t units = params->units;

    for (int32_t i = 0; i < units; i++) {
        const float from_input = dot(weights + i * params->inputs, input, params->inputs);
        output[i] = (bias[i] + from_input) + dot(recurrent + i * units, hidden, units);
    }
    for (int32_t i = 0; i < units; i++) {
        if (params->activation == THIMBLE_RNN_TANH) {
            output[i] = thimble_tanh_f32(output[i]);
        } else if (params->activation == THIMBLE_RNN_RECTIFIED) {
            output[i] = thimble_max_f32(output[i], params->min);
        } else if (params->activation == THIMBLE_RNN_CLAMPED) {
            output[i] = thimble_min_f32(thimble_max_f32(output[i], params->min), params->max);
        } else {
            /* Linear: as it is. */
        }
        hidden[i] = output[i];
    }
}

void thimble_sequence_rnn_f32(const thimble_sequence_rnn_f32_params *params,
                              const float *input,
                              const float *weights,
                              const float *recurrent,
                              const float *bias,
                              float *hidden,
                              float *output)
{
    const int32_t units = params->units;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t count = 0; count < params->steps; count++) {
            const int32_t step = params->backwards ? params->steps - 1 - count : count;
            const int32_t row = batch * params->batch_stride + step * params->step_stride;
            step_f32(params, input + row * params->inputs, weights, recurrent, bias, hidden + batch * units,
                     output + row * units);
        }
    }
}
