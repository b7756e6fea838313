/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_lstm_cell.h"

THIMBLE_EXACT_FLOAT static float dot(const float *weights, const float *values, int32_t count)
{
    float total = 0.0f;

    for (int32_t i = 0; i < count; i++) {
        total += weights[i] * values[i];
    }
    return total;
}

/* One step of one batch: all gates are summed before the hidden state changes. */
THIMBLE_EXACT_FLOAT static void step_f32(const thimble_sequence_lstm_f32_params *params,
                                         const float *input,
                                         const float *weights,
                                         const float *recurrent,
                                         const float *bias,
                                         float *hidden,
                                         float *cell,
                                         float *gates)
{
    const int32_t units = params->units;

    for (int32_t i = 0; i < 4 * units; i++) {
        const float from_input = dot(weights + i * params->inputs, input, params->inputs);
        gates[i] = (bias[i] + from_input) + dot(recurrent + i * units, hidden, units);
    }
    thimble_update_lstm_cell(gates, units, params->cell_clip, hidden, cell);
}

void thimble_sequence_lstm_f32(const thimble_sequence_lstm_f32_params *params,
                               const float *input,
                               const float *weights,
                               const float *recurrent,
                               const float *bias,
                               float *hidden,
                               float *cell,
                               float *gates,
                               float *output)
{
    const int32_t units = params->units;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        float *state = hidden + batch * units;
        for (int32_t count = 0; count < params->steps; count++) {
            const int32_t step = params->backwards ? params->steps - 1 - count : count;
            const int32_t row = batch * params->batch_stride + step * params->step_stride;
            step_f32(params, input + row * params->inputs, weights, recurrent, bias, state,
                     cell + batch * units, gates);
            for (int32_t i = 0; i < units; i++) {
                output[row * units + i] = state[i];
            }
        }
    }
}
