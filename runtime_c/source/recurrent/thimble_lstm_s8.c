/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lstm_steps.h"

#include "arm_nnsupportfunctions.h"

static void add(const int8_t *values,
                const int8_t *weights,
                const int32_t *bias,
                int16_t *sums,
                int32_t multiplier,
                int32_t shift,
                int32_t depth,
                int32_t units)
{
    arm_nn_vec_mat_mul_result_acc_s8(values, weights, bias, sums, 0, multiplier, shift, depth, units, 1);
}

void thimble_lstm_s8(const int8_t *input,
                     const thimble_lstm_params *params,
                     int8_t *hidden,
                     int16_t *cell,
                     int16_t *gates,
                     int8_t *output)
{
    thimble_lstm_steps(input, params, add, thimble_lstm_update, hidden, cell, gates, output);
}
