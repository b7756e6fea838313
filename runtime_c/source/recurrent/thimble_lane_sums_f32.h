/* SPDX-License-Identifier: Apache-2.0 */
/* Sums in the order of LiteRT's vectors of four: of every fourth term in turn, of these four, then of what is
 * left, one by one. */
#ifndef THIMBLE_LANE_SUMS_F32_H
#define THIMBLE_LANE_SUMS_F32_H

#include "thimble_exact_float.h"

enum { THIMBLE_SUM_LANES = 4 };

/* A sum to which terms come one after the other, `count` of them. */
typedef struct {
    float lanes[THIMBLE_SUM_LANES];
    float total;
    int32_t vectors;
} thimble_lane_sum;

static inline thimble_lane_sum thimble_begin_sum(int32_t count)
{
    const thimble_lane_sum sum = {{0.0f, 0.0f, 0.0f, 0.0f}, 0.0f, count - count % THIMBLE_SUM_LANES};
    return sum;
}

THIMBLE_EXACT_FLOAT static inline void thimble_add_term(thimble_lane_sum *sum, int32_t place, float term)
{
    if (place >= sum->vectors) {
        sum->total += term;
        return;
    }
    sum->lanes[place % THIMBLE_SUM_LANES] += term;
    if (place == sum->vectors - 1) {
        sum->total = ((sum->lanes[0] + sum->lanes[1]) + sum->lanes[2]) + sum->lanes[3];
    }
}

/* `start` and the sum of products. */
THIMBLE_EXACT_FLOAT static inline float
thimble_lane_dot_f32(float start, const float *weights, const float *values, int32_t count)
{
    const int32_t vectors = count - count % THIMBLE_SUM_LANES;
    float a = 0.0f;
    float b = 0.0f;
    float c = 0.0f;
    float d = 0.0f;
    for (int32_t i = 0; i < vectors; i += THIMBLE_SUM_LANES) {
        a += weights[i] * values[i];
        b += weights[i + 1] * values[i + 1];
        c += weights[i + 2] * values[i + 2];
        d += weights[i + 3] * values[i + 3];
    }
    float total = start + (((a + b) + c) + d);
    for (int32_t i = vectors; i < count; i++) {
        total += weights[i] * values[i];
    }
    return total;
}

#endif
