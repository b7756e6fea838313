/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fixed_s16.h"
#include "thimble_lstm.h"
#include "thimble_multiplier.h"

#include "arm_nnsupportfunctions.h"

#include <string.h>

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };

static void
sum_gates(const int8_t *input, const thimble_lstm_params *params, const int8_t *hidden, int16_t *gates)
{
    memset(gates, 0, (size_t)(GATES * params->units) * sizeof(int16_t));
    for (int32_t i = 0; i < GATES; i++) {
        const thimble_lstm_gate *gate = &params->gates[i];
        int16_t *sums = &gates[i * params->units];

        arm_nn_vec_mat_mul_result_acc_s8(input, gate->input_weights, gate->input_bias, sums, 0,
                                         gate->input_multiplier, gate->input_shift, params->inputs,
                                         params->units, 1);
        arm_nn_vec_mat_mul_result_acc_s8(hidden, gate->recurrent_weights, gate->recurrent_bias, sums, 0,
                                         gate->recurrent_multiplier, gate->recurrent_shift, params->units,
                                         params->units, 1);
    }
}

static void update(const thimble_lstm_params *params, const int16_t *gates, int8_t *hidden, int16_t *cell)
{
    const int32_t units = params->units;

    for (int32_t i = 0; i < units; i++) {
        const int32_t in = thimble_logistic_s16(gates[INPUT_GATE * units + i]);
        const int32_t forget = thimble_logistic_s16(gates[FORGET_GATE * units + i]);
        const int32_t candidate = thimble_tanh_s16(gates[CELL_GATE * units + i], 3);
        const int32_t out = thimble_logistic_s16(gates[OUTPUT_GATE * units + i]);
        int32_t next = thimble_divide_s32(forget * cell[i], 15);
        int32_t value;

        next += thimble_divide_s32(in * candidate, 15 + params->cell_integer_bits);
        next = thimble_saturate_s16(next);
        if (params->cell_clip > 0) {
            next = next > params->cell_clip ? params->cell_clip : next;
            next = next < -params->cell_clip ? -params->cell_clip : next;
        }
        cell[i] = (int16_t)next;
        value = out * thimble_tanh_s16(next, params->cell_integer_bits);
        value = thimble_scaled(value, params->hidden_multiplier, params->hidden_shift);
        value += params->hidden_zero_point;
        hidden[i] = (int8_t)(value > INT8_MAX ? INT8_MAX : value < INT8_MIN ? INT8_MIN : value);
    }
}

void thimble_lstm_s8(const int8_t *input,
                     const thimble_lstm_params *params,
                     int8_t *hidden,
                     int16_t *cell,
                     int16_t *gates,
                     int8_t *output)
{
    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t step = 0; step < params->steps; step++) {
            const int32_t row = batch * params->batch_stride + step * params->step_stride;

            sum_gates(&input[row * params->inputs], params, hidden, gates);
            update(params, gates, hidden, cell);
            memcpy(&output[row * params->units], hidden, (size_t)params->units);
        }
        hidden += params->units;
        cell += params->units;
    }
}
