/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_hybrid.h"

#include <stddef.h>

enum { LANES = 4 };

/* A sum as LiteRT's vectors make it: of every fourth term in turn, then of these four, then the rest. */
typedef struct {
    float lanes[LANES];
    float total;
    int32_t vectors;
} lane_sum;

static void begin(lane_sum *sum, int32_t count)
{
    for (int32_t lane = 0; lane < LANES; lane++) {
        sum->lanes[lane] = 0.0f;
    }
    sum->total = 0.0f;
    sum->vectors = count - count % LANES;
}

THIMBLE_EXACT_FLOAT static void add(lane_sum *sum, int32_t place, float term)
{
    if (place < sum->vectors) {
        sum->lanes[place % LANES] += term;
    }
    if (place == sum->vectors - 1) {
        sum->total = ((sum->lanes[0] + sum->lanes[1]) + sum->lanes[2]) + sum->lanes[3];
    } else if (place >= sum->vectors) {
        sum->total += term;
    }
}

THIMBLE_EXACT_FLOAT static float filtered(const int8_t *time, float scale, const float *state, int32_t memory)
{
    lane_sum sum;
    begin(&sum, memory);
    for (int32_t i = 0; i < memory; i++) {
        const float weight = (float)time[i] * scale;
        add(&sum, i, weight * state[i]);
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
            lane_sum sum;
            begin(&sum, params->rank);
            for (int32_t filter = 0; filter < params->rank; filter++) {
                for (int32_t i = 1; i < memory; i++) {
                    state[i - 1] = state[i];
                }
                state[memory - 1] = *newest++;
                add(&sum, filter, filtered(past, params->time_scale, state, memory));
                past += memory;
                state += memory;
            }
            const float biased = bias != NULL ? sum.total + bias[unit] : sum.total;
            const float raised = thimble_max_f32(biased, params->min);
            *output++ = params->clamped != 0 ? thimble_min_f32(raised, params->max) : biased;
        }
    }
}
