/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of an int8 LSTM's gates that wrap. */
#ifndef THIMBLE_LSTM_ADD_WRAPPED_H
#define THIMBLE_LSTM_ADD_WRAPPED_H

#include "thimble_dsp.h"
#include "thimble_lstm_steps.h"

/* A `thimble_lstm_add`. */
static inline void thimble_lstm_add_wrapped(const int8_t *values,
                                            const int8_t *weights,
                                            const int32_t *bias,
                                            int16_t *sums,
                                            int32_t multiplier,
                                            int32_t shift,
                                            int32_t depth,
                                            int32_t units)
{
    for (int32_t unit = 0; unit < units; unit++, weights += depth) {
        int32_t sum = bias[unit];
        for (int32_t i = 0; i < depth; i++) {
            sum = thimble_add(sum, values[i] * weights[i]);
        }
        sum = thimble_scaled(sum, multiplier, shift) + sums[unit];
        sums[unit] = (int16_t)thimble_saturate_s16(sum);
    }
}

#endif
