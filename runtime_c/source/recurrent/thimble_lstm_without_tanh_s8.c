/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lstm_add_wrapped.h"

/* x / 2^exponent, halves away from zero, as int16 that wraps; exponent from 0 to 31. */
static int32_t divided(int32_t x, int32_t exponent)
{
    return (int16_t)(exponent > 0 ? thimble_divide_s32(x, exponent) : x);
}

static void update(const thimble_lstm_params *params, const int16_t *gates, int8_t *hidden, int16_t *cell)
{
    const int32_t units = params->units;

    for (int32_t i = 0; i < units; i++) {
        const int32_t in = thimble_logistic_s16(gates[INPUT_GATE * units + i]);
        const int32_t forget = thimble_logistic_s16(gates[FORGET_GATE * units + i]);
        const int32_t candidate = thimble_tanh_s16(gates[CELL_GATE * units + i], 3);
        const int32_t out = thimble_logistic_s16(gates[OUTPUT_GATE * units + i]);
        int32_t next = thimble_divide_s32(forget * cell[i], 15);
        int32_t value;

        next = thimble_saturate_s16(next + divided(in * candidate, 15 + params->cell_integer_bits));
        if (params->cell_clip > 0) {
            next = next > params->cell_clip ? params->cell_clip : next;
            next = next < -params->cell_clip ? -params->cell_clip : next;
        }
        cell[i] = (int16_t)next;
        value = thimble_scaled(out * in, params->hidden_multiplier, params->hidden_shift);
        value += params->hidden_zero_point;
        hidden[i] = (int8_t)(value > INT8_MAX ? INT8_MAX : value < INT8_MIN ? INT8_MIN : value);
    }
}

void thimble_lstm_without_tanh_s8(const int8_t *input,
                                  const thimble_lstm_params *params,
                                  int8_t *hidden,
                                  int16_t *cell,
                                  int16_t *gates,
                                  int8_t *output)
{
    thimble_lstm_steps(input, params, thimble_lstm_add_wrapped, update, hidden, cell, gates, output);
}
