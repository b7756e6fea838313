/* SPDX-License-Identifier: Apache-2.0 */
/* A hybrid LSTM layer, around sums of four filters. */
#ifndef THIMBLE_HYBRID_LSTM_H
#define THIMBLE_HYBRID_LSTM_H

#include "thimble_dsp.h"
#include "thimble_exact_float.h"
#include "thimble_hybrid.h"
#include "thimble_lstm_cell.h"
#include "thimble_sum_four.h"

/* Adds to the sums of four gates the products of a row of `depth` values, quantised by itself. */
THIMBLE_EXACT_FLOAT static inline void thimble_hybrid_gates(const thimble_hybrid_matrix *weights,
                                                            thimble_sum_four sum_four,
                                                            int32_t asymmetric,
                                                            const float *row,
                                                            int32_t depth,
                                                            int32_t units,
                                                            int8_t *stored,
                                                            float *gates)
{
    const int32_t *at = weights->parameters;
    float scale;
    const int32_t zero_point = thimble_quantize_range_f32(row, depth, asymmetric, stored, &scale);
    for (int32_t next = 0; next < 4 * units; next += 4) {
        int32_t sums[4];
        at = sum_four(stored, at, depth, sums);
        for (int32_t i = next; i < next + 4; i++) {
            const int32_t shift = thimble_multiply(-zero_point, weights->taps[i]);
            const float sum = (float)thimble_add(sums[i - next], shift);
            gates[i] += sum * (scale * weights->scales[i / units]);
        }
    }
}

THIMBLE_EXACT_FLOAT static inline void thimble_hybrid_lstm(const thimble_sequence_lstm_hybrid_params *params,
                                                           thimble_sum_four sum_four,
                                                           const float *input,
                                                           const float *bias,
                                                           float *hidden,
                                                           float *cell,
                                                           float *gates,
                                                           int8_t *stored,
                                                           float *output)
{
    const thimble_sequence_lstm_hybrid_params p = *params;
    for (int32_t batch = 0; batch < p.batches; batch++, hidden += p.units, cell += p.units) {
        for (int32_t step = 0; step < p.steps; step++) {
            const int32_t row = batch * p.batch_stride + step * p.step_stride;
            for (int32_t i = 0; i < 4 * p.units; i++) {
                gates[i] = bias[i];
            }
            thimble_hybrid_gates(&p.weights, sum_four, p.asymmetric, &input[row * p.inputs], p.inputs,
                                 p.units, stored, gates);
            thimble_hybrid_gates(&p.recurrent, sum_four, p.asymmetric, hidden, p.units, p.units, stored,
                                 gates);
            thimble_update_lstm_cell(gates, p.units, p.cell_clip, hidden, cell);
            for (int32_t i = 0; i < p.units; i++) {
                output[row * p.units + i] = hidden[i];
            }
        }
    }
}

#endif
