/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers in float32, as ONNX defines LSTM, GRU and RNN. Each operation is rounded once, and sums
 * run in the order of their operands.
 */
#ifndef THIMBLE_RECURRENT_F32_H
#define THIMBLE_RECURRENT_F32_H

#include <stdbool.h>
#include <stdint.h>

/** The sequence is [steps][batches][inputs]. `backwards`: the last step comes first. `every_step`: the output
 * is [steps][batches][units], else what the last computed step gave, [batches][units]. `variant`: of a GRU,
 * whether the reset gate comes after the recurrent product; of an RNN, whether it is rectified instead of
 * tanh. */
typedef struct {
    int32_t steps;
    int32_t batches;
    int32_t inputs;
    int32_t units;
    bool backwards;
    bool every_step;
    bool variant;
} thimble_recurrent_f32_params;

/** sums[row] = start[row] + weights[row] * x, for `rows` rows of `columns` weights; `start` may be `sums`. */
void thimble_gate_sums_f32(
    const float *weights, const float *x, int32_t columns, const float *start, float *sums, int32_t rows);

/** The state at the start of a sequence: a copy of `initial`, or zeros if that is NULL. */
void thimble_first_state_f32(const float *initial, float *state, int32_t units);

/** The gates, of `units` rows each, are input, output, forget and cell; `scratch` holds 6 * units values.
 * `hidden` and `cell` are [batches][units] or NULL; `last_cell` is [batches][units]. */
void thimble_lstm_f32(const thimble_recurrent_f32_params *params,
                      const float *input,
                      const float *weights,
                      const float *recurrent,
                      const float *bias,
                      const float *hidden,
                      const float *cell,
                      float *output,
                      float *last_cell,
                      float *scratch);

/** The gates are update, reset and hidden; a fourth bias is that of the recurrent product of a hidden gate
 * that is reset afterwards. `scratch` holds 5 * units values. */
void thimble_gru_f32(const thimble_recurrent_f32_params *params,
                     const float *input,
                     const float *weights,
                     const float *recurrent,
                     const float *bias,
                     const float *hidden,
                     float *output,
                     float *scratch);

/** One sum for each unit; `scratch` holds 2 * units values. */
void thimble_rnn_f32(const thimble_recurrent_f32_params *params,
                     const float *input,
                     const float *weights,
                     const float *recurrent,
                     const float *bias,
                     const float *hidden,
                     float *output,
                     float *scratch);

#endif
