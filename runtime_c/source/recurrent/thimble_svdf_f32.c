/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_lane_sums_f32.h"

#include <stddef.h>

THIMBLE_EXACT_FLOAT void thimble_svdf_f32(const thimble_svdf_f32_params *params,
                                          const float *input,
                                          const float *features,
                                          const float *time,
                                          const float *bias,
                                          float *state,
                                          float *output)
{
    const int32_t depth = params->depth;
    const int32_t memory = params->memory;

    for (int32_t batch = 0; batch < params->batches; batch++, input += depth) {
        const float *feature = features;
        const float *past = time;
        for (int32_t unit = 0; unit < params->units; unit++) {
            thimble_lane_sum sum = thimble_begin_sum(params->rank);
            for (int32_t filter = 0; filter < params->rank; filter++) {
                for (int32_t i = 1; i < memory; i++) {
                    state[i - 1] = state[i];
                }
                state[memory - 1] = thimble_lane_dot_f32(0.0f, feature, input, depth);
                thimble_add_term(&sum, filter, thimble_lane_dot_f32(0.0f, past, state, memory));
                feature += depth;
                past += memory;
                state += memory;
            }
            const float biased = bias != NULL ? sum.total + bias[unit] : sum.total;
            const float raised = thimble_max_f32(biased, params->min);
            *output++ = params->clamped != 0 ? thimble_min_f32(raised, params->max) : biased;
        }
    }
}
