/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lstm_add_wrapped.h"

void thimble_lstm_wrapped_s8(const int8_t *input,
                             const thimble_lstm_params *params,
                             int8_t *hidden,
                             int16_t *cell,
                             int16_t *gates,
                             int8_t *output)
{
    thimble_lstm_steps(input, params, thimble_lstm_add_wrapped, thimble_lstm_update, hidden, cell, gates,
                       output);
}
