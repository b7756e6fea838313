/* SPDX-License-Identifier: Apache-2.0 */
/* What the gates of an LSTM layer of TFLite do to its states, in float. */
#ifndef THIMBLE_LSTM_CELL_H
#define THIMBLE_LSTM_CELL_H

#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* Gates: those of input, forget, cell and output, `units` sums of each. A `clip` of 0 is none. */
THIMBLE_EXACT_FLOAT static inline void
thimble_update_lstm_cell(const float *gates, int32_t units, float clip, float *hidden, float *cell)
{
    for (int32_t i = 0; i < units; i++) {
        const float kept = thimble_logistic_f32(gates[units + i]) * cell[i];
        const float added = thimble_logistic_f32(gates[i]) * thimble_tanh_f32(gates[2 * units + i]);
        const float next = kept + added;
        cell[i] = clip > 0.0f ? thimble_clamp_f32(next, -clip, clip) : next;
        hidden[i] = thimble_logistic_f32(gates[3 * units + i]) * thimble_tanh_f32(cell[i]);
    }
}

#endif
