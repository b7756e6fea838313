/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long short-term memory with int8 weights and hidden state and an int16 cell state.
 */
#ifndef THIMBLE_LSTM_H
#define THIMBLE_LSTM_H

#include <stdint.h>

/* One gate: sums of the input and of the hidden state, each with its own scale; the zero points are in
 * the biases. */
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

/* `gates`: input, forget, cell, output. Strides are in rows. The cell state has `cell_integer_bits`
 * integer bits; a `cell_clip` of 0 does not clip. */
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
 * Runs over all steps of all batches; `hidden` and `cell` are updated. Arithmetic: LiteRT
 * LstmStepInteger8x8_16.
 *
 * input: rows of `inputs`, output: rows of `units`; row (batch, step) is number batch * batch_stride +
 * step * step_stride. gates: 4 * units int16 of scratch.
 */
void thimble_lstm_s8(const int8_t *input,
                     const thimble_lstm_params *params,
                     int8_t *hidden,
                     int16_t *cell,
                     int16_t *gates,
                     int8_t *output);

#endif
