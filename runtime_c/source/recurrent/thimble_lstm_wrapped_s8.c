/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_lstm_steps.h"

static void add(const int8_t *values,
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

void thimble_lstm_wrapped_s8(const int8_t *input,
                             const thimble_lstm_params *params,
                             int8_t *hidden,
                             int16_t *cell,
                             int16_t *gates,
                             int8_t *output)
{
    thimble_lstm_steps(input, params, add, hidden, cell, gates, output);
}
