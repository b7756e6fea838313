/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long short-term memory with int8 weights and hidden state and an int16 cell state.
 */
#ifndef THIMBLE_LSTM_H
#define THIMBLE_LSTM_H

#include <stdint.h>

/* One gate: weights [units][inputs] and [units][units] of the input and of the hidden state. The two sums
 * have scales of their own; the biases include what the zero points add. */
typedef struct {
    const int8_t *input_weights;
    const int8_t *recurrent_weights;
    const int32_t *input_bias;
    const int32_t *recurrent_bias;
    int32_t input_multiplier;
    int32_t input_shift;
    int32_t recurrent_multiplier;
    int32_t recurrent_shift;
} thimble_lstm_gate;

/* `gates`: input, forget, cell, output. Strides count rows. The cell state is int16 with `cell_integer_bits`
 * integer bits, and is held within -cell_clip and cell_clip unless that is 0. */
typedef struct {
    thimble_lstm_gate gates[4];
    int32_t batches;
    int32_t steps;
    int32_t inputs;
    int32_t units;
    int32_t batch_stride;
    int32_t step_stride;
    int32_t cell_integer_bits;
    int32_t cell_clip;
    int32_t hidden_multiplier;
    int32_t hidden_shift;
    int32_t hidden_zero_point;
} thimble_lstm_params;

/*
 * Runs all steps of all batches with the arithmetic of LiteRT's `LstmStepInteger8x8_16`.
 *
 * input: rows of `inputs` elements. output: rows of `units` elements. Row (batch, step) of both is number
 *     batch * batch_stride + step * step_stride.
 * hidden, cell: the state, [batches][units]; updated.
 * gates: scratch, 4 * units int16.
 */
void thimble_lstm_s8(const int8_t *input,
                     const thimble_lstm_params *params,
                     int8_t *hidden,
                     int16_t *cell,
                     int16_t *gates,
                     int8_t *output);

/* The same where sums of a gate may wrap: CMSIS-NN's, which thimble_lstm_s8 calls, do not define that in C.
 */
void thimble_lstm_wrapped_s8(const int8_t *input,
                             const thimble_lstm_params *params,
                             int8_t *hidden,
                             int16_t *cell,
                             int16_t *gates,
                             int8_t *output);

/* For a cell state that does not have 0 to 6 integer bits, but -15 to 16: LiteRT leaves its hyperbolic
 * tangent out, and multiplies the output gate by the input gate. Sums of a gate may wrap. */
void thimble_lstm_without_tanh_s8(const int8_t *input,
                                  const thimble_lstm_params *params,
                                  int8_t *hidden,
                                  int16_t *cell,
                                  int16_t *gates,
                                  int8_t *output);

#endif
