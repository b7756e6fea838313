/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_f32.h"
#include "thimble_recurrent_f32.h"

#include <stddef.h>

void thimble_rnn_f32(const thimble_recurrent_f32_params *params,
                     const float *input,
                     const float *weights,
                     const float *recurrent,
                     const float *bias,
                     const float *hidden,
                     float *output,
                     float *scratch)
{
    const thimble_recurrent_f32_params p = *params;
    float *sums = scratch;
    float *state = &scratch[p.units];

    for (int32_t batch = 0; batch < p.batches; batch++) {
        thimble_first_state_f32(hidden == NULL ? NULL : &hidden[batch * p.units], state, p.units);
        for (int32_t count = 0; count < p.steps; count++) {
            const int32_t row = (p.backwards ? p.steps - 1 - count : count) * p.batches + batch;

            thimble_gate_sums_f32(weights, &input[row * p.inputs], p.inputs, bias, sums, p.units);
            thimble_gate_sums_f32(recurrent, state, p.units, sums, sums, p.units);
            for (int32_t i = 0; i < p.units; i++) {
                state[i] = p.variant ? thimble_max_f32(sums[i], 0.0f) : thimble_tanh_f32(sums[i]);
            }
            if (p.every_step) {
                thimble_first_state_f32(state, &output[row * p.units], p.units);
            }
        }
        if (!p.every_step) {
            thimble_first_state_f32(state, &output[batch * p.units], p.units);
        }
    }
}
