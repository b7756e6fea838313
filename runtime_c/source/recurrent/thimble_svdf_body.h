/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SVDF of int8 with values of STATE from LEAST to MOST. MOVE_DOWN(values, count) moves so many by one place
 * down; FILTERED(weights, values, size, zero) is the sum of weight * (value - zero). Sums wrap.
 */
#include "thimble_multiplier.h"
#include "thimble_requantize_s8.h"
#include "thimble_svdf.h"
#include "thimble_svdf_dot.h"

void SVDF(const thimble_svdf_params *params,
          const int8_t *input,
          const int8_t *features,
          const STATE *time,
          const int32_t *bias,
          STATE *state,
          int8_t *output)
{
    const thimble_svdf_params p = *params;
    for (int32_t batch = 0; batch < p.batches; batch++, input += p.depth) {
        const int8_t *feature = features;
        const STATE *weights = time;
        for (int32_t unit = 0; unit < p.units; unit++) {
            int32_t sum = bias ? bias[unit] : 0;
            for (int32_t filter = 0; filter < p.rank; filter++) {
                const int32_t found = thimble_svdf_dot(feature, input, p.depth, p.input_zero_point);
                const int32_t scaled = thimble_scaled(found, p.into_multiplier, p.into_shift);
                const int32_t newest = thimble_clamp_sum(scaled, LEAST, MOST) + p.state_zero_point;
                MOVE_DOWN(state, p.memory - 1);
                state[p.memory - 1] = (STATE)newest; /* wraps as TFLM's does */
                sum = thimble_add(sum, FILTERED(weights, state, p.memory, p.state_zero_point));
                feature += p.depth;
                weights += p.memory;
                state += p.memory;
            }
            const int32_t result = thimble_scaled(sum, p.out_multiplier, p.out_shift);
            *output++ =
                (int8_t)thimble_clamp_sum(thimble_add(result, p.output_zero_point), INT8_MIN, INT8_MAX);
        }
    }
}
