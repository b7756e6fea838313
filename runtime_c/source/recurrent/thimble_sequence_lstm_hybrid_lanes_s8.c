/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_hybrid_lstm.h"
#include "thimble_units.h"

void thimble_sequence_lstm_hybrid_lanes_s8(const thimble_sequence_lstm_hybrid_params *params,
                                           const float *input,
                                           const float *bias,
                                           float *hidden,
                                           float *cell,
                                           float *gates,
                                           int8_t *stored,
                                           float *output)
{
    thimble_hybrid_lstm(params, thimble_sum_units_lanes_s8, input, bias, hidden, cell, gates, stored, output);
}
