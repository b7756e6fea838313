/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_requantize_s8.h"
#include "thimble_svdf.h"
#include "thimble_svdf_dot.h"

static int32_t filtered(const int16_t *weights, const int16_t *state, int32_t memory, int32_t sum)
{
    for (int32_t i = 0; i < memory; i++) {
        sum = thimble_add(sum, weights[i] * state[i]);
    }
    return sum;
}

void thimble_svdf_s16_s8(const thimble_svdf_params *params,
                         const int8_t *input,
                         const int8_t *features,
                         const int16_t *time,
                         const int32_t *bias,
                         int16_t *state,
                         int8_t *output)
{
    const thimble_svdf_params p = *params;
    for (int32_t batch = 0; batch < p.batches; batch++, input += p.depth) {
        const int8_t *feature = features;
        const int16_t *weights = time;
        for (int32_t unit = 0; unit < p.units; unit++) {
            int32_t sum = bias ? bias[unit] : 0;
            for (int32_t filter = 0; filter < p.rank; filter++) {
                const int32_t found = thimble_svdf_dot(feature, input, p.depth, p.input_zero_point);
                const int32_t newest = thimble_scaled(found, p.into_multiplier, p.into_shift);
                for (int32_t i = 1; i < p.memory; i++) {
                    state[i - 1] = state[i];
                }
                state[p.memory - 1] = (int16_t)thimble_clamp_sum(newest, INT16_MIN, INT16_MAX);
                sum = filtered(weights, state, p.memory, sum);
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
