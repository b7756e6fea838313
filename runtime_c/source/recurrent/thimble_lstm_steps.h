/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an int8 LSTM layer, around the sums of its gates. */
#ifndef THIMBLE_LSTM_STEPS_H
#define THIMBLE_LSTM_STEPS_H

#include "thimble_fixed_s16.h"
#include "thimble_lstm.h"
#include "thimble_multiplier.h"

#include <string.h>

enum { INPUT_GATE, FORGET_GATE, CELL_GATE, OUTPUT_GATE, GATES };

/* Adds the scaled products of `depth` values and each of `units` rows of weights to `sums`, held within
 * int16. */
typedef void (*thimble_lstm_add)(const int8_t *values,
                                 const int8_t *weights,
                                 const int32_t *bias,
                                 int16_t *sums,
                                 int32_t multiplier,
                                 int32_t shift,
                                 int32_t depth,
                                 int32_t units);

/* New states of a step, from the sums of its gates. */
typedef void (*thimble_lstm_next)(const thimble_lstm_params *params,
                                  const int16_t *gates,
                                  int8_t *hidden,
                                  int16_t *cell);

static inline void thimble_lstm_gates(const int8_t *input,
                                      const thimble_lstm_params *params,
                                      thimble_lstm_add add,
                                      const int8_t *hidden,
                                      int16_t *gates)
{
    (void)memset(gates, 0, (size_t)(GATES * params->units) * sizeof(int16_t));
    for (int32_t i = 0; i < GATES; i++) {
        const thimble_lstm_gate *gate = &params->gates[i];
        int16_t *sums = &gates[i * params->units];

        add(input, gate->input_weights, gate->input_bias, sums, gate->input_multiplier, gate->input_shift,
            params->inputs, params->units);
        add(hidden, gate->recurrent_weights, gate->recurrent_bias, sums, gate->recurrent_multiplier,
            gate->recurrent_shift, params->units, params->units);
    }
}

#if THIMBLE_MVE
/* x / 2^exponent, halves away from zero. */
static inline int32x4_t thimble_lstm_divided(int32x4_t x, int32_t exponent)
{
    return vrshlq_s32(vaddq_s32(x, vshrq_n_s32(x, 31)), vdupq_n_s32(-exponent));
}

/* thimble_scaled of four. */
static inline int32x4_t thimble_lstm_scaled(int32x4_t x, int32_t multiplier, int32_t shift)
{
    const int32x4_t high = vqrdmulhq_n_s32(vshlq_r_s32(x, shift > 0 ? shift : 0), multiplier);
    if (shift >= 0) {
        return high;
    }
    return vrshlq_s32(vqaddq_s32(high, vshrq_n_s32(high, 31)), vdupq_n_s32(shift));
}

/* Four units at a time. */
static inline void
thimble_lstm_update(const thimble_lstm_params *params, const int16_t *gates, int8_t *hidden, int16_t *cell)
{
    const int32_t units = params->units, clip = params->cell_clip > 0 ? params->cell_clip : -INT16_MIN;
    const int32x4_t top = vdupq_n_s32(clip), bottom = vdupq_n_s32(-clip);

    for (int32_t i = 0; i < units; i += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)(units - i));
        const int16_t *const at = gates + i;
        const int32x4_t in = thimble_logistics_s16(vldrhq_z_s32(at + INPUT_GATE * units, lanes));
        const int32x4_t forget = thimble_logistics_s16(vldrhq_z_s32(at + FORGET_GATE * units, lanes));
        const int32x4_t candidate = thimble_tanhs_s16(vldrhq_z_s32(at + CELL_GATE * units, lanes), 3);
        const int32x4_t out = thimble_logistics_s16(vldrhq_z_s32(at + OUTPUT_GATE * units, lanes));
        const int32x4_t kept = thimble_lstm_divided(vmulq_s32(forget, vldrhq_z_s32(cell + i, lanes)), 15);
        const int32x4_t added =
            thimble_lstm_divided(vmulq_s32(in, candidate), 15 + params->cell_integer_bits);
        const int32x4_t held = thimble_saturated_s16(vaddq_s32(kept, added));
        const int32x4_t next = vminq_s32(vmaxq_s32(held, bottom), top);
        vstrhq_p_s32(cell + i, next, lanes);
        int32x4_t value = vmulq_s32(out, thimble_tanhs_s16(next, params->cell_integer_bits));
        value = thimble_lstm_scaled(value, params->hidden_multiplier, params->hidden_shift);
        value = vaddq_n_s32(value, params->hidden_zero_point);
        value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));
        vstrbq_p_s32(hidden + i, value, lanes);
    }
}
#else
static inline void
thimble_lstm_update(const thimble_lstm_params *params, const int16_t *gates, int8_t *hidden, int16_t *cell)
{
    const int32_t units = params->units;

    for (int32_t i = 0; i < units; i++) {
        const int32_t in = thimble_logistic_s16(gates[INPUT_GATE * units + i]);
        const int32_t forget = thimble_logistic_s16(gates[FORGET_GATE * units + i]);
        const int32_t candidate = thimble_tanh_s16(gates[CELL_GATE * units + i], 3);
        const int32_t out = thimble_logistic_s16(gates[OUTPUT_GATE * units + i]);
        int32_t next = thimble_divide_s32(forget * cell[i], 15);
        int32_t value;

        next += thimble_divide_s32(in * candidate, 15 + params->cell_integer_bits);
        next = thimble_saturate_s16(next);
        if (params->cell_clip > 0) {
            next = next > params->cell_clip ? params->cell_clip : next;
            next = next < -params->cell_clip ? -params->cell_clip : next;
        }
        cell[i] = (int16_t)next;
        value = out * thimble_tanh_s16(next, params->cell_integer_bits);
        value = thimble_scaled(value, params->hidden_multiplier, params->hidden_shift);
        value += params->hidden_zero_point;
        hidden[i] = (int8_t)(value > INT8_MAX ? INT8_MAX : value < INT8_MIN ? INT8_MIN : value);
    }
}

#endif

static inline void thimble_lstm_steps(const int8_t *input,
                                      const thimble_lstm_params *params,
                                      thimble_lstm_add add,
                                      thimble_lstm_next next,
                                      int8_t *hidden,
                                      int16_t *cell,
                                      int16_t *gates,
                                      int8_t *output)
{
    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t step = 0; step < params->steps; step++) {
            const int32_t row = batch * params->batch_stride + step * params->step_stride;

            thimble_lstm_gates(&input[row * params->inputs], params, add, hidden, gates);
            next(params, gates, hidden, cell);
            (void)memcpy(&output[row * params->units], hidden, (size_t)params->units);
        }
        hidden += params->units;
        cell += params->units;
    }
}

#endif
