/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_recurrent_f32.h"

#include <stddef.h>

enum { UPDATE_GATE, RESET_GATE, HIDDEN_GATE, GATES };

/* The hidden gate's sums, with what the state adds to them; `part` is working memory. */
THIMBLE_EXACT_FLOAT static void add_state(const thimble_recurrent_f32_params *p,
                                          const float *recurrent,
                                          const float *bias,
                                          const float *state,
                                          float *gates,
                                          float *part)
{
    const float *rows = &recurrent[HIDDEN_GATE * p->units * p->units];
    const float *reset = &gates[RESET_GATE * p->units];
    float *sums = &gates[HIDDEN_GATE * p->units];

    if (p->variant) {
        thimble_gate_sums_f32(rows, state, p->units, &bias[GATES * p->units], part, p->units);
        for (int32_t i = 0; i < p->units; i++) {
            sums[i] += reset[i] * part[i];
        }
    } else {
        for (int32_t i = 0; i < p->units; i++) {
            part[i] = reset[i] * state[i];
        }
        thimble_gate_sums_f32(rows, part, p->units, sums, sums, p->units);
    }
}

THIMBLE_EXACT_FLOAT static void update(const float *gates, float *state, int32_t units)
{
    for (int32_t i = 0; i < units; i++) {
        const float kept = gates[UPDATE_GATE * units + i];
        const float fresh = thimble_tanh_f32(gates[HIDDEN_GATE * units + i]);

        state[i] = (1.0f - kept) * fresh + kept * state[i];
    }
}

void thimble_gru_f32(const thimble_recurrent_f32_params *params,
                     const float *input,
                     const float *weights,
                     const float *recurrent,
                     const float *bias,
                     const float *hidden,
                     float *output,
                     float *scratch)
{
    const thimble_recurrent_f32_params p = *params;
    float *gates = scratch;
    float *part = &scratch[GATES * p.units];
    float *state = &part[p.units];

    for (int32_t batch = 0; batch < p.batches; batch++) {
        thimble_first_state_f32(hidden == NULL ? NULL : &hidden[batch * p.units], state, p.units);
        for (int32_t count = 0; count < p.steps; count++) {
            const int32_t row = (p.backwards ? p.steps - 1 - count : count) * p.batches + batch;

            thimble_gate_sums_f32(weights, &input[row * p.inputs], p.inputs, bias, gates, GATES * p.units);
            thimble_gate_sums_f32(recurrent, state, p.units, gates, gates, HIDDEN_GATE * p.units);
            for (int32_t i = 0; i < HIDDEN_GATE * p.units; i++) {
                gates[i] = thimble_logistic_f32(gates[i]);
            }
            add_state(&p, recurrent, bias, state, gates, part);
            update(gates, state, p.units);
            if (p.every_step) {
                thimble_first_state_f32(state, &output[row * p.units], p.units);
            }
        }
        if (!p.every_step) {
            thimble_first_state_f32(state, &output[batch * p.units], p.units);
        }
    }
}
