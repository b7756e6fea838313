/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_recurrent_f32.h"

#include <stddef.h>

enum { INPUT_GATE, OUTPUT_GATE, FORGET_GATE, CELL_GATE, GATES };

THIMBLE_EXACT_FLOAT static void update(const float *gates, float *hidden, float *cell, int32_t units)
{
    for (int32_t i = 0; i < units; i++) {
        const float input = thimble_logistic_f32(gates[INPUT_GATE * units + i]);
        const float output = thimble_logistic_f32(gates[OUTPUT_GATE * units + i]);
        const float forget = thimble_logistic_f32(gates[FORGET_GATE * units + i]);
        const float fresh = thimble_tanh_f32(gates[CELL_GATE * units + i]);

        cell[i] = forget * cell[i] + input * fresh;
        hidden[i] = output * thimble_tanh_f32(cell[i]);
    }
}

void thimble_lstm_f32(const thimble_recurrent_f32_params *params,
                      const float *input,
                      const float *weights,
                      const float *recurrent,
                      const float *bias,
                      const float *hidden,
                      const float *cell,
                      float *output,
                      float *last_cell,
                      float *scratch)
{
    const thimble_recurrent_f32_params p = *params;
    float *gates = scratch;
    float *state = &scratch[GATES * p.units];
    float *memory = &state[p.units];

    for (int32_t batch = 0; batch < p.batches; batch++) {
        thimble_first_state_f32(hidden == NULL ? NULL : &hidden[batch * p.units], state, p.units);
        thimble_first_state_f32(cell == NULL ? NULL : &cell[batch * p.units], memory, p.units);
        for (int32_t count = 0; count < p.steps; count++) {
            const int32_t row = (p.backwards ? p.steps - 1 - count : count) * p.batches + batch;

            thimble_gate_sums_f32(weights, &input[row * p.inputs], p.inputs, bias, gates, GATES * p.units);
            thimble_gate_sums_f32(recurrent, state, p.units, gates, gates, GATES * p.units);
            update(gates, state, memory, p.units);
            if (p.every_step) {
                thimble_first_state_f32(state, &output[row * p.units], p.units);
            }
        }
        if (!p.every_step) {
            thimble_first_state_f32(state, &output[batch * p.units], p.units);
        }
        thimble_first_state_f32(memory, &last_cell[batch * p.units], p.units);
    }
}
