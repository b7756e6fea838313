/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_hybrid.h"
#include "thimble_lane_sums_f32.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT static float filtered(const int8_t *time, float scale, const float *state, int32_t memory)
{
    thimble_lane_sum sum = thimble_begin_sum(memory);
    for (int32_t i = 0; i < memory; i++) {
        const float weight = (float)time[i] * scale;
        thimble_add_term(&sum, i, weight * state[i]);
    }
    return sum.total;
}

THIMBLE_EXACT_FLOAT void thimble_svdf_hybrid_s8(const thimble_svdf_hybrid_params *params,
                                                const float *newest,
                                                const int8_t *time,
                                                const float *bias,
                                                float *state,
                                                float *output)
{
    const int32_t memory = params->memory;
    for (int32_t batch = 0; batch < params->batches; batch++) {
        const int8_t *past = time;
        for (int32_t unit = 0; unit < params->units; unit++) {
            thimble_lane_sum sum = thimble_begin_sum(params->rank);
            for (int32_t filter = 0; filter < params->rank; filter++) {
                for (int32_t i = 1; i < memory; i++) {
                    state[i - 1] = state[i];
                }
                state[memory - 1] = *newest++;
                thimble_add_term(&sum, filter, filtered(past, params->time_scale, state, memory));
                past += memory;
                state += memory;
            }
            const float biased = bias != NULL ? sum.total + bias[unit] : sum.total;
            const float raised = thimble_max_f32(biased, params->min);
            *output++ = params->clamped != 0 ? thimble_min_f32(raised, params->max) : biased;
        }
    }
}
